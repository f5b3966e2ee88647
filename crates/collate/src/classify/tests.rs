//! Classification cases as data: `cases.txt` holds real kernel names, the parameters and the operator of a launch,
//! and what it comes to. A failure prints every line as it would have to be.

use std::collections::BTreeMap;

use trompe_base::DType;
use trompe_testkit::values::{encode, strided, tensor};
use trompe_trace::descriptor::Descriptor as D;
use trompe_trace::values::Value;

use super::{Kernel, describe};
use crate::kernel::{Name, Parameters, short};
use crate::memory::Live;
use crate::operator::{Context, Frame, FrameKind};

#[test]
fn launches_are_described() {
    let (mut kernel, mut wrong) = ("", String::new());
    for line in include_str!("cases.txt").lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("kernel ") {
            kernel = name;
        } else if let [parameters, operator, expect] = line.trim().split(" ; ").collect::<Vec<_>>()[..] {
            let found = described(kernel, parameters, operator);
            if found != expect {
                wrong += &format!("  {parameters} ; {operator} ; {found}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "these lines are not as expected; they come to:\n{wrong}");
}

/// Describes one launch as `short name: family numbers`.
fn described(mangled: &str, parameters: &str, operator: &str) -> String {
    let name = Name::parse(mangled);
    let values: Vec<Vec<u8>> =
        if parameters == "-" { vec![] } else { parameters.split(' ').map(parameter).collect() };
    let sizes: Vec<u16> = values.iter().map(|p| p.len() as u16).collect();
    let values = values.concat();
    let operator = (operator != "-").then(|| Operator::parse(operator));
    let frames: Vec<_> = operator.iter().map(Operator::frame).collect();
    let context = Context::new(&frames, (!frames.is_empty()).then_some(0));
    let kernel = Kernel {
        name: &name,
        parameters: Parameters::new(&sizes, &values),
        grid: [108, 1, 1],
        block: [256, 1, 1],
        shared: 0,
        registers: 32,
        from_module: false,
        code: None,
        context: &context,
        allocation: &Live::default(),
    };
    format!("{}: {}", short::short_name(&name), numbers(&describe(&kernel)))
}

/// The bytes of one parameter.
fn parameter(text: &str) -> Vec<u8> {
    if let Some((kind, rest)) = text.split_once(':') {
        let (kind, number) = kind.split_at(kind.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        let numbers = |text: &str| text.split(',').map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
        return match kind {
            "info" => tensor_info(&numbers(rest)),
            "words" => {
                let (size, rest) = rest.split_once(':').unwrap();
                let mut bytes: Vec<u8> =
                    numbers(rest).iter().flat_map(|n| (*n as u32).to_le_bytes()).collect();
                bytes.resize(size.parse().unwrap(), 0);
                bytes
            }
            "cat" => {
                let (size, rest) = rest.split_once(':').unwrap();
                let mut bytes = vec![0; 2048];
                bytes.extend(numbers(rest).iter().flat_map(|n| (*n as u32).to_le_bytes()));
                bytes.resize(size.parse().unwrap(), 0);
                bytes
            }
            "flash" => {
                let (size, rest) = rest.split_once(':').unwrap();
                flash(size.parse().unwrap(), &numbers(rest))
            }
            _ => lists(kind, number.parse().unwrap(), &numbers(rest)),
        };
    }
    let (kind, number) = text.split_at(1);
    match kind {
        "i" => number.parse::<i32>().unwrap().to_le_bytes().to_vec(),
        "l" => number.parse::<i64>().unwrap().to_le_bytes().to_vec(),
        _ => vec![0; number.parse().unwrap()],
    }
}

/// `TensorInfo<T, unsigned>`: address, 25 sizes, 25 strides, dimensions.
fn tensor_info(sizes: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; 216];
    for (index, size) in sizes.iter().enumerate() {
        bytes[8 + 4 * index..12 + 4 * index].copy_from_slice(&(*size as u32).to_le_bytes());
    }
    bytes[208..212].copy_from_slice(&(sizes.len() as u32).to_le_bytes());
    bytes
}

/// `Flash_fwd_params` or `Flash_bwd_params`: batch, heads, key heads, query and key length, width.
fn flash(size: usize, numbers: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (at, number) in [176, 96, 100, 180, 184, 192].into_iter().zip(numbers) {
        bytes[at..at + 4].copy_from_slice(&(*number as u32).to_le_bytes());
    }
    bytes
}

/// Metadata of tensor lists with the given element counts: CUDA 13 layout, one block per chunk in order.
fn lists(kind: &str, depth: usize, counts: &[u64]) -> Vec<u8> {
    let tensors =
        if kind == "scalars" { [672, 448, 336, 252, 210] } else { [770, 448, 336, 252, 210] }[depth - 1];
    let mut bytes = vec![0; depth * tensors * 8];
    let mut all = counts.to_vec();
    all.resize(tensors, 0);
    bytes.extend(all.iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend(vec![
        0;
        tensors
            * match kind {
                "list" => 0,
                "scalars" => 4,
                _ => 8,
            }
    ]);
    let blocks: Vec<(u16, i32)> = (0u16..)
        .zip(counts)
        .flat_map(|(tensor, count)| (0..count.div_ceil(65536) as i32).map(move |chunk| (tensor, chunk)))
        .collect();
    // Launches of these tests have 108 blocks: those past the end work on an empty tensor.
    let block = |index: usize| blocks.get(index).copied().unwrap_or((counts.len() as u16, 0));
    bytes.extend((0..2240).flat_map(|index| block(index).0.to_le_bytes()));
    bytes.extend((0..2240).flat_map(|index| block(index).1.to_le_bytes()));
    if kind != "scalars" {
        bytes.extend([0; 4]);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// `name(inputs) -> outputs`.
struct Operator<'t> {
    name: &'t str,
    inputs: Vec<u8>,
    outputs: Vec<u8>,
}

impl<'t> Operator<'t> {
    fn parse(text: &'t str) -> Self {
        let (call, outputs) = text.split_once(" ->").unwrap();
        let (name, inputs) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
        let mut reader = Reader { addresses: BTreeMap::new(), tensors: 0 };
        let inputs = encode(&reader.values(&mut inputs.split_whitespace()));
        Self { name, inputs, outputs: encode(&reader.values(&mut outputs.split_whitespace())) }
    }

    fn frame(&self) -> Frame<'_> {
        Frame {
            name: self.name,
            kind: FrameKind::Operator,
            parent: None,
            inputs: &self.inputs,
            outputs: &self.outputs,
            phase: trompe_trace::job::Phase::Forward,
            range: None,
            begin: 0,
            recording: false,
        }
    }
}

/// Reads values; `@n` names an address that several tensors share.
struct Reader<'t> {
    addresses: BTreeMap<&'t str, u64>,
    tensors: u64,
}

impl<'t> Reader<'t> {
    fn values(&mut self, words: &mut dyn Iterator<Item = &'t str>) -> Vec<Value> {
        let mut values = Vec::new();
        while let Some(word) = words.next() {
            if let Some(first) = word.strip_prefix('{') {
                let mut list = vec![first];
                while !list.last().unwrap().ends_with('}') {
                    list.push(words.next().unwrap());
                }
                *list.last_mut().unwrap() = list.last().unwrap().strip_suffix('}').unwrap();
                values.push(Value::List(self.values(&mut list.into_iter())));
            } else {
                values.push(self.value(word));
            }
        }
        values
    }

    fn value(&mut self, word: &'t str) -> Value {
        match word {
            "none" => Value::None,
            "true" | "false" => Value::Bool(word == "true"),
            _ if word.starts_with('\'') => Value::Text(word.trim_matches('\'').to_owned()),
            _ if word.contains('[') => self.tensor(word),
            _ => word.parse().map(Value::Int).unwrap_or_else(|_| Value::Float(word.parse().unwrap())),
        }
    }

    /// `bf16[sizes]`, `bf16[sizes|strides]`, `cpu:bf16[sizes]`, each with `@n` or an address of its own.
    fn tensor(&mut self, word: &'t str) -> Value {
        let (shape, shared) = word.split_once('@').unwrap_or((word, ""));
        self.tensors += 1;
        let own = 4096 * self.tensors;
        let address = if shared.is_empty() { own } else { *self.addresses.entry(shared).or_insert(own) };
        let (dtype, dims) = shape.strip_suffix(']').unwrap().split_once('[').unwrap();
        let (host, dtype) = dtype.strip_prefix("cpu:").map_or((false, dtype), |dtype| (true, dtype));
        let dtype = match dtype {
            "f32" => DType::F32,
            "f16" => DType::F16,
            "bf16" => DType::Bf16,
            "i64" => DType::I64,
            "i32" => DType::I32,
            _ => DType::Bool,
        };
        let numbers = |text: &str| -> Vec<u64> { text.split(',').filter_map(|n| n.parse().ok()).collect() };
        let mut value = match dims.split_once('|') {
            Some((sizes, strides)) => {
                let strides: Vec<i64> = numbers(strides).iter().map(|n| *n as i64).collect();
                strided(dtype, &numbers(sizes), &strides, address)
            }
            None => tensor(dtype, &numbers(dims), address),
        };
        if let (Value::Tensor(tensor), true) = (&mut value, host) {
            tensor.on_device = false;
        }
        value
    }
}

/// The numbers of a descriptor: sizes, bytes read, bytes written.
fn numbers(descriptor: &D) -> String {
    let family = descriptor.family();
    let (sizes, work) = match descriptor {
        D::Elementwise(e) => {
            (format!("{} {}{}", e.elements, e.dtype, if e.vectorized { " vector" } else { "" }), e.work)
        }
        D::Reduction(r) => (format!("{} to {} {}", r.inputs, r.outputs, r.dtype), r.work),
        D::Optimizer(o) => (format!("{} in {} lists {}", o.elements, o.lists, o.dtype), o.work),
        D::Normalization(n) => {
            (format!("{:?} {:?} {}x{} {}", n.kind, n.direction, n.rows, n.cols, n.dtype), n.work)
        }
        D::Softmax(r) | D::CrossEntropy(r) => {
            (format!("{:?} {}x{} {}", r.direction, r.rows, r.cols, r.dtype), r.work)
        }
        D::Embedding(e) => {
            (format!("{:?} {}x{} of {} {}", e.direction, e.tokens, e.width, e.rows, e.dtype), e.work)
        }
        D::Indexing(i) => (format!("{} {}", i.elements, i.dtype), i.work),
        D::Sort(s) => (format!("{} {}", s.elements, s.dtype), s.work),
        D::Stencil(w) => (String::new(), *w),
        D::Attention(a) => {
            let shape =
                format!("{}x{}/{}x{}x{}x{}", a.batch, a.heads, a.kv_heads, a.seq_q, a.seq_kv, a.head_dim);
            let flags = format!(
                "{}{}",
                if a.causal { " causal" } else { "" },
                if a.dropout { " dropout" } else { "" }
            );
            return format!("{family} {:?} {:?} {shape} {}{flags}", a.kind, a.direction, a.dtype);
        }
        D::Other(o) => (format!("{}x{}", o.blocks, o.threads), o.work),
        other => (format!("{other:?}"), Default::default()),
    };
    format!("{family} {sizes} r{} w{}", work.read.0, work.written.0)
}
