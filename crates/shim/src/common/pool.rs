//! Memory pools and stream-ordered allocation.
//!
//! A pool keeps nothing back: memory is taken from the device at allocation and given back at the free.

use trompe_base::DeviceIndex;
use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::Address;
use trompe_device::memory::BlockKind;
use trompe_trace::record::Record;

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::observe;

/// `cudaDeviceGetDefaultMemPool`, `cuDeviceGetDefaultMemPool`, `cudaDeviceGetMemPool`.
pub(crate) fn of_device(call: &mut Call<'_>, pool: Out<u64>, device: i32) -> Outcome {
    let device = call.checked_device(device)?;
    let handle = call.machine().pools.default_of(device);
    pool.write(handle)?;
    Ok(())
}

/// `cudaDeviceSetMemPool`, `cuDeviceSetMemPool`.
pub(crate) fn set_of_device(call: &mut Call<'_>, device: i32, pool: Address) -> Outcome {
    let device = call.checked_device(device)?;
    call.machine().pools.set_current(device, pool)?;
    Ok(())
}

/// `cudaMemPoolCreate`, `cuMemPoolCreate`: of the properties, the device counts (type, handle types, location).
pub(crate) fn create(call: &mut Call<'_>, pool: Out<u64>, properties: In<[i32; 4]>) -> Outcome {
    let [_, _, _, device] = properties.read()?;
    let device = call.checked_device(device)?;
    pool.write(call.machine().pools.create(device))?;
    Ok(())
}

/// `cudaMemPoolDestroy`, `cuMemPoolDestroy`.
pub(crate) fn destroy(call: &mut Call<'_>, pool: Address) -> Outcome {
    call.machine().pools.destroy(pool)?;
    Ok(())
}

/// `cudaMemPoolTrimTo`, `cuMemPoolTrimTo`.
pub(crate) fn trim(call: &mut Call<'_>, pool: Address, _: usize) -> Outcome {
    call.machine().pools.get(pool)?;
    Ok(())
}

/// `cudaMemPoolSetAccess`, `cuMemPoolSetAccess`: every device of the node can use it.
pub(crate) fn set_access(call: &mut Call<'_>, pool: Address, _: Address, _: usize) -> Outcome {
    call.machine().pools.get(pool)?;
    Ok(())
}

/// `cudaMemPoolGetAttribute`, `cuMemPoolGetAttribute`.
pub(crate) fn get_attribute(call: &mut Call<'_>, pool: Address, number: i32, value: Address) -> Outcome {
    let machine = call.machine();
    let pool = machine.pools.get(pool)?;
    let wide = Out::<u64>::new(value as usize);
    match number {
        1..=3 => Out::<i32>::new(value as usize).write(pool.reuse[number as usize - 1])?,
        4 => wide.write(pool.release_threshold)?,
        5 | 7 => wide.write(pool.used)?,
        6 | 8 => wide.write(pool.high)?,
        _ => return Err(Failure::InvalidValue),
    }
    Ok(())
}

/// `cudaMemPoolSetAttribute`, `cuMemPoolSetAttribute`.
pub(crate) fn set_attribute(call: &mut Call<'_>, pool: Address, number: i32, value: Address) -> Outcome {
    let mut machine = call.machine();
    let pool = machine.pools.get_mut(pool)?;
    match number {
        1..=3 => pool.reuse[number as usize - 1] = In::<i32>::new(value as usize).read()?,
        4 => pool.release_threshold = In::<u64>::new(value as usize).read()?,
        // The high-water marks can be reset to zero only.
        6 | 8 if In::<u64>::new(value as usize).read()? == 0 => pool.high = pool.used,
        _ => return Err(Failure::InvalidValue),
    }
    Ok(())
}

/// `cudaMallocAsync`, `cuMemAllocAsync`.
pub(crate) fn malloc_async(call: &mut Call<'_>, address: Out<u64>, bytes: usize, stream: Address) -> Outcome {
    let device = call.stream_device(stream)?;
    let pool = call.machine().pools.current_of(device);
    malloc_from(call, address, bytes, pool, stream)
}

/// `cudaMallocFromPoolAsync`, `cuMemAllocFromPoolAsync`.
pub(crate) fn malloc_from(
    call: &mut Call<'_>,
    address: Out<u64>,
    bytes: usize,
    pool: Address,
    stream: Address,
) -> Outcome {
    if address.is_null() {
        return Err(Failure::NullPointer);
    }
    observe::know_reuse();
    call.stream_device(stream)?;
    let device = call.machine().pools.get(pool)?.device;
    call.activate(device)?;
    if bytes == 0 {
        return Ok(address.write(0)?);
    }
    let bytes = bytes as u64;
    let mut machine = call.machine();
    let got = machine.memory.allocate(device, bytes);
    let at = got.as_ref().map_or(0, |&at| at);
    if at != 0 {
        machine.pools.took(pool, at, bytes);
    }
    drop(machine);
    call.record(&Record::Malloc { api: call.api.0, device, address: at, bytes });
    address.write(at)?;
    got.map(drop).map_err(Failure::from)
}

/// `cudaFreeAsync`, `cuMemFreeAsync`.
pub(crate) fn free_async(call: &mut Call<'_>, address: Address, stream: Address) -> Outcome {
    call.stream_device(stream)?;
    if address == 0 {
        return Ok(());
    }
    let mut machine = call.machine();
    let block = machine.memory.free(address, BlockKind::is_freed_as_device)?;
    machine.pools.gave(address);
    drop(machine);
    let device = block.kind.device();
    call.record(&Record::Free { api: call.api.0, device, address, bytes: block.bytes });
    Ok(())
}

impl Call<'_> {
    fn stream_device(&mut self, handle: Address) -> Result<DeviceIndex, Failure> {
        let machine = self.machine();
        Ok(self.stream(&machine, handle)?.device)
    }
}
