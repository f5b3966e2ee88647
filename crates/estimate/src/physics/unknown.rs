//! Kernels that no family claims: whatever is known is charged, by a stated rule.
//!
//! Bytes and operations where they are known; otherwise every thread is taken to move a fixed number of bytes; when
//! not even the grid is known, twice the shortest kernel.

use trompe_base::{Bytes, DType, Flops};
use trompe_trace::descriptor::{NpuKernel, Other, Recorded, Triton, Work};

use super::{Bench, streaming};
use crate::{Basis, Estimate};

pub(super) fn triton(t: &Triton, bench: Bench<'_>) -> Estimate {
    charge(&t.work, t.blocks, t.threads, "triton", bench)
}

pub(super) fn other(o: &Other, bench: Bench<'_>) -> Estimate {
    charge(&o.work, o.blocks, o.threads, "other", bench)
}

/// An NPU program that nobody simulates ([`crate::WithPrograms`] does).
pub(super) fn program(kernel: &NpuKernel, bench: Bench<'_>) -> Estimate {
    charge(&kernel.work, 0, 0, "program", bench)
}

/// What another tool measured: on every device the same.
pub(super) fn recorded(recorded: &Recorded) -> Estimate {
    let seconds = recorded.time.as_secs_f64();
    Estimate::new(seconds, [1.0, 1.0], "recorded", Basis::Assumed)
        .noted("the time that the imported trace states")
}

fn charge(work: &Work, blocks: u64, threads: u32, family: &str, bench: Bench<'_>) -> Estimate {
    let c = &bench.constants.unknown;
    let family_constants = bench.constants.streaming("elementwise");
    let floor = bench.constants.kernel.floor_us * 1e-6;
    if work.bytes() != Bytes::ZERO || work.flops != Flops::ZERO {
        let arithmetic =
            floor + work.flops.as_f64() / (bench.device.vector_peak(DType::F32).0 * c.arithmetic);
        let time = streaming::seconds(work.bytes().as_f64(), family_constants, bench).max(arithmetic);
        let basis = if family == "triton" { Basis::Assumed } else { Basis::Fallback };
        return Estimate::new(time, c.spread, format!("physics.{family}.work"), basis)
            .noted("charged by its bytes and operations");
    }
    if blocks > 0 && threads > 0 {
        let bytes = blocks as f64 * f64::from(threads) * c.bytes_per_thread;
        let time = streaming::seconds(bytes, family_constants, bench);
        return Estimate::new(time, c.spread, format!("physics.{family}.grid"), Basis::Fallback)
            .noted("bytes unknown; charged by its number of threads");
    }
    Estimate::new(2.0 * floor, c.spread, format!("physics.{family}.floor"), Basis::Fallback)
        .noted("nothing is known about it; charged twice the shortest kernel")
}
