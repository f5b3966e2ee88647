//! Copies of matrices and vectors between host and device, with a leading dimension on each side.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use crate::common::copy::{Transfer2D, transfer_2d};
use crate::door::Call;
use crate::libs::Outcome;

/// One side of a copy: address and bytes from column to column.
type Side = (u64, u64);

fn copy(call: &mut Call<'_>, columns: (u64, u64), from: Side, to: Side, stream: Option<u64>) -> Outcome {
    let (height, width) = columns;
    Ok(transfer_2d(
        call,
        Transfer2D {
            to: to.0,
            to_pitch: to.1,
            from: from.0,
            from_pitch: from.1,
            width,
            height,
            stream: stream.unwrap_or(0),
            synchronous: stream.is_none(),
        },
    )?)
}

fn positive(value: i32) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// `cublasSetMatrix` and `cublasGetMatrix`.
pub(crate) fn matrix(
    call: &mut Call<'_>, rows: i32, columns: i32, size: i32, from: u64, from_leading: i32, to: u64,
    to_leading: i32,
) -> Outcome {
    let size = positive(size);
    let sides = ((from, positive(from_leading) * size), (to, positive(to_leading) * size));
    copy(call, (positive(columns), positive(rows) * size), sides.0, sides.1, None)
}

/// `cublasSetMatrixAsync` and `cublasGetMatrixAsync`.
pub(crate) fn matrix_on(
    call: &mut Call<'_>, rows: i32, columns: i32, size: i32, from: u64, from_leading: i32, to: u64,
    to_leading: i32, stream: u64,
) -> Outcome {
    let size = positive(size);
    let sides = ((from, positive(from_leading) * size), (to, positive(to_leading) * size));
    copy(call, (positive(columns), positive(rows) * size), sides.0, sides.1, Some(stream))
}

/// `cublasSetVector` and `cublasGetVector`.
pub(crate) fn vector(
    call: &mut Call<'_>, count: i32, size: i32, from: u64, from_step: i32, to: u64, to_step: i32,
) -> Outcome {
    let size = positive(size);
    let sides = ((from, positive(from_step) * size), (to, positive(to_step) * size));
    copy(call, (positive(count), size), sides.0, sides.1, None)
}

/// `cublasSetVectorAsync` and `cublasGetVectorAsync`.
pub(crate) fn vector_on(
    call: &mut Call<'_>, count: i32, size: i32, from: u64, from_step: i32, to: u64, to_step: i32, stream: u64,
) -> Outcome {
    let size = positive(size);
    let sides = ((from, positive(from_step) * size), (to, positive(to_step) * size));
    copy(call, (positive(count), size), sides.0, sides.1, Some(stream))
}
