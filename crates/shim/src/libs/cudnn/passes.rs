//! Calls that pass over tensors: normalisation, pooling, losses, sampling.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::tables;
use trompe_device::dnn::legacy::Passes;
use trompe_device::dnn::{Graph, Operation};

use super::record_operation;
use crate::door::Call;
use crate::libs::{Outcome, libraries};

/// `CUDNN_BATCHNORM_OPS_BN`: no fused activation.
const NOT_FUSED: i32 = 0;

fn run(call: &mut Call<'_>, handle: u64, tensor: u64, passes: Passes) -> Outcome {
    let symbol = tables::row(call.api).1.symbol;
    let operation = libraries().dnn.passes(tensor, symbol, passes)?;
    record_operation(call, handle, &operation)
}

/// `cudnnBatchNormalizationForwardTrainingEx`: reads x and writes y (bytes are ideal: each element once).
pub(crate) fn batch_norm_training(
    call: &mut Call<'_>, handle: u64, _mode: i32, _ops: i32, _alpha: u64, _beta: u64, x_desc: u64, _x: u64,
    _z_desc: u64, _z: u64, _y_desc: u64, _y: u64, _scale_desc: u64, _scale: u64, _bias: u64, _factor: f64,
    _mean: u64, _variance: u64, _epsilon: f64, _saved_mean: u64, _saved_variance: u64, _activation: u64,
    _workspace: u64, _workspace_bytes: usize, _reserve: u64, _reserve_bytes: usize,
) -> Outcome {
    run(call, handle, x_desc, Passes { reads: 1, writes: 1 })
}

/// `cudnnBatchNormalizationForwardInference`.
pub(crate) fn batch_norm_inference(
    call: &mut Call<'_>, handle: u64, _mode: i32, _alpha: u64, _beta: u64, x_desc: u64, _x: u64,
    _y_desc: u64, _y: u64, _scale_desc: u64, _scale: u64, _bias: u64, _mean: u64, _variance: u64,
    _epsilon: f64,
) -> Outcome {
    run(call, handle, x_desc, Passes { reads: 1, writes: 1 })
}

/// `cudnnBatchNormalizationBackwardEx`: reads x and dy and writes dx.
pub(crate) fn batch_norm_backward(
    call: &mut Call<'_>, handle: u64, _mode: i32, _ops: i32, _alpha_data: u64, _beta_data: u64,
    _alpha_parameter: u64, _beta_parameter: u64, x_desc: u64, _x: u64, _y_desc: u64, _y: u64, _dy_desc: u64,
    _dy: u64, _dz_desc: u64, _dz: u64, _dx_desc: u64, _dx: u64, _scale_desc: u64, _scale: u64, _bias: u64,
    _dscale: u64, _dbias: u64, _epsilon: f64, _saved_mean: u64, _saved_variance: u64, _activation: u64,
    _workspace: u64, _workspace_bytes: usize, _reserve: u64, _reserve_bytes: usize,
) -> Outcome {
    run(call, handle, x_desc, Passes { reads: 2, writes: 1 })
}

/// `cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize`: statistics stay on the chip.
pub(crate) fn no_workspace_9(
    _: &mut Call<'_>, _handle: u64, _mode: i32, _ops: i32, _x: u64, _z: u64, _y: u64, _scale: u64,
    _activation: u64, bytes: Out<u64>,
) -> Outcome {
    Ok(bytes.write(0)?)
}

/// `cudnnGetBatchNormalizationBackwardExWorkspaceSize`.
pub(crate) fn no_workspace_11(
    _: &mut Call<'_>, _handle: u64, _mode: i32, _ops: i32, _x: u64, _y: u64, _dy: u64, _dz: u64, _dx: u64,
    _scale: u64, _activation: u64, bytes: Out<u64>,
) -> Outcome {
    Ok(bytes.write(0)?)
}

