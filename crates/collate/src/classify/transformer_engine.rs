//! TransformerEngine's layer and RMS norms (`transformer_engine/common/normalization`, 2.20).
//!
//! All take one struct, `KernelParamsBase` at its beginning: thread block groups, their size, rows, columns (32 bits
//! each), then addresses. The types are those of their `Kernel_traits`: weight, input, output, computation. They are
//! compiled at run time, so they have to be asked for before the kernels of which nothing but the geometry is known.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Direction, NormKind, Normalization};

use super::{Kernel, work};
use crate::kernel::name::split_arguments;
use crate::kernel::parameters::int;
use crate::operator::product;

/// Describes its norms.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.strip_suffix("_kernel")?;
    let (kind, base) = match base.split_once('_')? {
        ("ln", base) => (NormKind::Layer, base),
        ("rmsnorm", base) => (NormKind::Rms, base),
        _ => return None,
    };
    let direction = match base {
        "fwd_tuned" | "fwd_general" => Direction::Forward,
        "bwd_tuned" | "bwd_general" => Direction::Backward,
        "bwd_finalize_tuned" | "bwd_finalize_general" => Direction::WeightGradient,
        _ => return None,
    };
    let bytes = kernel.parameters.bytes(0)?;
    let number = |at| int(bytes, at).and_then(|number| u64::try_from(number).ok()).filter(|n| *n > 0);
    let (groups, rows, cols) = (number(0)?, number(8)?, number(12)?);
    let [weight, input, output] = types(kernel)?;
    let area = product(&[rows, cols])?;
    let both = if kind == NormKind::Layer { 2 } else { 1 };
    let statistics = rows * 4 * both;
    let parameters = cols * weight.size() * both;
    // Sums of the weights' gradients by groups of thread blocks, in fp32, which the last kernel sums up.
    let partial = product(&[groups, cols])? * 4 * both;
    let rows = if direction == Direction::WeightGradient { groups } else { rows };
    let work = match direction {
        Direction::Forward => {
            work(area * input.size() + parameters, area * output.size() + statistics, 6 * area)
        }
        Direction::Backward => {
            let added = if kernel.name.flag(1) { area * input.size() } else { 0 };
            let read = area * (output.size() + input.size()) + cols * weight.size() + statistics + added;
            work(read, area * input.size() + partial, 10 * area)
        }
        Direction::WeightGradient => work(partial, parameters, groups * cols * both),
    };
    Some(Descriptor::Normalization(Normalization { kind, direction, rows, cols, dtype: input, work }))
}

/// Weight, input and output: the first types of the traits, or of the kernel's own arguments where it takes no traits.
fn types(kernel: &Kernel<'_, '_>) -> Option<[DType; 3]> {
    let (_, traits) = split_arguments(kernel.name.argument(0));
    let own = kernel.name.arguments.iter().map(String::as_str);
    let mut found = traits.into_iter().chain(own).filter_map(dtype);
    let weight = found.next()?;
    let input = found.next().unwrap_or(weight);
    Some([weight, input, found.next().unwrap_or(input)])
}

/// The element type of TransformerEngine's name for it.
fn dtype(text: &str) -> Option<DType> {
    Some(match text.rsplit("::").next()?.trim() {
        "fp32" | "float" => DType::F32,
        "fp16" | "half" => DType::F16,
        "bf16" => DType::Bf16,
        "fp8e4m3" => DType::F8E4M3,
        "fp8e5m2" => DType::F8E5M2,
        _ => return None,
    })
}
