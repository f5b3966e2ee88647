//! Families bounded by memory traffic: one pass (or a few) over tensors.
//!
//! `time = floor + bytes / rate`, where the rate is the family's sustained share of the memory bandwidth, or that of
//! the level-2 cache while the operands fit there. The floor makes small passes slow without a separate curve.

use trompe_base::{Bytes, DType};
use trompe_trace::descriptor::{
    Direction, Elementwise, Embedding, Indexing, Normalization, Optimizer, Reduction, RowWise, Sort, Work,
};

use super::Bench;
use super::constants::Streaming;
use crate::{Basis, Estimate};

/// All streaming families of the constants, in order.
#[cfg(test)]
pub(super) const FAMILIES: [&str; 16] = [
    "copy",
    "cross_entropy",
    "elementwise",
    "elementwise_scalar",
    "embedding",
    "indexing",
    "normalization",
    "normalization_backward",
    "normalization_weights",
    "optimizer",
    "reduction",
    "set",
    "softmax",
    "softmax_short",
    "sort",
    "stencil",
];

/// Longest row that one warp keeps in registers (PyTorch's `softmax_warp_forward`).
const WARP_ROW: u64 = 1024;

const TOUCHED: &str = "bytes unknown; derived from the number of elements";

/// Seconds to stream `bytes` as the family does, floor included.
pub(super) fn seconds(bytes: f64, family: &Streaming, bench: Bench<'_>) -> f64 {
    let kernel = &bench.constants.kernel;
    let memory = bench.device.memory.bandwidth.0 * family.efficiency;
    if !family.cached {
        return kernel.floor_us * 1e-6 + bytes / memory;
    }
    let cache = 64.0 * f64::from(bench.device.compute.sm_count) * bench.device.compute.boost_clock.0;
    let warm = memory.max(kernel.resident_rate * cache * family.efficiency);
    let resident = (2.0 - bytes / (kernel.resident * bench.device.memory.l2.as_f64())).clamp(0.0, 1.0);
    kernel.floor_us * 1e-6 + bytes * ((1.0 - resident) / memory + resident / warm)
}

/// One pass of the family `name` over `bytes`.
fn pass(name: &str, method: &'static str, bytes: f64, bench: Bench<'_>) -> Estimate {
    let family = bench.constants.streaming(name);
    Estimate::new(seconds(bytes, family, bench), family.spread, method, family.basis)
}

/// The bytes of `work`, or `passes` passes over `elements` when they are unknown; and whether they were known.
fn bytes_of(work: &Work, elements: u64, dtype: DType, passes: f64) -> (f64, bool) {
    match work.bytes() {
        Bytes(0) => (elements.max(1) as f64 * dtype.size() as f64 * passes, false),
        known => (known.as_f64(), true),
    }
}

/// Marks an estimate whose bytes had to be derived.
fn derived(estimate: Estimate, known: bool) -> Estimate {
    if known {
        return estimate;
    }
    Estimate { basis: estimate.basis.max(Basis::Assumed), ..estimate }.noted(TOUCHED)
}

/// The time of `flops` on the ordinary lanes, where they exceed the traffic's.
fn with_arithmetic(mut estimate: Estimate, work: &Work, dtype: DType, bench: Bench<'_>) -> Estimate {
    let share = bench.constants.unknown.arithmetic;
    let arithmetic = work.flops.as_f64() / (bench.device.vector_peak(dtype).0 * share);
    let floor = bench.constants.kernel.floor_us * 1e-6;
    if floor + arithmetic > estimate.time.as_secs_f64() {
        let spread = [
            estimate.low.as_secs_f64() / estimate.time.as_secs_f64(),
            estimate.high.as_secs_f64() / estimate.time.as_secs_f64(),
        ];
        estimate = Estimate {
            note: estimate.note.clone(),
            ..Estimate::new(floor + arithmetic, spread, estimate.method, estimate.basis)
        };
    }
    estimate
}

pub(super) fn elementwise(e: &Elementwise, bench: Bench<'_>) -> Estimate {
    let (bytes, known) = bytes_of(&e.work, e.elements, e.dtype, 2.0);
    let estimate = if e.vectorized {
        pass("elementwise", "physics.elementwise.vectorized", bytes, bench)
    } else {
        let names = ("elementwise_scalar", "physics.elementwise.scalar");
        by_element(e.elements as f64, bench.constants.kernel.scalar_rate, bytes, names, bench)
    };
    derived(with_arithmetic(estimate, &e.work, e.dtype, bench), known)
}

