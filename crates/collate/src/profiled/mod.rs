//! Kernels as a profiler on a real device saw them, described in the same words as those of an emulated run.
//!
//! A profiler tells a kernel's demangled name and geometry and the operators around its launch, with the shapes of their
//! arguments where they were recorded. It tells neither launch parameters nor results, and of libraries it shows the
//! kernels where an emulated run shows the call. So results are worked out from the arguments for operators whose rule is
//! known (`results`), and calls of libraries from their operator and the letters in the kernel's name
//! (`library`). [`Described::exact`] says whether the sizes rest on shapes; without that only the name and the geometry
//! identify the kernel.

mod library;
mod results;
#[cfg(test)]
mod tests;

use trompe_base::DType;
use trompe_trace::descriptor::Descriptor;
use trompe_trace::values::{Tensor, Value};

use crate::classify::{self, Allocations, Kernel};
use crate::kernel::{Name, Parameters, short, types};
use crate::operator::{Call, Context};

pub use library::{Part, family, gradient_of, part};

/// An operator with its arguments, as far as they were recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operator {
    /// For example `aten::addmm`.
    pub name: String,
    /// Arguments; a tensor's address only tells it apart from the other arguments.
    pub inputs: Vec<Value>,
    /// Results where they are known from elsewhere in the trace.
    pub outputs: Vec<Value>,
    /// Other kernels ran below this operator than the one that is asked about.
    pub does_more: bool,
}

/// One launch.
#[derive(Clone, Copy, Debug)]
pub struct Launched<'a> {
    /// Demangled name.
    pub name: &'a str,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Registers per thread; zero when unknown.
    pub registers: u32,
    /// Shared memory per block in bytes.
    pub shared: u32,
    /// Operators around it, from the innermost outwards.
    pub operators: &'a [Operator],
}

/// What a launch is.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The name for people, the same as in reports of emulated runs.
    pub short_name: String,
    /// What it computes, as well as is known.
    pub descriptor: Descriptor,
    /// The descriptor's sizes rest on shapes.
    pub exact: bool,
}

/// A kernel's name for people, the same for its mangled and its demangled name.
#[must_use]
pub fn short_name(name: &str) -> String {
    short::short_name(&Name::parse(name))
}

#[derive(Debug)]
struct Nothing;

impl Allocations for Nothing {
    fn rest(&self, _: u64) -> u64 {
        0
    }
}

/// Describes a launch.
#[must_use]
pub fn describe(launched: &Launched<'_>) -> Described {
    let name = Name::parse(launched.name);
    let short_name = short::short_name(&name);
    if let Some(descriptor) = library::describe(launched, &name) {
        return Described { short_name, descriptor, exact: true };
    }
    let mut known = true;
    let calls: Vec<Call<'_>> = launched
        .operators
        .iter()
        .enumerate()
        .map(|(depth, operator)| {
            let stated = Some(operator.outputs.clone()).filter(|outputs| !outputs.is_empty());
            let outputs = stated.or_else(|| results::of(operator));
            known &= depth > 0 || outputs.is_some();
            Call {
                name: &operator.name,
                inputs: operator.inputs.clone(),
                outputs: outputs.unwrap_or_default(),
            }
        })
        .collect();
    let shaped = calls.first().is_some_and(|call| call.inputs.iter().any(holds_tensor));
    let context = Context::of_calls(&calls);
    let kernel = Kernel {
        name: &name,
        parameters: Parameters::default(),
        grid: launched.grid,
        block: launched.block,
        shared: launched.shared,
        registers: launched.registers,
        from_module: launched.name.starts_with("triton_"),
        code: None,
        context: &context,
        allocation: &Nothing,
    };
    let descriptor = classify::describe(&kernel);
    let sized = match &descriptor {
        // What they move is in their parameters alone.
        Descriptor::Other(_) | Descriptor::Triton(_) | Descriptor::Sort(_) | Descriptor::Optimizer(_) => {
            false
        }
        // Their operator says it all, results included or not.
        Descriptor::Attention(_) | Descriptor::Normalization(_) | Descriptor::Embedding(_) => true,
        _ => known,
    };
    Described { short_name, descriptor, exact: sized && shaped }
}

fn holds_tensor(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => !tensor.sizes.is_empty(),
        Value::List(list) => list.iter().any(holds_tensor),
        _ => false,
    }
}

/// A tensor argument from what a profiler records: sizes, the element type's name, strides where they were recorded.
///
/// `place` is the argument's number, which becomes its address. A tensor without dimensions counts as one of the host when
/// its type is a number's of Python.
#[must_use]
pub fn tensor(sizes: &[u64], type_name: &str, strides: Option<&[i64]>, place: usize) -> Value {
    let Some(dtype) = dtype(type_name) else { return Value::Opaque };
    let dense = dense(sizes);
    let strides =
        strides.filter(|strides| strides.len() == sizes.len()).map_or(dense.clone(), <[i64]>::to_vec);
    let contiguous = strides == dense;
    let python = matches!(dtype, DType::F64 | DType::I64 | DType::Bool);
    Value::Tensor(Tensor {
        dtype: Some(dtype),
        address: (place as u64 + 1) << 44,
        sizes: sizes.to_vec(),
        strides,
        contiguous,
        requires_grad: false,
        on_device: !(sizes.is_empty() && python),
        channels_last: false,
    })
}

/// Strides of a dense row-major tensor.
fn dense(sizes: &[u64]) -> Vec<i64> {
    let mut strides = vec![1i64; sizes.len()];
    for at in (1..sizes.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(sizes[at].max(1) as i64);
    }
    strides
}

/// The element type that a profiler names: as in C++, or as compilers spell it out (`long int`).
fn dtype(name: &str) -> Option<DType> {
    types::exact(name).or_else(|| types::exact(name.strip_suffix(" int")?))
}
