//! Contexts: one per device, the primary one.

use trompe_base::DeviceIndex;
use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_device::Kind;

use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

/// The handle of a device's context.
pub(crate) const fn handle(device: DeviceIndex) -> u64 {
    (Kind::Context as u64) << 48 | (device.0 as u64 + 1) << 4
}

fn device_of(machine: &HostMachine, context: Address) -> Result<DeviceIndex, Failure> {
    (0..machine.device_count())
        .map(DeviceIndex)
        .find(|&device| handle(device) == context)
        .ok_or(Failure::Cuda(RuntimeError::DEVICE_UNINITIALIZED))
}

/// `cuCtxGetCurrent`: none before the thread's device has a context.
pub(crate) fn get_current(call: &mut Call<'_>, context: Out<u64>) -> Outcome {
    let device = call.device();
    let active = call.machine().is_active(device);
    context.write(if active { handle(device) } else { 0 })?;
    Ok(())
}

/// `cuCtxSetCurrent`.
pub(crate) fn set_current(call: &mut Call<'_>, context: Address) -> Outcome {
    if context != 0 {
        let device = device_of(&call.machine(), context)?;
        call.thread.device.set(device.0);
    }
    Ok(())
}

/// `cuCtxPushCurrent`.
pub(crate) fn push(call: &mut Call<'_>, context: Address) -> Outcome {
    let device = device_of(&call.machine(), context)?;
    call.thread.contexts.borrow_mut().push(call.thread.device.replace(device.0));
    Ok(())
}

/// `cuCtxPopCurrent`.
pub(crate) fn pop(call: &mut Call<'_>, context: Out<u64>) -> Outcome {
    context.write_if_given(handle(call.device()));
    if let Some(device) = call.thread.contexts.borrow_mut().pop() {
        call.thread.device.set(device);
    }
    Ok(())
}

/// `cuCtxGetDevice`.
pub(crate) fn get_device(call: &mut Call<'_>, device: Out<i32>) -> Outcome {
    device.write(call.device().0 as i32)?;
    Ok(())
}

/// `cuCtxGetApiVersion`.
pub(crate) fn api_version(_: &mut Call<'_>, _: Address, version: Out<u32>) -> Outcome {
    version.write(3020)?;
    Ok(())
}

/// `cuCtxGetFlags`: host memory can be mapped.
pub(crate) fn flags(_: &mut Call<'_>, flags: Out<u32>) -> Outcome {
    flags.write(8)?;
    Ok(())
}

/// `cuCtxGetId`.
pub(crate) fn id(call: &mut Call<'_>, context: Address, id: Out<u64>) -> Outcome {
    let device = if context == 0 { call.device() } else { device_of(&call.machine(), context)? };
    id.write(u64::from(device.0) + 1)?;
    Ok(())
}

/// `cuCtxCreate_v2`: the primary context stands for every context of the device.
pub(crate) fn create(call: &mut Call<'_>, context: Out<u64>, _: u32, device: i32) -> Outcome {
    let device = call.checked_device(device)?;
    call.activate(device)?;
    call.thread.contexts.borrow_mut().push(call.thread.device.replace(device.0));
    context.write(handle(device))?;
    Ok(())
}

/// `cuCtxCreate_v4`.
pub(crate) fn create_with(
    call: &mut Call<'_>,
    context: Out<u64>,
    _: Address,
    flags: u32,
    device: i32,
) -> Outcome {
    create(call, context, flags, device)
}

/// `cuCtxDestroy`.
pub(crate) fn destroy(call: &mut Call<'_>, context: Address) -> Outcome {
    device_of(&call.machine(), context).map(drop)
}

/// `cuDevicePrimaryCtxRetain`.
pub(crate) fn primary(call: &mut Call<'_>, context: Out<u64>, device: i32) -> Outcome {
    let device = call.checked_device(device)?;
    call.activate(device)?;
    context.write(handle(device))?;
    Ok(())
}

/// `cuDevicePrimaryCtxRelease`, `cuDevicePrimaryCtxReset`.
pub(crate) fn primary_release(call: &mut Call<'_>, device: i32) -> Outcome {
    call.checked_device(device).map(drop)
}

/// `cuDevicePrimaryCtxSetFlags`.
pub(crate) fn primary_set_flags(call: &mut Call<'_>, device: i32, _: u32) -> Outcome {
    call.checked_device(device).map(drop)
}

/// `cuDevicePrimaryCtxGetState`.
pub(crate) fn primary_state(call: &mut Call<'_>, device: i32, flags: Out<u32>, active: Out<i32>) -> Outcome {
    let device = call.checked_device(device)?;
    flags.write_if_given(0);
    active.write_if_given(i32::from(call.machine().is_active(device)));
    Ok(())
}

/// `cuStreamGetCtx`.
pub(crate) fn of_stream(call: &mut Call<'_>, stream: Address, context: Out<u64>) -> Outcome {
    let machine = call.machine();
    let device = call.stream(&machine, stream)?.device;
    context.write(handle(device))?;
    Ok(())
}

/// `cuStreamGetCtx_v2`.
pub(crate) fn of_stream_with_green(
    call: &mut Call<'_>,
    stream: Address,
    context: Out<u64>,
    green: Out<u64>,
) -> Outcome {
    green.write_if_given(0);
    of_stream(call, stream, context)
}

/// `cuCtxGetLimit`.
pub(crate) fn limit(call: &mut Call<'_>, value: Out<u64>, limit: i32) -> Outcome {
    crate::cudart::device::limit(call, value, limit)
}
