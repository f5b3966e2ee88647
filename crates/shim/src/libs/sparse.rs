//! cuSPARSE: calls are recorded by name and sizes, matrices by shape.

use trompe_cuda_abi::libraries::SparseError;
use trompe_cuda_abi::pointer::Out;
use trompe_device::numerics::SparseShape;

use super::solver::{Argument, text};
use super::{Outcome, libraries, record_library};
use crate::door::Call;

/// cuSPARSE 12.7.10, of CUDA 13.2.
const VERSION: i32 = 12_710;

/// `cusparseCreate`.
pub(crate) fn create(call: &mut Call<'_>, handle: Out<u64>) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    let created = libraries().sparse.create();
    Ok(handle.write(created)?)
}

/// `cusparseDestroy`.
pub(crate) fn destroy(_: &mut Call<'_>, handle: u64) -> Outcome {
    Ok(libraries().sparse.destroy(handle)?)
}

/// `cusparseSetStream`.
pub(crate) fn set_stream(_: &mut Call<'_>, handle: u64, stream: u64) -> Outcome {
    Ok(libraries().sparse.set_stream(handle, stream)?)
}

/// `cusparseGetStream`.
pub(crate) fn stream(_: &mut Call<'_>, handle: u64, stream: Out<u64>) -> Outcome {
    let own = libraries().sparse.stream(handle)?;
    Ok(stream.write(own)?)
}

/// `cusparseGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, _handle: u64, version: Out<i32>) -> Outcome {
    Ok(version.write(VERSION)?)
}

/// `cusparseGetErrorString`.
pub(crate) fn error_text(_: &mut Call<'_>, code: i32) -> u64 {
    let text = if code == 0 { Some(c"success") } else { SparseError::text_of(code) };
    text.unwrap_or(c"unknown error").as_ptr() as u64
}

/// `cusparseGetErrorName`.
pub(crate) fn error_name(_: &mut Call<'_>, code: i32) -> u64 {
    let name = if code == 0 { Some(c"CUSPARSE_STATUS_SUCCESS") } else { SparseError::name_of(code) };
    name.unwrap_or(c"unknown error").as_ptr() as u64
}

/// `cusparseCreateCsr`, `cusparseCreateCsc`, `cusparseCreateCoo`.
pub(crate) fn create_matrix(
    _: &mut Call<'_>,
    matrix: Out<u64>,
    rows: i64,
    columns: i64,
    entries: i64,
) -> Outcome {
    let created = libraries().sparse_matrices.insert(SparseShape { rows, columns, entries });
    Ok(matrix.write(created.0)?)
}

/// `cusparseDestroySpMat`. Matrices of other formats are not kept here.
pub(crate) fn destroy_matrix(_: &mut Call<'_>, matrix: u64) -> Outcome {
    let _ = libraries().sparse_matrices.remove(matrix);
    Ok(())
}

/// `cusparseSpMatGetSize`. A product's result keeps the number of entries that it was created with.
pub(crate) fn matrix_size(
    _: &mut Call<'_>,
    matrix: u64,
    rows: Out<i64>,
    columns: Out<i64>,
    entries: Out<i64>,
) -> Outcome {
    let shape = *libraries().sparse_matrices.get(matrix)?;
    rows.write(shape.rows)?;
    columns.write(shape.columns)?;
    Ok(entries.write(shape.entries)?)
}

fn on_stream(call: &mut Call<'_>, handle: u64, text: &str) -> Outcome {
    let stream = libraries().sparse.stream(handle)?;
    record_library(call, stream, [0, 0], text)
}

/// `cusparseSpGEMM_workEstimation` and `cusparseSpGEMM_compute`: asked for sizes first, then with a buffer to work.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn product_step(
    call: &mut Call<'_>,
    handle: u64,
    _op_a: i32,
    _op_b: i32,
    _alpha: u64,
    a: u64,
    b: u64,
    _beta: u64,
    _c: u64,
    _compute: i32,
    _algorithm: i32,
    _descriptor: u64,
    bytes: Out<u64>,
    buffer: u64,
) -> Outcome {
    bytes.write_if_given(0);
    if buffer == 0 && !bytes.is_null() {
        return Ok(());
    }
    let shapes = {
        let libraries = libraries();
        [a, b].map(|matrix| libraries.sparse_matrices.get(matrix).copied().unwrap_or_default())
    };
    let [a, b] = shapes;
    let numbers = [a.rows, a.columns, a.entries, b.columns, b.entries].map(Some);
    let text = text(call, &numbers);
    on_stream(call, handle, &text)
}

/// A computation: its name and its first arguments.
#[expect(clippy::too_many_arguments, reason = "stands for many signatures")]
pub(crate) fn run<A: Argument, B: Argument, C: Argument, D: Argument, E: Argument>(
    call: &mut Call<'_>,
    handle: u64,
    a: A,
    b: B,
    c: C,
    d: D,
    e: E,
) -> Outcome {
    let text = text(call, &[a.number(), b.number(), c.number(), d.number(), e.number()]);
    on_stream(call, handle, &text)
}

/// A computation: its name.
pub(crate) fn on_handle(call: &mut Call<'_>, handle: u64) -> Outcome {
    let text = text(call, &[]);
    on_stream(call, handle, &text)
}
