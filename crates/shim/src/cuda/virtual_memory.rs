//! Virtual-memory management.

use trompe_base::DeviceIndex;
use trompe_cuda_abi::driver::AllocationProperties;
use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_device::memory::virtual_memory::GRANULARITY;
use trompe_trace::record::Record;

use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::shareable;

const DEVICE: i32 = 1;
const POSIX_FILE: i32 = 1;

/// `cuMemGetAllocationGranularity`.
pub(crate) fn granularity(
    _: &mut Call<'_>,
    bytes: Out<u64>,
    properties: In<AllocationProperties>,
    _: i32,
) -> Outcome {
    properties.read()?;
    bytes.write(GRANULARITY)?;
    Ok(())
}

/// `cuMemAddressReserve`.
pub(crate) fn reserve(
    call: &mut Call<'_>,
    address: Out<u64>,
    bytes: usize,
    alignment: usize,
    _: Address,
    _: u64,
) -> Outcome {
    let at = call.machine().memory.reserve_addresses(bytes as u64, alignment as u64)?;
    call.arguments = [at, bytes as u64, 0, 0];
    address.write(at)?;
    Ok(())
}

/// `cuMemAddressFree`.
pub(crate) fn release_addresses(call: &mut Call<'_>, address: Address, bytes: usize) -> Outcome {
    call.arguments = [address, bytes as u64, 0, 0];
    call.machine().memory.release_addresses(address, bytes as u64)?;
    Ok(())
}

/// `cuMemCreate`.
pub(crate) fn create(
    call: &mut Call<'_>,
    handle: Out<u64>,
    bytes: usize,
    properties: In<AllocationProperties>,
    _: u64,
) -> Outcome {
    let properties = properties.read()?;
    // A file descriptor can be shared; a fabric handle needs a fabric manager, which a pretended node has not.
    if properties.handle_types & !POSIX_FILE != 0 {
        return Err(RuntimeError::NOT_SUPPORTED.into());
    }
    let device = match properties.location_type {
        DEVICE => Some(call.checked_device(properties.location_id)?),
        _ => None,
    };
    if let Some(device) = device {
        call.activate(device)?;
    }
    let bytes = bytes as u64;
    let export_types = properties.handle_types as u32;
    let got = call.machine().memory.create_allocation(bytes, device, export_types);
    let allocation = got.as_ref().map_or(0, |&allocation| allocation);
    if let Some(device) = device {
        call.record(&Record::Malloc { api: call.api.0, device, address: allocation, bytes });
    }
    handle.write_if_given(allocation);
    got.map(drop).map_err(Failure::from)
}

/// `cuMemRelease`.
pub(crate) fn release(call: &mut Call<'_>, handle: Address) -> Outcome {
    let released = call.machine().memory.release_allocation(handle)?;
    if let Some(physical) = released
        && let Some(device) = physical.device
        && !physical.foreign
    {
        record_free(call, device, handle, physical.bytes);
    }
    Ok(())
}

fn record_free(call: &mut Call<'_>, device: DeviceIndex, address: u64, bytes: u64) {
    call.record(&Record::Free { api: call.api.0, device, address, bytes });
}

/// `cuMemMap`.
pub(crate) fn map(
    call: &mut Call<'_>,
    address: Address,
    bytes: usize,
    offset: usize,
    handle: Address,
    flags: u64,
) -> Outcome {
    if offset != 0 || flags != 0 {
        return Err(Failure::InvalidValue);
    }
    call.arguments = [address, bytes as u64, handle, 0];
    call.machine().memory.map(address, bytes as u64, handle)?;
    Ok(())
}

/// `cuMemUnmap`: a mapping may hold the last reference to its allocation.
pub(crate) fn unmap(call: &mut Call<'_>, address: Address, bytes: usize) -> Outcome {
    call.arguments = [address, bytes as u64, 0, 0];
    let released = call.machine().memory.unmap(address, bytes as u64)?;
    for (handle, physical) in released {
        if let Some(device) = physical.device
            && !physical.foreign
        {
            record_free(call, device, handle, physical.bytes);
        }
    }
    Ok(())
}

/// `cuMemSetAccess`: everything mapped can be read and written.
pub(crate) fn set_access(
    call: &mut Call<'_>,
    address: Address,
    bytes: usize,
    _: Address,
    _: usize,
) -> Outcome {
    if call.machine().memory.is_accessible(address, bytes as u64) {
        Ok(())
    } else {
        Err(Failure::InvalidValue)
    }
}

/// `cuMemGetAccess`.
pub(crate) fn get_access(call: &mut Call<'_>, flags: Out<u64>, _: Address, address: Address) -> Outcome {
    const READ_WRITE: u64 = 3;
    call.machine().memory.virtual_memory.mapped_at(address).ok_or(Failure::InvalidValue)?;
    flags.write(READ_WRITE)?;
    Ok(())
}

/// `cuMemRetainAllocationHandle`.
pub(crate) fn retain(call: &mut Call<'_>, handle: Out<u64>, address: Address) -> Outcome {
    let mut machine = call.machine();
    let found = machine.memory.virtual_memory.mapped_at(address).ok_or(Failure::InvalidValue)?;
    machine.memory.retain_allocation(found)?;
    handle.write(found)?;
    Ok(())
}

/// `cuMemGetAllocationPropertiesFromHandle`.
pub(crate) fn properties(call: &mut Call<'_>, out: Out<AllocationProperties>, handle: Address) -> Outcome {
    let machine = call.machine();
    let physical = machine.memory.virtual_memory.allocation(handle).ok_or(Failure::InvalidValue)?;
    const PINNED: i32 = 1;
    const HOST: i32 = 2;
    out.write(AllocationProperties {
        kind: PINNED,
        handle_types: physical.export_types as i32,
        location_type: if physical.device.is_some() { DEVICE } else { HOST },
        location_id: physical.device.map_or(0, |device| device.0 as i32),
        ..AllocationProperties::default()
    })?;
    Ok(())
}

/// `cuMemExportToShareableHandle`: a file descriptor that carries the allocation's size and device.
pub(crate) fn export(call: &mut Call<'_>, out: Out<i32>, handle: Address, kind: i32, _: u64) -> Outcome {
    if kind != POSIX_FILE {
        return Err(RuntimeError::NOT_SUPPORTED.into());
    }
    let machine = call.machine();
    let physical = machine.memory.virtual_memory.allocation(handle).ok_or(Failure::InvalidValue)?;
    let device = physical.device.map_or(u32::MAX, |device| device.0);
    let descriptor = shareable::export(physical.bytes, device);
    out.write(descriptor.ok_or(Failure::Cuda(RuntimeError::OPERATING_SYSTEM))?)?;
    Ok(())
}

/// `cuMemImportFromShareableHandle`.
pub(crate) fn import(call: &mut Call<'_>, handle: Out<u64>, descriptor: u64, kind: i32) -> Outcome {
    if kind != POSIX_FILE {
        return Err(RuntimeError::NOT_SUPPORTED.into());
    }
    let (bytes, device) = shareable::import(descriptor as i32).ok_or(Failure::InvalidValue)?;
    let mut machine = call.machine();
    let device = (device < machine.device_count()).then_some(DeviceIndex(device));
    handle.write(machine.memory.import_allocation(bytes, device)?)?;
    Ok(())
}
