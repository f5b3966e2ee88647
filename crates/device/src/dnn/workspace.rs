//! Sizes of workspaces and reserve areas.
//!
//! cuDNN does not document these. The rules here are assumptions that follow from how its kernels work, not
//! measurements; each is stated at its function. They decide how much memory a framework's allocator takes for the
//! duration of a call, so they matter to peak memory of convolutional nets and hardly to anything else.

use trompe_base::DType;
use trompe_trace::descriptor::{Convolution, Direction, ImageLayout};

use super::Operation;
use super::tensor::product;

/// Buffers inside of a workspace begin at multiples of this many bytes.
const ALIGNMENT: u64 = 256;

/// Workspace of a plan in bytes. Only convolutions take any.
#[must_use]
pub fn of(operation: &Operation) -> u64 {
    match operation {
        Operation::Convolution(convolution) => of_convolution(convolution),
        Operation::Attention(_) | Operation::Gemm(_) | Operation::Graph(_) => 0,
    }
}

/// Workspace of a convolution in bytes.
///
/// Rule: tensor-core kernels read and write channels-last; channels-first operands (x, w and y) are each converted
/// in a copy. The weight gradient of a type narrower than 32 bits is summed up in fp32 first, so that several thread blocks can
/// share one filter. Kernels without tensor cores (`compute` fp32 or fp64) work in place.
#[must_use]
pub fn of_convolution(convolution: &Convolution) -> u64 {
    let c = convolution;
    let tensor_cores = c.compute == DType::Tf32 || c.dtype.size() < 4;
    if !tensor_cores {
        return 0;
    }
    let x = product(&[c.batch, c.in_channels, product(&c.input)]);
    let y = product(&[c.batch, c.out_channels, product(&c.output)]);
    let w = product(&[c.out_channels, c.in_channels / c.groups.max(1), product(&c.kernel)]);
    let buffer = |elements: u64, size: u64| {
        elements.saturating_mul(size).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX)
    };
    let converted = match c.layout {
        ImageLayout::ChannelsLast => 0,
        ImageLayout::ChannelsFirst => {
            let buffers = [x, w, y].map(|elements| buffer(elements, c.dtype.size()));
            buffers.into_iter().fold(0, u64::saturating_add)
        }
    };
    let summed =
        if c.direction == Direction::WeightGradient && c.dtype.size() < 4 { buffer(w, 4) } else { 0 };
    converted.saturating_add(summed)
}
