//! Layer, RMS, batch and group normalisation.
//!
//! Rows and columns are launch parameters where the kernel takes them (`ATen/native/cuda/layer_norm_kernel.cu`: one
//! block per row; the weight gradients take both), otherwise the operator's shapes.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Direction, NormKind, Normalization};

use super::{Kernel, work};
use crate::kernel::types;
use crate::operator::{Call, product};

/// Describes normalisations.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.as_str();
    layer(kernel, base)
        .or_else(|| batch(kernel, base))
        .or_else(|| group(kernel, base))
        .map(Descriptor::Normalization)
}

fn layer(kernel: &Kernel<'_, '_>, base: &str) -> Option<Normalization> {
    let dtype = || kernel.name.arguments.iter().find_map(|a| types::exact(a));
    let rows_by_block = u64::from(kernel.grid[0]);
    let count = |index| kernel.parameters.count_at(index);
    let under_group = kernel.context.name().contains("group_norm");
    let (direction, rows, cols) = match base {
        "vectorized_layer_norm_kernel" => (Direction::Forward, rows_by_block, count(0)),
        "RowwiseMomentsCUDAKernel" if !under_group => (Direction::Forward, rows_by_block, count(0)),
        "LayerNormForwardCUDAKernel" => (Direction::Forward, rows_by_block, count(1).or_else(|| count(0))),
        "layer_norm_grad_input_kernel" | "layer_norm_grad_input_kernel_vectorized" => {
            (Direction::Backward, rows_by_block, count(6))
        }
        "cuComputeGradInput" => (Direction::Backward, rows_by_block, count(3)),
        // `GammaBetaBackwardCUDAKernel1` and `2` are group norm's.
        "GammaBetaBackwardCUDAKernelTemplate"
        | "GammaBetaBackwardSimpleCUDAKernel"
        | "GammaBetaBackwardCUDAKernel" => (Direction::WeightGradient, count(0).unwrap_or(0), count(1)),
        _ => return None,
    };
    let dtype = dtype()?;
    let from_shapes = || kernel.context.call().and_then(last_dimension);
    let (rows, cols) = match (rows, cols) {
        (rows, Some(cols)) if rows > 0 => (rows, cols),
        (rows, _) => from_shapes().map(|(all, cols)| if rows > 0 { (rows, cols) } else { (all, cols) })?,
    };
    let rms = kernel.context.name().contains("rms_norm")
        || (base != "RowwiseMomentsCUDAKernel" && rms_flag(kernel));
    let kind = if rms { NormKind::Rms } else { NormKind::Layer };
    let (size, area) = (dtype.size(), product(&[rows, cols])?);
    // Statistics are kept in fp32 per row: mean and reciprocal deviation, RMS only the latter.
    let statistics = rows * if rms { 4 } else { 8 };
    let work = match (direction, base) {
        (_, "RowwiseMomentsCUDAKernel") => work(area * size, statistics, 3 * area),
        (Direction::Forward, _) => work(area * size + 2 * cols * size, area * size + statistics, 6 * area),
        (Direction::Backward, _) => work(2 * area * size + cols * size + statistics, area * size, 10 * area),
        (Direction::WeightGradient, _) => work(2 * area * size + statistics, 2 * cols * size, 4 * area),
    };
    Some(Normalization { kind, direction, rows, cols, dtype, work })
}

/// The template argument that selects RMS norm: a boolean behind the two types.
fn rms_flag(kernel: &Kernel<'_, '_>) -> bool {
    let arguments = &kernel.name.arguments;
    match kernel.name.base.as_str() {
        base if base.starts_with("GammaBeta") => kernel.name.arguments.last().is_some_and(|a| a == "true"),
        _ => arguments.get(2).is_some_and(|a| a == "true"),
    }
}

/// Rows and columns of the operator's largest input, normalised over its last dimension.
fn last_dimension(call: &Call<'_>) -> Option<(u64, u64)> {
    let inputs = call.device_inputs();
    let tensor = inputs.iter().max_by_key(|tensor| tensor.elements())?;
    let cols = *tensor.sizes.last()?;
    Some((tensor.elements() / cols.max(1), cols))
}

fn batch(kernel: &Kernel<'_, '_>, base: &str) -> Option<Normalization> {
    let (direction, passes_in, passes_out) = match base {
        "batch_norm_collect_statistics_kernel" | "batch_norm_collect_statistics_channels_last_kernel" => {
            (Direction::Forward, 1, 0)
        }
        "batch_norm_transform_input_kernel" | "batch_norm_transform_input_channels_last_kernel" => {
            (Direction::Forward, 1, 1)
        }
        "batch_norm_backward_kernel" => (Direction::Backward, 4, 1),
        "batch_norm_backward_reduce_kernel" | "batch_norm_backward_reduce_channels_last_kernel" => {
            (Direction::WeightGradient, 2, 0)
        }
        "batch_norm_backward_elemt_kernel" | "batch_norm_backward_elemt_channels_last_kernel" => {
            (Direction::Backward, 2, 1)
        }
        _ => return None,
    };
    let call = kernel.context.call()?;
    let (channels, per_channel, dtype) = channels(call)?;
    let bytes = channels * per_channel * dtype.size();
    let work = work(passes_in * bytes, passes_out * bytes, 4 * channels * per_channel);
    Some(Normalization { kind: NormKind::Batch, direction, rows: channels, cols: per_channel, dtype, work })
}

/// Channels, elements per channel and type of an operator's largest (batch, channels, …) input.
pub(super) fn channels(call: &Call<'_>) -> Option<(u64, u64, DType)> {
    let inputs = call.device_inputs();
    let tensor =
        inputs.iter().filter(|tensor| tensor.sizes.len() > 1).max_by_key(|tensor| tensor.elements())?;
    let channels = tensor.sizes[1];
    Some((channels, tensor.elements() / channels.max(1), tensor.dtype?))
}

fn group(kernel: &Kernel<'_, '_>, base: &str) -> Option<Normalization> {
    let direction = match base {
        _ if base.starts_with("RowwiseMoments") => Direction::Forward,
        _ if base.starts_with("GroupNormBackward") => Direction::Backward,
        _ if base.starts_with("ComputeInternalGradients") => Direction::Backward,
        _ if base.starts_with("GammaBeta") => Direction::WeightGradient,
        "ComputeFusedParamsCUDAKernel" => Direction::Forward,
        "ComputeBackwardFusedParamsCUDAKernel" | "Compute1dBackwardFusedParamsCUDAKernel" => {
            Direction::Backward
        }
        _ => return None,
    };
    let call = kernel.context.call()?;
    let (channels, per_channel, dtype) = channels(call)?;
    let area = channels * per_channel;
    let rows = kernel.blocks().max(1);
    let read_area = match base {
        _ if base.starts_with("RowwiseMoments") => area,
        _ if base.starts_with("ComputeInternalGradients") || base.starts_with("GroupNormBackward") => {
            2 * area
        }
        // The others combine per-channel sums.
        _ => 0,
    };
    let written = if base.starts_with("GroupNormBackward") { area * dtype.size() } else { channels * 8 };
    let work = work(read_area * dtype.size() + channels * 8, written, 4 * read_area.max(channels));
    Some(Normalization { kind: NormKind::Group, direction, rows, cols: area / rows, dtype, work })
}
