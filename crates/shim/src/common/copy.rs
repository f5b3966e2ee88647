//! Copies: small ones are done, all are recorded.

use trompe_base::Bytes;
use trompe_cuda_abi::runtime::Address;
use trompe_device::graph::{Effect, NodeKind};
use trompe_device::memory::BlockKind;
use trompe_device::pace;
use trompe_device::progress::Work;
use trompe_trace::descriptor::{Copy, Place};
use trompe_trace::record::Record;

use super::Outcome;
use super::stream::{StreamRef, refuse_in_capture};
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

/// Copies up to this many bytes are really done. Control values, indices and small batches are below it, weights and
/// activations, whose values nobody looks at, above.
pub(crate) const PERFORMED: u64 = 4 << 20;

/// A copy request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: u64,
    /// Stream handle.
    pub(crate) stream: Address,
    /// The call returns only when the copy is over.
    pub(crate) synchronous: bool,
}

/// Does and records a copy.
pub(crate) fn transfer(call: &mut Call<'_>, request: Transfer) -> Outcome {
    let Transfer { to, from, bytes, stream, synchronous } = request;
    let device = call.device();
    call.activate(device)?;
    if bytes == 0 {
        return Ok(());
    }
    if to == 0 || from == 0 {
        return Err(Failure::InvalidValue);
    }
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream)?;
    if synchronous {
        refuse_in_capture(&mut machine, stream)?;
    }
    if !machine.memory.is_accessible(to, bytes) || !machine.memory.is_accessible(from, bytes) {
        return Err(Failure::InvalidValue);
    }
    let copy =
        Copy { from: place(&machine, from, stream), to: place(&machine, to, stream), bytes: Bytes(bytes) };
    match stream.capture {
        Some(capture) => {
            let effect = (bytes <= PERFORMED).then_some(Effect::Copy { to, from, bytes });
            machine.graphs.enqueue(capture, stream.id, NodeKind::Copy, effect);
        }
        None => perform(&mut machine, to, from, bytes),
    }
    // From pageable memory the driver copies into a staging buffer first, small copies without waiting; to pageable
    // memory the call waits for the copy (CUDA runtime API, "API synchronization behavior").
    let staged = copy.from == Place::Pageable && copy.to != Place::Pageable && bytes <= 64 << 10;
    let pageable = copy.from == Place::Pageable || copy.to == Place::Pageable;
    let device_only = matches!(copy.from, Place::Device) && matches!(copy.to, Place::Device);
    let blocking = (synchronous && !device_only) || (pageable && !staged);
    after(&mut machine, stream, bytes, blocking);
    call.record(&Record::Copy { api: call.api.0, stream: stream.id, copy, blocking });
    Ok(())
}

/// Notes a copy in its stream's progress; the host has waited for a blocking one.
fn after(machine: &mut HostMachine, stream: StreamRef, bytes: u64, blocking: bool) {
    if stream.capture.is_none() {
        let ns = machine.sheet().map_or(0, |sheet| pace::transfer_ns(sheet, 2 * bytes));
        machine.progress.enqueue_work(stream.id, stream.device, Work::Other, ns);
        if blocking {
            machine.progress.finish_stream(stream.id);
        }
    }
}

/// Where an address lies, seen from a stream's device.
pub(crate) fn place(machine: &HostMachine, address: u64, stream: StreamRef) -> Place {
    if let Some(device) = machine.memory.device_of(address) {
        return if device == stream.device { Place::Device } else { Place::Peer };
    }
    match machine.memory.block_at(address).map(|(_, block)| block.kind) {
        Some(BlockKind::Device { .. } | BlockKind::Managed { .. }) => Place::Device,
        Some(BlockKind::Pinned { .. } | BlockKind::Registered { .. }) => Place::Pinned,
        None => Place::Pageable,
    }
}

/// Moves bytes if they are few; a larger copy leaves its destination on the device zero.
pub(crate) fn perform(machine: &mut HostMachine, to: u64, from: u64, bytes: u64) {
    let to_device = machine.memory.device_of(to).is_some();
    if bytes > PERFORMED {
        if to_device {
            machine.memory.freshen(to, bytes);
        }
        return;
    }
    if to_device {
        let content = machine.memory.content(from, bytes);
        machine.memory.mark_written(to, bytes);
        machine.memory.note_content(to, bytes, content);
    }
    move_bytes(to, from, bytes);
}

/// Moves bytes between any two places; the caller has checked device addresses.
pub(crate) fn move_bytes(to: u64, from: u64, bytes: u64) {
    // SAFETY: device addresses lie in live reservations, host addresses are the caller's promise.
    #[expect(unsafe_code, reason = "the copy itself")]
    unsafe {
        std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize);
    }
}

/// A copy of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer2D {
    pub(crate) to: Address,
    pub(crate) to_pitch: u64,
    pub(crate) from: Address,
    pub(crate) from_pitch: u64,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) stream: Address,
    pub(crate) synchronous: bool,
}

/// Does and records a copy of rows.
pub(crate) fn transfer_2d(call: &mut Call<'_>, request: Transfer2D) -> Outcome {
    let Transfer2D { to, to_pitch, from, from_pitch, width, height, stream, synchronous } = request;
    let device = call.device();
    call.activate(device)?;
    if width > to_pitch || width > from_pitch {
        return Err(trompe_cuda_abi::runtime::RuntimeError::INVALID_PITCH_VALUE.into());
    }
    if width == 0 || height == 0 {
        return Ok(());
    }
    let span = |pitch: u64| pitch.checked_mul(height - 1)?.checked_add(width);
    let (Some(to_span), Some(from_span)) = (span(to_pitch), span(from_pitch)) else {
        return Err(Failure::InvalidValue);
    };
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream)?;
    if synchronous {
        refuse_in_capture(&mut machine, stream)?;
    }
    if to == 0
        || from == 0
        || !machine.memory.is_accessible(to, to_span)
        || !machine.memory.is_accessible(from, from_span)
    {
        return Err(Failure::InvalidValue);
    }
    let bytes = width.saturating_mul(height);
    let copy =
        Copy { from: place(&machine, from, stream), to: place(&machine, to, stream), bytes: Bytes(bytes) };
    match stream.capture {
        Some(capture) => machine.graphs.enqueue(capture, stream.id, NodeKind::Copy, None),
        None if bytes <= PERFORMED => {
            for row in 0..height {
                perform(&mut machine, to + row * to_pitch, from + row * from_pitch, width);
            }
        }
        None => {}
    }
    let pageable = copy.from == Place::Pageable || copy.to == Place::Pageable;
    let blocking = synchronous || pageable;
    after(&mut machine, stream, bytes, blocking);
    call.record(&Record::Copy { api: call.api.0, stream: stream.id, copy, blocking });
    Ok(())
}
