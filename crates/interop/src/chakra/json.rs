//! The same traces as JSON: Chakra's `workload_graph`, and what PyTorch's `ExecutionTraceObserver` writes.
//!
//! PyTorch's traces know shapes but no times. Their operators at the bottom of the call tree that touch a device's tensors
//! become device operations: matrix products by their shapes, everything else by the bytes of its tensors; operators that only
//! make a view are left out, and the host takes no time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use trompe_base::{Bytes, DType, Flops};
use trompe_trace::descriptor::{Descriptor, Epilogue, Gemm, Other, Work};

use super::import::Graph;
use super::wire::{Node, NodeType, Value, attribute};

/// Why a text is no such trace.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Not JSON.
    #[error("is no JSON: {0}; is the file complete?")]
    Syntax(#[from] serde_json::Error),
    /// JSON of another kind.
    #[error("has neither `nodes` (PyTorch's execution trace) nor `workload_graph` (Chakra){hint}")]
    Other {
        /// What it seems to be.
        hint: &'static str,
    },
    /// A node without a number.
    #[error("node {index} has no `{key}`")]
    Missing {
        /// Which, from 0.
        index: usize,
        /// What is missing.
        key: &'static str,
    },
}

/// Reads a trace; also the members of process groups that it states.
///
/// # Errors
/// When the text is no such trace.
pub fn read_json(text: &str) -> Result<(Graph, BTreeMap<String, Vec<u32>>), JsonError> {
    let value: Json = serde_json::from_str(text)?;
    if let Some(nodes) = value.get("workload_graph").and_then(Json::as_array) {
        let nodes =
            nodes.iter().enumerate().map(|(index, node)| workload(index, node)).collect::<Result<_, _>>()?;
        return Ok((Graph { nodes, ..Graph::default() }, BTreeMap::new()));
    }
    if let Some(nodes) = value.get("nodes").and_then(Json::as_array) {
        return pytorch(nodes);
    }
    let hint = if value.get("traceEvents").is_some() {
        ": it is a profiler's trace, which is read as Kineto"
    } else {
        ""
    };
    Err(JsonError::Other { hint })
}

fn get<'a>(node: &'a Json, names: &[&str]) -> Option<&'a Json> {
    names.iter().find_map(|name| node.get(name))
}

fn numbers(value: Option<&Json>) -> Vec<u64> {
    match value {
        Some(Json::Array(list)) => list.iter().filter_map(Json::as_u64).collect(),
        Some(Json::Number(number)) => number.as_u64().into_iter().collect(),
        _ => Vec::new(),
    }
}

fn workload(index: usize, node: &Json) -> Result<Node, JsonError> {
    let id =
        get(node, &["Id", "id"]).and_then(Json::as_u64).ok_or(JsonError::Missing { index, key: "Id" })?;
    let kind = get(node, &["NodeType", "type"]).and_then(Json::as_i64).unwrap_or(4) as i32;
    let mut attributes = Vec::new();
    let on_processor = get(node, &["is_cpu_op"]).and_then(Json::as_bool).unwrap_or(false);
    attributes.push(attribute("is_cpu_op", Value::Bool(on_processor)));
    for name in ["comm_type", "comm_size", "comm_src", "comm_dst", "stream", "tensor_size", "num_ops"] {
        if let Some(number) = node.get(name).and_then(Json::as_i64) {
            attributes.push(attribute(name, Value::Int64(number)));
        }
    }
    if let Some(name) = node.get("pg_name").and_then(Json::as_str) {
        attributes.push(attribute("pg_name", Value::Text(name.to_owned())));
    }
    Ok(Node {
        id,
        name: get(node, &["Name", "name"]).and_then(Json::as_str).unwrap_or_default().to_owned(),
        kind,
        control: numbers(get(node, &["ctrlDeps", "ctrl_deps"])),
        data: numbers(get(node, &["data_deps", "dataDeps"])),
        duration_micros: get(node, &["runtime", "duration_micros"]).and_then(Json::as_u64).unwrap_or(0),
        attributes,
        ..Node::default()
    })
}

