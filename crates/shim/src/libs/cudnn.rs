//! cuDNN: the backend (graph) interface and the legacy one.

// Modules whose functions have the library's long signatures keep several parameters on a line.
#[rustfmt::skip]
pub(crate) mod backend;
#[rustfmt::skip]
pub(crate) mod convolution;
#[rustfmt::skip]
pub(crate) mod descriptor;
pub(crate) mod handle;
#[rustfmt::skip]
pub(crate) mod passes;
#[rustfmt::skip]
pub(crate) mod recurrent;

use trompe_device::dnn::Operation;
use trompe_trace::record::Record;

use super::{Outcome, enqueue, libraries, record_library};
use crate::door::Call;

/// Puts an operation on the stream of a cuDNN handle and records it.
fn record_operation(call: &mut Call<'_>, handle: u64, operation: &Operation) -> Outcome {
    let stream = libraries().dnn.library(handle)?.stream;
    if let Operation::Graph(graph) = operation {
        return record_library(call, stream, [graph.read, graph.written], &graph.detail);
    }
    let (stream, _) = enqueue(call, stream)?;
    if !call.recording() {
        return Ok(());
    }
    let api = call.api.0;
    match operation.clone() {
        Operation::Convolution(convolution) => call.record(&Record::Convolution { api, stream, convolution }),
        Operation::Attention(attention) => call.record(&Record::Attention { api, stream, attention }),
        Operation::Gemm(gemm) => call.record(&Record::Gemm { api, stream, gemm }),
        Operation::Graph(_) => {}
    }
    Ok(())
}
