//! Graphs as frameworks build them.

use trompe_base::DType;
use trompe_trace::descriptor::{AttentionKind, Convolution, Direction, ImageLayout};

use super::backend::{TYPE_DESCRIPTOR, attribute as a, kind};
use super::*;

const HOPPER: DeviceTraits = DeviceTraits { compute_capability: 90 };
const INT64: i32 = 3;
const DATA_TYPE: i32 = 1;
const BOOLEAN: i32 = 2;
const POINTWISE_MODE: i32 = 14;

/// Builds descriptors the way the frontend does, destroying each once it was copied.
struct Builder {
    dnn: Dnn,
    next_uid: i64,
}

impl Builder {
    fn new() -> Self {
        Self { dnn: Dnn::new(HOPPER), next_uid: 1 }
    }

    fn make(&mut self, kind: i32, attributes: &[(i32, i32, Vec<u8>)]) -> u64 {
        let handle = self.dnn.create_backend(kind).unwrap();
        for (name, type_number, bytes) in attributes {
            self.dnn.set_attribute(handle, *name, *type_number, bytes).unwrap();
        }
        self.dnn.finalize(handle).unwrap();
        for (_, type_number, bytes) in attributes {
            if *type_number == TYPE_DESCRIPTOR {
                for child in bytes.as_chunks::<8>().0 {
                    let _ = self.dnn.destroy_descriptor(u64::from_le_bytes(*child));
                }
            }
        }
        handle
    }

    fn tensor_of(&mut self, dtype: i32, shape: (&[i64], &[i64]), is_virtual: bool, uid: i64) -> u64 {
        self.make(
            kind::TENSOR,
            &[
                (a::TENSOR_DATA_TYPE, DATA_TYPE, dtype.to_le_bytes().to_vec()),
                integers(a::TENSOR_DIMENSIONS, shape.0),
                integers(a::TENSOR_STRIDES, shape.1),
                integers(a::TENSOR_UNIQUE_ID, &[uid]),
                (a::TENSOR_IS_VIRTUAL, BOOLEAN, vec![u8::from(is_virtual)]),
            ],
        )
    }

    fn tensor(&mut self, extents: &[i64], is_virtual: bool) -> (u64, i64) {
        let uid = self.next_uid;
        self.next_uid += 1;
        (self.named(extents, is_virtual, uid), uid)
    }

    fn named(&mut self, extents: &[i64], is_virtual: bool, uid: i64) -> u64 {
        let strides: Vec<i64> =
            (0..extents.len()).map(|index| extents[index + 1..].iter().product()).collect();
        self.tensor_of(9, (extents, &strides), is_virtual, uid)
    }

    fn graph(&mut self, operations: &[u64]) -> u64 {
        self.make(kind::OPERATIONGRAPH, &[children(a::OPERATIONGRAPH_OPS, operations)])
    }

    /// The plan of a graph with the engine that a heuristic of the given mode proposes at `index`.
    fn plan(&mut self, graph: u64, mode: i32, index: usize) -> u64 {
        let heuristic = self.make(
            4,
            &[
                (a::ENGINEHEUR_MODE, 8, mode.to_le_bytes().to_vec()),
                children(a::ENGINEHEUR_OPERATION_GRAPH, &[graph]),
            ],
        );
        let count = self.dnn.get_attribute(heuristic, a::ENGINEHEUR_RESULTS, 0, &[]).unwrap().count;
        let places: Vec<u64> =
            (0..count).map(|_| self.dnn.create_backend(kind::ENGINECFG).unwrap()).collect();
        self.dnn.get_attribute(heuristic, a::ENGINEHEUR_RESULTS, count, &places).unwrap();
        self.make(kind::EXECUTION_PLAN, &[children(a::EXECUTION_PLAN_ENGINE_CONFIG, &places[index..=index])])
    }

    fn matmul(&mut self, operands: [u64; 3]) -> u64 {
        let settings = self.make(18, &[(a::MATMUL_COMP_TYPE, DATA_TYPE, 0_i32.to_le_bytes().to_vec())]);
        self.make(
            kind::OPERATION_MATMUL,
            &[
                children(a::MATMUL_DESC, &[settings]),
                children(a::MATMUL_ADESC, &operands[..1]),
                children(a::MATMUL_BDESC, &operands[1..2]),
                children(a::MATMUL_CDESC, &operands[2..]),
            ],
        )
    }

