//! The results of operators, worked out from their arguments: a profiler records none.
//!
//! Rules are those of the operators' documentation; an operator without a rule has unknown results, and what it launches
//! is then not described by shapes.

use trompe_base::DType;
use trompe_trace::values::{Tensor, Value};

use super::{Operator, dense};
use crate::classify::widest;

/// Operators whose result is as large as their arguments broadcast together.
const BROADCAST: [&str; 74] = [
    "_to_copy",
    "abs",
    "add",
    "addcdiv",
    "addcmul",
    "bernoulli",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "ceil",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clone",
    "contiguous",
    "cos",
    "div",
    "elu",
    "elu_backward",
    "erf",
    "exp",
    "fill",
    "floor",
    "floor_divide",
    "gelu",
    "gelu_backward",
    "hardswish",
    "hardswish_backward",
    "hardtanh",
    "hardtanh_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "lerp",
    "log",
    "log1p",
    "log2",
    "masked_fill",
    "maximum",
    "minimum",
    "mish",
    "mish_backward",
    "mul",
    "nan_to_num",
    "native_dropout",
    "native_dropout_backward",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "rsub",
    "sigmoid",
    "sigmoid_backward",
    "sign",
    "silu",
    "silu_backward",
    "sin",
    "softplus",
    "softplus_backward",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
    "tanh_backward",
    "threshold",
    "threshold_backward",
    "tril",
    "triu",
    "true_divide",
    "where",
    "xlogy",
];

/// The same with a boolean result.
const COMPARE: [&str; 16] = [
    "eq",
    "ge",
    "gt",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "greater",
    "less",
    "isneginf",
];

/// Operators whose (first) result is like their first tensor.
const LIKE_FIRST: [&str; 16] = [
    "_log_softmax",
    "_log_softmax_backward_data",
    "_softmax",
    "_softmax_backward_data",
    "cudnn_batch_norm",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "native_layer_norm_backward",
    "flip",
    "roll",
    "cumsum",
    "batch_norm_elemt",
    "_fused_rms_norm",
    "cudnn_batch_norm_backward",
    "native_batch_norm_backward",
];

/// The results of `operator`; `None` when no rule tells them. An operator that writes to its first argument has none of
/// its own.
pub(super) fn of(operator: &Operator) -> Option<Vec<Value>> {
    let name = operator.name.rsplit("::").next().unwrap_or(&operator.name);
    if name.ends_with('_') && !name.ends_with("__") {
        return Some(Vec::new());
    }
    let tensors: Vec<&Tensor> = operator.inputs.iter().filter_map(of_device).collect();
    let first = *tensors.first()?;
    if BROADCAST.contains(&name) {
        let kinds = tensors.iter().filter_map(|tensor| tensor.dtype);
        let floats: Vec<DType> = kinds.clone().filter(|dtype| dtype.is_float()).collect();
        let dtype =
            widest(floats).or_else(|| widest(kinds.filter(|dtype| *dtype != DType::Bool))).or(first.dtype)?;
        let whole = like(broadcast(&tensors)?, dtype);
        // The mask is the second result.
        return Some(if name == "native_dropout" {
            let Value::Tensor(tensor) = &whole else { return None };
            let mask = like(tensor.sizes.clone(), DType::Bool);
            vec![whole, mask]
        } else {
            vec![whole]
        });
    }
    if COMPARE.contains(&name) {
        return Some(vec![like(broadcast(&tensors)?, DType::Bool)]);
    }
    if LIKE_FIRST.contains(&name) {
        return Some(vec![like(first.sizes.clone(), first.dtype?)]);
    }
    match name {
        "sum" | "mean" | "amax" | "amin" | "var" | "std" | "norm" => reduced(operator, first),
        "embedding" => {
            let indices = tensors.get(1)?;
            let width = *first.sizes.last()?;
            let sizes = indices.sizes.iter().copied().chain([width]).collect();
            Some(vec![like(sizes, first.dtype?)])
        }
        "index_select" => {
            let Some(Value::Int(dim)) = operator.inputs.get(1) else { return None };
            let mut sizes = first.sizes.clone();
            *sizes.get_mut(usize::try_from(*dim).ok()?)? = tensors.get(1)?.elements();
            Some(vec![like(sizes, first.dtype?)])
        }
        "gather" => Some(vec![like(tensors.get(1)?.sizes.clone(), first.dtype?)]),
        "cat" => {
            let Value::List(list) = operator.inputs.first()? else { return None };
            let elements = list.iter().filter_map(of_device).map(Tensor::elements).sum();
            Some(vec![like(vec![elements], first.dtype?)])
        }
        _ => None,
    }
}

/// A reduction over the dimensions that its second argument lists, over all without one.
fn reduced(operator: &Operator, input: &Tensor) -> Option<Vec<Value>> {
    let dims: Vec<i64> = match operator.inputs.get(1) {
        Some(Value::List(list)) => list
            .iter()
            .map(|value| if let Value::Int(dim) = value { Some(*dim) } else { None })
            .collect::<Option<_>>()?,
        Some(Value::Int(dim)) => vec![*dim],
        // `sum(Tensor)`; with an argument that was not recorded the dimensions are not known.
        None | Some(Value::None) => Vec::new(),
        Some(_) if operator.inputs.len() == 2 => Vec::new(),
        Some(_) => return None,
    };
    let rank = input.sizes.len() as i64;
    let gone = |at: usize| dims.is_empty() || dims.iter().any(|dim| dim.rem_euclid(rank.max(1)) == at as i64);
    let sizes = input.sizes.iter().enumerate().filter(|(at, _)| !gone(*at)).map(|(_, size)| *size).collect();
    Some(vec![like(sizes, input.dtype?)])
}

fn of_device(value: &Value) -> Option<&Tensor> {
    match value {
        Value::Tensor(tensor) if tensor.on_device => Some(tensor),
        Value::List(list) => list.iter().find_map(of_device),
        _ => None,
    }
}

/// The shape of tensors that are repeated to fit each other.
fn broadcast(tensors: &[&Tensor]) -> Option<Vec<u64>> {
    let rank = tensors.iter().map(|tensor| tensor.sizes.len()).max()?;
    let mut shape = vec![1; rank];
    for tensor in tensors {
        for (at, size) in tensor.sizes.iter().rev().enumerate() {
            let own = &mut shape[rank - 1 - at];
            match (*own, *size) {
                (1, size) => *own = size,
                (own, size) if own == size || size == 1 => {}
                _ => return None,
            }
        }
    }
    Some(shape)
}

fn like(sizes: Vec<u64>, dtype: DType) -> Value {
    Value::Tensor(Tensor {
        dtype: Some(dtype),
        address: 0,
        strides: dense(&sizes),
        sizes,
        contiguous: true,
        requires_grad: false,
        on_device: true,
        channels_last: false,
    })
}
