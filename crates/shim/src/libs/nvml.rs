//! NVML: questions about the devices, answered from the node's sheet.
//!
//! What a sheet cannot know (temperature, power draw, error counters) is "not supported", as on boards without the sensor.

pub(crate) mod device;
pub(crate) mod limits;
pub(crate) mod links;
pub(crate) mod memory;
pub(crate) mod system;

use trompe_hardware::EmulatedNode;

use super::LibraryFailure;
use crate::door::Call;

/// Device handles are this plus 16 times the index: not null, and nothing else's.
const FIRST_HANDLE: u64 = 0x0040_0000_0000_0000;
const HANDLE_STEP: u64 = 16;

const fn handle_of(index: u32) -> u64 {
    FIRST_HANDLE + index as u64 * HANDLE_STEP
}

/// Asks the node about the device behind a handle.
fn ask<T>(
    call: &Call<'_>,
    handle: u64,
    question: impl FnOnce(&EmulatedNode, u32) -> T,
) -> Result<T, LibraryFailure> {
    let machine = call.machine();
    let node = machine.node().ok_or(LibraryFailure::NotFound)?;
    let offset = handle.checked_sub(FIRST_HANDLE).filter(|offset| offset.is_multiple_of(HANDLE_STEP));
    let index =
        offset.map(|offset| offset / HANDLE_STEP).filter(|index| *index < u64::from(node.device_count));
    Ok(question(node, index.ok_or(LibraryFailure::InvalidValue)? as u32))
}
