//! Grouped products: several groups of equal products in one call.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::In;
use trompe_device::blas::{Operand, Product};

use super::product::compute_of;
use super::{library, record_product};
use crate::door::Call;
use crate::libs::Outcome;

/// The arrays of a grouped call, one element per group.
struct Groups {
    count: i32,
    transpose: [u64; 2],
    shape: [u64; 3],
    leading: [u64; 3],
    size: u64,
    dtypes: [i32; 3],
    compute: i32,
}

/// One record per group. Whether C is read is not looked up: the scalars' types differ by call.
fn run(call: &mut Call<'_>, handle: u64, groups: &Groups) -> Outcome {
    let library = library(handle)?;
    let element = |array: u64, index: usize| In::<i32>::new(array as usize).read_at(index);
    for index in 0..usize::try_from(groups.count).unwrap_or(0) {
        let number = |array: u64| element(array, index).map(i64::from);
        let operand = |which: usize| -> Result<Operand, _> {
            number(groups.leading[which]).map(|leading| Operand {
                dtype: groups.dtypes[which],
                leading,
                stride: 0,
            })
        };
        let product = Product {
            transpose: [element(groups.transpose[0], index)?, element(groups.transpose[1], index)?],
            shape: [number(groups.shape[0])?, number(groups.shape[1])?, number(groups.shape[2])?],
            batch: number(groups.size)?,
            operands: [operand(0)?, operand(1)?, operand(2)?],
            compute: groups.compute,
            accumulate: false,
            epilogue: 1,
        };
        record_product(call, library.stream, library.math_mode, &product)?;
    }
    Ok(())
}

/// `cublas?gemmGroupedBatched`.
pub(crate) fn plain<const D: i32>(
    call: &mut Call<'_>, handle: u64, trans_a: u64, trans_b: u64, m: u64, n: u64, k: u64, _alpha: u64,
    _a: u64, lda: u64, _b: u64, ldb: u64, _beta: u64, _c: u64, ldc: u64, count: i32, size: u64,
) -> Outcome {
    let groups = Groups {
        count,
        transpose: [trans_a, trans_b],
        shape: [m, n, k],
        leading: [lda, ldb, ldc],
        size,
        dtypes: [D; 3],
        compute: compute_of(D),
    };
    run(call, handle, &groups)
}

/// `cublasGemmGroupedBatchedEx`.
pub(crate) fn general(
    call: &mut Call<'_>, handle: u64, trans_a: u64, trans_b: u64, m: u64, n: u64, k: u64, _alpha: u64,
    _a: u64, a_type: i32, lda: u64, _b: u64, b_type: i32, ldb: u64, _beta: u64, _c: u64, c_type: i32,
    ldc: u64, count: i32, size: u64, compute: i32,
) -> Outcome {
    let groups = Groups {
        count,
        transpose: [trans_a, trans_b],
        shape: [m, n, k],
        leading: [lda, ldb, ldc],
        size,
        dtypes: [a_type, b_type, c_type],
        compute,
    };
    run(call, handle, &groups)
}
