//! Matrix products.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_device::blas::{Operand, Product};

use super::{accumulates, library, record_product, scalar_size};
use crate::door::Call;
use crate::libs::Outcome;

/// `cublasComputeType_t` of the routines that are named after their type.
pub(super) const fn compute_of(dtype: i32) -> i32 {
    match dtype {
        1 | 5 => 70,
        2 => 64,
        _ => 68,
    }
}

fn run(call: &mut Call<'_>, handle: u64, beta: u64, mut product: Product) -> Outcome {
    let library = library(handle)?;
    let size = scalar_size(product.compute, product.operands[2].dtype);
    product.accumulate = accumulates(library.pointer_mode == 0, beta, size);
    record_product(call, library.stream, library.math_mode, &product)
}

fn operand<I: Into<i64>>(dtype: i32, leading: I) -> Operand {
    Operand { dtype, leading: leading.into(), stride: 0 }
}

/// `cublas?gemm`.
pub(crate) fn plain<const D: i32, I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans_a: i32, trans_b: i32, m: I, n: I, k: I, _alpha: u64, _a: u64,
    lda: I, _b: u64, ldb: I, beta: u64, _c: u64, ldc: I,
) -> Outcome {
    let product = Product {
        transpose: [trans_a, trans_b],
        shape: [m.into(), n.into(), k.into()],
        batch: 1,
        operands: [operand(D, lda), operand(D, ldb), operand(D, ldc)],
        compute: compute_of(D),
        ..Product::default()
    };
    run(call, handle, beta, product)
}

/// `cublas?gemmBatched`.
pub(crate) fn batched<const D: i32, I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans_a: i32, trans_b: i32, m: I, n: I, k: I, _alpha: u64, _a: u64,
    lda: I, _b: u64, ldb: I, beta: u64, _c: u64, ldc: I, batch: I,
) -> Outcome {
    let product = Product {
        transpose: [trans_a, trans_b],
        shape: [m.into(), n.into(), k.into()],
        batch: batch.into(),
        operands: [operand(D, lda), operand(D, ldb), operand(D, ldc)],
        compute: compute_of(D),
        ..Product::default()
    };
    run(call, handle, beta, product)
}

/// `cublas?gemmStridedBatched`.
pub(crate) fn strided<const D: i32, I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans_a: i32, trans_b: i32, m: I, n: I, k: I, _alpha: u64, _a: u64,
    lda: I, stride_a: i64, _b: u64, ldb: I, stride_b: i64, beta: u64, _c: u64, ldc: I, stride_c: i64,
    batch: I,
) -> Outcome {
    let product = Product {
        transpose: [trans_a, trans_b],
        shape: [m.into(), n.into(), k.into()],
        batch: batch.into(),
        operands: [
            Operand { stride: stride_a, ..operand(D, lda) },
            Operand { stride: stride_b, ..operand(D, ldb) },
            Operand { stride: stride_c, ..operand(D, ldc) },
        ],
        compute: compute_of(D),
        ..Product::default()
    };
    run(call, handle, beta, product)
}

/// `cublas?gemmEx`: operands of other types, computed in fp32.
pub(crate) fn mixed<I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans_a: i32, trans_b: i32, m: I, n: I, k: I, _alpha: u64, _a: u64,
    a_type: i32, lda: I, _b: u64, b_type: i32, ldb: I, beta: u64, _c: u64, c_type: i32, ldc: I,
) -> Outcome {
    let product = Product {
        transpose: [trans_a, trans_b],
        shape: [m.into(), n.into(), k.into()],
        batch: 1,
        operands: [operand(a_type, lda), operand(b_type, ldb), operand(c_type, ldc)],
        compute: 68,
        ..Product::default()
    };
    run(call, handle, beta, product)
}

/// `cublasGemmEx`.
pub(crate) fn general<I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans_a: i32, trans_b: i32, m: I, n: I, k: I, _alpha: u64, _a: u64,
    a_type: i32, lda: I, _b: u64, b_type: i32, ldb: I, beta: u64, _c: u64, c_type: i32, ldc: I, compute: i32,
    _algorithm: i32,
) -> Outcome {
    let product = Product {
        transpose: [trans_a, trans_b],
        shape: [m.into(), n.into(), k.into()],
        batch: 1,
        operands: [operand(a_type, lda), operand(b_type, ldb), operand(c_type, ldc)],
        compute,
        ..Product::default()
    };
    run(call, handle, beta, product)
}

/// `cublasGemmBatchedEx`.
pub(crate) fn general_batched<I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans_a: i32, trans_b: i32, m: I, n: I, k: I, _alpha: u64, _a: u64,
    a_type: i32, lda: I, _b: u64, b_type: i32, ldb: I, beta: u64, _c: u64, c_type: i32, ldc: I, batch: I,
    compute: i32, _algorithm: i32,
) -> Outcome {
    let product = Product {
        transpose: [trans_a, trans_b],
        shape: [m.into(), n.into(), k.into()],
        batch: batch.into(),
        operands: [operand(a_type, lda), operand(b_type, ldb), operand(c_type, ldc)],
        compute,
        ..Product::default()
    };
    run(call, handle, beta, product)
}

/// `cublasGemmStridedBatchedEx`.
pub(crate) fn general_strided<I: Into<i64>>(
    call: &mut Call<'_>, handle: u64, trans_a: i32, trans_b: i32, m: I, n: I, k: I, _alpha: u64, _a: u64,
    a_type: i32, lda: I, stride_a: i64, _b: u64, b_type: i32, ldb: I, stride_b: i64, beta: u64, _c: u64,
    c_type: i32, ldc: I, stride_c: i64, batch: I, compute: i32, _algorithm: i32,
) -> Outcome {
    let product = Product {
        transpose: [trans_a, trans_b],
        shape: [m.into(), n.into(), k.into()],
        batch: batch.into(),
        operands: [
            Operand { stride: stride_a, ..operand(a_type, lda) },
            Operand { stride: stride_b, ..operand(b_type, ldb) },
            Operand { stride: stride_c, ..operand(c_type, ldc) },
        ],
        compute,
        ..Product::default()
    };
    run(call, handle, beta, product)
}
