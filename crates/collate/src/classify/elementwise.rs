//! Element-wise kernels of ATen: `vectorized_elementwise_kernel`, `unrolled_elementwise_kernel`, `elementwise_kernel`
//! and their relatives.
//!
//! The element count is parameter 0 (`int N`, `ATen/native/cuda/CUDALoops.cuh`). Bytes come from the operator's
//! tensors when their shapes agree with that count, otherwise from the operand types in the functor's name and the
//! number of arrays that the kernel takes.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Elementwise};
use trompe_trace::values::Tensor;

use super::signature::signature;
use super::{Kernel, widest, work};
use crate::kernel::name::{integer, split_arguments};
use crate::kernel::types;
use crate::operator::{Call, distinct_bytes};

/// Where a kernel's functor and its array list stand among the template arguments.
struct Shape {
    functor: usize,
    arrays: Option<usize>,
}

fn shape(base: &str) -> Option<Shape> {
    Some(match base {
        "vectorized_elementwise_kernel" | "vectorized_templated_elementwise_kernel" => {
            Shape { functor: 1, arrays: Some(2) }
        }
        "unrolled_elementwise_kernel" | "unrolled_templated_elementwise_kernel" => {
            Shape { functor: 0, arrays: Some(1) }
        }
        "unrolled_elementwise_kernel_for_multi_outputs" => Shape { functor: 1, arrays: Some(2) },
        "elementwise_kernel" | "_elemwise_kernel" | "elementwise_kernel_manual_unroll" => {
            Shape { functor: 2, arrays: None }
        }
        "elementwise_kernel_with_index" => Shape { functor: 1, arrays: None },
        _ => return None,
    })
}

/// Describes element-wise kernels.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let shape = shape(&kernel.name.base)?;
    let vectorized = kernel.name.base.starts_with("vectorized");
    let arrays = shape.arrays.and_then(|index| array_length(kernel.name.argument(index)));
    let functor = kernel.name.argument(shape.functor);
    let count = kernel.parameters.count_at(0);
    let outputs =
        if kernel.name.base.ends_with("multi_outputs") { kernel.name.integer(0).unwrap_or(1) } else { 1 };
    // Kernels of an index have nothing to read.
    let arrays = if kernel.name.base == "elementwise_kernel_with_index" { Some(1) } else { arrays };
    let by_shape = kernel.context.call().and_then(|call| from_operator(call, count, arrays, outputs));
    let descriptor = by_shape.or_else(|| from_types(functor, arrays, count.or_else(|| threads(kernel))?))?;
    let moves = functor.contains("copy_kernel") || functor.contains("FillFunctor");
    let flops = if moves { 0 } else { descriptor.elements };
    let work = work(descriptor.work.read.0, descriptor.work.written.0, flops);
    Some(Descriptor::Elementwise(Elementwise { vectorized, work, ..descriptor }))
}

/// `3` of `std::array<char*, 3ul>`.
fn array_length(text: &str) -> Option<u64> {
    split_arguments(text).1.last().and_then(|last| integer(last))
}

/// Without parameters, each thread of these kernels does four elements (`thread_work_size`).
fn threads(kernel: &Kernel<'_, '_>) -> Option<u64> {
    Some(4 * kernel.blocks() * u64::from(kernel.threads()))
}

/// Bytes from the tensors of the operator, when one of them has as many elements as the kernel.
fn from_operator(
    call: &Call<'_>,
    count: Option<u64>,
    arrays: Option<u64>,
    results: u64,
) -> Option<Elementwise> {
    let inputs = call.device_inputs();
    let mut outputs = call.device_outputs();
    if outputs.is_empty() && call.in_place() {
        outputs.extend(inputs.first());
    }
    let elements = match count {
        Some(n) => inputs.iter().chain(&outputs).any(|tensor| tensor.elements() == n).then_some(n)?,
        None => outputs.first()?.elements(),
    };
    let target = outputs.iter().copied().find(|tensor| tensor.elements() == elements);
    let reads: Vec<_> = inputs
        .iter()
        .enumerate()
        .filter(|(index, tensor)| is_read(call, *index, tensor, &outputs) && broadcasts(tensor, elements))
        .map(|(_, tensor)| *tensor)
        .take(arrays.map_or(usize::MAX, |n| n.saturating_sub(results) as usize))
        .collect();
    let read = reads.iter().map(|tensor| distinct_bytes(tensor)).sum();
    let written = match target {
        Some(_) if results > 1 => {
            outputs.iter().filter(|tensor| tensor.elements() == elements).map(|tensor| tensor.bytes()).sum()
        }
        Some(tensor) => tensor.bytes(),
        // A helper of a larger operator: its result is as wide as what it reads.
        None => elements * reads.iter().filter_map(|t| t.dtype).map(DType::size).max()?,
    };
    let touched = reads.iter().chain(target.iter()).filter_map(|tensor| tensor.dtype);
    let dtype = widest(touched)?;
    Some(Elementwise { elements, dtype, vectorized: false, work: work(read, written, 0) })
}

/// Whether the kernel reads this argument: results given as arguments (`out=`, in-place fills) are only written.
fn is_read(call: &Call<'_>, index: usize, tensor: &Tensor, outputs: &[&Tensor]) -> bool {
    if !outputs
        .iter()
        .any(|out| out.address == tensor.address && out.address != 0 && out.sizes == tensor.sizes)
    {
        return true;
    }
    // In-place operators read their first argument unless they only overwrite it; `out=` comes last.
    call.in_place() && index == 0 && !overwrites(call.short())
}

/// In-place operators that do not read what they write.
fn overwrites(name: &str) -> bool {
    [
        "copy_",
        "fill_",
        "zero_",
        "normal_",
        "uniform_",
        "random_",
        "bernoulli_",
        "exponential_",
        "cauchy_",
        "log_normal_",
        "geometric_",
        "_copy_from_and_resize",
    ]
    .contains(&name)
}

/// A tensor takes part when it has as many elements or is repeated to have as many.
fn broadcasts(tensor: &Tensor, elements: u64) -> bool {
    let own = tensor.elements();
    own == elements || (own > 0 && own < elements && elements.is_multiple_of(own))
}

/// Bytes from the operand types in the functor's name.
fn from_types(functor: &str, arrays: Option<u64>, elements: u64) -> Option<Elementwise> {
    let found = signature(functor);
    let fallback = found.output.or_else(|| found.inputs.first().copied()).or_else(|| types::first(functor));
    let output = found.output.or(fallback)?;
    let mut inputs = found.inputs;
    if let Some(arrays) = arrays {
        inputs.resize(arrays.saturating_sub(1) as usize, fallback?);
    } else if inputs.is_empty() && !functor.contains("FillFunctor") {
        inputs =
            vec![output; if functor.contains("CUDAFunctor") || functor.contains("Binary") { 2 } else { 1 }];
    }
    let read = elements * inputs.iter().map(|dtype| dtype.size()).sum::<u64>();
    let dtype = widest(inputs.iter().copied().chain([output]))?;
    Some(Elementwise { elements, dtype, vectorized: false, work: work(read, elements * output.size(), 0) })
}
