//! Families that stream through memory: which kind of pass, rows and columns, bytes.

use trompe_base::DType;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{Descriptor, Direction, NormKind};

use super::{Axes, Row};

pub(super) const NAMES: &[&str] = &[
    "pass",
    "direction",
    "rows",
    "cols",
    "elements",
    "element_bytes",
    "bytes",
    "bytes_per_element",
    "row_bytes",
    "align_cols",
    "align_elements",
    "physics",
    "physics_over_roofline",
    "bytes_over_cache",
    "waves_rows",
    "fill_rows",
    "waves_blocks",
    "fill_blocks",
    "lists",
];

pub(super) const AXES: Axes =
    Axes { classes: &["pass", "direction"], sizes: &["rows", "cols", "element_bytes"] };

/// Elements of one block of an element-wise kernel: 128 threads of 4.
const BLOCK: f64 = 512.0;

/// What a pass is: its number, rows, columns, bytes.
struct Pass {
    kind: f64,
    direction: Direction,
    rows: u64,
    cols: u64,
    dtype: DType,
    bytes: u64,
    lists: u32,
}

/// The pass of an operation; `None` for other operations and where the bytes are unknown.
fn pass(operation: &Descriptor) -> Option<Pass> {
    let pass = |kind, direction, (rows, cols), dtype, bytes| Pass {
        kind,
        direction,
        rows,
        cols,
        dtype,
        bytes,
        lists: 1,
    };
    let found = match operation {
        Descriptor::Elementwise(e) => {
            let kind = if e.vectorized { 0.0 } else { 1.0 };
            pass(kind, Direction::Forward, (1, e.elements), e.dtype, e.work.bytes().0)
        }
        Descriptor::Normalization(n) => {
            let kind = match n.kind {
                NormKind::Layer => 2.0,
                NormKind::Rms => 3.0,
                NormKind::Batch => 4.0,
                NormKind::Group => 5.0,
            };
            pass(kind, n.direction, (n.rows, n.cols), n.dtype, n.work.bytes().0)
        }
        Descriptor::Softmax(r) => pass(6.0, r.direction, (r.rows, r.cols), r.dtype, r.work.bytes().0),
        Descriptor::CrossEntropy(r) => pass(7.0, r.direction, (r.rows, r.cols), r.dtype, r.work.bytes().0),
        Descriptor::Embedding(e) => pass(8.0, e.direction, (e.tokens, e.width), e.dtype, e.work.bytes().0),
        Descriptor::Optimizer(o) => {
            let found = pass(9.0, Direction::Forward, (1, o.elements), o.dtype, o.work.bytes().0);
            Pass { lists: o.lists, ..found }
        }
        _ => return None,
    };
    (found.bytes > 0).then_some(found)
}

pub(super) fn fill(
    row: &mut Row,
    operation: &Descriptor,
    device: &DeviceSheet,
    seconds: f64,
) -> Option<DType> {
    let pass = pass(operation)?;
    let [rows, cols] = [pass.rows, pass.cols].map(|x| x.max(1) as f64);
    let (elements, size, bytes) = (rows * cols, pass.dtype.size() as f64, pass.bytes as f64);
    let sm = f64::from(device.compute.sm_count);
    row.push(pass.kind);
    row.push(match pass.direction {
        Direction::Forward => 0.0,
        Direction::Backward => 1.0,
        Direction::WeightGradient => 2.0,
    });
    row.log(rows);
    row.log(cols);
    row.log(elements);
    row.log(size);
    row.log(bytes);
    row.log(bytes / elements);
    row.log(cols * size);
    row.alignment(pass.cols);
    row.alignment(pass.rows.max(1) * pass.cols.max(1));
    row.log(seconds * 1e6);
    row.log(seconds * device.memory.bandwidth.0 / bytes);
    row.log(bytes / device.memory.l2.as_f64());
    row.waves(rows, sm);
    row.waves((elements / BLOCK).ceil(), sm);
    row.push(f64::from(pass.lists));
    Some(pass.dtype)
}
