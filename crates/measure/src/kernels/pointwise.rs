//! Norms, softmax, activations and other passes over memory.
//!
//! Only rows that one kernel of a known kind explains: compositions of several kernels are left out.

use trompe_base::{Bytes, Flops};
use trompe_trace::descriptor::{
    Descriptor, Direction, Elementwise, Embedding, NormKind, Normalization, RowWise, Work,
};

use super::{Found, one};
use crate::row::Row;

/// Operators that are one element-wise kernel with wide accesses.
const WIDE: [&str; 18] = [
    "add",
    "add_scalar",
    "bias_gelu",
    "copy",
    "div",
    "div_scalar",
    "dropout",
    "gelu",
    "mul",
    "mul_scalar",
    "pow",
    "pow_scalar",
    "relu",
    "relu_squared",
    "sigmoid",
    "silu",
    "sub",
    "tanh",
];

pub(super) fn operations(row: &Row<'_>) -> Result<Vec<Found>, String> {
    let library = row.text("impl");
    if row.text("source").starts_with("liger_kernel") && !matches!(library, "huggingface" | "torch") {
        return Err(format!("kernels of `{library}` are not modelled"));
    }
    let op = row.text("op");
    if row.text("source").starts_with("liger_kernel")
        && matches!(op, "rms_norm" | "fused_add_rms_norm" | "relu_squared")
    {
        return Err(format!("`{op}` is made of several kernels"));
    }
    // Two additions, and an activation of several kernels, are measured as one there.
    if row.text("source") == "vidur/mlp-phi-2" && matches!(op, "add" | "gelu") {
        return Err(format!("`{op}` is made of several kernels"));
    }
    let direction = row.direction()?;
    let dtype = row.dtype()?;
    let bytes =
        row.whole("bytes_moved").filter(|bytes| *bytes > 0).ok_or("no positive number in `bytes_moved`")?;
    let (rows, cols) = (row.size("rows")?, row.size("cols")?);
    // Only the sum matters to the models.
    let work = Work { read: Bytes(bytes), written: Bytes::ZERO, flops: Flops::ZERO };
    let elements = rows * cols;
    let operation = match op {
        _ if WIDE.contains(&op) && direction == Direction::Forward => {
            Descriptor::Elementwise(Elementwise { elements, dtype, vectorized: true, work })
        }
        "silu_mul" | "rope" => {
            Descriptor::Elementwise(Elementwise { elements, dtype, vectorized: false, work })
        }
        "layer_norm" | "rms_norm" | "group_norm" | "batch_norm" => {
            let kind = match op {
                "layer_norm" => NormKind::Layer,
                "rms_norm" => NormKind::Rms,
                "group_norm" => NormKind::Group,
                _ => NormKind::Batch,
            };
            Descriptor::Normalization(Normalization { kind, direction, rows, cols, dtype, work })
        }
        "softmax" | "masked_softmax" => Descriptor::Softmax(RowWise { direction, rows, cols, dtype, work }),
        "cross_entropy" => Descriptor::CrossEntropy(RowWise { direction, rows, cols, dtype, work }),
        "embedding" => Descriptor::Embedding(Embedding {
            direction,
            tokens: rows,
            width: cols,
            rows: 50_000,
            dtype,
            work,
        }),
        other => return Err(format!("`{other}` is no single kernel that is modelled")),
    };
    let what = if WIDE.contains(&op) && op != "bias_gelu" { "elementwise" } else { op };
    let side = if direction == Direction::Forward { "" } else { " bwd" };
    one(row, operation, format!("{dtype} {what}{side}"))
}
