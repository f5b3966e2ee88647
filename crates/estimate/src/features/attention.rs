//! Fused attention: heads, positions, blocks of query positions and their waves.

use trompe_base::DType;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{Attention, AttentionKind, Direction};

use super::{Axes, Row};

pub(super) const NAMES: &[&str] = &[
    "heads",
    "kv_heads",
    "batch",
    "seq_q",
    "seq_kv",
    "head_dim",
    "head_dim_v",
    "queries_per_key",
    "causal",
    "backward",
    "kind",
    "physics",
    "physics_over_roofline",
    "flops",
    "traffic",
    "cache_bytes",
    "intensity",
    "traffic_over_cache",
    "blocks",
    "waves_64",
    "fill_64",
    "waves_128",
    "fill_128",
    "keys_over_block",
    "tail_q",
    "tail_kv",
    "align_heads",
];

pub(super) const AXES: Axes = Axes {
    classes: &["backward", "kind", "head_dim", "head_dim_v"],
    sizes: &["heads", "batch", "seq_q", "seq_kv", "queries_per_key"],
};

pub(super) fn fill(row: &mut Row, a: &Attention, device: &DeviceSheet, seconds: f64) -> DType {
    let [batch, heads, kv_heads, queries, keys, width, width_v] =
        [a.batch, a.heads, a.kv_heads, a.seq_q, a.seq_kv, a.head_dim, a.head_dim_v].map(|x| x.max(1) as f64);
    let backward = a.direction != Direction::Forward;
    let size = a.dtype.size() as f64;
    let passes = if backward { 2.5 } else { 1.0 };
    let seen = if a.causal { 0.5 } else { 1.0 };
    let flops = 2.0 * batch * heads * queries * keys * (width + width_v) * seen * passes;
    let cache = size * batch * kv_heads * keys * (width + width_v);
    let traffic = (size * batch * heads * queries * (width + width_v) + cache) * passes;
    let roofline = (flops / device.matrix_peak(a.dtype).0).max(traffic / device.memory.bandwidth.0).max(1e-9);
    let sm = f64::from(device.compute.sm_count);
    for size in [heads, kv_heads, batch, queries, keys] {
        row.log(size);
    }
    row.push(width);
    row.push(width_v);
    row.log(heads / kv_heads);
    row.flag(a.causal);
    row.flag(backward);
    row.push(match a.kind {
        AttentionKind::MemoryEfficient => 0.0,
        AttentionKind::Flash => 1.0,
        AttentionKind::Cudnn => 2.0,
        AttentionKind::Flash3 => 3.0,
    });
    row.log(seconds * 1e6);
    row.log(seconds / roofline);
    row.log(flops);
    row.log(traffic);
    row.log(cache);
    row.log(flops / traffic);
    row.log(traffic / device.memory.l2.as_f64());
    let blocks = |rows: f64| batch * heads * (queries / rows).ceil();
    row.log(blocks(128.0));
    row.waves(blocks(64.0), sm);
    row.waves(blocks(128.0), sm);
    row.log((keys / 128.0).ceil());
    row.push(queries / ((queries / 128.0).ceil() * 128.0));
    row.push(keys / ((keys / 128.0).ceil() * 128.0));
    row.alignment(a.batch * a.heads);
    a.dtype
}
