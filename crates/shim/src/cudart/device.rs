//! Device count, choice and properties.

use trompe_cuda_abi::pointer::Out;

use crate::door::Call;
use crate::failure::Failure;

type Result = std::result::Result<(), Failure>;

/// `cudaGetDeviceCount`.
pub(crate) fn count(call: &mut Call<'_>, count: Out<i32>) -> Result {
    let devices = call.machine().device_count();
    count.write(devices as i32)?;
    if devices == 0 { Err(Failure::NoDevice) } else { Ok(()) }
}

/// `cudaGetDevice`.
pub(crate) fn get(call: &mut Call<'_>, device: Out<i32>) -> Result {
    Ok(device.write(call.thread.device.get() as i32)?)
}

/// `cudaSetDevice`.
pub(crate) fn set(call: &mut Call<'_>, device: i32) -> Result {
    let index = call.checked_device(device)?;
    call.thread.device.set(index.0);
    call.activate(index)?;
    Ok(())
}
