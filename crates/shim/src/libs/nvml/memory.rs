//! Memory and activity.

use trompe_cuda_abi::pointer::Out;

use super::ask;
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome};

/// Total bytes as NVML counts them, the driver's reserve among them, and bytes free.
fn bytes(call: &Call<'_>, device: u64) -> Result<Bytes, LibraryFailure> {
    let (total, usable, index) = ask(call, device, |node, index| {
        (node.device.memory.nvml_total.0, node.device.memory.total.0, index)
    })?;
    let machine = call.machine();
    // A device that this process does not see is used by nobody.
    let free = machine
        .logical(index)
        .and_then(|device| machine.memory.info(device))
        .map_or(usable, |(free, _)| free);
    Ok(Bytes { total, reserved: total.saturating_sub(usable), free })
}

struct Bytes {
    total: u64,
    reserved: u64,
    free: u64,
}

/// `nvmlDeviceGetMemoryInfo`: total, free, used; the reserve counts as used.
pub(crate) fn information(call: &mut Call<'_>, device: u64, information: Out<u64>) -> Outcome {
    let Bytes { total, free, .. } = bytes(call, device)?;
    information.write_at(0, total)?;
    information.write_at(1, free)?;
    Ok(information.write_at(2, total.saturating_sub(free))?)
}

/// `nvmlDeviceGetMemoryInfo_v2`: version, total, reserved, free, used.
pub(crate) fn information_v2(call: &mut Call<'_>, device: u64, information: Out<u64>) -> Outcome {
    let Bytes { total, reserved, free } = bytes(call, device)?;
    let used = total.saturating_sub(reserved).saturating_sub(free);
    for (index, value) in [total, reserved, free, used].into_iter().enumerate() {
        information.write_at(index + 1, value)?;
    }
    Ok(())
}

/// `nvmlDeviceGetMemoryBusWidth`.
pub(crate) fn bus_width(call: &mut Call<'_>, device: u64, width: Out<u32>) -> Outcome {
    Ok(width.write(ask(call, device, |node, _| node.device.memory.bus_width)?)?)
}

/// `nvmlDeviceGetUtilizationRates`: kernels take no time here, so nothing is ever busy.
pub(crate) fn utilization(call: &mut Call<'_>, device: u64, rates: Out<u32>) -> Outcome {
    ask(call, device, |_, _| ())?;
    rates.write_at(0, 0)?;
    Ok(rates.write_at(1, 0)?)
}

/// `nvmlDeviceGetComputeRunningProcesses` and its like.
pub(crate) fn no_processes(call: &mut Call<'_>, device: u64, count: Out<u32>, _processes: u64) -> Outcome {
    ask(call, device, |_, _| ())?;
    Ok(count.write(0)?)
}
