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

use super::{Outcome, libraries, record_library, stream_id};
use crate::door::Call;

/// Records what the device would do on the stream of a cuDNN handle.
fn record_operation(call: &mut Call<'_>, handle: u64, operation: &Operation) -> Outcome {
    let stream = libraries().dnn.library(handle)?.stream;
    if !call.recording() {
        return Ok(());
    }
    let (api, id) = (call.api.0, stream_id(call, stream));
    match operation {
        Operation::Convolution(convolution) => {
            call.record(&Record::Convolution { api, stream: id, convolution: convolution.clone() });
        }
        Operation::Attention(attention) => {
            call.record(&Record::Attention { api, stream: id, attention: attention.clone() });
        }
        Operation::Gemm(gemm) => call.record(&Record::Gemm { api, stream: id, gemm: gemm.clone() }),
        Operation::Graph(graph) => record_library(call, stream, [graph.read, graph.written], &graph.detail),
    }
    Ok(())
}
