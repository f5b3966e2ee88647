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
    "columns_bytes",
    "width_out",
    "width_out_mod_4",
    "width_out_mod_8",
    "winograd_fill_2",
    "winograd_fill_4",
    "winograd_fill_6",
    "winograd_waves_2",
    "winograd_waves_4",
    "fourier_fill",
    "tail_in_32",
    "tail_in_128",
    "tail_out_32",
    "tail_out_64",
    "tail_out_128",
    "over_128x128",
    "over_128x64",
    "over_64x64",
    "over_128x32",
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
    algorithms(row, c, size, sm);
    for [rows, cols] in [[128.0, 128.0], [128.0, 64.0], [64.0, 64.0], [128.0, 32.0]] {
        let waves = ((m / rows).ceil() * (n / cols).ceil() * groups / sm).ceil();
        row.log(waves * rows * cols * sm / (m * n * groups));
    }
    if on_lanes { DType::F32 } else { dtype }
}

/// What each of the library's algorithms would do with the shape: the columns of an explicit product, how well the
/// output fits into Winograd's tiles of 2, 4 and 6 and the image into a power of two for Fourier's, and the tails of
/// the channels.
fn algorithms(row: &mut Row, c: &Convolution, size: f64, sm: f64) {
    let product = |extents: &[u64]| extents.iter().map(|x| (*x).max(1) as f64).product::<f64>();
    let [batch, inside, outside] = [c.batch, c.in_channels, c.out_channels].map(|x| x.max(1) as f64);
    let positions = product(&c.output);
    let width = c.output.last().copied().unwrap_or(1).max(1);
    row.log(size * batch * inside * product(&c.kernel) * positions);
    row.push(width as f64);
    row.push((width % 4) as f64);
    row.push((width % 8) as f64);
    let tiles = |side: f64| {
        batch * c.output.iter().map(|extent| ((*extent).max(1) as f64 / side).ceil()).product::<f64>()
    };
    let dimensions = c.output.len() as i32;
    for side in [2.0_f64, 4.0, 6.0] {
        row.push(batch * positions / (tiles(side) * side.powi(dimensions)));
    }
    for side in [2.0, 4.0] {
        row.log((tiles(side) / 32.0).ceil() * (outside / 32.0).ceil() / sm);
    }
    let padded = |extent: &u64| ((*extent).max(1) + 2).next_power_of_two() as f64;
    row.log(c.input.iter().map(padded).product::<f64>() / product(&c.input));
    for (channels, tails) in [(inside, &[32.0, 128.0][..]), (outside, &[32.0, 64.0, 128.0])] {
        for tail in tails {
            row.push(channels % tail / tail);
        }
    }
}
