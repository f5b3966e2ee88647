//! Pooling, up-sampling, padding, im2col and other kernels that read neighbourhoods: one pass over the operator's
//! input and result.

use trompe_base::{Bytes, Flops};
use trompe_trace::descriptor::{Descriptor, Work};

use super::Kernel;
use crate::operator::distinct_bytes;

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
    let outputs = call.device_outputs();
    let is_result = |address: u64| address != 0 && outputs.iter().any(|out| out.address == address);
    let read = call.device_inputs().iter().filter(|t| !is_result(t.address)).map(|t| distinct_bytes(t)).sum();
    let written: u64 = outputs.iter().map(|t| t.bytes()).sum();
    let elements = outputs.iter().map(|t| t.elements()).max().unwrap_or(0);
    Some(Descriptor::Stencil(Work { read: Bytes(read), written: Bytes(written), flops: Flops(elements) }))
}
