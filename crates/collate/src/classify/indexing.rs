//! Moving of data by index: index, gather, scatter, concatenation, transposition, roll, flip.
//!
//! Input shapes mislead here (a few elements of a huge tensor are read): the elements written count, from the
//! kernel's own count where it has one.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Indexing};
use trompe_trace::values::Tensor;

use super::{Kernel, widest, work};
use crate::kernel::parameters::{int, long};
use crate::kernel::types;
use crate::operator::{Call, MOST_ELEMENTS, product};

/// Describes kernels that move data by index.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.as_str();
    match base {
        "index_elementwise_kernel"
        | "_scatter_gather_elementwise_kernel"
        | "index_put_elementwise_kernel" => by_count(kernel),
        "vectorized_gather_kernel" | "tma_gather_kernel" => gather(kernel),
        "vectorized_scatter_kernel" | "tma_scatter_kernel" => scatter(kernel),
        "transpose_copy_tiled_kernel" => copied(kernel),
        "roll_cuda_kernel" => copied(kernel),
        _ if base.starts_with("CatArrayBatchedCopy") => concatenation(kernel),
        _ if base.starts_with("indexSelect") || base.starts_with("indexFunc") => selected(kernel),
        _ if base.starts_with("indexing_backward_kernel") => accumulated(kernel),
        _ if base.contains("chunk_cat") || base.contains("split_with_sizes_copy") => concatenation(kernel),
        _ => None,
    }
}

fn indexing(elements: u64, dtype: DType, read: u64, written: u64) -> Option<Descriptor> {
    Some(Descriptor::Indexing(Indexing { elements, dtype, work: work(read, written, 0) }))
}

/// An element type of `size` bytes, for kernels that move elements without looking at them.
fn opaque(size: u64) -> DType {
    match size {
        1 => DType::U8,
        2 => DType::I16,
        4 => DType::I32,
        8 => DType::I64,
        _ => DType::C128,
    }
}

fn by_count(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let call = kernel.context.call();
    let result = call.and_then(|call| result(call));
    let elements = kernel.parameters.count_at(0).or_else(|| Some(result?.elements()))?;
    let name = &kernel.name.full;
    let size = result.and_then(|t| t.dtype).map(DType::size);
    let size = size
        .or_else(|| types::opaque(name))
        .or_else(|| types::first(kernel.name.argument(2)).map(DType::size))?;
    let dtype = result.and_then(|t| t.dtype).unwrap_or_else(|| opaque(size));
    let indices: u64 = call.map_or(elements * 8, |call| index_bytes(call, elements));
    // Accumulating variants read what they write.
    let adds = ["ReduceAdd", "ReduceMultiply", "ReduceMean", "ReduceM", "accumulate"]
        .iter()
        .any(|w| name.contains(w));
    let own = elements * size;
    indexing(elements, dtype, own + indices + if adds { own } else { 0 }, own)
}

/// Bytes of the integer tensors among the arguments, as far as an index for each element is read.
fn index_bytes(call: &Call<'_>, elements: u64) -> u64 {
    let tensors = call.device_inputs();
    let indices = tensors.iter().filter(|t| matches!(t.dtype, Some(DType::I64 | DType::I32)));
    indices.map(|t| t.bytes().min(elements * 8)).sum::<u64>().min(elements * 16)
}

fn result<'c>(call: &'c Call<'_>) -> Option<&'c Tensor> {
    call.device_outputs().into_iter().next().or_else(|| call.in_place().then(|| call.tensor(0)).flatten())
}

/// `(out, in, indices, int count, int64 bytes per slice, …)`.
fn gather(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let (count, slice) = (kernel.parameters.count_at(3), kernel.parameters.count_at(4));
    let call = kernel.context.call().and_then(|c| result(c));
    let dtype = call.and_then(|t| t.dtype).unwrap_or(DType::U8);
    let (bytes, rows) = match (count, slice, call) {
        (Some(count), Some(slice), _) => (product(&[count, slice, u64::from(kernel.grid[2].max(1))])?, count),
        (_, _, Some(result)) => (result.bytes(), *result.sizes.first()?),
        _ => return None,
    };
    indexing(bytes / dtype.size(), dtype, bytes + rows * 8, bytes)
}

/// Adds rows into a table: reads the source and what it adds to.
fn scatter(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let call = kernel.context.call()?;
    let tensors = call.device_inputs();
    let source = tensors
        .iter()
        .skip(1)
        .filter(|t| t.dtype.is_some_and(DType::is_float))
        .max_by_key(|t| t.elements())?;
    let bytes = source.bytes();
    indexing(source.elements(), source.dtype?, 2 * bytes + source.sizes.first()? * 8, bytes)
}