/// `cudnnGetBatchNormalizationTrainingExReserveSpaceSize`.
pub(crate) fn batch_norm_reserve(
    _: &mut Call<'_>, _handle: u64, _mode: i32, ops: i32, _activation: u64, x: u64, bytes: Out<u64>,
) -> Outcome {
    let reserve = libraries().dnn.batch_norm_reserve(x, ops != NOT_FUSED)?;
    Ok(bytes.write(reserve)?)
}

/// `cudnnPoolingForward`.
pub(crate) fn pooling(
    call: &mut Call<'_>, handle: u64, _pooling: u64, _alpha: u64, x_desc: u64, _x: u64, _beta: u64,
    _y_desc: u64, _y: u64,
) -> Outcome {
    run(call, handle, x_desc, Passes { reads: 1, writes: 0 })
}

/// `cudnnCTCLoss`.
pub(crate) fn ctc(
    call: &mut Call<'_>, handle: u64, probabilities: u64, _values: u64, _labels: In<i32>,
    _label_lengths: In<i32>, _input_lengths: In<i32>, _costs: u64, _gradients_desc: u64, _gradients: u64,
    _algorithm: i32, _loss: u64, _workspace: u64, _bytes: usize,
) -> Outcome {
    run(call, handle, probabilities, Passes { reads: 1, writes: 1 })
}

/// `cudnnCTCLoss_v8`.
pub(crate) fn ctc_v8(
    call: &mut Call<'_>, handle: u64, _algorithm: i32, _loss: u64, probabilities: u64, _values: u64,
    _labels: In<i32>, _label_lengths: In<i32>, _input_lengths: In<i32>, _costs: u64, _gradients_desc: u64,
    _gradients: u64, _bytes: usize, _workspace: u64,
) -> Outcome {
    run(call, handle, probabilities, Passes { reads: 1, writes: 1 })
}

/// `cudnnGetCTCLossWorkspaceSize`.
pub(crate) fn ctc_workspace(
    _: &mut Call<'_>, _handle: u64, probabilities: u64, _gradients: u64, _labels: u64, _label_lengths: u64,
    _input_lengths: u64, _algorithm: i32, _loss: u64, bytes: Out<u64>,
) -> Outcome {
    let workspace = libraries().dnn.ctc_workspace(probabilities)?;
    Ok(bytes.write(workspace)?)
}

/// `cudnnGetCTCLossWorkspaceSize_v8`.
pub(crate) fn ctc_workspace_v8(
    _: &mut Call<'_>, _handle: u64, _algorithm: i32, _loss: u64, probabilities: u64, _gradients: u64,
    bytes: Out<u64>,
) -> Outcome {
    let workspace = libraries().dnn.ctc_workspace(probabilities)?;
    Ok(bytes.write(workspace)?)
}

/// `cudnnSpatialTfSamplerForward`.
pub(crate) fn sampler_forward(
    call: &mut Call<'_>, handle: u64, _transformer: u64, _alpha: u64, _x_desc: u64, _x: u64, _grid: u64,
    _beta: u64, y_desc: u64, _y: u64,
) -> Outcome {
    run(call, handle, y_desc, Passes { reads: 1, writes: 1 })
}

/// `cudnnSpatialTfSamplerBackward`.
pub(crate) fn sampler_backward(
    call: &mut Call<'_>, handle: u64, _transformer: u64, _alpha: u64, _x_desc: u64, _x: u64, _beta: u64,
    _dx_desc: u64, _dx: u64, _alpha_grid: u64, dy_desc: u64, _dy: u64, _grid: u64, _beta_grid: u64,
    _dgrid: u64,
) -> Outcome {
    run(call, handle, dy_desc, Passes { reads: 2, writes: 1 })
}

/// A call of which only the name is known.
pub(crate) fn on_handle(call: &mut Call<'_>, handle: u64) -> Outcome {
    let detail = tables::row(call.api).1.symbol.to_owned();
    record_operation(call, handle, &Operation::Graph(Graph { detail, ..Graph::default() }))
}
