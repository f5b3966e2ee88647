//! Which kind of work an operation counts for in the breakdown of a step.

use trompe_results::Kind;
use trompe_trace::descriptor::{Descriptor, NpuWork};
use trompe_trace::job::Phase;

/// The kind of an operation launched in `phase` of the step.
///
/// What the optimizer launches counts as optimizer whatever it computes, copies excepted: gradient clipping and the
/// multi-tensor kernels of unfused optimizers are element-wise passes and reductions.
#[must_use]
pub fn kind_of(descriptor: &Descriptor, phase: Phase) -> Kind {
    let kind = match descriptor {
        Descriptor::Gemm(_) | Descriptor::Rnn(_) => Kind::Gemm,
        Descriptor::Convolution(_) => Kind::Convolution,
        Descriptor::Attention(_) => Kind::Attention,
        Descriptor::Normalization(_) | Descriptor::Softmax(_) => Kind::Norm,
        Descriptor::CrossEntropy(_) => Kind::Loss,
        Descriptor::Elementwise(_) => Kind::Elementwise,
        Descriptor::Reduction(_) => Kind::Reduction,
        Descriptor::Embedding(_) | Descriptor::Indexing(_) => Kind::Embedding,
        Descriptor::Optimizer(_) => Kind::Optimizer,
        Descriptor::Copy(_) | Descriptor::Set(_) => Kind::Copy,
        // Matrix instructions: a product, or an attention that is made of two.
        Descriptor::Compiled(kernel) if kernel.multiplies > 0 => Kind::Gemm,
        Descriptor::Sort(_)
        | Descriptor::Compiled(_)
        | Descriptor::Stencil(_)
        | Descriptor::Triton(_)
        | Descriptor::Other(_)
        | Descriptor::Recorded(_) => Kind::Other,
        Descriptor::NpuKernel(kernel) => match kernel.does {
            NpuWork::Gemm => Kind::Gemm,
            NpuWork::Attention => Kind::Attention,
            NpuWork::Normalization => Kind::Norm,
            NpuWork::Elementwise => Kind::Elementwise,
            NpuWork::Reduction => Kind::Reduction,
            NpuWork::Embedding => Kind::Embedding,
            NpuWork::Optimizer => Kind::Optimizer,
            NpuWork::Other => Kind::Other,
        },
    };
    if phase == Phase::Optimizer && kind != Kind::Copy { Kind::Optimizer } else { kind }
}
