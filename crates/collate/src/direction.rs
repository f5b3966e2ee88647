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
    // Without operators the node is not known; linear layers are the rule.
    let linear = range.is_empty() || LINEAR_NODES.contains(&range);
    linear && !gemm.transpose_a && gemm.transpose_b
}

#[cfg(test)]
mod tests {
    use trompe_base::DType;
    use trompe_trace::descriptor::Epilogue;

    use super::*;

    fn check(transposes: (bool, bool), phase: Phase, range: &str, expect: Direction) {
        let gemm = Gemm {
            m: 1,
            n: 1,
            k: 1,
            batch: 1,
            transpose_a: transposes.0,
            transpose_b: transposes.1,
            a: DType::Bf16,
            b: DType::Bf16,
            c: DType::Bf16,
            compute: DType::F32,
            epilogue: Epilogue::None,
            accumulate: false,
            leading: [1; 3],
            strides: [0; 3],
        };
        assert_eq!(
            direction(&Descriptor::Gemm(gemm), phase, range),
            expect,
            "{transposes:?} {phase:?} {range}"
        );
    }

    #[test]
    fn products_of_a_linear_layer_are_told_apart() {
        use Direction::{Backward, Forward, WeightGradient};
        check((true, false), Phase::Forward, "", Forward);
        check((true, false), Phase::Recompute, "CheckpointFunctionBackward", Forward);
        check((false, false), Phase::Backward, "AddmmBackward0", Backward);
        check((false, true), Phase::Backward, "AddmmBackward0", WeightGradient);
        check((false, true), Phase::Backward, "BmmBackward0", Backward);
        check((false, true), Phase::Backward, "", WeightGradient);
    }
}