    fn pointwise(&mut self, mode: i32, operands: &[(i32, u64)]) -> u64 {
        let settings = self.make(0, &[(a::POINTWISE_MODE, POINTWISE_MODE, mode.to_le_bytes().to_vec())]);
        let mut attributes = vec![children(a::POINTWISE_PW_DESCRIPTOR, &[settings])];
        attributes.extend(operands.iter().map(|(name, tensor)| children(*name, &[*tensor])));
        self.make(kind::OPERATION_POINTWISE, &attributes)
    }
}

fn integers(name: i32, values: &[i64]) -> (i32, i32, Vec<u8>) {
    (name, INT64, values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

fn children(name: i32, handles: &[u64]) -> (i32, i32, Vec<u8>) {
    (name, TYPE_DESCRIPTOR, handles.iter().flat_map(|handle| handle.to_le_bytes()).collect())
}

fn convolution(direction: Direction, dtype: i32, mode: i32, index: usize) -> (Convolution, i64) {
    let mut builder = Builder::new();
    let x = builder.tensor_of(dtype, (&[8, 64, 56, 56], &[64 * 56 * 56, 1, 56 * 64, 64]), false, 1);
    let w = builder.tensor_of(dtype, (&[128, 16, 3, 3], &[16 * 9, 1, 48, 16]), false, 2);
    let y = builder.tensor_of(dtype, (&[8, 128, 28, 28], &[128 * 28 * 28, 1, 28 * 128, 128]), false, 3);
    let parameters = builder.make(
        1,
        &[
            (a::CONVOLUTION_COMP_TYPE, DATA_TYPE, 0_i32.to_le_bytes().to_vec()),
            integers(a::CONVOLUTION_FILTER_STRIDES, &[2, 2]),
            integers(a::CONVOLUTION_PRE_PADDINGS, &[1, 1]),
            integers(a::CONVOLUTION_DILATIONS, &[1, 1]),
        ],
    );
    let (kind, names) = match direction {
        Direction::Forward => (10, [702, 704, 703, 705]),
        Direction::Backward => (12, [708, 710, 709, 711]),
        Direction::WeightGradient => (11, [714, 716, 715, 717]),
    };
    let operands = [parameters, x, w, y];
    let attributes: Vec<_> =
        names.into_iter().zip(operands).map(|(name, handle)| children(name, &[handle])).collect();
    let operation = builder.make(kind, &attributes);
    let graph = builder.graph(&[operation]);
    let plan = builder.plan(graph, mode, index);
    let workspace = builder.dnn.get_attribute(plan, a::EXECUTION_PLAN_WORKSPACE_SIZE, 1, &[]).unwrap().bytes;
    match &*builder.dnn.plan(plan).unwrap() {
        Operation::Convolution(convolution) => {
            (convolution.clone(), i64::from_le_bytes(workspace.try_into().unwrap()))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn convolutions_have_the_forward_shape_in_every_direction() {
    for direction in [Direction::Forward, Direction::Backward, Direction::WeightGradient] {
        let (found, _) = convolution(direction, 9, 0, 0);
        let expected = Convolution {
            direction,
            batch: 8,
            in_channels: 64,
            out_channels: 128,
            groups: 4,
            input: vec![56, 56],
            output: vec![28, 28],
            kernel: vec![3, 3],
            stride: vec![2, 2],
            padding: vec![1, 1],
            dilation: vec![1, 1],
            dtype: DType::Bf16,
            compute: DType::F32,
            layout: ImageLayout::ChannelsLast,
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn the_engine_chosen_says_whether_tf32_is_meant() {
    let compute = |dtype, mode, index| convolution(Direction::Forward, dtype, mode, index).0.compute;
    assert_eq!(compute(0, 0, 0), DType::Tf32);
    assert_eq!(compute(0, 2, 0), DType::Tf32);
    assert_eq!(compute(0, 2, 1), DType::F32);
    assert_eq!(compute(9, 0, 0), DType::F32);
}

#[test]
fn a_workspace_holds_what_the_rule_says() {
    let w = 128 * 16 * 9;
    assert_eq!(convolution(Direction::Forward, 9, 0, 0).1, 0);
    assert_eq!(convolution(Direction::WeightGradient, 9, 0, 0).1, w * 4);
    assert_eq!(convolution(Direction::WeightGradient, 0, 0, 0).1, 0);
    let nchw =
        Convolution { layout: ImageLayout::ChannelsFirst, ..convolution(Direction::Forward, 9, 0, 0).0 };
    let operands = 8 * 64 * 56 * 56 + 8 * 128 * 28 * 28 + w as u64;
    assert_eq!(workspace::of_convolution(&nchw), operands * 2);
}

/// Attention of 2 sequences, 8 query and 4 key heads, spelt out as the frontend does: around an exponential, or since
/// version 1.20 around a softmax.
fn attention(causal: bool, backward: bool, softmax: bool) -> Operation {
    let mut b = Builder::new();
    let (q, _) = b.tensor(&[2, 8, 128, 64], false);
    let (k, _) = b.tensor(&[2, 4, 64, 256], false);
    let (s, s_uid) = b.tensor(&[2, 8, 128, 256], true);
    let mut operations = vec![b.matmul([q, k, s])];
    let (row, row_uid) = b.tensor(&[2, 8, 128, 256], true);
    let (column, column_uid) = b.tensor(&[2, 8, 128, 256], true);
    let (length, _) = b.tensor(&[2, 1, 1, 1], false);
    let (mask, _) = b.tensor(&[2, 8, 128, 256], true);
    let s = b.named(&[2, 8, 128, 256], true, s_uid);
    operations.push(b.pointwise(501, &[(a::POINTWISE_XDESC, s), (a::POINTWISE_YDESC, row)]));
    let s = b.named(&[2, 8, 128, 256], true, s_uid);
    operations.push(b.pointwise(501, &[(a::POINTWISE_XDESC, s), (a::POINTWISE_YDESC, column)]));
    let left = b.named(&[2, 8, 128, 256], true, row_uid);
    let right = if causal { b.named(&[2, 8, 128, 256], true, column_uid) } else { length };
    let compared = [(a::POINTWISE_XDESC, left), (a::POINTWISE_BDESC, right), (a::POINTWISE_YDESC, mask)];
    operations.push(b.pointwise(303, &compared));
    let s = b.named(&[2, 8, 128, 256], true, s_uid);
    let (p, p_uid) = b.tensor(&[2, 8, 128, 256], true);
    operations.push(if softmax {
        b.make(kind::OPERATION_SOFTMAX, &[children(3100, &[s]), children(3101, &[p])])
    } else {
        b.pointwise(13, &[(a::POINTWISE_XDESC, s), (a::POINTWISE_YDESC, p)])
    });
    if backward {
        // dV = pᵀ · dO, dP = dO · vᵀ, dQ = dS · k, dK = dSᵀ · q.
        for (extents, inner) in [
            ([[2, 8, 256, 128], [2, 8, 128, 32], [2, 8, 256, 32]], [true, false, false]),
            ([[2, 8, 128, 32], [2, 4, 32, 256], [2, 8, 128, 256]], [false, false, true]),
            ([[2, 8, 128, 256], [2, 4, 256, 64], [2, 8, 128, 64]], [true, false, false]),
            ([[2, 8, 256, 128], [2, 8, 128, 64], [2, 8, 256, 64]], [true, false, false]),
        ] {
            let operands = [0, 1, 2].map(|index| b.tensor(&extents[index], inner[index]).0);
            operations.push(b.matmul(operands));
        }
    } else {
        let p = b.named(&[2, 8, 128, 256], true, p_uid);
        let (v, _) = b.tensor(&[2, 4, 256, 32], false);
        let (o, _) = b.tensor(&[2, 8, 128, 32], false);
        operations.push(b.matmul([p, v, o]));
    }
    let graph = b.graph(&operations);
    let plan = b.plan(graph, 3, 0);
    (*b.dnn.plan(plan).unwrap()).clone()
}

#[test]
fn attention_is_recognised() {
    let cases = [(false, false, false), (true, false, false), (false, true, false), (true, true, false)];
    for (causal, backward, softmax) in cases.into_iter().chain([(true, false, true)]) {
        let expected = Attention {
            direction: if backward { Direction::Backward } else { Direction::Forward },
            kind: AttentionKind::Cudnn,
            batch: 2,
            heads: 8,
            kv_heads: 4,
            seq_q: 128,
            seq_kv: 256,
            head_dim: 64,
            head_dim_v: 32,
            causal,
            dropout: false,
            dtype: DType::Bf16,
        };
        assert_eq!(attention(causal, backward, softmax), Operation::Attention(expected));
    }
}

#[test]
fn the_fused_operation_is_recognised_with_its_mask() {
    for (comparison, causal) in [(303, true), (304, false)] {
        let mut b = Builder::new();
        let (scores, _) = b.tensor(&[2, 8, 128, 256], true);
        let (masked, _) = b.tensor(&[2, 8, 128, 256], true);
        let mask = b.make(
            kind::DIAGONAL_BAND_MASK,
            &[
                children(3000, &[scores]),
                children(3006, &[masked]),
                (
                    a::DIAGONAL_BAND_MASK_COMPARISON_MODE,
                    POINTWISE_MODE,
                    i32::to_le_bytes(comparison).to_vec(),
                ),
            ],
        );
        let subgraph = b.graph(&[mask]);
        let [q, k, v] =
            [[2, 8, 128, 64], [2, 4, 256, 64], [2, 4, 256, 32]].map(|extents| b.tensor(&extents, false).0);
        let operation = b.make(
            kind::SDPA_FWD,
            &[
                children(a::SDPA_FWD_QDESC, &[q]),
                children(a::SDPA_FWD_KDESC, &[k]),
                children(a::SDPA_FWD_VDESC, &[v]),
                children(2811, &[subgraph]),
            ],
        );
        let graph = b.graph(&[operation]);
        let plan = b.plan(graph, 3, 0);
        let Operation::Attention(found) = &*b.dnn.plan(plan).unwrap() else { panic!("no attention") };
        assert_eq!((found.heads, found.kv_heads, found.seq_q, found.seq_kv), (8, 4, 128, 256));
        assert_eq!((found.head_dim, found.head_dim_v, found.causal), (64, 32, causal));
    }
}

#[test]
fn a_lone_product_is_a_gemm_and_other_graphs_keep_their_bytes() {
    let mut b = Builder::new();
    let operands = [[4, 16, 32], [4, 32, 8], [4, 16, 8]].map(|extents| b.tensor(&extents, false).0);
    let product = b.matmul(operands);
    let graph = b.graph(&[product]);
    let plan = b.plan(graph, 0, 0);
    let Operation::Gemm(gemm) = &*b.dnn.plan(plan).unwrap() else { panic!("no product") };
    assert_eq!((gemm.m, gemm.n, gemm.k, gemm.batch), (8, 16, 32, 4));
    assert_eq!((gemm.transpose_a, gemm.transpose_b, gemm.leading), (false, false, [8, 32, 8]));

    let (x, _) = b.tensor(&[4, 100], false);
    let (inside, inside_uid) = b.tensor(&[4, 100], true);
    let first = b.pointwise(100, &[(a::POINTWISE_XDESC, x), (a::POINTWISE_YDESC, inside)]);
    let inside = b.named(&[4, 100], true, inside_uid);
    let (y, _) = b.tensor(&[4, 100], false);
    let second = b.pointwise(16, &[(a::POINTWISE_XDESC, inside), (a::POINTWISE_YDESC, y)]);
    let graph = b.graph(&[first, second]);
    let plan = b.plan(graph, 0, 0);
    let Operation::Graph(graph) = &*b.dnn.plan(plan).unwrap() else { panic!("no graph") };
    assert_eq!((graph.read, graph.written), (800, 800));
    assert_eq!(graph.detail, "pointwise(100) + pointwise(16): bf16[4, 100] -> bf16[4, 100]");
}

#[test]
fn answers_that_the_frontend_relies_on() {
    let mut b = Builder::new();
    let configuration = b.dnn.create_backend(kind::ENGINECFG).unwrap();
    let ask = |b: &mut Builder, name| b.dnn.get_attribute(configuration, name, 1, &[]).unwrap();
    assert_eq!(ask(&mut b, a::ENGINECFG_SHARED_MEMORY_USED).count, 1);
    assert_eq!(ask(&mut b, a::ENGINE_KNOB_INFO).count, 0);
    assert_eq!(ask(&mut b, a::EXECUTION_PLAN_JSON_REPRESENTATION).bytes, b"{}\0");
    let tensor = b.named(&[2, 3], false, 5);
    assert_eq!(b.dnn.get_attribute(tensor, a::TENSOR_DIMENSIONS, 1, &[]).unwrap().count, 2);
    assert_eq!(b.dnn.get_attribute(tensor, a::TENSOR_DIMENSIONS, 9, &[]).unwrap().bytes.len(), 16);
    assert_eq!(b.dnn.create_backend(999), Err(DnnError::NotSupported));
    b.dnn.destroy_descriptor(tensor).unwrap();
    assert_eq!(b.dnn.get_attribute(tensor, a::TENSOR_DIMENSIONS, 1, &[]), Err(DnnError::BadParameter));
    assert_eq!(b.dnn.plan(configuration), Err(DnnError::NotFinalized));
}
