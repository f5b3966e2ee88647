//! From a profiler's trace to measured operations.
//!
//! Each kernel is described as one of an emulated run would be (`trompe_collate::profiled`). Several kernels that one call
//! of a library launches (a product with its split-k sum, a convolution with its changes of layout) are one operation, as
//! in an emulated run, which sees the call. Collectives are left out: their time is waiting for others, too.

use std::collections::{BTreeMap, BTreeSet};

use trompe_base::Bytes;
use trompe_collate::profiled::{self, Launched, Part};
use trompe_interop::kineto::{DeviceEvent, DeviceEventKind, KinetoTrace, Operator, Shape};
use trompe_trace::descriptor::{Copy, Descriptor, Place, Set};
use trompe_trace::values::Value;

/// One measured operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Observed {
    /// Name for people.
    pub(crate) kernel: String,
    /// Grid and block; `None` for calls of libraries, copies and fills.
    pub(crate) launch: Option<super::Geometry>,
    /// What it computes, as well as is known.
    pub(crate) descriptor: Descriptor,
    /// Whether that is known in full.
    pub(crate) exact: bool,
    /// What tells it from others in the order of a step: the family of a library's call, else the kernel's base name.
    pub(crate) class: String,
    pub(crate) seconds: f64,
    /// The profiler's step that launched it.
    pub(crate) step: Option<u64>,
}

/// What of a trace was not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Kernels of collectives.
    pub collectives: u64,
    /// Kernels, copies and fills whose duration is zero or negative.
    pub without_time: u64,
    /// Helper kernels of a library with no call to belong to.
    pub stray: u64,
    /// Copies and fills whose size was not recorded.
    pub without_size: u64,
}

/// Where a kernel belongs: its operator and the part of that; changes with every call.
type CallKey = (usize, Part);

/// The measured operations of `trace`, in order of launch.
pub(crate) fn observe(trace: &KinetoTrace) -> (Vec<Observed>, Skipped) {
    let (launches, parents) = (trace.launches(), trace.parents());
    let busy = busy(trace, &launches, &parents);
    let steps = trace.steps();
    let results = results(trace);
    let mut operators =
        Operators { trace, parents: &parents, busy: &busy, results: &results, known: BTreeMap::new() };
    let (mut found, mut skipped) = (Vec::<Observed>::new(), Skipped::default());
    let mut calls = BTreeMap::<CallKey, usize>::new();
    // Time of helpers that waits for the kernel they help.
    let mut waiting = BTreeMap::<usize, f64>::new();
    for (event, launch) in trace.device_events.iter().zip(&launches) {
        let seconds = event.duration_ns as f64 * 1e-9;
        if event.kind != DeviceEventKind::Synchronization && event.duration_ns == 0 {
            skipped.without_time += 1;
            continue;
        }
        let at = launch.call.map_or(event.start_ns, |call| trace.runtime_calls[call].start_ns);
        let step = steps.iter().find(|step| {
            (step.start_ns..step.start_ns.saturating_add_unsigned(step.duration_ns)).contains(&at)
        });
        let step = step.map(|step| step.number);
        match event.kind {
            DeviceEventKind::Synchronization => {}
            DeviceEventKind::Copy | DeviceEventKind::Fill => match moved(event) {
                Some(descriptor) => {
                    let kernel =
                        if event.kind == DeviceEventKind::Fill { "memset" } else { "copy" }.to_owned();
                    let class = descriptor.family().to_owned();
                    found.push(Observed {
                        kernel,
                        launch: None,
                        descriptor,
                        exact: true,
                        class,
                        seconds,
                        step,
                    });
                }
                None => skipped.without_size += 1,
            },
            DeviceEventKind::Kernel if is_collective(event) => skipped.collectives += 1,
            DeviceEventKind::Kernel => {
                let chain = operators.chain(launch.operator);
                let rows: Vec<usize> = launch.operator.map_or_else(Vec::new, |row| operators.rows(row));
                let launched = launched(event, &chain);
                let part = profiled::part(&launched);
                let row = part.and_then(|(depth, _)| rows.get(depth).copied());
                if let (Some((_, Part::Helper)), Some(row)) = (part, row) {
                    *waiting.entry(row).or_default() += seconds;
                    continue;
                }
                let call = part.zip(row).map(|((_, part), row)| (row, part));
                let helped = row.and_then(|row| waiting.remove(&row)).unwrap_or_default();
                if let Some(first) = call.and_then(|call| calls.get(&call)) {
                    found[*first].seconds += seconds + helped;
                    continue;
                }
                let described = profiled::describe(&launched);
                if let Some(call) = call {
                    calls.insert(call, found.len());
                }
                let class = match (part, row) {
                    (Some((depth, part)), Some(_)) => profiled::family(&chain[depth].name, part).to_owned(),
                    _ => base(&described.short_name).to_owned(),
                };
                found.push(Observed {
                    kernel: described.short_name,
                    launch: event.grid.zip(event.block).filter(|_| call.is_none()),
                    descriptor: described.descriptor,
                    exact: described.exact,
                    class,
                    seconds: seconds + helped,
                    step,
                });
            }
        }
    }
    skipped.stray = waiting.len() as u64;
    // Events whose times are none: negative durations, text.
    let damaged = ["kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset"];
    skipped.without_time += damaged.iter().filter_map(|kind| trace.skipped.get(*kind)).sum::<u64>();
    (found, skipped)
}

