//! Handles and their settings.

use trompe_cuda_abi::libraries::BlasError;
use trompe_cuda_abi::pointer::Out;
use trompe_device::blas;

use crate::door::Call;
use crate::libs::{Outcome, libraries};

/// cuBLAS 13.4.1, the one that PyTorch 2.15 is built with.
const VERSION: [i32; 3] = [13, 4, 1];
/// CUDA runtime that the library was built with.
pub(super) const CUDART_VERSION: usize = 13_020;

/// The version as one number, as the library composes it.
pub(super) const fn version_number() -> i32 {
    VERSION[0] * 10_000 + VERSION[1] * 100 + VERSION[2]
}

/// `cublasCreate`: the handle's default workspace is charged to the current device.
pub(crate) fn create(call: &mut Call<'_>, handle: Out<u64>) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    let bytes = blas::default_workspace(libraries().traits.compute_capability);
    call.charge("cublas_workspace", bytes as i64)?;
    let created = libraries().blas.create(bytes);
    Ok(handle.write(created)?)
}

/// `cublasDestroy`.
pub(crate) fn destroy(call: &mut Call<'_>, handle: u64) -> Outcome {
    let library = libraries().blas.destroy(handle)?;
    Ok(call.charge("cublas_workspace", -(library.charged as i64))?)
}

/// `cublasSetStream`.
pub(crate) fn set_stream(_: &mut Call<'_>, handle: u64, stream: u64) -> Outcome {
    libraries().blas.library_mut(handle)?.stream = stream;
    Ok(())
}

/// `cublasGetStream`.
pub(crate) fn stream(_: &mut Call<'_>, handle: u64, stream: Out<u64>) -> Outcome {
    Ok(stream.write(super::library(handle)?.stream)?)
}

/// `cublasSetMathMode`.
pub(crate) fn set_math_mode(_: &mut Call<'_>, handle: u64, mode: u32) -> Outcome {
    libraries().blas.library_mut(handle)?.math_mode = mode;
    Ok(())
}

/// `cublasGetMathMode`.
pub(crate) fn math_mode(_: &mut Call<'_>, handle: u64, mode: Out<u32>) -> Outcome {
    Ok(mode.write(super::library(handle)?.math_mode)?)
}

/// `cublasSetPointerMode`.
pub(crate) fn set_pointer_mode(_: &mut Call<'_>, handle: u64, mode: i32) -> Outcome {
    libraries().blas.library_mut(handle)?.pointer_mode = mode;
    Ok(())
}

/// `cublasGetPointerMode`.
pub(crate) fn pointer_mode(_: &mut Call<'_>, handle: u64, mode: Out<i32>) -> Outcome {
    Ok(mode.write(super::library(handle)?.pointer_mode)?)
}

/// `cublasSetAtomicsMode`.
pub(crate) fn set_atomics_mode(_: &mut Call<'_>, handle: u64, mode: i32) -> Outcome {
    libraries().blas.library_mut(handle)?.atomics_mode = mode;
    Ok(())
}

/// `cublasGetAtomicsMode`.
pub(crate) fn atomics_mode(_: &mut Call<'_>, handle: u64, mode: Out<i32>) -> Outcome {
    Ok(mode.write(super::library(handle)?.atomics_mode)?)
}

/// `cublasSetSmCountTarget`.
pub(crate) fn set_sm_count_target(_: &mut Call<'_>, handle: u64, count: i32) -> Outcome {
    libraries().blas.library_mut(handle)?.sm_count_target = count;
    Ok(())
}

/// `cublasGetSmCountTarget`.
pub(crate) fn sm_count_target(_: &mut Call<'_>, handle: u64, count: Out<i32>) -> Outcome {
    Ok(count.write(super::library(handle)?.sm_count_target)?)
}

/// `cublasSetWorkspace`: the caller's buffer is used; the default one stays allocated, as the library documents.
pub(crate) fn set_workspace(_: &mut Call<'_>, handle: u64, _workspace: u64, _bytes: usize) -> Outcome {
    super::library(handle)?;
    Ok(())
}

/// `cublasGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, _handle: u64, version: Out<i32>) -> Outcome {
    Ok(version.write(version_number())?)
}

/// `cublasGetProperty`: 0 major, 1 minor, 2 patch level.
pub(crate) fn property(_: &mut Call<'_>, property: i32, value: Out<i32>) -> Outcome {
    let index = usize::try_from(property).unwrap_or(usize::MAX);
    let part = VERSION.get(index).ok_or(crate::libs::LibraryFailure::InvalidValue)?;
    Ok(value.write(*part)?)
}

/// `cublasGetCudartVersion`.
pub(crate) fn cudart_version(_: &mut Call<'_>) -> usize {
    CUDART_VERSION
}

/// `cublasGetStatusName`.
pub(crate) fn status_name(_: &mut Call<'_>, code: i32) -> u64 {
    let name = if code == 0 { Some(c"CUBLAS_STATUS_SUCCESS") } else { BlasError::name_of(code) };
    name.unwrap_or(c"unknown status").as_ptr() as u64
}

/// `cublasGetStatusString`.
pub(crate) fn status_text(_: &mut Call<'_>, code: i32) -> u64 {
    let text = if code == 0 { Some(c"success") } else { BlasError::text_of(code) };
    text.unwrap_or(c"unknown status").as_ptr() as u64
}
