//! Which devices there are and what they are called.

use trompe_cuda_abi::pointer::{Out, Text};
use trompe_hardware::{Architecture, PciAddress};

use super::{ask, handle_of};
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome};

/// NVIDIA's PCI vendor id, which `pciDeviceId` has in its lower half. The upper half, the board's id, is not known.
const VENDOR: u32 = 0x10de;

/// `nvmlDeviceGetCount`: all devices, also those that `CUDA_VISIBLE_DEVICES` hides from CUDA.
pub(crate) fn count(call: &mut Call<'_>, count: Out<u32>) -> Outcome {
    let devices = call.machine().node().map_or(0, |node| node.device_count);
    Ok(count.write(devices)?)
}

/// `nvmlDeviceGetHandleByIndex`.
pub(crate) fn by_index(call: &mut Call<'_>, index: u32, device: Out<u64>) -> Outcome {
    if index >= call.machine().node().map_or(0, |node| node.device_count) {
        return Err(LibraryFailure::InvalidValue);
    }
    Ok(device.write(handle_of(index))?)
}

fn find(
    call: &Call<'_>,
    device: Out<u64>,
    is_it: impl Fn(&trompe_hardware::EmulatedNode, u32) -> bool,
) -> Outcome {
    let found = {
        let machine = call.machine();
        let node = machine.node().ok_or(LibraryFailure::NotFound)?;
        (0..node.device_count).find(|index| is_it(node, *index))
    };
    Ok(device.write(handle_of(found.ok_or(LibraryFailure::NotFound)?))?)
}

/// `nvmlDeviceGetHandleByUUID`.
pub(crate) fn by_uuid(call: &mut Call<'_>, uuid: Text, device: Out<u64>) -> Outcome {
    let uuid = uuid.read()?;
    find(call, device, |node, index| node.uuid_text(index).eq_ignore_ascii_case(&uuid))
}

/// `nvmlDeviceGetHandleByPciBusId`: `domain:bus:device.function`, the domain of any width or left out.
pub(crate) fn by_pci(call: &mut Call<'_>, bus: Text, device: Out<u64>) -> Outcome {
    let text = bus.read()?;
    let text = text.split('.').next().unwrap_or("");
    let parts: Vec<_> = text.split(':').map(|part| u32::from_str_radix(part, 16)).collect();
    let address = match parts[..] {
        [Ok(domain), Ok(bus), Ok(device)] => (domain, bus, device),
        [Ok(bus), Ok(device)] => (0, bus, device),
        _ => return Err(LibraryFailure::InvalidValue),
    };
    find(call, device, |node, index| {
        let PciAddress { domain, bus, device } = node.pci(index);
        (domain, u32::from(bus), u32::from(device)) == address
    })
}

/// `nvmlDeviceGetIndex`, `nvmlDeviceGetMinorNumber`.
pub(crate) fn index(call: &mut Call<'_>, device: u64, index: Out<u32>) -> Outcome {
    Ok(index.write(ask(call, device, |_, index| index)?)?)
}

fn write_text(text: Out<u8>, capacity: u32, value: &str) -> Outcome {
    if value.len() >= capacity as usize {
        return Err(LibraryFailure::TooSmall);
    }
    Ok(text.write_text(value, capacity as usize)?)
}

/// `nvmlDeviceGetName`.
pub(crate) fn name(call: &mut Call<'_>, device: u64, text: Out<u8>, capacity: u32) -> Outcome {
    let name = ask(call, device, |node, _| node.device.marketing_name.clone())?;
    write_text(text, capacity, &name)
}

/// `nvmlDeviceGetUUID`.
pub(crate) fn uuid(call: &mut Call<'_>, device: u64, text: Out<u8>, capacity: u32) -> Outcome {
    let uuid = ask(call, device, |node, index| node.uuid_text(index))?;
    write_text(text, capacity, &uuid)
}

/// `nvmlDeviceGetPciInfo`: `nvmlPciInfo_t`, which begins with the legacy bus id and ends with the long one.
pub(crate) fn pci(call: &mut Call<'_>, device: u64, information: Out<u8>) -> Outcome {
    let PciAddress { domain, bus, device: slot } = ask(call, device, |node, index| node.pci(index))?;
    let mut bytes = [0_u8; 68];
    let legacy = format!("{domain:04X}:{bus:02X}:{slot:02X}.0");
    bytes[..legacy.len()].copy_from_slice(legacy.as_bytes());
    let numbers = [domain, u32::from(bus), u32::from(slot), VENDOR, 0];
    for (place, number) in bytes[16..36].as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    let long = format!("{domain:08X}:{bus:02X}:{slot:02X}.0");
    bytes[36..36 + long.len()].copy_from_slice(long.as_bytes());
    Ok(information.write_bytes(&bytes)?)
}

/// `nvmlDeviceGetCudaComputeCapability`.
pub(crate) fn compute_capability(
    call: &mut Call<'_>,
    device: u64,
    major: Out<i32>,
    minor: Out<i32>,
) -> Outcome {
    let capability = ask(call, device, |node, _| {
        (node.device.compute.capability_major, node.device.compute.capability_minor)
    })?;
    major.write(capability.0 as i32)?;
    Ok(minor.write(capability.1 as i32)?)
}

/// `nvmlDeviceGetArchitecture`: `nvmlDeviceArchitecture_t`.
pub(crate) fn architecture(call: &mut Call<'_>, device: u64, architecture: Out<u32>) -> Outcome {
    let number = ask(call, device, |node, _| match node.device.architecture() {
        Architecture::Volta => 5,
        Architecture::Turing => 6,
        Architecture::Ampere | Architecture::AmpereGraphics => 7,
        Architecture::Ada => 8,
        Architecture::Hopper => 9,
        Architecture::Blackwell | Architecture::BlackwellGraphics => 10,
    })?;
    Ok(architecture.write(number)?)
}

/// `nvmlDeviceGetNumGpuCores`.
pub(crate) fn cores(call: &mut Call<'_>, device: u64, cores: Out<u32>) -> Outcome {
    let number =
        ask(call, device, |node, _| node.device.compute.sm_count * node.device.compute.fp32_lanes_per_sm)?;
    Ok(cores.write(number)?)
}

/// Modes that are off.
pub(crate) fn zero(call: &mut Call<'_>, device: u64, mode: Out<u32>) -> Outcome {
    Ok(mode.write(ask(call, device, |_, _| 0)?)?)
}

/// Modes that are on.
pub(crate) fn one(call: &mut Call<'_>, device: u64, mode: Out<u32>) -> Outcome {
    Ok(mode.write(ask(call, device, |_, _| 1)?)?)
}

/// `nvmlDeviceGetEccMode`.
pub(crate) fn ecc(call: &mut Call<'_>, device: u64, current: Out<u32>, pending: Out<u32>) -> Outcome {
    let on = ask(call, device, |node, _| u32::from(node.device.memory.ecc))?;
    current.write(on)?;
    Ok(pending.write(on)?)
}
