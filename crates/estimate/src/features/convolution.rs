//! Convolutions: the equal matrix product, and what tells a convolution from it.

use trompe_base::DType;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{Convolution, Direction, ImageLayout};

use super::{Axes, Row};

pub(super) const NAMES: &[&str] = &[
    "batch",
    "in_channels",
    "out_channels",
    "positions",
    "image",
    "kernel",
    "kernel_ratio",
    "stride",
    "padding",
    "dilation",
    "groups",
    "direction",
    "unit",
    "channels_last",
    "align_in",
    "align_out",
    "align_width",
    "physics",
    "physics_over_roofline",
    "flops",
    "traffic",
    "intensity",
    "traffic_over_cache",
    "product_m",
    "product_n",
    "product_k",
    "winograd",
    "waves_128x128",
    "fill_128x128",
    "waves_64x64",
    "fill_64x64",
];

pub(super) const AXES: Axes = Axes {
    classes: &["direction", "unit", "kernel"],
    sizes: &["batch", "in_channels", "out_channels", "image", "stride"],
};

pub(super) fn fill(row: &mut Row, c: &Convolution, device: &DeviceSheet, seconds: f64) -> DType {
    let product = |extents: &[u64]| extents.iter().map(|x| (*x).max(1) as f64).product::<f64>();
    let [batch, inside, outside, groups] =
        [c.batch, c.in_channels, c.out_channels, c.groups].map(|x| x.max(1) as f64);
    let (image, positions, taps) = (product(&c.input), product(&c.output), product(&c.kernel));
    let dtype = if c.dtype == DType::F32 { c.compute } else { c.dtype };
    let on_lanes = matches!(dtype, DType::F32 | DType::F64);
    let size = c.dtype.size() as f64;
    let flops = 2.0 * batch * positions * outside * inside / groups * taps;
    let traffic = size * (batch * (image * inside + positions * outside) + inside * outside / groups * taps);
    let peak = if on_lanes { device.vector_peak(dtype).0 } else { device.matrix_peak(dtype).0 };
    let roofline = (flops / peak).max(traffic / device.memory.bandwidth.0);
    let sm = f64::from(device.compute.sm_count);
    let (m, n, k) = match c.direction {
        Direction::Forward => (batch * positions, outside / groups, inside / groups * taps),
        Direction::Backward => (batch * image, inside / groups, outside / groups * taps),
        Direction::WeightGradient => (outside / groups, inside / groups * taps, batch * positions),
    };
    let first = |extents: &[u64]| extents.first().copied().unwrap_or(1).max(1) as f64;
    let last = |extents: &[u64]| extents.last().copied().unwrap_or(1).max(1);
    for size in [batch, inside, outside, positions, image, taps] {
        row.log(size);
    }
    row.log(first(&c.kernel) / last(&c.kernel) as f64);
    row.log(product(&c.stride));
    row.push(c.padding.iter().map(|x| *x as f64).sum());
    row.log(product(&c.dilation));
    row.log(groups);
    row.push(match c.direction {
        Direction::Forward => 0.0,
        Direction::Backward => 1.0,
        Direction::WeightGradient => 2.0,
    });
    row.push(match dtype {
        DType::F64 => 0.0,
        DType::F32 => 1.0,
        DType::Tf32 => 2.0,
        _ => 3.0,
    });
    row.flag(c.layout == ImageLayout::ChannelsLast);
    row.alignment(c.in_channels);
    row.alignment(c.out_channels);
    row.alignment(last(&c.input));
    row.log(seconds * 1e6);
    row.log(seconds / roofline);
    row.log(flops);
    row.log(traffic);
    row.log(flops / traffic);
    row.log(traffic / device.memory.l2.as_f64());
    row.log(m);
    row.log(n);
    row.log(k);
    let ones = |extents: &[u64]| extents.iter().all(|x| *x == 1);
    row.flag(c.kernel == [3, 3] && ones(&c.stride) && ones(&c.dilation));
    for side in [128.0, 64.0] {
        row.waves((m / side).ceil() * (n / side).ceil() * groups, sm);
    }
    if on_lanes { DType::F32 } else { dtype }
}
