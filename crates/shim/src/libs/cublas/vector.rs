//! Vector routines with a result, and matrix-vector products.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::Out;
use trompe_device::blas::{self, Operand, Product};

use super::product::compute_of;
use super::{accumulates, library, record_product, scalar_size};
use crate::door::Call;
use crate::libs::{Outcome, record_library};

/// `cublas?gemv`, a product with one column.
pub(crate) fn multiply<const D: i32, I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans: i32, m: I, n: I, _alpha: u64, _a: u64, lda: I, _x: u64,
    step_x: I, beta: u64, _y: u64, step_y: I,
) -> Outcome {
    let library = library(handle)?;
    let (rows, columns) = (m.into(), n.into());
    let (out, inner) = if trans == 0 { (rows, columns) } else { (columns, rows) };
    let operand = |leading| Operand { dtype: D, leading, stride: 0 };
    let product = Product {
        transpose: [trans, 0],
        shape: [out, 1, inner],
        batch: 1,
        operands: [operand(lda.into()), operand(step_x.into()), operand(step_y.into())],
        compute: compute_of(D),
        accumulate: accumulates(library.pointer_mode == 0, beta, scalar_size(compute_of(D), D)),
        epilogue: 1,
    };
    record_product(call, library.stream, library.math_mode, &product)
}

/// A routine that reads `vectors` vectors of `count` elements and gives one result. Kernels compute nothing, so a
/// result that the caller takes in host memory is zero.
fn reduce(call: &mut Call<'_>, handle: u64, shape: (i64, u64, i32), result: (u64, usize)) -> Outcome {
    let library = library(handle)?;
    let (count, vectors, dtype) = shape;
    let size = blas::dtype(dtype).map_or(4, trompe_base::DType::size);
    let read = vectors * u64::try_from(count).unwrap_or(0) * size;
    record_library(call, library.stream, [read, result.1 as u64], "vector reduction")?;
    if library.pointer_mode == 0 {
        Out::<u8>::new(result.0 as usize).write_bytes(&vec![0; result.1])?;
    }
    Ok(())
}

fn size_of(dtype: i32) -> usize {
    blas::dtype(dtype).map_or(4, |dtype| dtype.size() as usize)
}

/// `cublas?dot`.
pub(crate) fn dot<const D: i32, I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, n: I, _x: u64, _step_x: I, _y: u64, _step_y: I, result: u64,
) -> Outcome {
    reduce(call, handle, (n.into(), 2, D), (result, size_of(D)))
}

/// `cublasDotEx`.
pub(crate) fn dot_mixed(
    call: &mut Call<'_>, handle: u64, n: i32, _x: u64, x_type: i32, _step_x: i32, _y: u64, _y_type: i32,
    _step_y: i32, result: u64, result_type: i32, _execution_type: i32,
) -> Outcome {
    reduce(call, handle, (n.into(), 2, x_type), (result, size_of(result_type)))
}

/// `cublas?nrm2` and `cublas?asum`, whose result is real.
pub(crate) fn norm<const D: i32, I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, n: I, _x: u64, _step: I, result: u64,
) -> Outcome {
    reduce(call, handle, (n.into(), 1, D), (result, if matches!(D, 1 | 5) { 8 } else { 4 }))
}

/// `cublasI?amax` and `cublasI?amin`, whose result is an index.
pub(crate) fn index<const D: i32, I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, n: I, _x: u64, _step: I, result: u64,
) -> Outcome {
    reduce(call, handle, (n.into(), 1, D), (result, 4))
}
