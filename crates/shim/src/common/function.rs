//! Kernels as handles: what is known of them, and their attributes.

use std::sync::{Arc, OnceLock};

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::Address;
use trompe_device::kernel::{Facts, Kernel};
use trompe_fatbin::KernelDb;
use trompe_hardware::DeviceSheet;

use super::Outcome;
use crate::door::Call;
use crate::environment;
use crate::failure::Failure;
use crate::log::{Level, say};
use crate::process::HostMachine;

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: i32 = 8;

/// Looks a kernel up in the database, if nobody did yet.
pub(crate) fn learn(machine: &mut HostMachine, kernel: Address) -> Outcome {
    let kernel = machine.kernels.get_mut(kernel)?;
    if matches!(kernel.facts, Facts::NotAsked) {
        let found = database().and_then(|database| database.lookup(&kernel.name));
        kernel.facts = found.map_or(Facts::Unknown, |info| Facts::Known(Arc::new(info)));
    }
    Ok(())
}

/// Loads the kernel database, so that forks of this process share it.
pub(crate) fn prepare() {
    let _ = database();
}

fn database() -> Option<&'static KernelDb> {
    static DATABASE: OnceLock<Option<KernelDb>> = OnceLock::new();
    let load = || {
        let path = environment::get().kernel_db.as_ref()?;
        KernelDb::load(path)
            .inspect_err(|error| say(Level::Warning, &format!("kernel parameters are not recorded: {error}")))
            .ok()
    };
    DATABASE.get_or_init(load).as_ref()
}

/// The numbers that both libraries report about a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    pub(crate) max_threads: u32,
    pub(crate) static_shared: u32,
    pub(crate) constant: u32,
    pub(crate) local: u32,
    pub(crate) registers: u32,
    /// 10 × major + minor compute capability.
    pub(crate) version: u32,
    pub(crate) max_dynamic_shared: u32,
}

/// What a kernel reports about itself on a device.
pub(crate) fn attributes(sheet: &DeviceSheet, kernel: &Kernel) -> Attributes {
    let compute = &sheet.compute;
    let info = kernel.info();
    let registers = info.map_or(0, |info| info.registers);
    let by_registers = match registers {
        0 => compute.max_threads_per_block,
        registers => compute.registers_per_block / registers.next_multiple_of(8) / 128 * 128,
    };
    let bounds = info.map_or(0, |info| info.max_threads);
    let limit = if bounds > 0 { bounds } else { by_registers };
    let static_shared = info.map_or(0, |info| info.static_shared);
    let default_dynamic =
        u32::try_from(compute.shared_per_block.0).unwrap_or(u32::MAX).saturating_sub(static_shared);
    Attributes {
        max_threads: limit.clamp(1, compute.max_threads_per_block),
        static_shared,
        constant: 0,
        local: info.map_or(0, |info| info.local_memory),
        registers,
        version: compute.capability_major * 10 + compute.capability_minor,
        max_dynamic_shared: kernel.max_dynamic_shared.max(default_dynamic),
    }
}

/// `cuFuncGetAttribute`.
pub(crate) fn get_attribute(call: &mut Call<'_>, value: Out<i32>, number: i32, kernel: Address) -> Outcome {
    let mut machine = call.machine();
    learn(&mut machine, kernel)?;
    let kernel = machine.kernels.get(kernel)?;
    let known = attributes(machine.sheet().ok_or(Failure::NoDevice)?, kernel);
    let found = match number {
        0 => known.max_threads as i32,
        1 => known.static_shared as i32,
        2 => known.constant as i32,
        3 => known.local as i32,
        4 => known.registers as i32,
        5 | 6 => known.version as i32,
        8 => known.max_dynamic_shared as i32,
        7 | 9..=15 => kernel.attributes.get(&number).copied().unwrap_or(if number == 9 { -1 } else { 0 }),
        _ => return Err(Failure::InvalidValue),
    };
    value.write(found)?;
    Ok(())
}

/// `cuKernelGetAttribute`.
pub(crate) fn get_kernel_attribute(
    call: &mut Call<'_>,
    value: Out<i32>,
    number: i32,
    kernel: Address,
    device: i32,
) -> Outcome {
    call.checked_device(device)?;
    get_attribute(call, value, number, kernel)
}

/// `cuFuncSetAttribute`.
pub(crate) fn set_attribute(call: &mut Call<'_>, kernel: Address, number: i32, value: i32) -> Outcome {
    let mut machine = call.machine();
    learn(&mut machine, kernel)?;
    let limit = machine.sheet().ok_or(Failure::NoDevice)?.compute.shared_per_block_optin.0;
    let kernel = machine.kernels.get_mut(kernel)?;
    match number {
        MAX_DYNAMIC_SHARED => {
            let wanted = u32::try_from(value).map_err(|_| Failure::InvalidValue)?;
            let fixed = kernel.info().map_or(0, |info| info.static_shared);
            if u64::from(wanted) + u64::from(fixed) > limit {
                return Err(Failure::InvalidValue);
            }
            kernel.max_dynamic_shared = wanted;
        }
        9..=15 => {
            kernel.attributes.insert(number, value);
        }
        _ => return Err(Failure::InvalidValue),
    }
    Ok(())
}

/// `cuKernelSetAttribute`.
pub(crate) fn set_kernel_attribute(
    call: &mut Call<'_>,
    number: i32,
    value: i32,
    kernel: Address,
    device: i32,
) -> Outcome {
    call.checked_device(device)?;
    set_attribute(call, kernel, number, value)
}

/// `cudaKernelSetAttributeForDevice`.
pub(crate) fn set_attribute_for_device(
    call: &mut Call<'_>,
    kernel: Address,
    number: i32,
    value: i32,
    device: i32,
) -> Outcome {
    call.checked_device(device)?;
    set_attribute(call, kernel, number, value)
}

/// `cuFuncSetCacheConfig`, `cuFuncSetSharedMemConfig`: hints.
pub(crate) fn hint(call: &mut Call<'_>, kernel: Address, _: i32) -> Outcome {
    call.machine().kernels.get(kernel)?;
    Ok(())
}

/// `cuFuncGetParamInfo`, `cuKernelGetParamInfo`.
pub(crate) fn parameter_info(
    call: &mut Call<'_>,
    kernel: Address,
    index: usize,
    offset: Out<u64>,
    size: Out<u64>,
) -> Outcome {
    let mut machine = call.machine();
    learn(&mut machine, kernel)?;
    let info = machine.kernels.get(kernel)?.info();
    let parameter = info.and_then(|info| info.parameters.get(index)).ok_or(Failure::InvalidValue)?;
    offset.write(u64::from(parameter.offset))?;
    size.write_if_given(u64::from(parameter.size));
    Ok(())
}

/// `cuFuncGetName`, `cuKernelGetName`: the text lives as long as the process.
pub(crate) fn name(call: &mut Call<'_>, name: Out<u64>, kernel: Address) -> Outcome {
    let machine = call.machine();
    let text = machine.kernels.get(kernel)?.name.to_string();
    name.write(crate::text::keep(&text))?;
    Ok(())
}
