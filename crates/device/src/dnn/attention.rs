//! Attention in operation graphs: as one fused operation, or spelt out as matrix products around a softmax.

use std::collections::BTreeSet;
use std::sync::Arc;

use trompe_trace::descriptor::{Attention, AttentionKind, Direction};

use super::Tensor;
use super::backend::{Descriptor, attribute, kind};

const POINTWISE_EXP: i32 = 13;
const POINTWISE_GREATER: i32 = 302;
const POINTWISE_GREATER_OR_EQUAL: i32 = 303;
const POINTWISE_GEN_INDEX: i32 = 501;

/// Attention, if that is what the operations are.
#[must_use]
pub fn of_operations(operations: &[Arc<Descriptor>]) -> Option<Attention> {
    fused(operations).or_else(|| spelt_out(operations))
}

fn fused(operations: &[Arc<Descriptor>]) -> Option<Attention> {
    use attribute as a;
    operations.iter().find_map(|operation| {
        let (direction, names) = match operation.kind() {
            kind::SDPA_FWD => (Direction::Forward, [a::SDPA_FWD_QDESC, a::SDPA_FWD_KDESC, a::SDPA_FWD_VDESC]),
            kind::SDPA_BWD => {
                (Direction::Backward, [a::SDPA_BWD_QDESC, a::SDPA_BWD_KDESC, a::SDPA_BWD_VDESC])
            }
            _ => return None,
        };
        let [q, k, v] = names.map(|name| operation.child(name).map(|tensor| Tensor::of(tensor)));
        let (q, k, v) = (q?, k?, v?);
        let mut inner = Vec::new();
        collect(operation, &mut inner);
        let probability = operation.real(a::SDPA_FWD_DROPOUT_PROBABILITY).unwrap_or(0.0);
        Some(Attention {
            direction,
            kind: AttentionKind::Cudnn,
            batch: q.extent(0),
            heads: q.extent(1),
            kv_heads: k.extent(1),
            seq_q: q.extent(2),
            seq_kv: k.extent(2),
            head_dim: q.extent(3),
            head_dim_v: v.extent(3),
            causal: is_causal(&inner),
            dropout: probability > 0.0,
            dtype: q.dtype?,
        })
    })
}

/// All operations below `descriptor` that may say something about masks.
fn collect(descriptor: &Descriptor, found: &mut Vec<Arc<Descriptor>>) {
    for (_, child) in descriptor.all_children() {
        if child.kind() != kind::TENSOR {
            found.push(Arc::clone(child));
            collect(child, found);
        }
    }
}

/// Forward is two products around an exponential or a softmax, backward five.
fn spelt_out(operations: &[Arc<Descriptor>]) -> Option<Attention> {
    let products: Vec<_> = operations.iter().filter(|op| op.kind() == kind::OPERATION_MATMUL).collect();
    let direction = match products.len() {
        2 => Direction::Forward,
        5.. => Direction::Backward,
        _ => return None,
    };
    operations.iter().find(|operation| {
        operation.kind() == kind::OPERATION_SOFTMAX || pointwise_mode(operation) == Some(POINTWISE_EXP)
    })?;
    let tensor = |operation: &Descriptor, name| operation.child(name).map(|tensor| Tensor::of(tensor));
    // q · kᵀ: the first product whose result stays inside of the kernel and whose operands come from outside.
    let scores = products.iter().find(|product| {
        [attribute::MATMUL_ADESC, attribute::MATMUL_BDESC]
            .iter()
            .all(|&name| tensor(product, name).is_some_and(|operand| !operand.is_virtual))
            && tensor(product, attribute::MATMUL_CDESC).is_some_and(|result| result.is_virtual)
    })?;
    let (q, k_transposed) =
        (tensor(scores, attribute::MATMUL_ADESC)?, tensor(scores, attribute::MATMUL_BDESC)?);
    let s = tensor(scores, attribute::MATMUL_CDESC)?;
    // p · v in the forward pass; dO · vᵀ, whose left operand is as wide as v, in the backward pass.
    let head_dim_v = match direction {
        Direction::Forward => tensor(products[1], attribute::MATMUL_BDESC)?.extent(3),
        _ => products.iter().filter(|product| !Arc::ptr_eq(product, scores)).find_map(|product| {
            let left = tensor(product, attribute::MATMUL_ADESC)?;
            let result = tensor(product, attribute::MATMUL_CDESC)?;
            (!left.is_virtual && result.is_virtual).then(|| left.extent(3))
        })?,
    };
    Some(Attention {
        direction,
        kind: AttentionKind::Cudnn,
        batch: s.extent(0),
        heads: s.extent(1),
        kv_heads: k_transposed.extent(1),
        seq_q: s.extent(2),
        seq_kv: s.extent(3),
        head_dim: q.extent(3),
        head_dim_v,
        causal: is_causal(operations),
        dropout: operations.iter().any(|operation| operation.kind() == kind::OPERATION_RNG),
        dtype: q.dtype?,
    })
}

fn pointwise_mode(operation: &Descriptor) -> Option<i32> {
    if operation.kind() != kind::OPERATION_POINTWISE {
        return None;
    }
    operation.child(attribute::POINTWISE_PW_DESCRIPTOR)?.number(attribute::POINTWISE_MODE)
}

/// A causal mask is a diagonal band that keeps what is on or below the diagonal, or "row index ≥ column index" spelt
/// out. A padding mask compares an index with a tensor from outside, which does not count. Operations come in any order.
fn is_causal(operations: &[Arc<Descriptor>]) -> bool {
    let keeps_below =
        |mode: Option<i32>| matches!(mode, Some(POINTWISE_GREATER | POINTWISE_GREATER_OR_EQUAL));
    let band = |operation: &Descriptor| {
        operation.kind() == kind::DIAGONAL_BAND_MASK
            && (keeps_below(operation.number(attribute::DIAGONAL_BAND_MASK_COMPARISON_MODE))
                || operation.child(attribute::DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC).is_some())
    };
    if operations.iter().any(|operation| band(operation)) {
        return true;
    }
    let uid = |operation: &Descriptor, name| operation.child(name).map(|tensor| Tensor::of(tensor).uid);
    // Everything computed from generated indices and constants alone.
    let mut indices = BTreeSet::new();
    loop {
        let before = indices.len();
        for operation in operations {
            let known = |name| uid(operation, name).is_some_and(|uid| indices.contains(&uid));
            let index = match pointwise_mode(operation) {
                Some(POINTWISE_GEN_INDEX) => true,
                Some(mode) => mode < POINTWISE_EXP && known(attribute::POINTWISE_XDESC),
                None => false,
            };
            if index {
                indices.extend(uid(operation, attribute::POINTWISE_YDESC));
            }
        }
        if indices.len() == before {
            break;
        }
    }
    operations.iter().any(|operation| {
        let known = |name| uid(operation, name).is_some_and(|uid| indices.contains(&uid));
        keeps_below(pointwise_mode(operation))
            && known(attribute::POINTWISE_XDESC)
            && known(attribute::POINTWISE_BDESC)
    })
}
