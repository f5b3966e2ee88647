//! What an address is.

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::{Address, PointerAttributes, PointerAttributes12};
use trompe_device::memory::BlockKind;

use crate::common::Outcome;
use crate::cudart::earlier;
use crate::door::Call;
use crate::failure::Failure;

const UNREGISTERED: i32 = 0;
const HOST: i32 = 1;
const DEVICE: i32 = 2;
const MANAGED: i32 = 3;
/// `cudaInvalidDeviceId`.
const NO_DEVICE: i32 = -2;

/// `cudaPointerGetAttributes`.
pub(crate) fn attributes(call: &mut Call<'_>, out: Out<PointerAttributes>, address: Address) -> Outcome {
    let machine = call.machine();
    if machine.device_count() == 0 {
        return Err(Failure::NoDevice);
    }
    let mut found =
        PointerAttributes { device: NO_DEVICE, kind: UNREGISTERED, ..PointerAttributes::default() };
    if machine.memory.device_range(address).is_some() && machine.memory.device_of(address).is_some() {
        found.kind = DEVICE;
        found.device = machine.memory.device_of(address).map_or(NO_DEVICE, |device| device.0 as i32);
        found.device_pointer = address;
    } else if let Some((_, block)) = machine.memory.block_at(address) {
        found.kind = if matches!(block.kind, BlockKind::Managed { .. }) { MANAGED } else { HOST };
        found.device = block.kind.device().0 as i32;
        found.device_pointer = address;
        found.host_pointer = address;
    } else {
        found.host_pointer = address;
    }
    drop(machine);
    if earlier::is_12(call) {
        let PointerAttributes { kind, device, device_pointer, host_pointer, .. } = found;
        let found = PointerAttributes12 { kind, device, device_pointer, host_pointer };
        Out::new(out.address()).write(found)?;
    } else {
        out.write(found)?;
    }
    Ok(())
}
