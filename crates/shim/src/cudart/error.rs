//! Error names, texts and the thread's last error.

use trompe_cuda_abi::runtime::{Address, RuntimeError};

use crate::door::Call;

/// `cudaGetLastError`: also clears it.
pub(crate) fn take_last(call: &mut Call<'_>) -> i32 {
    call.thread.last_error.replace(0)
}

/// `cudaPeekAtLastError`.
pub(crate) fn peek_last(call: &mut Call<'_>) -> i32 {
    call.thread.last_error.get()
}

/// `cudaGetErrorName`.
pub(crate) fn name(_: &mut Call<'_>, code: i32) -> Address {
    let name = if code == 0 { Some(c"cudaSuccess") } else { RuntimeError::name_of(code) };
    name.unwrap_or(c"unrecognized error code").as_ptr() as Address
}

/// `cudaGetErrorString`.
pub(crate) fn text(_: &mut Call<'_>, code: i32) -> Address {
    let text = if code == 0 { Some(c"no error") } else { RuntimeError::text_of(code) };
    text.unwrap_or(c"unrecognized error code").as_ptr() as Address
}
