//! Batched factorisations whose `info` is in host memory: it says success.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::Out;

use super::library;
use crate::door::Call;
use crate::libs::{Outcome, record_library};

fn run(call: &mut Call<'_>, handle: u64, info: u64, detail: &str) -> Outcome {
    let stream = library(handle)?.stream;
    record_library(call, stream, [0, 0], detail)?;
    Ok(Out::<i32>::new(info as usize).write(0)?)
}

/// `cublas?gelsBatched`.
pub(crate) fn gels(
    call: &mut Call<'_>, handle: u64, _trans: i32, m: i32, n: i32, right: i32, _a: u64, _lda: i32, _c: u64,
    _ldc: i32, info: u64, _device_info: u64, batch: i32,
) -> Outcome {
    run(call, handle, info, &format!("least squares m {m} n {n} right-hand sides {right} batch {batch}"))
}

/// `cublas?geqrfBatched`.
pub(crate) fn geqrf(
    call: &mut Call<'_>, handle: u64, m: i32, n: i32, _a: u64, _lda: i32, _tau: u64, info: u64, batch: i32,
) -> Outcome {
    run(call, handle, info, &format!("QR factorisation m {m} n {n} batch {batch}"))
}

/// `cublas?getrsBatched`.
pub(crate) fn getrs(
    call: &mut Call<'_>, handle: u64, _trans: i32, n: i32, right: i32, _a: u64, _lda: i32, _pivots: u64,
    _b: u64, _ldb: i32, info: u64, batch: i32,
) -> Outcome {
    run(call, handle, info, &format!("LU solve n {n} right-hand sides {right} batch {batch}"))
}
