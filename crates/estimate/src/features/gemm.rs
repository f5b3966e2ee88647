//! Matrix products: sides, alignment, tiles and waves, and the terms of the physics model.

use trompe_base::DType;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{Epilogue, Gemm};

use super::{Axes, Row};
use crate::physics::{Physics, multiplied_as};

pub(super) const NAMES: &[&str] = &[
    "m",
    "n",
    "k",
    "batch",
    "short_side",
    "long_side",
    "align_m",
    "align_n",
    "align_k",
    "operand_bytes",
    "result_bytes",
    "unit",
    "transposes",
    "accumulate",
    "epilogue",
    "physics",
    "physics_over_roofline",
    "arithmetic_share",
    "loads_share",
    "memory_share",
    "tile_rows",
    "tile_cols",
    "parts",
    "intensity",
    "traffic_over_cache",
    "waves_256x128",
    "fill_256x128",
    "waves_128x256",
    "fill_128x256",
    "waves_128x128",
    "fill_128x128",
    "waves_128x64",
    "fill_128x64",
    "inside_256x128",
    "inside_128x128",
];

pub(super) const AXES: Axes = Axes { classes: &["unit"], sizes: &["m", "n", "k", "batch"] };

/// Tiles whose waves are features, rows first.
const TILES: [[f64; 2]; 4] = [[256.0, 128.0], [128.0, 256.0], [128.0, 128.0], [128.0, 64.0]];

pub(super) fn fill(row: &mut Row, g: &Gemm, physics: &Physics, device: &DeviceSheet, seconds: f64) -> DType {
    let [m, n, k, batch] = [g.m, g.n, g.k, g.batch].map(|x| x.max(1) as f64);
    let dtype = multiplied_as(g.a, g.b, g.compute);
    let size = |dtype: DType| dtype.size() as f64;
    let traffic = batch * (m * k * size(g.a) + k * n * size(g.b) + m * n * size(g.c));
    let flops = 2.0 * m * n * k * batch;
    let roofline = (flops / device.matrix_peak(dtype).0).max(traffic / device.memory.bandwidth.0);
    let plan = physics.plan(g, device);
    let sm = f64::from(device.compute.sm_count);
    for side in [m, n, k, batch, m.min(n), m.max(n)] {
        row.log(side);
    }
    for side in [g.m, g.n, g.k] {
        row.alignment(side);
    }
    row.push((size(g.a) + size(g.b)) / 2.0);
    row.push(size(g.c));
    row.push(unit(dtype));
    row.push(f64::from(u8::from(g.transpose_a)) * 2.0 + f64::from(u8::from(g.transpose_b)));
    row.flag(g.accumulate);
    row.push(epilogue(g.epilogue));
    row.log(seconds * 1e6);
    row.log(seconds / roofline);
    let all: f64 = plan.terms.iter().sum::<f64>().max(1e-15);
    for term in plan.terms {
        row.push(term / all);
    }
    row.log(plan.tile[0]);
    row.log(plan.tile[1]);
    row.log(plan.split);
    row.log(flops / traffic);
    row.log(traffic / device.memory.l2.as_f64());
    for [rows, cols] in TILES {
        row.waves((m / rows).ceil() * (n / cols).ceil() * batch, sm);
    }
    for [rows, cols] in [TILES[0], TILES[2]] {
        row.push(m * n / ((m / rows).ceil() * rows * (n / cols).ceil() * cols));
    }
    dtype
}

/// The unit that multiplies, as a number: types that run alike share one.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => 0.0,
        DType::F32 | DType::C64 => 1.0,
        DType::Tf32 => 2.0,
        DType::F16 | DType::Bf16 => 3.0,
        DType::F8E4M3 | DType::F8E5M2 => 4.0,
        _ => 5.0,
    }
}

/// What happens to the result, as a number that grows with the work.
fn epilogue(epilogue: Epilogue) -> f64 {
    match epilogue {
        Epilogue::None => 0.0,
        Epilogue::Bias => 1.0,
        Epilogue::Relu => 2.0,
        Epilogue::Gelu => 3.0,
        Epilogue::GeluAux => 4.0,
        Epilogue::ActivationGradient => 5.0,
        Epilogue::BiasGradient => 6.0,
        Epilogue::Other => 7.0,
    }
}