/// A kernel's name without what it works on.
pub(crate) fn base(short_name: &str) -> &str {
    short_name.split('<').next().unwrap_or(short_name)
}

/// Results of convolutions that their gradients tell, by the sizes of input and weight.
fn results(trace: &KinetoTrace) -> BTreeMap<[Vec<i64>; 2], Vec<i64>> {
    let sizes = |operator: &Operator, at: usize| match operator.shapes.get(at) {
        Some(Shape::Tensor(sizes)) if !sizes.is_empty() => Some(sizes.clone()),
        _ => None,
    };
    let one = |operator: &Operator| {
        let [input, weight, result] = profiled::gradient_of(&operator.name)?;
        Some(([sizes(operator, input)?, sizes(operator, weight)?], sizes(operator, result)?))
    };
    trace.operators.iter().filter_map(one).collect()
}

fn launched<'a>(event: &'a DeviceEvent, operators: &'a [profiled::Operator]) -> Launched<'a> {
    Launched {
        name: &event.name,
        grid: event.grid.unwrap_or([0; 3]),
        block: event.block.unwrap_or([0; 3]),
        registers: event.registers.unwrap_or(0),
        shared: event.shared_memory.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0),
        operators,
    }
}

fn is_collective(event: &DeviceEvent) -> bool {
    event.collective.is_some() || event.name.starts_with("nccl") || event.name.starts_with("void nccl")
}

/// A copy or fill by the profiler's name for it (`Memcpy HtoD (Pinned -> Device)`).
fn moved(event: &DeviceEvent) -> Option<Descriptor> {
    let bytes = Bytes(event.bytes.filter(|bytes| *bytes > 0)?);
    if event.kind == DeviceEventKind::Fill {
        return Some(Descriptor::Set(Set { bytes }));
    }
    let host = if event.name.contains("Pinned") { Place::Pinned } else { Place::Pageable };
    let (from, to) = match () {
        () if event.name.contains("HtoD") => (host, Place::Device),
        () if event.name.contains("DtoH") => (Place::Device, host),
        () if event.name.contains("DtoD") => (Place::Device, Place::Device),
        () if event.name.contains("PtoP") => (Place::Device, Place::Peer),
        () => return None,
    };
    Some(Descriptor::Copy(Copy { from, to, bytes }))
}

/// Operators below which a kernel of the framework's own ran, the innermost one not counted.
fn busy(
    trace: &KinetoTrace,
    launches: &[trompe_interop::kineto::Launch],
    parents: &[Option<usize>],
) -> BTreeSet<usize> {
    let own = trace
        .device_events
        .iter()
        .zip(launches)
        .filter(|(event, _)| event.kind == DeviceEventKind::Copy || event.name.contains("at::native::"));
    own.filter_map(|(_, launch)| parents[launch.operator?]).collect()
}

