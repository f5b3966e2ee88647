//! Fused attention.
//!
//! A block works on 128 query positions of one head and walks the keys that they see. With `n` blocks of mean length
//! `keys` and longest length `longest`, `work` operations per key position and the sustained rate `r` of one
//! multiprocessor, the arithmetic takes `(n · (keys + prologue) / SM + balance · (longest + prologue)) · work / r`:
//! the total spread evenly, and a share of the longest block that sticks out at the end. The backward pass does 2.5
//! times the operations of the forward pass (Dao, "FlashAttention-2", 2023).

use trompe_trace::descriptor::{Attention, AttentionKind, Direction};

use super::Bench;
use super::gemm::blend;
use crate::{Basis, Estimate};

/// Query positions of one block.
const QUERIES: f64 = 128.0;
/// Head widths at which the constants give an efficiency.
const WIDTHS: [f64; 5] = [64.0, 96.0, 128.0, 192.0, 256.0];
const BACKWARD_WORK: f64 = 2.5;

pub(super) fn estimate(attention: &Attention, bench: Bench<'_>) -> Estimate {
    let c = &bench.constants.attention;
    let [batch, heads, kv_heads, queries, keys, width, width_v] = [
        attention.batch,
        attention.heads,
        attention.kv_heads,
        attention.seq_q,
        attention.seq_kv,
        attention.head_dim,
        attention.head_dim_v,
    ]
    .map(|x| x.max(1) as f64);
    let backward = attention.direction != Direction::Forward;
    let blocks_per_head = (queries / QUERIES).ceil();
    let mean = if attention.causal {
        keys.min((blocks_per_head + 1.0) / 2.0 * QUERIES + (keys - queries).max(0.0))
    } else {
        keys
    };
    let widths = width + width_v;
    let (implementation, method, fitted) = match attention.kind {
        AttentionKind::Flash => (c.flash, "physics.attention.flash", c.flash == 1.0),
        AttentionKind::Flash3 => (c.flash3, "physics.attention.flash3", c.flash3 == 1.0),
        AttentionKind::Cudnn => (c.cudnn, "physics.attention.cudnn", false),
        AttentionKind::MemoryEfficient => (c.memory_efficient, "physics.attention.memory_efficient", false),
    };
    let sm = f64::from(bench.device.compute.sm_count);
    let peak_per_sm = bench.device.matrix_peak(attention.dtype).0 / sm;
    let (passes, pass_efficiency) = if backward { (BACKWARD_WORK, c.backward) } else { (1.0, 1.0) };
    let rate = peak_per_sm * interpolate(widths / 2.0, &c.efficiency) * implementation * pass_efficiency;
    let work = 2.0 * QUERIES * widths * passes;
    let blocks = batch * heads * blocks_per_head;
    let arithmetic = (blocks * (mean + c.prologue) / sm + c.balance * (keys + c.prologue)) * work / rate;
    let size = attention.dtype.size() as f64;
    let bytes = size * batch * widths * (heads * queries + kv_heads * keys) * passes;
    let memory = bytes / (bench.device.memory.bandwidth.0 * c.memory);
    let launches = if backward { 2.0 } else { 1.0 };
    let time = launches * c.floor_us * 1e-6 + blend([arithmetic, memory], 4.0);
    let basis = if fitted && !backward { c.basis } else { Basis::Assumed };
    let estimate = Estimate::new(time, c.spread, method, basis);
    if attention.dropout {
        return estimate.noted("attention dropout is priced as free");
    }
    estimate
}

/// The efficiency at head width `width`, linear in its logarithm between the constants' widths.
fn interpolate(width: f64, efficiency: &[f64; 5]) -> f64 {
    let width = width.clamp(WIDTHS[0], WIDTHS[4]);
    let above = WIDTHS.iter().position(|w| *w >= width).unwrap_or(4).max(1);
    let (low, high) = (WIDTHS[above - 1], WIDTHS[above]);
    let share = (width / low).ln() / (high / low).ln();
    efficiency[above - 1] + share * (efficiency[above] - efficiency[above - 1])
}
