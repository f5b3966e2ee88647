//! Operation graphs: what the whole of one does.

use std::collections::BTreeMap;
use std::sync::Arc;

use trompe_base::DType;
use trompe_trace::descriptor::{Epilogue, Gemm};

use super::backend::{Descriptor, attribute, kind};
use super::tensor::product;
use super::{DeviceTraits, Graph, Operation, Tensor, attention, convolution};

/// Attributes that name a tensor which an operation writes.
const OUTPUTS: &[i32] = &[
    705, 710, 715, 753, 756, 773, 774, 788, 789, 790, 791, 792, 793, 1522, 1611, 1626, 1627, 1628, 1629,
    1630, 1711, 1712, 1720, 1803, 1904, 1951, 2003, 2004, 2011, 2012, 2013, 2107, 2108, 2109, 2201, 2251,
    2271, 2310, 2501, 2502, 2602, 2803, 2804, 2828, 2829, 2859, 2860, 2861, 2864, 2905, 2953, 3006, 3101,
    3102, 3103, 3104, 3201, 3301, 3401, 3411,
];

/// The operation that a graph amounts to.
#[must_use]
pub fn interpret(graph: Option<&Arc<Descriptor>>, tensor_cores: bool, device: DeviceTraits) -> Operation {
    let Some(graph) = graph else { return unknown("plan without graph") };
    let operations: Vec<_> = graph.children(attribute::OPERATIONGRAPH_OPS).cloned().collect();
    if let Some(attention) = attention::of_operations(&operations) {
        return Operation::Attention(attention);
    }
    let convolution = operations
        .iter()
        .find_map(|operation| convolution::of_operation(operation, tensor_cores)?.describe(device));
    if let Some(convolution) = convolution {
        return Operation::Convolution(convolution);
    }
    match matrix_product(&operations, tensor_cores, device) {
        Some(gemm) => Operation::Gemm(gemm),
        None => Operation::Graph(by_tensors(&operations)),
    }
}

/// A graph of which nothing is known but why.
#[must_use]
pub fn unknown(why: &str) -> Operation {
    Operation::Graph(Graph { detail: why.to_owned(), ..Graph::default() })
}

/// One matrix product, perhaps with element-wise steps around it.
fn matrix_product(operations: &[Arc<Descriptor>], tensor_cores: bool, device: DeviceTraits) -> Option<Gemm> {
    let mut products = operations.iter().filter(|operation| operation.kind() == kind::OPERATION_MATMUL);
    let (only, None) = (products.next()?, products.next()) else { return None };
    let tensor = |name| only.child(name).map(|tensor| Tensor::of(tensor));
    let (a, b, c) = (
        tensor(attribute::MATMUL_ADESC)?,
        tensor(attribute::MATMUL_BDESC)?,
        tensor(attribute::MATMUL_CDESC)?,
    );
    let rank = c.dimensions.len();
    if rank < 2 || a.dimensions.len() != rank || b.dimensions.len() != rank {
        return None;
    }
    let accumulator =
        only.child(attribute::MATMUL_DESC)?.number(attribute::MATMUL_COMP_TYPE).and_then(super::dtype);
    let (a_type, b_type) = (a.dtype?, b.dtype?);
    let tf32 = a_type == DType::F32 && tensor_cores && device.has_tf32();
    let step =
        |tensor: &Tensor, index: usize| tensor.strides.get(index).map_or(0, |stride| stride.unsigned_abs());
    let leading = |tensor: &Tensor| step(tensor, rank - 2).max(step(tensor, rank - 1));
    let batch_stride = |tensor: &Tensor| if rank > 2 { step(tensor, rank - 3) } else { 0 };
    // cuDNN counts rows first; BLAS counts columns first, where the operands change places.
    Some(Gemm {
        m: c.extent(rank - 1),
        n: c.extent(rank - 2),
        k: a.extent(rank - 1),
        batch: product(&c.dimensions[..rank - 2]),
        transpose_a: step(&b, rank - 2) == 1,
        transpose_b: step(&a, rank - 2) == 1,
        a: b_type,
        b: a_type,
        c: c.dtype.unwrap_or(a_type),
        compute: if tf32 { DType::Tf32 } else { accumulator.unwrap_or(a_type) },
        epilogue: if operations.len() == 1 { Epilogue::None } else { Epilogue::Other },
        accumulate: false,
        leading: [leading(&b), leading(&a), leading(&c)],
        strides: [batch_stride(&b), batch_stride(&a), batch_stride(&c)],
    })
}

fn by_tensors(operations: &[Arc<Descriptor>]) -> Graph {
    let (mut read, mut written) = (BTreeMap::new(), BTreeMap::new());
    for operation in operations {
        for (name, child) in operation.all_children().filter(|(_, child)| child.kind() == kind::TENSOR) {
            let tensor = Tensor::of(child);
            if !tensor.is_virtual {
                let side = if OUTPUTS.contains(&name) { &mut written } else { &mut read };
                side.insert(tensor.uid, tensor);
            }
        }
    }
    let sum =
        |tensors: &BTreeMap<i64, Tensor>| tensors.values().map(Tensor::bytes).fold(0, u64::saturating_add);
    let list =
        |tensors: &BTreeMap<i64, Tensor>| tensors.values().map(Tensor::text).collect::<Vec<_>>().join(" ");
    let names: Vec<_> = operations.iter().map(|operation| name_of(operation)).collect();
    Graph {
        read: sum(&read),
        written: sum(&written),
        detail: format!("{}: {} -> {}", names.join(" + "), list(&read), list(&written)),
    }
}

/// What people call an operation.
fn name_of(operation: &Descriptor) -> String {
    let name = match operation.kind() {
        13 => {
            let mode = operation
                .child(attribute::POINTWISE_PW_DESCRIPTOR)
                .and_then(|pointwise| pointwise.number(attribute::POINTWISE_MODE));
            return format!("pointwise({})", mode.unwrap_or(-1));
        }
        14 => "statistics",
        19 => "matmul",
        20 => "batch_norm_finalize",
        22 => "reduction",
        23 => "batch_norm_backward_weights",
        25 => "resample_forward",
        26 => "resample_backward",
        27 => "concat",
        28 => "signal",
        29 => "norm_forward",
        30 => "norm_backward",
        31 => "reshape",
        33 => "random",
        35 => "paged_cache_load",
        36 => "block_scale_quantize",
        37 => "block_scale_dequantize",
        42 => "moe_grouped_matmul",
        44 => "diagonal_band_mask",
        45 => "softmax",
        46 => "transpose",
        47 => "slice",
        48 => "moe_grouped_matmul_backward",
        49 => "rope_forward",
        50 => "rope_backward",
        other => return format!("operation({other})"),
    };
    name.to_owned()
}