/// Operators of a trace in the words of descriptions, each made once.
struct Operators<'a> {
    trace: &'a KinetoTrace,
    parents: &'a [Option<usize>],
    busy: &'a BTreeSet<usize>,
    results: &'a BTreeMap<[Vec<i64>; 2], Vec<i64>>,
    known: BTreeMap<usize, profiled::Operator>,
}

/// Operators around a kernel that are looked at.
const DEPTH: usize = 6;

impl Operators<'_> {
    /// The rows of an operator and those around it, from the innermost outwards.
    fn rows(&self, row: usize) -> Vec<usize> {
        std::iter::successors(Some(row), |row| self.parents[*row]).take(DEPTH).collect()
    }

    fn chain(&mut self, row: Option<usize>) -> Vec<profiled::Operator> {
        let rows = row.map_or_else(Vec::new, |row| self.rows(row));
        let (trace, busy, results) = (self.trace, self.busy, self.results);
        rows.into_iter()
            .map(|row| {
                let make = || operator(&trace.operators[row], busy.contains(&row), results);
                self.known.entry(row).or_insert_with(make).clone()
            })
            .collect()
    }
}

fn operator(
    operator: &Operator,
    does_more: bool,
    results: &BTreeMap<[Vec<i64>; 2], Vec<i64>>,
) -> profiled::Operator {
    let count = operator.shapes.len().max(operator.types.len());
    let argument = |at: usize| {
        let type_name = operator.types.get(at).map_or("", AsRef::as_ref);
        let stated = operator.values.get(at).map_or("", String::as_str);
        let strides = match operator.strides.get(at) {
            Some(Shape::Tensor(strides)) if !strides.is_empty() => Some(strides.as_slice()),
            _ => None,
        };
        match operator.shapes.get(at) {
            Some(Shape::List(list)) => {
                // Lists of tensors do not say their types; fp32 stands in where nothing else is known.
                let type_name = if type_name.starts_with("TensorList") || type_name.is_empty() {
                    "float"
                } else {
                    type_name
                };
                let tensors = list.iter().filter_map(|sizes| sizes_of(sizes)).enumerate();
                Value::List(
                    tensors
                        .map(|(n, sizes)| profiled::tensor(&sizes, type_name, None, at * 64 + n))
                        .collect(),
                )
            }
            Some(Shape::Tensor(sizes)) if !sizes.is_empty() => match sizes_of(sizes) {
                Some(sizes) => profiled::tensor(&sizes, type_name, strides, at),
                None => Value::Opaque,
            },
            _ => scalar(type_name, stated, at),
        }
    };
    let outputs = match (operator.name.contains("convolution"), operator.shapes.as_slice()) {
        (true, [Shape::Tensor(input), Shape::Tensor(weight), ..]) => {
            let result = results.get(&[input.clone(), weight.clone()]).and_then(|sizes| sizes_of(sizes));
            let type_name = operator.types.first().map_or("", AsRef::as_ref);
            result.map(|sizes| profiled::tensor(&sizes, type_name, None, 0)).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let inputs = (0..count).map(argument).collect();
    profiled::Operator { name: operator.name.to_string(), inputs, outputs, does_more }
}

fn sizes_of(sizes: &[i64]) -> Option<Vec<u64>> {
    sizes.iter().map(|size| u64::try_from(*size).ok()).collect()
}

/// An argument without dimensions: a number, a list of numbers or a tensor of one element.
fn scalar(type_name: &str, stated: &str, at: usize) -> Value {
    let number = |text: &str| -> Option<Value> {
        let text = text.trim();
        match text {
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            _ => text.parse().map(Value::Int).ok().or_else(|| text.parse().map(Value::Float).ok()),
        }
    };
    if let Some(inner) = stated.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let parts = inner.split(',').filter(|part| !part.trim().is_empty());
        return Value::List(parts.filter_map(number).collect());
    }
    if let Some(value) = number(stated) {
        return value;
    }
    match type_name {
        "Scalar" | "ScalarList" | "Int" | "Bool" | "Double" | "GenericList" => Value::Opaque,
        "" => Value::None,
        type_name => profiled::tensor(&[], type_name, None, at),
    }
}
