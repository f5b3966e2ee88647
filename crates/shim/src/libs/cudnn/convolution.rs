//! Legacy convolution calls.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::Out;
use trompe_device::dnn::legacy::ConvolutionCall;
use trompe_device::dnn::{DnnError, workspace};
use trompe_trace::descriptor::Direction;

use super::record_operation;
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// Bytes of `cudnnConvolution…AlgoPerf_t`.
const RESULT_BYTES: usize = 48;
/// `CUDNN_CONVOLUTION_…_ALGO_1`: implicit product with precomputed indices; what all answers here name.
const ALGORITHM: i32 = 1;
/// `CUDNN_DETERMINISTIC`, and `CUDNN_TENSOR_OP_MATH`.
const DETERMINISTIC: i32 = 1;
const TENSOR_OP_MATH: i32 = 1;

fn run(call: &mut Call<'_>, handle: u64, convolution: ConvolutionCall) -> Outcome {
    let operation = libraries().dnn.convolution(convolution)?;
    record_operation(call, handle, &operation)
}

fn bytes_of(convolution: ConvolutionCall) -> Result<u64, DnnError> {
    Ok(workspace::of(&libraries().dnn.convolution(convolution)?))
}

/// One answer: the algorithm, its workspace, no time (nothing was measured), deterministic, on tensor cores.
fn choose(convolution: ConvolutionCall, requested: i32, returned: Out<i32>, results: u64) -> Outcome {
    if requested < 1 {
        return Err(LibraryFailure::InvalidValue);
    }
    let mut result = [0; RESULT_BYTES];
    result[..4].copy_from_slice(&ALGORITHM.to_le_bytes());
    result[8..12].copy_from_slice(&(-1.0_f32).to_le_bytes());
    result[16..24].copy_from_slice(&bytes_of(convolution)?.to_le_bytes());
    result[24..28].copy_from_slice(&DETERMINISTIC.to_le_bytes());
    result[28..32].copy_from_slice(&TENSOR_OP_MATH.to_le_bytes());
    Out::<u8>::new(results as usize).write_bytes(&result)?;
    Ok(returned.write(1)?)
}

const fn forward_call(x: u64, w: u64, convolution: u64, y: u64) -> ConvolutionCall {
    ConvolutionCall { direction: Direction::Forward, x, w, convolution, y }
}

const fn data_call(w: u64, dy: u64, convolution: u64, dx: u64) -> ConvolutionCall {
    ConvolutionCall { direction: Direction::Backward, x: dx, w, convolution, y: dy }
}

const fn filter_call(x: u64, dy: u64, convolution: u64, dw: u64) -> ConvolutionCall {
    ConvolutionCall { direction: Direction::WeightGradient, x, w: dw, convolution, y: dy }
}

/// `cudnnConvolutionForward`.
pub(crate) fn forward(
    call: &mut Call<'_>, handle: u64, _alpha: u64, x_desc: u64, _x: u64, w_desc: u64, _w: u64,
    convolution: u64, _algorithm: i32, _workspace: u64, _bytes: usize, _beta: u64, y_desc: u64, _y: u64,
) -> Outcome {
    run(call, handle, forward_call(x_desc, w_desc, convolution, y_desc))
}

/// `cudnnConvolutionBiasActivationForward`.
pub(crate) fn forward_fused(
    call: &mut Call<'_>, handle: u64, _alpha1: u64, x_desc: u64, _x: u64, w_desc: u64, _w: u64,
    convolution: u64, _algorithm: i32, _workspace: u64, _bytes: usize, _alpha2: u64, _z_desc: u64, _z: u64,
    _bias_desc: u64, _bias: u64, _activation: u64, y_desc: u64, _y: u64,
) -> Outcome {
    run(call, handle, forward_call(x_desc, w_desc, convolution, y_desc))
}

/// `cudnnConvolutionBackwardData`.
pub(crate) fn backward_data(
    call: &mut Call<'_>, handle: u64, _alpha: u64, w_desc: u64, _w: u64, dy_desc: u64, _dy: u64,
    convolution: u64, _algorithm: i32, _workspace: u64, _bytes: usize, _beta: u64, dx_desc: u64, _dx: u64,
) -> Outcome {
    run(call, handle, data_call(w_desc, dy_desc, convolution, dx_desc))
}

