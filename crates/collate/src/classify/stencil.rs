//! Pooling, up-sampling, padding, im2col and other kernels that read neighbourhoods: one pass over the operator's
//! input and result.

use trompe_base::{Bytes, Flops};
use trompe_trace::descriptor::{Descriptor, Work};

use super::Kernel;
use crate::operator::{Call, distinct_bytes};

const WORDS: [&str; 17] = [
    "pool",
    "upsample",
    "im2col",
    "col2im",
    "vol2im",
    "vol2col",
    "im2vol",
    "reflection_pad",
    "replication_pad",
    "grid_sampler",
    "conv_depthwise",
    "adaptiveaverage",
    "adaptivemax",
    "adaptive_average",
    "unfold_backward",
    "roi_",
    "interpolate",
];

/// Describes stencils.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.to_ascii_lowercase();
    WORDS.iter().find(|word| base.contains(*word))?;
    let Some(call) = kernel.context.call() else {
        // One result element of four bytes per thread, read from as many inputs.
        let bytes = Bytes(kernel.blocks() * u64::from(kernel.threads()) * 4);
        return Some(Descriptor::Stencil(Work { read: bytes, written: bytes, flops: Flops::ZERO }));
    };
    if let Some(work) = depthwise_gradient(call, &base) {
        return Some(Descriptor::Stencil(work));
    }
    let outputs = call.device_outputs();
    let is_result = |address: u64| address != 0 && outputs.iter().any(|out| out.address == address);
    let read = call.device_inputs().iter().filter(|t| !is_result(t.address)).map(|t| distinct_bytes(t)).sum();
    let written: u64 = outputs.iter().map(|t| t.bytes()).sum();
    let elements = outputs.iter().map(|t| t.elements()).max().unwrap_or(0);
    Some(Descriptor::Stencil(Work { read: Bytes(read), written: Bytes(written), flops: Flops(elements) }))
}

/// Gradients of depthwise convolutions: `convolution_backward(gradient, input, weight, …)` launches one kernel for the
/// input's gradient and one for the weight's, each of which leaves out one of the tensors.
fn depthwise_gradient(call: &Call<'_>, base: &str) -> Option<Work> {
    if !call.name.contains("_backward") || !base.contains("conv_depthwise") {
        return None;
    }
    let (gradient, input, weight) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let of_weight = base.contains("weight");
    let (other, result) = if of_weight { (input, weight) } else { (weight, input) };
    let taps: u64 = weight.sizes.iter().skip(2).fold(1, |a, b| a.saturating_mul(*b));
    Some(Work {
        read: Bytes(distinct_bytes(gradient) + distinct_bytes(other)),
        written: Bytes(distinct_bytes(result)),
        flops: Flops(gradient.elements().saturating_mul(taps).saturating_mul(2)),
    })
}