/// Operators that make a view, or memory without content.
const VIEWS: [&str; 24] = [
    "view",
    "reshape",
    "as_strided",
    "expand",
    "permute",
    "transpose",
    "t",
    "unsqueeze",
    "squeeze",
    "slice",
    "select",
    "narrow",
    "split",
    "chunk",
    "detach",
    "alias",
    "unbind",
    "empty",
    "empty_strided",
    "empty_like",
    "flatten",
    "resize_",
    "_unsafe_view",
    "set_",
];

fn pytorch(nodes: &[Json]) -> Result<(Graph, BTreeMap<String, Vec<u32>>), JsonError> {
    let mut graph = Graph::default();
    let mut groups = BTreeMap::new();
    let parent = |node: &Json| get(node, &["ctrl_deps", "parent"]).and_then(Json::as_u64);
    let is_operator = |node: &Json| {
        let name = node.get("name").and_then(Json::as_str).unwrap_or_default();
        name.contains("::") || name == "record_param_comms"
    };
    let callers: BTreeSet<u64> = nodes.iter().filter(|node| is_operator(node)).filter_map(parent).collect();
    let mut last = None;
    for (index, node) in nodes.iter().enumerate() {
        let id = node.get("id").and_then(Json::as_u64).ok_or(JsonError::Missing { index, key: "id" })?;
        let name = node.get("name").and_then(Json::as_str).unwrap_or_default();
        if name.starts_with("## process_group:init") {
            group_members(node, &mut groups);
            continue;
        }
        if !is_operator(node) {
            continue;
        }
        let found = if name == "record_param_comms" {
            communication(node)
        } else if callers.contains(&id) || VIEWS.iter().any(|view| name.strip_prefix("aten::") == Some(view))
        {
            None
        } else {
            operator(name, node).map(|descriptor| {
                graph.described.insert(id, descriptor);
                (NodeType::Compute, Vec::new())
            })
        };
        let Some((kind, mut attributes)) = found else { continue };
        attributes.push(attribute("is_cpu_op", Value::Bool(false)));
        // One stream each; communication waits for what came before it, and what follows waits for communication.
        let data = Vec::from_iter(last);
        last = Some(id);
        graph.nodes.push(Node {
            id,
            name: name.to_owned(),
            kind: kind.into(),
            data,
            attributes,
            ..Node::default()
        });
    }
    Ok((graph, groups))
}

fn group_members(node: &Json, groups: &mut BTreeMap<String, Vec<u32>>) {
    let values = node.pointer("/inputs/values/0").or_else(|| node.pointer("/inputs/0"));
    let list: Option<Vec<Json>> =
        values.and_then(Json::as_str).and_then(|text| serde_json::from_str(text).ok());
    for group in list.unwrap_or_default() {
        let Some(name) = group.get("pg_name").and_then(Json::as_str) else { continue };
        let ranks =
            numbers(group.get("ranks")).into_iter().filter_map(|rank| u32::try_from(rank).ok()).collect();
        groups.insert(name.to_owned(), ranks);
    }
}

/// The tensors of a side (`inputs`, `outputs`): bytes on a device, shapes and types.
struct Tensors {
    bytes: u64,
    shapes: Vec<Vec<u64>>,
    element: Option<DType>,
}

fn tensors(node: &Json, side: &str, shapes: &str, types: &str) -> Tensors {
    let part = |old: &str, new: &str| {
        node.get(side)
            .and_then(|values| values.get(new))
            .or_else(|| node.get(old))
            .cloned()
            .unwrap_or_default()
    };
    let values = match node.get(side) {
        Some(Json::Array(list)) => Json::Array(list.clone()),
        _ => part(side, "values"),
    };
    let (shapes, types) = (part(shapes, "shapes"), part(types, "types"));
    let mut found = Tensors { bytes: 0, shapes: Vec::new(), element: None };
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    for ((value, shape), kind) in list(&values).iter().zip(list(&shapes)).zip(list(&types)) {
        device_bytes(value, &mut found.bytes);
        let kind = kind.as_str().unwrap_or_default();
        if kind.starts_with("Tensor(") {
            found.shapes.push(numbers(Some(&shape)));
            found.element = found.element.or(element(kind));
        }
    }
    found
}

