//! Sort, top-k, scan, unique, histogram, search: ATen's own kernels and those of CUB and Thrust.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Sort};

use super::{Kernel, work};
use crate::kernel::types;
use crate::operator::product;

/// How one kernel passes over its data.
#[derive(Clone, Copy)]
enum Pass {
    /// Reads and writes everything (with indices where there are any).
    Whole,
    /// Reads everything, writes little.
    Read,
    /// Works on sums of blocks only.
    Small,
}

/// Describes sorting and scanning kernels.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let pass = pass(&kernel.name.base, &kernel.name.full)?;
    let dtype = kernel.name.arguments.iter().find_map(|a| types::exact(a));
    let input = kernel.context.call().and_then(|call| {
        // The embedding's gradient sorts its indices, not the gradient that comes first.
        let at = usize::from(call.name == "aten::embedding_dense_backward");
        let inputs = call.device_inputs();
        inputs.get(at).map(|t| (t.elements(), t.dtype))
    });
    let dtype = input.and_then(|(_, dtype)| dtype).or(dtype).unwrap_or(DType::I64);
    let geometry = kernel.blocks() * u64::from(kernel.threads()) * 16;
    // `DeviceRadixSortOnesweepKernel(…, int items, …)`; `…SortKVInPlace(keys, slices, slice size, …)`;
    // `gatherTopK(input, slice size, k, largest, slices, …)`.
    let count = |index| kernel.parameters.count_at(index);
    let slices = |a, b| count(a).zip(count(b)).and_then(|(a, b)| product(&[a, b]));
    let exact = match kernel.name.base.as_str() {
        "DeviceRadixSortOnesweepKernel" => count(8),
        base if base.ends_with("SortKVInPlace") => slices(1, 2),
        "gatherTopK" => slices(1, 4),
        _ => None,
    };
    let elements = exact.filter(|n| *n > 0).or(input.map(|(n, _)| n)).unwrap_or(geometry);
    // Pairs of a key and an 8-byte index are the rule in ATen.
    let pairs = kernel.name.full.contains("KV")
        || kernel.name.base.contains("RadixSort")
        || kernel.name.base.contains("MergeSort");
    let size = dtype.size() + if pairs { 8 } else { 0 };
    let blocks = kernel.blocks() * u64::from(kernel.threads()) * 4;
    let work = match pass {
        Pass::Whole => work(elements * size, elements * size, elements),
        Pass::Read => work(elements * dtype.size(), blocks.min(elements * dtype.size()), elements),
        Pass::Small => work(blocks, blocks, blocks / 4),
    };
    Some(Descriptor::Sort(Sort { elements, dtype, work }))
}

fn pass(base: &str, full: &str) -> Option<Pass> {
    let any = |words: &[&str]| words.iter().any(|word| base.contains(word));
    let library = full.contains("cub::") || full.contains("mbtopk");
    if library && base.contains("calc_block_sums") {
        return Some(Pass::Read);
    }
    if library
        && any(&[
            "Init",
            "ScanBins",
            "ExclusiveSum",
            "DigitCounts",
            "WithinKCounts",
            "KthCounts",
            "Partition",
        ])
    {
        return Some(Pass::Small);
    }
    if any(&["krn_partial", "num_of_partial_segments", "segment_offset", "fill_index_and_segment"]) {
        return Some(Pass::Small);
    }
    if any(&[
        "gatherTopK",
        "Histogram",
        "Upsweep",
        "gatherKthValue",
        "gatherMedian",
        "compute_mode",
        "kernelHistogram1D",
        "searchsorted",
    ]) {
        return Some(Pass::Read);
    }
    let whole = any(&[
        "RadixSort",
        "MergeSort",
        "SortKV",
        "sort_postprocess",
        "DeviceScan",
        "DeviceSelect",
        "UniqueByKey",
        "ReduceByKey",
        "AdjacentDifference",
        "adjacent_difference",
        "tensor_kernel_scan",
        "final_scan_kernel",
        "transform_vals",
        "flag_kernel",
        "randperm_handle",
        "DeviceCompact",
        "DevicePartition",
        "DeviceRunLength",
    ]);
    let thrust = base == "_kernel_agent"
        || (base == "static_kernel" && full.contains("for_each"))
        || (base == "transform_kernel" && full.contains("cub"));
    (whole || thrust).then_some(Pass::Whole)
}
