//! Matrix products.
//!
//! For each tile of the library's repertoire and each split of the contraction, the time is the blend of three
//! bounds, and the library is taken to choose the best:
//!
//! - arithmetic: `⌈tiles / SM⌉` waves, each `2 · rows · cols · (k + prologue)` operations at the tile's sustained
//!   share of one multiprocessor's peak (tile and wave quantisation);
//! - tile loads: every tile reads its two operand panels through the level-2 cache;
//! - memory: operands and result once, at the sustained bandwidth, or at the cache's rate while they fit there; a
//!   split contraction writes and reads partial results in fp32.
//!
//! Blend: `(a^p + b^p + c^p)^(1/p)`. Every term grows with m, n, k and batch, so the minimum over tiles does too.

use trompe_base::DType;
use trompe_trace::descriptor::{Epilogue, Gemm, Rnn};

use super::{Bench, constants};
use crate::{Basis, Estimate};

/// Splits of the contraction that libraries use.
const SPLITS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];

/// Spread of fp8 products: public rows contain the conversion of the operands and say little about the product.
const FP8_SPREAD: [f64; 2] = [0.85, 2.0];

/// A matrix product in the terms of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) m: f64,
    pub(super) n: f64,
    pub(super) k: f64,
    pub(super) batch: f64,
    /// Type that decides which unit multiplies.
    pub(super) dtype: DType,
    /// Bytes of one element of the operands (the mean of both).
    pub(super) operand: f64,
    /// Bytes of memory traffic, all batch entries together.
    pub(super) traffic: f64,
}

pub(super) fn estimate(gemm: &Gemm, bench: Bench<'_>) -> Estimate {
    let product = product(gemm);
    let (constants, method) = kind(&product, bench);
    let basis = if carried_over(product.dtype) { Basis::Assumed } else { constants.basis };
    let time = seconds(&product, constants, bench);
    if matches!(product.dtype, DType::F8E4M3 | DType::F8E5M2) {
        return Estimate::new(time, FP8_SPREAD, method, basis)
            .noted("fp8 priced with the constants of bf16 at the fp8 peak");
    }
    Estimate::new(time, constants.spread, method, basis)
}

/// The plan of a product that a descriptor states.
pub(super) fn plan_of(gemm: &Gemm, bench: Bench<'_>) -> Plan {
    let product = product(gemm);
    plan(&product, kind(&product, bench).0, bench)
}

/// The product that a descriptor states.
fn product(gemm: &Gemm) -> Product {
    let [m, n, k, batch] = [gemm.m, gemm.n, gemm.k, gemm.batch].map(|x| x.max(1) as f64);
    let size = |dtype: DType| dtype.size() as f64;
    let mut result_passes = 1.0;
    if gemm.accumulate {
        result_passes += 1.0;
    }
    if matches!(gemm.epilogue, Epilogue::GeluAux | Epilogue::ActivationGradient) {
        result_passes += 1.0;
    }
    let traffic =
        batch * (m * k * size(gemm.a) + k * n * size(gemm.b) + result_passes * m * n * size(gemm.c));
    Product {
        m,
        n,
        k,
        batch,
        dtype: multiplied_as(gemm.a, gemm.b, gemm.compute),
        operand: (size(gemm.a) + size(gemm.b)) / 2.0,
        traffic,
    }
}

/// The type whose unit multiplies: the operands' type, but TF32 where fp32 operands may use it.
pub(crate) fn multiplied_as(a: DType, b: DType, compute: DType) -> DType {
    match (a, compute) {
        (DType::F32 | DType::C64, DType::Tf32) => DType::Tf32,
        _ => {
            if a.size() >= b.size() {
                a
            } else {
                b
            }
        }
    }
}

/// Types whose constants come from another type.
const fn carried_over(dtype: DType) -> bool {
    !matches!(dtype, DType::F16 | DType::Bf16 | DType::F32)
}

/// Whether products of `dtype` run on the ordinary lanes of the device.
pub(super) fn on_lanes(dtype: DType, bench: Bench<'_>) -> bool {
    bench.device.matrix_peak(dtype).0 <= bench.device.vector_peak(dtype).0
}

/// The constants for the product, and the method's name.
fn kind<'a>(product: &Product, bench: Bench<'a>) -> (&'a constants::Gemm, &'static str) {
    let gemm = &bench.constants.gemm;
    if on_lanes(product.dtype, bench) {
        (&gemm.lanes, "physics.gemm.lanes")
    } else {
        (&gemm.tensor, "physics.gemm.tensor")
    }
}

