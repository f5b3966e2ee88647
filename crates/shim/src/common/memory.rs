//! Allocation and registration of memory, and questions about addresses.

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::Address;
use trompe_device::memory::{BlockKind, MemoryError};
use trompe_trace::record::Record;

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::log::{Level, say};

/// `cudaMalloc`.
pub(crate) fn malloc(call: &mut Call<'_>, address: Out<u64>, bytes: usize) -> Outcome {
    if address.is_null() {
        return Err(Failure::NullPointer);
    }
    let device = call.device();
    call.activate(device)?;
    if bytes == 0 {
        return Ok(address.write(0)?);
    }
    let bytes = bytes as u64;
    let got = call.machine().memory.allocate(device, bytes);
    let at = got.as_ref().map_or(0, |&at| at);
    call.record(&Record::Malloc { api: call.api.0, device, address: at, bytes });
    address.write(at)?;
    if let Err(error @ MemoryError::AddressSpace { .. }) = &got {
        say(Level::Warning, &error.to_string());
    }
    got.map(drop).map_err(Failure::from)
}

/// `cuMemAlloc`: unlike the runtime's, it refuses zero bytes.
pub(crate) fn allocate(call: &mut Call<'_>, address: Out<u64>, bytes: usize) -> Outcome {
    if bytes == 0 {
        return Err(Failure::InvalidValue);
    }
    malloc(call, address, bytes)
}

/// `cudaMallocPitch`, and `cuMemAllocPitch` but for its element size.
pub(crate) fn malloc_pitch(
    call: &mut Call<'_>,
    address: Out<u64>,
    pitch: Out<u64>,
    width: usize,
    height: usize,
) -> Outcome {
    let row = width.checked_next_multiple_of(512).ok_or(Failure::InvalidValue)?;
    pitch.write(row as u64)?;
    malloc(call, address, row.checked_mul(height).ok_or(Failure::InvalidValue)?)
}

/// `cudaFree`, `cuMemFree`.
pub(crate) fn free(call: &mut Call<'_>, address: Address) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    if address == 0 {
        return Ok(());
    }
    let mut machine = call.machine();
    let block = machine.memory.free(address, BlockKind::is_freed_as_device)?;
    let device = block.kind.device();
    // The driver waits for the device before it frees.
    machine.progress.finish_device(device);
    drop(machine);
    call.record(&Record::Free { api: call.api.0, device, address, bytes: block.bytes });
    Ok(())
}

/// `cudaMallocManaged`, `cuMemAllocManaged`: host memory, backed lazily, that counts for no device.
pub(crate) fn malloc_managed(call: &mut Call<'_>, address: Out<u64>, bytes: usize, _: u32) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    if bytes == 0 {
        return Err(Failure::InvalidValue);
    }
    let at = call.machine().memory.allocate_host(bytes as u64, BlockKind::Managed { device })?;
    call.arguments = [at, bytes as u64, 0, 0];
    address.write(at)?;
    Ok(())
}

/// `cudaHostAlloc`, `cuMemHostAlloc`.
pub(crate) fn host_alloc(call: &mut Call<'_>, address: Out<u64>, bytes: usize, _: u32) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    if bytes == 0 {
        return Ok(address.write(0)?);
    }
    let at = call.machine().memory.allocate_host(bytes as u64, BlockKind::Pinned { device })?;
    call.arguments = [at, bytes as u64, 0, 0];
    address.write(at)?;
    Ok(())
}

/// `cudaMallocHost`, `cuMemAllocHost`.
pub(crate) fn malloc_host(call: &mut Call<'_>, address: Out<u64>, bytes: usize) -> Outcome {
    host_alloc(call, address, bytes, 0)
}

/// `cudaFreeHost`, `cuMemFreeHost`.
pub(crate) fn free_host(call: &mut Call<'_>, address: Address) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    let block = call.machine().memory.free(address, BlockKind::is_pinned)?;
    call.arguments = [address, block.bytes, 0, 0];
    Ok(())
}

/// `cudaHostRegister`, `cuMemHostRegister`.
pub(crate) fn host_register(call: &mut Call<'_>, address: Address, bytes: usize, _: u32) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    call.arguments = [address, bytes as u64, 0, 0];
    call.machine().memory.register(address, bytes as u64, BlockKind::Registered { device })?;
    Ok(())
}

/// `cudaHostUnregister`, `cuMemHostUnregister`.
pub(crate) fn host_unregister(call: &mut Call<'_>, address: Address) -> Outcome {
    let unknown = Failure::Cuda(trompe_cuda_abi::runtime::RuntimeError::HOST_MEMORY_NOT_REGISTERED);
    let block = call.machine().memory.free(address, BlockKind::is_registered).map_err(|_| unknown)?;
    call.arguments = [address, block.bytes, 0, 0];
    Ok(())
}

/// `cudaHostGetDevicePointer`, `cuMemHostGetDevicePointer`: unified addressing makes it the same address.
pub(crate) fn host_device_pointer(
    call: &mut Call<'_>,
    device_address: Out<u64>,
    address: Address,
    _: u32,
) -> Outcome {
    let known = call
        .machine()
        .memory
        .block_at(address)
        .is_some_and(|(_, block)| block.kind.is_pinned() || block.kind.is_registered());
    if !known {
        return Err(Failure::InvalidValue);
    }
    device_address.write(address)?;
    Ok(())
}

/// `cudaHostGetFlags`, `cuMemHostGetFlags`: memory is always mapped into the devices' address space.
pub(crate) fn host_flags(call: &mut Call<'_>, flags: Out<u32>, address: Address) -> Outcome {
    const MAPPED: u32 = 2;
    call.machine().memory.block_at(address).ok_or(Failure::InvalidValue)?;
    flags.write(MAPPED)?;
    Ok(())
}