/// Tensors are `[id, storage, offset, elements, bytes per element, device]`; lists of them nest.
fn device_bytes(value: &Json, sum: &mut u64) {
    let Some(list) = value.as_array() else { return };
    match list.as_slice() {
        [_, _, _, count, size, device]
            if device.as_str().is_some_and(|device| device.starts_with("cuda")) =>
        {
            *sum += count.as_u64().unwrap_or(0).saturating_mul(size.as_u64().unwrap_or(0));
        }
        list => list.iter().for_each(|value| device_bytes(value, sum)),
    }
}

fn element(kind: &str) -> Option<DType> {
    let kind = kind.trim_start_matches("Tensor(").trim_end_matches(')');
    Some(match kind {
        "float" => DType::F32,
        "double" => DType::F64,
        "c10::Half" => DType::F16,
        "c10::BFloat16" => DType::Bf16,
        _ => return None,
    })
}

fn operator(name: &str, node: &Json) -> Option<Descriptor> {
    let inputs = tensors(node, "inputs", "input_shapes", "input_types");
    let outputs = tensors(node, "outputs", "output_shapes", "output_types");
    if inputs.bytes + outputs.bytes == 0 {
        return None;
    }
    let matrices: Option<[&Vec<u64>; 2]> = match (name, inputs.shapes.as_slice()) {
        ("aten::mm" | "aten::bmm" | "aten::matmul", [a, b, ..])
        | ("aten::addmm" | "aten::baddbmm", [_, a, b, ..]) => Some([a, b]),
        _ => None,
    };
    let element = inputs.element.or(outputs.element).unwrap_or(DType::F32);
    if let Some([a, b]) = matrices
        && let (&[ref batch @ .., m, k], &[.., n]) = (a.as_slice(), b.as_slice())
    {
        return Some(Descriptor::Gemm(Gemm {
            m,
            n,
            k,
            batch: batch.iter().product::<u64>().max(1),
            transpose_a: false,
            transpose_b: false,
            a: element,
            b: element,
            c: element,
            compute: DType::F32,
            epilogue: Epilogue::default(),
            accumulate: false,
            leading: [0; 3],
            strides: [0; 3],
        }));
    }
    let work = Work { read: Bytes(inputs.bytes), written: Bytes(outputs.bytes), flops: Flops(0) };
    Some(Descriptor::Other(Other { work, blocks: (outputs.bytes / 4096).max(1), threads: 256 }))
}

/// A collective's node: kind and attributes.
fn communication(node: &Json) -> Option<(NodeType, Vec<super::wire::Attribute>)> {
    let values = node.pointer("/inputs/values").or_else(|| node.get("inputs"))?.as_array()?.clone();
    let name = values.iter().filter_map(Json::as_str).find(|text| code_of(text).is_some())?;
    let code = code_of(name)?;
    let inputs = tensors(node, "inputs", "input_shapes", "input_types");
    let mut bytes = 0;
    values.iter().for_each(|value| device_bytes(value, &mut bytes));
    let bytes = bytes.max(inputs.bytes);
    let attributes = vec![
        attribute("comm_type", Value::Int64(code)),
        attribute("comm_size", Value::Int64(i64::try_from(bytes).unwrap_or(i64::MAX))),
    ];
    (bytes > 0).then_some((NodeType::Collective, attributes))
}

fn code_of(name: &str) -> Option<i64> {
    Some(match name {
        "all_reduce" | "allreduce" => 0,
        "reduce" => 1,
        "all_gather" | "allgather" | "_allgather_base" | "all_gather_into_tensor" => 2,
        "gather" => 3,
        "scatter" => 4,
        "broadcast" => 5,
        "all_to_all" | "all_to_allv" | "alltoall" | "alltoall_base" => 6,
        "reduce_scatter" | "_reduce_scatter_base" | "reduce_scatter_tensor" => 7,
        _ => return None,
    })
}
