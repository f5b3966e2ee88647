//! Random numbers, dropout and triangular masks: element-wise passes with kernels of their own.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Elementwise};

use super::{Kernel, work};
use crate::kernel::types;

/// Describes random-number, dropout and triangle kernels.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.as_str();
    let call = kernel.context.call();
    let count = |index| kernel.parameters.count_at(index);
    let result = call.and_then(|call| {
        let outputs = call.device_outputs();
        outputs.first().copied().or_else(|| call.tensor(0)).map(|t| (t.elements(), t.dtype))
    });
    let named = kernel.name.arguments.iter().find_map(|a| types::exact(a));
    let (elements, dtype, vectorized) = match base {
        "fused_dropout_kernel_vec" | "fused_dropout_kernel" => (count(3), named, base.ends_with("vec")),
        "distribution_elementwise_grid_stride_kernel" => (count(0), None, false),
        "distribution_binary_elementwise_kernel" => (count(0), None, false),
        "philox_single_key_kernel" | "philox_multi_key_kernel" => (count(2), named, false),
        "triu_tril_kernel" | "kernelPointwiseApply2" => (kernel.parameters.tensor_elements(0), named, false),
        "rrelu_with_noise_cuda_kernel" => (None, named, false),
        _ => return None,
    };
    let dtype =
        result.and_then(|(_, dtype)| dtype).or(dtype).or_else(|| types::first(kernel.name.argument(2)));
    let dtype = dtype.unwrap_or(DType::F32);
    let geometry = || kernel.blocks() * u64::from(kernel.threads()) * 4;
    let elements = elements.or(result.map(|(n, _)| n)).unwrap_or_else(geometry);
    let bytes = elements * dtype.size();
    let work = match base {
        // Result and one-byte mask.
        "fused_dropout_kernel_vec" | "fused_dropout_kernel" => work(bytes, bytes + elements, elements),
        "triu_tril_kernel" | "kernelPointwiseApply2" => work(bytes, bytes, elements),
        "distribution_binary_elementwise_kernel" => work(2 * bytes, bytes, elements),
        "rrelu_with_noise_cuda_kernel" => work(bytes, 2 * bytes, elements),
        _ => work(0, bytes, elements),
    };
    Some(Descriptor::Elementwise(Elementwise { elements, dtype, vectorized, work }))
}
