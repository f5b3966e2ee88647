//! Reductions: ATen's `reduce_kernel` and CUB's device-wide reductions.
//!
//! `reduce_kernel` takes one structure that begins with the operation, its identity and a `ReduceConfig`, whose first
//! words are the accumulator's size, the inputs per output and the number of outputs (`ATen/native/cuda/Reduce.cuh`).

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Reduction};

use super::{Kernel, work};
use crate::kernel::name::{last_component, split_arguments};
use crate::kernel::parameters::int;
use crate::kernel::types;
use crate::operator::{distinct_elements, product};

/// Describes reductions.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    match kernel.name.base.as_str() {
        "reduce_kernel" => aten(kernel),
        "lpnorm_cleanup" | "lpmax_cleanup" => Some(cleanup(kernel)),
        base if base.starts_with("DeviceReduce") || base.starts_with("DeviceSegmentedReduce") => cub(kernel),
        _ => None,
    }
}

fn aten(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let (_, arguments) = split_arguments(kernel.name.argument(2));
    let (read_type, write_type) =
        (types::exact(arguments.first()?)?, arguments.get(3).and_then(|t| types::exact(t)));
    let exact = config(kernel, read_type);
    let shapes = kernel.context.call().and_then(|call| {
        let input = call.device_inputs().first().map(|tensor| distinct_elements(tensor))?;
        let output = call.device_outputs().iter().map(|tensor| tensor.elements()).max()?;
        Some((input, output))
    });
    let geometry = kernel.blocks() * u64::from(kernel.threads()) * 4;
    let (inputs, outputs) = exact.or(shapes).unwrap_or((geometry, 1));
    // The scalar type is what is read, but some operators read a narrower type and convert.
    let stored =
        kernel.context.call().and_then(|call| call.device_inputs().first()?.dtype).unwrap_or(read_type);
    let dtype = if stored.size() < read_type.size() { stored } else { read_type };
    // Arg-reductions and moments store pairs; the operator's results tell.
    let written = kernel
        .context
        .call()
        .map(|call| call.device_outputs().iter().filter(|t| t.elements() == outputs).map(|t| t.bytes()).sum())
        .filter(|bytes| *bytes > 0)
        .unwrap_or(outputs * write_type.unwrap_or(read_type).size());
    Some(Descriptor::Reduction(Reduction {
        inputs,
        outputs,
        dtype,
        work: work(inputs * dtype.size(), written, inputs),
    }))
}

/// (inputs, outputs) from the launch's `ReduceConfig`: the first place where an accumulator size is followed by two
/// positive counts and two positive steps.
fn config(kernel: &Kernel<'_, '_>, read_type: DType) -> Option<(u64, u64)> {
    let bytes = kernel.parameters.bytes(0)?;
    let word = |index: usize| int(bytes, index * 4).and_then(|n| u64::try_from(n).ok());
    (1..16).find_map(|at| {
        let (size, inputs, outputs) = (word(at)?, word(at + 1)?, word(at + 2)?);
        let (step_in, step_out, ctas) = (word(at + 3)?, word(at + 4)?, word(at + 5)?);
        let (width, height, threads) = (word(at + 11)?, word(at + 12)?, word(at + 13)?);
        let plausible = matches!(size, 1 | 2 | 4 | 8 | 16 | 24 | 32)
            && size >= read_type.size().min(4)
            && inputs > 0
            && outputs > 0
            && step_in > 0
            && step_out > 0
            && ctas > 0
            && threads > 0
            && width.checked_mul(height) == Some(threads)
            && u64::from(kernel.threads()) == threads;
        plausible.then_some((product(&[inputs, outputs])?, outputs))
    })
}

/// The last step of a norm over lists: one value per block of the first step.
fn cleanup(kernel: &Kernel<'_, '_>) -> Descriptor {
    let inputs = kernel.blocks() * u64::from(kernel.threads());
    let outputs = kernel.blocks();
    let written = types::exact(kernel.name.argument(2)).unwrap_or(DType::F32).size() * outputs;
    Descriptor::Reduction(Reduction {
        inputs,
        outputs,
        dtype: DType::F32,
        work: work(inputs * 4, written, inputs),
    })
}

fn cub(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let call = kernel.context.call()?;
    let input = *call.device_inputs().first()?;
    let dtype = input.dtype?;
    let whole = input.elements();
    // A single tile finishes what another kernel has reduced to one value per block.
    let inputs = if last_component(&kernel.name.base).contains("SingleTile") {
        whole.min(u64::from(kernel.threads()) * 16)
    } else {
        whole
    };
    let outputs = call.device_outputs().first().map_or(1, |tensor| tensor.elements().max(1));
    let work = work(inputs * dtype.size(), outputs * dtype.size(), inputs);
    Some(Descriptor::Reduction(Reduction { inputs, outputs, dtype, work }))
}
