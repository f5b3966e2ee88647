//! Copies of matrices and vectors between host and device, with a leading dimension on each side.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_base::Bytes;
use trompe_cuda_abi::pointer::{In, Out};
use trompe_trace::descriptor::{Copy, Place};
use trompe_trace::record::Record;

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, stream_id};

/// Copies of more bytes than this are recorded, not made.
const LARGEST_REAL_COPY: u64 = 4 << 20;

/// One side of a copy: address and bytes from column to column.
type Side = (u64, u64);

fn copy(call: &mut Call<'_>, columns: (u64, u64), from: Side, to: Side, stream: Option<u64>) -> Outcome {
    let (count, bytes) = columns;
    let total = count.checked_mul(bytes).ok_or(LibraryFailure::InvalidValue)?;
    if total <= LARGEST_REAL_COPY {
        let mut buffer = Vec::new();
        for index in 0..count {
            buffer.clear();
            In::<u8>::new((from.0 + index * from.1) as usize).append_to(&mut buffer, bytes as usize)?;
            Out::<u8>::new((to.0 + index * to.1) as usize).write_bytes(&buffer)?;
        }
    }
    let (source, destination) = {
        let mut machine = call.machine();
        if machine.memory.device_of(to.0).is_some() && total <= LARGEST_REAL_COPY && count > 0 {
            machine.memory.mark_written(to.0, (count - 1) * to.1 + bytes);
        }
        let place = |address| {
            if machine.memory.device_of(address).is_some() { Place::Device } else { Place::Pageable }
        };
        (place(from.0), place(to.0))
    };
    let record = Record::Copy {
        api: call.api.0,
        stream: stream_id(call, stream.unwrap_or(0)),
        copy: Copy { from: source, to: destination, bytes: Bytes(total) },
        blocking: stream.is_none(),
    };
    call.record(&record);
    Ok(())
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