/// How the library is taken to run a product: the fastest of its tiles and splits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Seconds, floor included.
    pub(crate) seconds: f64,
    /// Seconds of the arithmetic, of the tile loads and of the memory traffic.
    pub(crate) terms: [f64; 3],
    /// Rows and columns of the tile.
    pub(crate) tile: [f64; 2],
    /// Parts into which the contraction is split.
    pub(crate) split: f64,
}

/// Seconds of the product alone on the device.
pub(super) fn seconds(product: &Product, c: &constants::Gemm, bench: Bench<'_>) -> f64 {
    plan(product, c, bench).seconds
}

/// The plan of a product on the device.
pub(super) fn plan(product: &Product, c: &constants::Gemm, bench: Bench<'_>) -> Plan {
    let &Product { m, n, k, batch, operand, traffic, .. } = product;
    let sm = f64::from(bench.device.compute.sm_count);
    let peak_per_sm = bench.device.matrix_peak(product.dtype).0 / sm;
    let cache = 64.0 * sm * bench.device.compute.boost_clock.0;
    let tile_rate = c.tile_rate * cache;
    let memory = bench.device.memory.bandwidth.0 * c.memory;
    let resident = (2.0 - traffic / (c.resident * bench.device.memory.l2.as_f64())).clamp(0.0, 1.0);
    let warm = memory.max(c.resident_rate * cache);
    let operands = traffic * ((1.0 - resident) / memory + resident / warm);
    let mut best = Plan { seconds: f64::INFINITY, terms: [0.0; 3], tile: [0.0; 2], split: 1.0 };
    for tile in &c.tiles {
        for (rows, cols) in [(tile.rows, tile.cols), (tile.cols, tile.rows)] {
            let tiles = (m / rows).ceil() * (n / cols).ceil() * batch;
            for split in SPLITS {
                let depth = (k / split).ceil();
                let waves = (tiles * split / sm).ceil();
                let arithmetic =
                    waves * 2.0 * rows * cols * (depth + c.prologue) / (peak_per_sm * tile.efficiency);
                let loads = tiles * split * (rows + cols) * depth * operand / tile_rate;
                let partial = if split > 1.0 {
                    c.split_us * 1e-6 + 2.0 * 4.0 * split * m * n * batch / tile_rate
                } else {
                    0.0
                };
                let terms = [arithmetic, loads, operands + partial];
                // A blend is at least its largest term.
                if terms.iter().any(|term| *term >= best.seconds) {
                    continue;
                }
                let seconds = blend(terms, c.blend);
                if seconds < best.seconds {
                    best = Plan { seconds, terms, tile: [rows, cols], split };
                }
            }
            if tile.rows == tile.cols {
                break;
            }
        }
    }
    best.seconds += c.floor_us * 1e-6;
    best
}

/// `(Σ xᵖ)^(1/p)`, computed relative to the largest term so that no power under- or overflows.
pub(super) fn blend<const N: usize>(terms: [f64; N], p: f64) -> f64 {
    let largest = terms.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return 0.0;
    }
    largest * terms.iter().map(|x| (x / largest).powf(p)).sum::<f64>().powf(1.0 / p)
}

/// A recurrent network: per layer one product over all steps for the inputs, then one dependent small product per
/// step; the gradient of the data repeats both, the gradient of the weights has no dependent steps.
pub(super) fn recurrent(rnn: &Rnn, bench: Bench<'_>) -> Estimate {
    use trompe_trace::descriptor::Direction;
    let c = &bench.constants.recurrent;
    let [layers, input, hidden, batch, steps] =
        [rnn.layers, rnn.input, rnn.hidden, rnn.batch, rnn.steps].map(|x| x.max(1) as f64);
    let gates = f64::from(rnn.gates.max(1)) * hidden;
    let size = rnn.dtype.size() as f64;
    let product = |m: f64, n: f64, k: f64| Product {
        m,
        n,
        k,
        batch: 1.0,
        dtype: rnn.dtype,
        operand: size,
        traffic: size * (m * k + k * n + m * n),
    };
    let seconds = |product: Product| seconds(&product, kind(&product, bench).0, bench);
    let inputs = seconds(product(gates, batch * steps, input));
    let step = seconds(product(gates, batch, hidden)) + c.step_us * 1e-6;
    let weights = seconds(product(gates, input + hidden, batch * steps));
    let time = match rnn.direction {
        Direction::Forward | Direction::Backward => layers * (inputs + steps * step),
        Direction::WeightGradient => layers * weights,
    };
    Estimate::new(time, c.spread, "physics.rnn", Basis::Assumed)
        .noted("recurrent networks are priced as dependent matrix products; not validated")
}
