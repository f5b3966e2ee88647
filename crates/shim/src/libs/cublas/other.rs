//! Routines of which only the name and the stream are recorded.

use trompe_cuda_abi::tables;

use super::library;
use crate::door::Call;
use crate::libs::{Outcome, record_library};

/// Any routine whose first argument is the handle and that answers into device memory.
pub(crate) fn on_handle(call: &mut Call<'_>, handle: u64) -> Outcome {
    let stream = library(handle)?.stream;
    let symbol = tables::row(call.api).1.symbol;
    record_library(call, stream, [0, 0], symbol)
}
