//! Kernels compiled at run time (Triton, NVRTC) whose machine code is known.
//!
//! The longest of three, and the floor: moving the bytes, doing the matrix products, and issuing the instructions.
//!
//! - *bytes*: as an element-wise pass, slower where too few warps are resident to keep the memory busy (Little's law; the
//!   number of warps is the one that hides the latency of a load of 16 bytes a thread).
//! - *matrix products*: at the peak of the matrix units, times the share of the issue slots of the inner loop that is
//!   left to them, times how full the waves of blocks are.
//! - *instructions*: four warps issue per cycle and multiprocessor; loads and stores, conversions and special functions
//!   are weighted by how rarely their pipes take one. Loops count once, so this is a lower bound.
//!
//! Nothing here was fitted to measurements; the interval says so.

use trompe_base::DType;
use trompe_hardware::Compute;
use trompe_trace::descriptor::{Compiled, Triton, Work};

use super::{Bench, streaming, unknown};
use crate::{Basis, Estimate};

/// Warps of a multiprocessor that issue in a cycle.
const ISSUE: f64 = 4.0;
/// Resident warps per multiprocessor that keep the memory busy.
const HIDING_WARPS: f64 = 24.0;
/// The most of the matrix units' peak that compiled code is thought to reach: measurements of Triton's own matrix product
/// tutorial and of FlashAttention-2 in Triton lie at 60 to 75 % of it on A100 and H100.
const MATRIX_SHARE: f64 = 0.75;

pub(super) fn estimate(kernel: &Compiled, bench: Bench<'_>) -> Estimate {
    if kernel.work == Work::default() {
        // What it moves is most of what a kernel costs.
        let Compiled { work, blocks, threads, registers, shared, .. } = *kernel;
        return unknown::triton(&Triton { work, blocks, threads, registers, shared }, bench);
    }
    let compute = &bench.device.compute;
    let multiprocessors = f64::from(compute.sm_count);
    let warps = f64::from(kernel.threads.div_ceil(compute.warp_size).max(1));
    let blocks = kernel.blocks.max(1) as f64;
    let resident = f64::from(resident(compute, kernel).max(1));
    let active = (blocks / multiprocessors).min(resident) * warps;
    let hidden = (active / HIDING_WARPS).clamp(0.02, 1.0);
    let clock = compute.boost_clock.0;
    let floor = bench.constants.kernel.floor_us * 1e-6;

    let pass =
        streaming::seconds(kernel.work.bytes().as_f64(), bench.constants.streaming("elementwise"), bench);
    let memory = (pass - floor) / hidden;
    let issue = f64::from(kernel.all_slots) * warps * blocks / (multiprocessors * ISSUE * clock);
    let matrix = if kernel.multiplies > 0 {
        let peak = bench.device.matrix_peak(DType::F16).0;
        // Multiply-adds per issue slot of a multiprocessor at the peak.
        let rate = peak / 2.0 / multiprocessors / clock / ISSUE;
        let own = kernel.multiplies as f64 / rate;
        // Other warps issue while the matrix units work, up to what is resident.
        let others = f64::from(kernel.slots) / (active / ISSUE).clamp(1.0, 4.0);
        let share = (own / (own + others)).min(MATRIX_SHARE);
        let waves = (blocks / (multiprocessors * resident)).ceil();
        let filled = blocks / (waves * multiprocessors * resident);
        kernel.work.flops.as_f64() / (peak * share * filled.clamp(0.01, 1.0))
    } else {
        0.0
    };
    let time = floor + memory.max(issue).max(matrix);
    let spread = if kernel.multiplies > 0 { [0.5, 2.0] } else { bench.constants.unknown.spread };
    Estimate::new(time, spread, "physics.triton.code", Basis::Assumed)
        .noted("priced by its bytes, matrix products and instructions")
}

/// Blocks that a multiprocessor holds at once, by threads, registers and shared memory.
fn resident(compute: &Compute, kernel: &Compiled) -> u32 {
    let warps = kernel.threads.div_ceil(compute.warp_size).max(1);
    let by_warps = compute.max_threads_per_sm / compute.warp_size / warps;
    let registers = (kernel.registers.max(1) * compute.warp_size).next_multiple_of(256) * warps;
    let shared = u64::from(kernel.shared) + compute.shared_reserved_per_block.0;
    let by_shared = u32::try_from(compute.shared_per_sm.0 / shared.max(1)).unwrap_or(u32::MAX);
    by_warps.min(compute.registers_per_sm / registers).min(by_shared).min(compute.max_blocks_per_sm)
}

#[cfg(test)]
mod tests {
    use trompe_base::{Bytes, Flops};
    use trompe_hardware::resolve;
    use trompe_trace::descriptor::Descriptor;

    use crate::{KernelEstimator, physics::Physics};

    use super::*;

    fn seconds(kernel: Compiled) -> f64 {
        let cluster = resolve("h100-sxm").unwrap();
        Physics::new().estimate(&Descriptor::Compiled(kernel), cluster.device()).time.as_secs_f64()
    }

    /// A bf16 matrix product of 4096³ with tiles of 128 × 128 and `slots` other instructions in its loop.
    fn product(slots: u32, blocks: u64) -> f64 {
        let matrix = 4096 * 4096 * 2;
        let work =
            Work { read: Bytes(2 * matrix), written: Bytes(matrix), flops: Flops(2 * 4096_u64.pow(3)) };
        let (threads, registers, shared) = (128, 168, 96 << 10);
        let multiplies = 128 * 128 * 64 / 4;
        seconds(Compiled {
            work,
            blocks,
            threads,
            registers,
            shared,
            multiplies,
            slots,
            all_slots: slots + 300,
        })
    }

    #[test]
    fn a_product_is_priced_by_its_operations_and_its_loop() {
        let lean = product(60, 1024);
        // 137 GFLOP at 60 to 75 % of 989 TFLOP/s, and unfilled waves.
        assert!((180e-6..340e-6).contains(&lean), "{lean}");
        assert!(product(2000, 1024) > lean * 1.2, "other instructions in the loop cost");
        // Two blocks fit on each of 132 multiprocessors.
        assert!(product(60, 265) > product(60, 264) * 1.5, "a wave of one block takes as long as a full one");
    }

    #[test]
    fn a_pass_is_priced_by_its_bytes_or_its_instructions() {
        let pass = |all_slots, threads, blocks| {
            let work = Work { read: Bytes(1 << 29), written: Bytes(1 << 29), flops: Flops(0) };
            seconds(Compiled { work, blocks, threads, registers: 32, all_slots, ..Compiled::default() })
        };
        let streaming = pass(100, 128, 1 << 17);
        // 1 GiB at 80 to 95 % of 3.35 TB/s.
        assert!((330e-6..420e-6).contains(&streaming), "{streaming}");
        assert!(pass(100_000, 128, 1 << 17) > streaming * 5.0, "much arithmetic");
        assert!(pass(100, 32, 64) > streaming * 2.0, "two thousand threads cannot keep the memory busy");
    }
}
