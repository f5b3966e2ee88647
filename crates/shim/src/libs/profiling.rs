//! CUPTI: a profiler may ask for anything; no device activity is ever reported.

use trompe_cuda_abi::libraries::ProfilingError;
use trompe_cuda_abi::pointer::Out;

use super::{LibraryFailure, Outcome};
use crate::door::Call;

/// API version of CUPTI in CUDA 13.2.
const VERSION: u32 = 130_200;

/// `cuptiGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, version: Out<u32>) -> Outcome {
    Ok(version.write(VERSION)?)
}

/// `cuptiGetResultString`.
pub(crate) fn result_text(_: &mut Call<'_>, code: i32, text: Out<u64>) -> Outcome {
    let name = if code == 0 { Some(c"CUPTI_SUCCESS") } else { ProfilingError::name_of(code) };
    Ok(text.write(name.unwrap_or(c"unknown result").as_ptr() as u64)?)
}

/// `cuptiActivityGetNextRecord`: there is none.
pub(crate) fn no_record(_: &mut Call<'_>, _buffer: u64, _bytes: usize, record: Out<u64>) -> Outcome {
    record.write_if_given(0);
    Err(LibraryFailure::Exhausted)
}

/// `cuptiGetTimestamp`: the monotonic clock, in nanoseconds.
pub(crate) fn timestamp(_: &mut Call<'_>, nanoseconds: Out<u64>) -> Outcome {
    Ok(nanoseconds.write(crate::clock::monotonic_ns())?)
}

/// `cuptiGetCallbackName`: callbacks have no name here, since none is ever called.
pub(crate) fn callback_name(_: &mut Call<'_>, _domain: i32, _id: u32, name: Out<u64>) -> Outcome {
    Ok(name.write(c"".as_ptr() as u64)?)
}
