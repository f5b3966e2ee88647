//! Devices, with the driver's signatures.

use trompe_cuda_abi::pointer::Out;

use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;

/// `cuInit`.
pub(crate) fn init(call: &mut Call<'_>, flags: u32) -> Outcome {
    if flags != 0 {
        return Err(Failure::InvalidValue);
    }
    if call.machine().device_count() == 0 { Err(Failure::NoDevice) } else { Ok(()) }
}

/// `cuDeviceGet`.
pub(crate) fn get(call: &mut Call<'_>, device: Out<i32>, ordinal: i32) -> Outcome {
    let index = call.checked_device(ordinal)?;
    device.write(index.0 as i32)?;
    Ok(())
}

/// `cuDeviceGetCount`.
pub(crate) fn count(call: &mut Call<'_>, count: Out<i32>) -> Outcome {
    let devices = call.machine().device_count();
    count.write(devices as i32)?;
    Ok(())
}

/// `cuDeviceGetName`.
pub(crate) fn name(call: &mut Call<'_>, name: Out<u8>, length: i32, device: i32) -> Outcome {
    call.checked_device(device)?;
    let machine = call.machine();
    let text = &machine.sheet().ok_or(Failure::NoDevice)?.marketing_name;
    name.write_text(text, usize::try_from(length).map_err(|_| Failure::InvalidValue)?)?;
    Ok(())
}

/// `cuDeviceGetUuid`.
pub(crate) fn uuid(call: &mut Call<'_>, uuid: Out<[u8; 16]>, device: i32) -> Outcome {
    let index = call.checked_device(device)?;
    let machine = call.machine();
    uuid.write(machine.node().ok_or(Failure::NoDevice)?.uuid(machine.physical(index)))?;
    Ok(())
}

/// `cuDeviceTotalMem`.
pub(crate) fn total_memory(call: &mut Call<'_>, bytes: Out<u64>, device: i32) -> Outcome {
    call.checked_device(device)?;
    let machine = call.machine();
    bytes.write(machine.sheet().ok_or(Failure::NoDevice)?.memory.total.0)?;
    Ok(())
}

/// `cuDeviceComputeCapability`.
pub(crate) fn compute_capability(
    call: &mut Call<'_>,
    major: Out<i32>,
    minor: Out<i32>,
    device: i32,
) -> Outcome {
    call.checked_device(device)?;
    let machine = call.machine();
    let compute = &machine.sheet().ok_or(Failure::NoDevice)?.compute;
    major.write(compute.capability_major as i32)?;
    minor.write(compute.capability_minor as i32)?;
    Ok(())
}