pub(super) fn normalization(n: &Normalization, bench: Bench<'_>) -> Estimate {
    let (name, method, passes) = match n.direction {
        Direction::Forward => ("normalization", "physics.normalization", 2.0),
        Direction::Backward => ("normalization_backward", "physics.normalization.backward", 3.0),
        Direction::WeightGradient => ("normalization_weights", "physics.normalization.weights", 2.0),
    };
    let (bytes, known) = bytes_of(&n.work, n.rows * n.cols, n.dtype, passes);
    derived(pass(name, method, bytes, bench), known)
}

/// Passes over a row that no longer fits in a block's shared memory, over passes over one that does: the forward
/// kernel reads the row once more.
fn long_row(r: &RowWise, bench: Bench<'_>) -> f64 {
    let row = r.cols as f64 * r.dtype.size() as f64;
    let fits = row <= bench.device.compute.shared_per_block_optin.as_f64();
    if fits { 1.0 } else { 1.5 }
}

pub(super) fn softmax(r: &RowWise, bench: Bench<'_>) -> Estimate {
    let passes = if r.direction == Direction::Forward { 2.0 } else { 3.0 };
    let (bytes, known) = bytes_of(&r.work, r.rows * r.cols, r.dtype, passes);
    let estimate = if r.cols <= WARP_ROW {
        pass("softmax_short", "physics.softmax.warp", bytes, bench)
    } else {
        pass("softmax", "physics.softmax", bytes * long_row(r, bench), bench)
    };
    derived(estimate, known)
}

pub(super) fn cross_entropy(r: &RowWise, bench: Bench<'_>) -> Estimate {
    let (bytes, known) = bytes_of(&r.work, r.rows * r.cols, r.dtype, 2.0);
    derived(pass("cross_entropy", "physics.cross_entropy", bytes, bench), known)
}

pub(super) fn reduction(r: &Reduction, bench: Bench<'_>) -> Estimate {
    let (bytes, known) = bytes_of(&r.work, r.inputs + r.outputs, r.dtype, 1.0);
    derived(pass("reduction", "physics.reduction", bytes, bench), known)
}

/// Kernels that move one element per access are bound by the rate of elements, whatever their size, until the
/// bandwidth binds.
fn by_element(
    elements: f64,
    rate: f64,
    bytes: f64,
    (name, method): (&str, &'static str),
    bench: Bench<'_>,
) -> Estimate {
    let device = bench.device;
    let per_second = rate * f64::from(device.compute.sm_count) * device.compute.boost_clock.0;
    let accesses = bench.constants.kernel.floor_us * 1e-6 + elements / per_second;
    let family = bench.constants.streaming(name);
    let time = accesses.max(seconds(bytes, family, bench));
    Estimate::new(time, family.spread, method, family.basis)
}

pub(super) fn embedding(e: &Embedding, bench: Bench<'_>) -> Estimate {
    let elements = e.tokens * e.width;
    let (bytes, known) = bytes_of(&e.work, elements, e.dtype, 2.0);
    let names = ("embedding", "physics.embedding");
    derived(by_element(elements as f64, bench.constants.kernel.index_rate, bytes, names, bench), known)
}

pub(super) fn indexing(i: &Indexing, bench: Bench<'_>) -> Estimate {
    let (bytes, known) = bytes_of(&i.work, i.elements, i.dtype, 2.0);
    derived(pass("indexing", "physics.indexing", bytes, bench), known)
}

pub(super) fn optimizer(o: &Optimizer, bench: Bench<'_>) -> Estimate {
    // Every list is read; parameters and moments (all but the gradient) are written back.
    let lists = f64::from(o.lists.max(1));
    let (bytes, known) = bytes_of(&o.work, o.elements, o.dtype, (2.0 * lists - 1.0).max(2.0));
    derived(pass("optimizer", "physics.optimizer", bytes, bench), known)
}

pub(super) fn sort(s: &Sort, bench: Bench<'_>) -> Estimate {
    let (bytes, known) = bytes_of(&s.work, s.elements, s.dtype, 2.0);
    derived(pass("sort", "physics.sort", bytes, bench), known)
}

pub(super) fn stencil(work: &Work, bench: Bench<'_>) -> Estimate {
    if work.bytes() == Bytes::ZERO {
        let estimate = pass("stencil", "physics.stencil", 0.0, bench);
        return Estimate { basis: Basis::Fallback, ..estimate }.noted("bytes unknown; charged the floor");
    }
    pass("stencil", "physics.stencil", work.bytes().as_f64(), bench)
}
