//! Clocks, power limits and PCIe links.

use trompe_cuda_abi::pointer::Out;

use super::ask;
use crate::door::Call;
use crate::libs::Outcome;

/// `NVML_CLOCK_MEM`.
const MEMORY_CLOCK: u32 = 2;

/// `nvmlDeviceGet…Clock…`, in MHz: nothing throttles here, so every clock is at its highest.
pub(crate) fn clock(call: &mut Call<'_>, device: u64, domain: u32, clock: Out<u32>) -> Outcome {
    let hertz = ask(call, device, |node, _| {
        if domain == MEMORY_CLOCK { node.device.memory.clock } else { node.device.compute.boost_clock }
    })?;
    Ok(clock.write((hertz.0 / 1e6).round() as u32)?)
}

/// `nvmlDeviceGet…PowerLimit`.
pub(crate) fn power(call: &mut Call<'_>, device: u64, milliwatts: Out<u32>) -> Outcome {
    let watts = ask(call, device, |node, _| node.device.power.board)?;
    Ok(milliwatts.write((watts.0 * 1e3).round() as u32)?)
}

/// `nvmlDeviceGet…PcieLinkGeneration`.
pub(crate) fn pcie_generation(call: &mut Call<'_>, device: u64, generation: Out<u32>) -> Outcome {
    Ok(generation.write(ask(call, device, |node, _| node.device.interconnect.pcie_generation)?)?)
}

/// `nvmlDeviceGet…PcieLinkWidth`.
pub(crate) fn pcie_width(call: &mut Call<'_>, device: u64, width: Out<u32>) -> Outcome {
    Ok(width.write(ask(call, device, |node, _| node.device.interconnect.pcie_lanes)?)?)
}
