//! cuSPARSELt: products with a 2:4 sparse operand. Descriptors live in structs of the caller.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::{In, Out};
use trompe_device::blas;

use super::{LibraryFailure, Outcome, record_library};
use crate::door::Call;

/// cuSPARSELt 0.8.1.
const VERSION: i32 = 801;
/// Words that a matrix descriptor keeps: rows, columns, type.
const WORDS: usize = 3;

/// `cusparseLtGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, _handle: u64, version: Out<i32>) -> Outcome {
    Ok(version.write(VERSION)?)
}

/// `cusparseLtDenseDescriptorInit`, `cusparseLtStructuredDescriptorInit`.
pub(crate) fn init_matrix(
    _: &mut Call<'_>, _handle: u64, matrix: u64, rows: i64, columns: i64, _leading: i64, _alignment: u32,
    dtype: i32, _order: i32,
) -> Outcome {
    let place = Out::<i64>::new(matrix as usize);
    place.write_at(0, rows)?;
    place.write_at(1, columns)?;
    Ok(place.write_at(2, i64::from(dtype))?)
}

fn matrix(address: u64) -> Result<[i64; WORDS], super::LibraryFailure> {
    let words = In::<i64>::new(address as usize);
    Ok([words.read_at(0)?, words.read_at(1)?, words.read_at(2)?])
}

fn element(dtype: i64) -> u64 {
    i32::try_from(dtype).ok().and_then(blas::dtype).map_or(1, trompe_base::DType::size)
}

fn elements(matrix: [i64; WORDS]) -> u64 {
    u64::try_from(matrix[0]).unwrap_or(0) * u64::try_from(matrix[1]).unwrap_or(0)
}

/// `cusparseLtMatmulDescriptorInit`: keeps the two factors and the result.
pub(crate) fn init_operation(
    _: &mut Call<'_>, _handle: u64, operation: u64, op_a: i32, op_b: i32, a: u64, b: u64, _c: u64, d: u64,
    _compute: i32,
) -> Outcome {
    let words = [matrix(a)?, matrix(b)?, matrix(d)?].concat();
    let place = Out::<i64>::new(operation as usize);
    for (index, word) in words.into_iter().chain([i64::from(op_a), i64::from(op_b)]).enumerate() {
        place.write_at(index, word)?;
    }
    Ok(())
}

/// `cusparseLtMatmulPlanInit`: a copy of the operation.
pub(crate) fn init_plan(
    _: &mut Call<'_>, _handle: u64, plan: u64, operation: u64, _selection: u64,
) -> Outcome {
    let (from, to) = (In::<i64>::new(operation as usize), Out::<i64>::new(plan as usize));
    for index in 0..3 * WORDS + 2 {
        to.write_at(index, from.read_at(index)?)?;
    }
    Ok(())
}

/// `cusparseLtMatmulAlgGetAttribute`: one algorithm, number 0.
pub(crate) fn algorithm_attribute(
    _: &mut Call<'_>, _handle: u64, _selection: u64, _attribute: i32, value: Out<u8>, bytes: usize,
) -> Outcome {
    if bytes > 4096 {
        return Err(LibraryFailure::InvalidValue);
    }
    Ok(value.write_bytes(&vec![0; bytes])?)
}

/// `cusparseLtMatmul`.
pub(crate) fn multiply(
    call: &mut Call<'_>, _handle: u64, plan: u64, _alpha: u64, _a: u64, _b: u64, _beta: u64, _c: u64,
    _d: u64, _workspace: u64, streams: In<u64>, stream_count: i32,
) -> Outcome {
    let word = |index| In::<i64>::new(plan as usize).read_at(index);
    let of = |which: usize| -> Result<[i64; WORDS], super::LibraryFailure> {
        Ok([word(which * WORDS)?, word(which * WORDS + 1)?, word(which * WORDS + 2)?])
    };
    let (a, b, d) = (of(0)?, of(1)?, of(2)?);
    let contraction = if word(3 * WORDS)? == 0 { a[1] } else { a[0] };
    let bytes = |matrix: [i64; WORDS]| elements(matrix) * element(matrix[2]);
    let text = format!("sparse 2:4 matmul m {} n {} k {contraction} cuda data type {}", d[0], d[1], a[2]);
    let stream = if stream_count > 0 && !streams.is_null() { streams.read()? } else { 0 };
    record_library(call, stream, [bytes(a) * 9 / 16 + bytes(b), bytes(d)], &text)
}

/// `cusparseLtSpMMACompress2`.
pub(crate) fn compress(
    call: &mut Call<'_>, _handle: u64, sparse: u64, _is_a: i32, _operation: i32, _dense: u64,
    _compressed: u64, _buffer: u64, stream: u64,
) -> Outcome {
    let matrix = matrix(sparse)?;
    let bytes = elements(matrix) * element(matrix[2]);
    record_library(call, stream, [bytes, compressed_bytes(matrix)], "sparse 2:4 compression")
}

/// Half of the elements, and two bits of position for each that is kept.
fn compressed_bytes(matrix: [i64; WORDS]) -> u64 {
    let kept = elements(matrix) / 2;
    kept * element(matrix[2]) + kept.div_ceil(4)
}

/// `cusparseLtSpMMACompressedSize2`.
pub(crate) fn compressed_size(
    _: &mut Call<'_>, _handle: u64, sparse: u64, compressed: Out<u64>, buffer: Out<u64>,
) -> Outcome {
    compressed.write(compressed_bytes(matrix(sparse)?))?;
    buffer.write_if_given(0);
    Ok(())
}
