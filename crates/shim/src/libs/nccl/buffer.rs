//! Memory made by or made known to NCCL.

use trompe_cuda_abi::pointer::Out;
use trompe_device::memory::BlockKind;
use trompe_trace::record::Record;

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// `ncclCommRegister`: the buffer's own address is the handle.
pub(crate) fn register(
    _: &mut Call<'_>,
    communicator: u64,
    buffer: u64,
    _bytes: usize,
    handle: Out<u64>,
) -> Outcome {
    libraries().communicators.get(communicator)?;
    Ok(handle.write(buffer)?)
}

/// `ncclCommWindowRegister`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn register_window(
    call: &mut Call<'_>,
    communicator: u64,
    buffer: u64,
    bytes: usize,
    window: Out<u64>,
    _flags: i32,
) -> Outcome {
    register(call, communicator, buffer, bytes, window)
}

/// `ncclCommDeregister`, `ncclCommWindowDeregister`.
pub(crate) fn deregister(_: &mut Call<'_>, communicator: u64, _handle: u64) -> Outcome {
    libraries().communicators.get(communicator)?;
    Ok(())
}

/// `ncclWinGetUserPtr`.
pub(crate) fn window_pointer(_: &mut Call<'_>, communicator: u64, window: u64, pointer: Out<u64>) -> Outcome {
    libraries().communicators.get(communicator)?;
    Ok(pointer.write(window)?)
}

/// `ncclMemAlloc`.
pub(crate) fn allocate(call: &mut Call<'_>, address: Out<u64>, bytes: usize) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    let bytes = bytes as u64;
    let got = call.machine().memory.allocate(device, bytes);
    let at = got.as_ref().map_or(0, |at| *at);
    call.record(&Record::Malloc { api: call.api.0, device, address: at, bytes });
    got.map_err(|_| LibraryFailure::OutOfMemory)?;
    Ok(address.write(at)?)
}

/// `ncclMemFree`.
pub(crate) fn free(call: &mut Call<'_>, address: u64) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    let freed = call.machine().memory.free(address, BlockKind::is_freed_as_device);
    let block = freed.map_err(|_| LibraryFailure::InvalidValue)?;
    let device = block.kind.device();
    call.record(&Record::Free { api: call.api.0, device, address, bytes: block.bytes });
    Ok(())
}