/// `cudnnConvolutionBackwardFilter`.
pub(crate) fn backward_filter(
    call: &mut Call<'_>, handle: u64, _alpha: u64, x_desc: u64, _x: u64, dy_desc: u64, _dy: u64,
    convolution: u64, _algorithm: i32, _workspace: u64, _bytes: usize, _beta: u64, dw_desc: u64, _dw: u64,
) -> Outcome {
    run(call, handle, filter_call(x_desc, dy_desc, convolution, dw_desc))
}

/// `cudnnGetConvolutionForwardAlgorithm_v7`.
pub(crate) fn choose_forward(
    _: &mut Call<'_>, _handle: u64, x: u64, w: u64, convolution: u64, y: u64, requested: i32,
    returned: Out<i32>, results: u64,
) -> Outcome {
    choose(forward_call(x, w, convolution, y), requested, returned, results)
}

/// `cudnnGetConvolutionBackwardDataAlgorithm_v7`.
pub(crate) fn choose_backward_data(
    _: &mut Call<'_>, _handle: u64, w: u64, dy: u64, convolution: u64, dx: u64, requested: i32,
    returned: Out<i32>, results: u64,
) -> Outcome {
    choose(data_call(w, dy, convolution, dx), requested, returned, results)
}

/// `cudnnGetConvolutionBackwardFilterAlgorithm_v7`.
pub(crate) fn choose_backward_filter(
    _: &mut Call<'_>, _handle: u64, x: u64, dy: u64, convolution: u64, dw: u64, requested: i32,
    returned: Out<i32>, results: u64,
) -> Outcome {
    choose(filter_call(x, dy, convolution, dw), requested, returned, results)
}

/// `cudnnFindConvolutionForwardAlgorithmEx`.
pub(crate) fn find_forward(
    _: &mut Call<'_>, _handle: u64, x_desc: u64, _x: u64, w_desc: u64, _w: u64, convolution: u64,
    y_desc: u64, _y: u64, requested: i32, returned: Out<i32>, results: u64, _workspace: u64, _bytes: usize,
) -> Outcome {
    choose(forward_call(x_desc, w_desc, convolution, y_desc), requested, returned, results)
}

/// `cudnnFindConvolutionBackwardDataAlgorithmEx`.
pub(crate) fn find_backward_data(
    _: &mut Call<'_>, _handle: u64, w_desc: u64, _w: u64, dy_desc: u64, _dy: u64, convolution: u64,
    dx_desc: u64, _dx: u64, requested: i32, returned: Out<i32>, results: u64, _workspace: u64, _bytes: usize,
) -> Outcome {
    choose(data_call(w_desc, dy_desc, convolution, dx_desc), requested, returned, results)
}

/// `cudnnFindConvolutionBackwardFilterAlgorithmEx`.
pub(crate) fn find_backward_filter(
    _: &mut Call<'_>, _handle: u64, x_desc: u64, _x: u64, dy_desc: u64, _dy: u64, convolution: u64,
    dw_desc: u64, _dw: u64, requested: i32, returned: Out<i32>, results: u64, _workspace: u64, _bytes: usize,
) -> Outcome {
    choose(filter_call(x_desc, dy_desc, convolution, dw_desc), requested, returned, results)
}

/// `cudnnGetConvolutionForwardWorkspaceSize`.
pub(crate) fn workspace_forward(
    _: &mut Call<'_>, _handle: u64, x: u64, w: u64, convolution: u64, y: u64, _algorithm: i32,
    bytes: Out<u64>,
) -> Outcome {
    Ok(bytes.write(bytes_of(forward_call(x, w, convolution, y))?)?)
}

/// `cudnnGetConvolutionBackwardDataWorkspaceSize`.
pub(crate) fn workspace_backward_data(
    _: &mut Call<'_>, _handle: u64, w: u64, dy: u64, convolution: u64, dx: u64, _algorithm: i32,
    bytes: Out<u64>,
) -> Outcome {
    Ok(bytes.write(bytes_of(data_call(w, dy, convolution, dx))?)?)
}

/// `cudnnGetConvolutionBackwardFilterWorkspaceSize`.
pub(crate) fn workspace_backward_filter(
    _: &mut Call<'_>, _handle: u64, x: u64, dy: u64, convolution: u64, dw: u64, _algorithm: i32,
    bytes: Out<u64>,
) -> Outcome {
    Ok(bytes.write(bytes_of(filter_call(x, dy, convolution, dw))?)?)
}
