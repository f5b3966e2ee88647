//! Handles, versions and error texts.

use trompe_cuda_abi::libraries::DnnStatus;
use trompe_cuda_abi::pointer::Out;

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// `cudnnCreate`.
pub(crate) fn create(call: &mut Call<'_>, handle: Out<u64>) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    let created = libraries().dnn.create();
    Ok(handle.write(created)?)
}

/// `cudnnDestroy`.
pub(crate) fn destroy(_: &mut Call<'_>, handle: u64) -> Outcome {
    Ok(libraries().dnn.destroy(handle)?)
}

/// `cudnnSetStream`.
pub(crate) fn set_stream(_: &mut Call<'_>, handle: u64, stream: u64) -> Outcome {
    Ok(libraries().dnn.set_stream(handle, stream)?)
}

/// `cudnnGetStream`.
pub(crate) fn stream(_: &mut Call<'_>, handle: u64, stream: Out<u64>) -> Outcome {
    Ok(stream.write(libraries().dnn.library(handle)?.stream)?)
}

/// `cudnnGetVersion`: what the node's description says, 0 without one.
pub(crate) fn version(call: &mut Call<'_>) -> usize {
    call.machine().node().map_or(0, |node| node.software.cudnn as usize)
}

/// `cudnnGetCudartVersion`.
pub(crate) fn cudart_version(call: &mut Call<'_>) -> usize {
    call.machine().node().map_or(0, |node| node.software.cuda_runtime as usize)
}

/// `cudnnGetMaxDeviceVersion`: the newest compute capability that cuDNN 9.26 knows, times 100 for the major.
pub(crate) fn max_device_version(_: &mut Call<'_>) -> usize {
    1210
}

/// `cudnnGetErrorString`.
pub(crate) fn error_text(_: &mut Call<'_>, code: i32) -> u64 {
    let name = if code == 0 { Some(c"CUDNN_STATUS_SUCCESS") } else { DnnStatus::name_of(code) };
    name.unwrap_or(c"CUDNN_UNKNOWN_STATUS").as_ptr() as u64
}

/// `cudnnGetLastErrorString`: nothing to add to the code.
pub(crate) fn last_error_text(_: &mut Call<'_>, message: Out<u8>, capacity: usize) {
    // A null pointer leaves nothing to write to, and the function answers nothing.
    let _ = message.write_text("", capacity);
}

/// `cudnnGetProperty`: 0 major, 1 minor, 2 patch level.
pub(crate) fn property(call: &mut Call<'_>, property: i32, value: Out<i32>) -> Outcome {
    let version = version(call);
    let part = match property {
        0 => version / 10_000,
        1 => version / 100 % 100,
        2 => version % 100,
        _ => return Err(LibraryFailure::InvalidValue),
    };
    Ok(value.write(part as i32)?)
}
