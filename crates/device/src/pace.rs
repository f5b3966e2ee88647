//! What work is thought to take, for programs that choose by measuring (autotuners compare configurations of one kernel
//! by `cudaEventElapsedTime`).
//!
//! What it is: a small, deterministic roofline with what is known at a launch: the kernel's machine code, registers and
//! shared memory, the launch's geometry, and how large the tensors are that its parameters point to. It ranks
//! configurations plausibly: too few blocks, unfilled last waves, low occupancy, spilled registers and code that spends
//! its issue slots on something other than matrix products all cost.
//!
//! What it is not: the prediction of the run. That is made from the trace, by the models, and knows nothing of this.

use trompe_base::DType;
use trompe_fatbin::KernelInfo;
use trompe_fatbin::cubin::code::Class;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Gemm;

use crate::occupancy::{Demand, blocks_per_multiprocessor};

/// The least that a kernel takes on an idle device, in nanoseconds.
const LEAST_NS: f64 = 2_000.0;
/// Times that a loop is thought to be repeated.
const REPETITIONS: f64 = 16.0;
/// Issue slots of a multiprocessor per cycle.
const SLOTS: f64 = 4.0;
/// Warps per multiprocessor that hide the latency of memory.
const HIDING_WARPS: f64 = 24.0;

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Blocks.
    pub blocks: u64,
    /// Threads per block, and shared memory.
    pub demand: Demand,
    /// Sizes in bytes of the different tensors that parameters point to.
    pub tensors: &'a [u64],
}

/// Nanoseconds that a kernel is thought to take.
#[must_use]
pub fn kernel_ns(sheet: &DeviceSheet, info: &KernelInfo, launch: &Launch<'_>) -> u64 {
    let compute = &sheet.compute;
    let multiprocessors = f64::from(compute.sm_count);
    let resident = f64::from(blocks_per_multiprocessor(compute, launch.demand).max(1));
    let blocks = launch.blocks.max(1) as f64;
    let warps = f64::from(launch.demand.threads.div_ceil(compute.warp_size).max(1));
    // Blocks come in waves; the last one takes as long as a full one.
    let waves = (blocks / (multiprocessors * resident)).ceil();
    let active = (blocks / multiprocessors).min(resident).max(1.0 / multiprocessors);
    let clock = compute.boost_clock.0 / 1e9;

    let code = &info.instructions;
    let cost = |class| {
        let per_instruction = match class {
            Class::Tensor => 0.0,
            Class::Special => 8.0,
            Class::Float64 | Class::Convert => 4.0,
            Class::GlobalLoad | Class::GlobalStore | Class::Atomic | Class::Local => 8.0,
            Class::SharedLoad | Class::SharedStore => 4.0,
            Class::Integer | Class::Other | Class::Control | Class::Float16 | Class::Float32 => 1.0,
        };
        let (all, looped) = (f64::from(code.count(class)), f64::from(code.looped(class)));
        per_instruction * (all + looped * (REPETITIONS - 1.0))
    };
    // Multiply-adds of a multiprocessor's tensor cores per issue slot, at the dense half-precision peak.
    let peak = sheet.matrix_peak(DType::F16).0 / 1e9;
    let rate = (peak / 2.0 / multiprocessors / clock / SLOTS).max(1.0);
    let (all, looped) = code.multiplies();
    let tensor = (all as f64 + looped as f64 * (REPETITIONS - 1.0)) / rate;
    let cycles = (Class::ALL.into_iter().map(cost).sum::<f64>() + tensor) * warps / SLOTS;
    let bytes = launch.tensors.iter().sum::<u64>() as f64;
    let hidden = (active * warps / HIDING_WARPS).clamp(0.05, 1.0);
    let memory = bytes / (sheet.memory.bandwidth.0 * 0.9) * 1e9 / hidden;

    // A matrix product's work follows from its three tensors and is the same in all configurations; how fast it is done
    // depends on the share of the issue slots that its inner loop gives to it.
    let busy = if tensor > 0.0 {
        let share = (tensor * warps / SLOTS / cycles.max(1.0)).clamp(0.05, 0.9);
        let used = (blocks / (waves * multiprocessors * resident)).clamp(0.01, 1.0);
        let mut sizes = launch.tensors.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let product: f64 = sizes.iter().take(3).map(|size| *size as f64 / 2.0).product();
        let operations = if sizes.len() >= 3 { 2.0 * product.sqrt() } else { 0.0 };
        (operations / peak / share / used / hidden.sqrt())
            .max(waves * cycles / clock / resident.sqrt() * 0.01)
    } else {
        waves * cycles * active.max(1.0) / clock / resident.max(1.0)
    };
    let spilled = 1.0 + 0.02 * f64::from(code.count(Class::Local)).min(50.0);
    (LEAST_NS + busy.max(memory) * spilled) as u64
}

/// Nanoseconds that a library's matrix product is thought to take.
#[must_use]
pub fn product_ns(sheet: &DeviceSheet, gemm: &Gemm) -> u64 {
    /// What libraries reach of the peak where they are fast.
    const SHARE: f64 = 0.7;
    let operations =
        2.0 * [gemm.m, gemm.n, gemm.k, gemm.batch].map(|size| size as f64).iter().product::<f64>();
    let dtype = if gemm.compute == DType::Tf32 { DType::Tf32 } else { gemm.a };
    (LEAST_NS + operations / (sheet.matrix_peak(dtype).0 * SHARE) * 1e9) as u64
}

/// Nanoseconds that a copy or fill of so many bytes is thought to take on the device.
#[must_use]
pub fn transfer_ns(sheet: &DeviceSheet, bytes: u64) -> u64 {
    (LEAST_NS / 2.0 + bytes as f64 / sheet.memory.bandwidth.0 * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use trompe_hardware::resolve;

    use super::*;

    fn h100() -> DeviceSheet {
        resolve("h100-sxm").expect("a sheet").device().clone()
    }

    fn ns(info: &KernelInfo, blocks: u64, threads: u32, shared: u64, tensors: &[u64]) -> u64 {
        let demand = Demand { threads, registers: info.registers, shared };
        kernel_ns(&h100(), info, &Launch { blocks, demand, tensors })
    }

    #[test]
    fn memory_decides_where_there_is_little_code() {
        let info = KernelInfo { registers: 32, ..KernelInfo::default() };
        let small = ns(&info, 1024, 256, 0, &[1 << 20]);
        let large = ns(&info, 1024, 256, 0, &[1 << 30]);
        assert!((1_500..4_000).contains(&small), "{small}");
        // 1 GiB at 3.35 TB/s.
        assert!((320_000..450_000).contains(&large), "{large}");
        assert!(ns(&info, 8, 32, 0, &[1 << 30]) > large * 2, "eight warps cannot fill the memory's pipes");
    }
}
