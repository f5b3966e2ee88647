//! Memory and events shared between processes.
//!
//! A handle carries what the receiver must know; the receiver maps fresh memory of the same size, which reads zero.

use trompe_base::DeviceIndex;
use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::{Address, IpcHandle};

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;

const MAGIC: [u8; 8] = *b"trompeip";

/// `cudaIpcGetMemHandle`, `cuIpcGetMemHandle`.
pub(crate) fn memory_handle(call: &mut Call<'_>, out: Out<IpcHandle>, address: Address) -> Outcome {
    let machine = call.machine();
    let (start, bytes, id) = machine.memory.device_range(address).ok_or(Failure::InvalidValue)?;
    let device = machine.memory.device_of(address).ok_or(Failure::InvalidValue)?;
    let mut handle = IpcHandle { bytes: [0; 64] };
    let process = u64::from(std::process::id());
    let words = [start, bytes, id, u64::from(device.0), process];
    handle.bytes[..8].copy_from_slice(&MAGIC);
    for (place, word) in handle.bytes[8..].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    out.write(handle)?;
    Ok(())
}

/// `cudaIpcOpenMemHandle`, `cuIpcOpenMemHandle`.
pub(crate) fn open_memory(call: &mut Call<'_>, out: Out<u64>, handle: IpcHandle, _: u32) -> Outcome {
    let word = |index: usize| {
        let at = 8 + index * 8;
        u64::from_le_bytes(handle.bytes[at..at + 8].try_into().unwrap_or_default())
    };
    if handle.bytes[..8] != MAGIC {
        return Err(Failure::InvalidValue);
    }
    let (bytes, device) = (word(1), DeviceIndex(word(3) as u32));
    let device = if device.0 < call.machine().device_count() { device } else { call.device() };
    call.activate(device)?;
    let address = call.machine().memory.map_foreign(bytes, device)?;
    call.arguments = [address, bytes, 0, 0];
    out.write(address)?;
    Ok(())
}

/// `cudaIpcCloseMemHandle`, `cuIpcCloseMemHandle`.
pub(crate) fn close_memory(call: &mut Call<'_>, address: Address) -> Outcome {
    call.machine().memory.unmap_foreign(address)?;
    Ok(())
}

/// `cudaIpcGetEventHandle`, `cuIpcGetEventHandle`.
pub(crate) fn event_handle(call: &mut Call<'_>, out: Out<IpcHandle>, event: Address) -> Outcome {
    let id = call.machine().events.get(event)?.id;
    let mut handle = IpcHandle { bytes: [0; 64] };
    handle.bytes[..8].copy_from_slice(&MAGIC);
    handle.bytes[8..12].copy_from_slice(&id.0.to_le_bytes());
    out.write(handle)?;
    Ok(())
}

/// `cudaIpcOpenEventHandle`, `cuIpcOpenEventHandle`.
pub(crate) fn open_event(call: &mut Call<'_>, out: Out<u64>, handle: IpcHandle) -> Outcome {
    if handle.bytes[..8] != MAGIC {
        return Err(Failure::InvalidValue);
    }
    let device = call.device();
    let event = call.machine().events.create(device, true);
    out.write(event)?;
    Ok(())
}
