//! Whether an operation computes results or gradients, and of what.

use trompe_trace::descriptor::{Descriptor, Direction, Gemm};
use trompe_trace::job::Phase;

/// Nodes of linear layers, whose two products can be told apart.
const LINEAR_NODES: [&str; 4] = ["AddmmBackward0", "MmBackward0", "LinearBackward0", "BaddbmmBackward0"];

/// The direction of an operation in `phase` under the autograd node or range `range`.
pub(crate) fn direction(descriptor: &Descriptor, phase: Phase, range: &str) -> Direction {
    let own = match descriptor {
        Descriptor::Convolution(c) => Some(c.direction),
        Descriptor::Attention(a) => Some(a.direction),
        Descriptor::Normalization(n) => Some(n.direction),
        Descriptor::Softmax(r) | Descriptor::CrossEntropy(r) => Some(r.direction),
        Descriptor::Embedding(e) => Some(e.direction),
        Descriptor::Rnn(r) => Some(r.direction),
        _ => None,
    };
    match (own, phase, descriptor) {
        (Some(direction), _, _) => direction,
        (None, Phase::Backward, Descriptor::Gemm(gemm)) if is_weight_gradient(gemm, range) => {
            Direction::WeightGradient
        }
        (None, Phase::Backward, _) => Direction::Backward,
        _ => Direction::Forward,
    }
}

/// A linear layer's weight gradient is the product of gradient and input, both row-major with the rows contracted:
/// for column-major BLAS the first operand plain and the second transposed. The input's gradient transposes neither.
fn is_weight_gradient(gemm: &Gemm, range: &str) -> bool {
    let linear = LINEAR_NODES.contains(&range);
    linear && !gemm.transpose_a && gemm.transpose_b
}
