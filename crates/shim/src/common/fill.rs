//! Fills: small ones are done, all are recorded.

use trompe_cuda_abi::runtime::Address;
use trompe_device::graph::{Effect, NodeKind};
use trompe_device::memory::Content;
use trompe_device::pace;
use trompe_device::progress::Work;
use trompe_trace::record::Record;

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

/// Fills with something other than zero up to this many bytes are really done.
const PERFORMED: u64 = 1 << 20;

/// Of longer ranges of zeros it is not kept that they are what a real device would hold: nobody looks at their values.
const KNOWN: u64 = 4 << 20;

/// A fill request.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    pub(crate) to: Address,
    /// One element.
    pub(crate) pattern: Vec<u8>,
    /// Number of elements.
    pub(crate) count: u64,
    /// Stream handle.
    pub(crate) stream: Address,
}

/// Does and records a fill.
pub(crate) fn fill(call: &mut Call<'_>, request: Fill) -> Outcome {
    let Fill { to, pattern, count, stream } = request;
    let device = call.device();
    call.activate(device)?;
    let bytes = count.checked_mul(pattern.len() as u64).ok_or(Failure::InvalidValue)?;
    if bytes == 0 {
        return Ok(());
    }
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream)?;
    // Of host memory only what the library knows is the device's to fill.
    if to == 0 || !machine.memory.is_known(to, bytes) {
        return Err(Failure::InvalidValue);
    }
    let value = pattern.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
    match stream.capture {
        Some(capture) => {
            let effect = Effect::Fill { to, pattern, count };
            machine.graphs.enqueue(capture, stream.id, NodeKind::Set, Some(effect));
        }
        None => {
            let ns = machine.sheet().map_or(0, |sheet| pace::transfer_ns(sheet, bytes));
            machine.progress.enqueue_work(stream.id, stream.device, Work::Fill, ns);
            perform(&mut machine, to, &pattern, count);
        }
    }
    call.record(&Record::Set { api: call.api.0, stream: stream.id, bytes, value });
    Ok(())
}

/// Writes a repeated pattern if it is short or zero; a longer one leaves device memory zero and host memory alone.
pub(crate) fn perform(machine: &mut HostMachine, to: u64, pattern: &[u8], count: u64) {
    let bytes = count * pattern.len() as u64;
    let is_zero = pattern.iter().all(|&byte| byte == 0);
    if machine.memory.device_of(to).is_some() {
        if is_zero || bytes > PERFORMED {
            machine.memory.freshen(to, bytes);
            if is_zero && bytes <= KNOWN {
                machine.memory.note_content(to, bytes, Content::True);
            }
            return;
        }
        machine.memory.mark_written(to, bytes);
        machine.memory.note_content(to, bytes, Content::True);
    } else if !is_zero && bytes > PERFORMED {
        return;
    }
    write_pattern(to, pattern, count);
}

fn write_pattern(to: u64, pattern: &[u8], count: u64) {
    // SAFETY: device addresses were checked to lie in live reservations, host addresses are the caller's promise.
    #[expect(unsafe_code, reason = "the fill itself")]
    let target = unsafe { std::slice::from_raw_parts_mut(to as *mut u8, pattern.len() * count as usize) };
    match pattern {
        [byte] => target.fill(*byte),
        _ => target.chunks_exact_mut(pattern.len()).for_each(|element| element.copy_from_slice(pattern)),
    }
}

/// `cudaMemset`, `cuMemsetD8`.
pub(crate) fn memset(call: &mut Call<'_>, to: Address, value: i32, bytes: usize) -> Outcome {
    fill(call, Fill { to, pattern: vec![value as u8], count: bytes as u64, stream: 0 })
}

/// `cudaMemsetAsync`, `cuMemsetD8Async`.
pub(crate) fn memset_async(
    call: &mut Call<'_>,
    to: Address,
    value: i32,
    bytes: usize,
    stream: Address,
) -> Outcome {
    fill(call, Fill { to, pattern: vec![value as u8], count: bytes as u64, stream })
}