fn copied(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let dtype = types::exact(kernel.name.argument(0))?;
    // `roll_cuda_kernel(in, out, int64 N, …)`, `transpose_copy_tiled_kernel(in, out, int64 rows, int64 columns, …)`.
    let count = |index| kernel.parameters.count_at(index);
    let exact = if kernel.name.base == "roll_cuda_kernel" {
        count(2)
    } else {
        count(2)
            .zip(count(3))
            .and_then(|(rows, cols)| product(&[rows, cols, u64::from(kernel.grid[2].max(1))]))
    };
    let shaped = || kernel.context.call().and_then(|c| result(c)).map(|t| t.elements());
    let elements = shaped().or(exact)?;
    let bytes = elements * dtype.size();
    indexing(elements, dtype, bytes, bytes)
}

/// Concatenation: the elements of this launch's inputs from its metadata, else all inputs of the operator (a launch
/// takes at most 128 of them, `CAT_ARRAY_BATCH_SIZE`).
fn concatenation(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    const BATCH: usize = 128;
    let call = kernel.context.call();
    let known = call.and_then(|call| widest(call.device_inputs().iter().filter_map(|t| t.dtype)));
    let dtype = known.or_else(|| types::opaque(&kernel.name.full).map(opaque))?;
    let of_operator = || {
        let tensors = call?.device_inputs();
        let all: u64 = tensors.iter().map(|t| t.bytes()).sum();
        Some(all / tensors.len().div_ceil(BATCH).max(1) as u64 / dtype.size())
    };
    // Grid-stride loops over a tensor per row of blocks: 16 bytes per thread.
    let geometry = || kernel.blocks() * u64::from(kernel.threads()) * 16 / dtype.size();
    let elements = concatenated(kernel).or_else(of_operator).unwrap_or_else(geometry);
    let bytes = elements * dtype.size();
    indexing(elements, dtype, bytes, bytes)
}

/// Elements of a launch of `CatArrayBatchedCopy…<T, index, dimensions, N, …>`, which has a row of blocks per input:
/// the metadata holds `N` addresses, offsets, extents and element counts (`ATen/native/cuda/Shape.cu`).
fn concatenated(kernel: &Kernel<'_, '_>) -> Option<u64> {
    let width = if kernel.name.argument(1).contains("long") { 8 } else { 4 };
    let most = usize::try_from(kernel.name.integer(3)?).ok()?;
    let metadata = kernel.parameters.bytes(1)?;
    let inputs = kernel.grid[1] as usize;
    if inputs == 0 || inputs > most {
        return None;
    }
    let counts = most.checked_mul(8 + 2 * width)?;
    (0..inputs).try_fold(0u64, |sum, input| {
        let at = counts + input * width;
        let count = if width == 4 { int(metadata, at).map(i64::from)? } else { long(metadata, at)? };
        u64::try_from(count).ok().filter(|n| *n <= MOST_ELEMENTS)?.checked_add(sum)
    })
}

fn selected(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let dtype = types::exact(kernel.name.argument(0))?;
    let call = kernel.context.call();
    let adds = kernel.name.base.starts_with("indexFunc");
    // `index_add` and its like: the source's elements; `index_select`: the result's.
    let tensor = call.and_then(|call| if adds { source(call) } else { result(call) });
    // indexSelectLargeIndex(dst, src, indices, int, int, totalSize, …);
    // indexSelectSmallIndex(dst, src, indices, …), indexFunc…(dst, source, indices, …).
    let exact = match kernel.name.base.as_str() {
        "indexSelectLargeIndex" => kernel.parameters.count_at(5),
        _ => kernel.parameters.tensor_elements(usize::from(adds)),
    };
    let elements = tensor.map(Tensor::elements).or(exact)?;
    let bytes = elements * dtype.size();
    let index = call.map_or(0, |call| index_bytes(call, elements));
    indexing(elements, dtype, bytes * if adds { 2 } else { 1 } + index, bytes)
}

/// The floating-point argument, other than the first, with the most elements.
fn source<'c>(call: &'c Call<'_>) -> Option<&'c Tensor> {
    call.device_inputs()
        .into_iter()
        .skip(1)
        .filter(|t| !matches!(t.dtype, Some(DType::I64 | DType::I32)))
        .max_by_key(|t| t.elements())
}

/// `index_put_` with accumulation: the values are added to the rows that they belong to.
fn accumulated(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let dtype = types::exact(kernel.name.argument(0))?;
    let call = kernel.context.call();
    let values = call.and_then(|call| call.device_inputs().last().map(|t| t.elements()));
    // (sorted indices, order, gradient, table, int64 count, int64 slice, …).
    let exact = kernel
        .parameters
        .count_at(4)
        .zip(kernel.parameters.count_at(5))
        .and_then(|(n, slice)| product(&[n, slice.max(1)]));
    let elements = exact.or(values)?;
    let bytes = elements * dtype.size();
    indexing(elements, dtype, 2 * bytes + elements.min(exact.unwrap_or(elements)) / 64 * 16, bytes)
}
