//! Matrix products that PyTorch carries itself (CUTLASS): grouped products of mixture-of-experts layers, scaled fp8,
//! integer and sparse ones. Library products have records of their own.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Epilogue, Gemm};
use trompe_trace::values::Tensor;

use super::Kernel;
use crate::operator::product;

/// Operators and the position of their first matrix.
const OPERATORS: [(&str, usize); 9] = [
    ("aten::_grouped_mm", 0),
    ("aten::_scaled_grouped_mm", 0),
    ("aten::_scaled_mm", 0),
    ("aten::_int_mm", 0),
    ("aten::mm", 0),
    ("aten::bmm", 0),
    ("aten::addmm", 1),
    ("aten::baddbmm", 1),
    ("aten::_sparse_semi_structured_mm", 0),
];

/// Describes CUTLASS products by their operator's matrices.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    if !kernel.is(&["Kernel", "Kernel2", "device_kernel"]) {
        return None;
    }
    let call = kernel.context.call()?;
    let first = OPERATORS.iter().find(|(name, _)| *name == call.name)?.1;
    let (a, b) = (call.tensor(first)?, call.tensor(first + 1)?);
    let (rows, cols, inner, batch) = sizes(a, b)?;
    product(&[rows, cols, inner])?;
    let (left, right) = (a.dtype?, b.dtype?);
    let result = call.device_outputs().first().and_then(|t| t.dtype).unwrap_or(left);
    // BLAS is column-major: its A is the row-major right matrix.
    let (k_major_right, k_major_left) = (is_transposed(b), !is_transposed(a));
    let leading = |transposed: bool, other: u64| if transposed { inner } else { other };
    Some(Descriptor::Gemm(Gemm {
        m: cols,
        n: rows,
        k: inner,
        batch,
        transpose_a: k_major_right,
        transpose_b: !k_major_left,
        a: right,
        b: left,
        c: result,
        compute: if left.is_float() { DType::F32 } else { DType::I32 },
        epilogue: Epilogue::None,
        accumulate: false,
        leading: [leading(k_major_right, cols), leading(k_major_left, rows), cols],
        strides: if batch > 1 { [cols * inner, rows * inner, cols * rows] } else { [0; 3] },
    }))
}

/// Rows, columns, contraction and batch of `a · b`; groups of unknown sizes count as equal.
fn sizes(a: &Tensor, b: &Tensor) -> Option<(u64, u64, u64, u64)> {
    Some(match (a.sizes.as_slice(), b.sizes.as_slice()) {
        (&[m, k], &[_, n]) => (m, n, k, 1),
        (&[g, m, k], &[_, _, n]) => (m, n, k, g),
        (&[m, k], &[g, _, n]) => (m.div_ceil(g.max(1)), n, k, g),
        (&[g, m, k], &[_, n]) => (m, n.div_ceil(g.max(1)), k, g),
        _ => return None,
    })
}

/// Whether the last dimension is not the dense one.
fn is_transposed(tensor: &Tensor) -> bool {
    tensor.strides.last().is_some_and(|stride| *stride != 1)
}
