//! cuBLASLt.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::{In, Out};
use trompe_device::blas::lt;
use trompe_device::memory::{DEVICE_BASE, VIRTUAL_END};

use super::handle::{CUDART_VERSION, version_number};
use super::{accumulates, library, record_product, scalar_size};
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// Bytes of `cublasLtMatmulAlgo_t`, which callers treat as opaque.
const ALGORITHM_BYTES: usize = 64;
/// Bytes of `cublasLtMatmulHeuristicResult_t`: algorithm, workspace size, state, waves, reserved.
const RESULT_BYTES: usize = 96;
/// Number of the one algorithm that there is.
const ALGORITHM_ID: i32 = 0;
/// `CUBLASLT_ALGO_CONFIG_ID`.
const CONFIG_ID: i32 = 0;

/// `cublasLtCreate`.
pub(crate) fn create(_: &mut Call<'_>, handle: Out<u64>) -> Outcome {
    Ok(handle.write(libraries().blas.create_lt())?)
}

/// `cublasLtDestroy`.
pub(crate) fn destroy(_: &mut Call<'_>, handle: u64) -> Outcome {
    Ok(libraries().blas.destroy_lt(handle)?)
}

/// `cublasLtGetVersion`.
pub(crate) fn version(_: &mut Call<'_>) -> usize {
    version_number() as usize
}

/// `cublasLtGetCudartVersion`.
pub(crate) fn cudart_version(_: &mut Call<'_>) -> usize {
    CUDART_VERSION
}

/// `cublasLtMatrixLayoutCreate`.
pub(crate) fn create_layout(
    _: &mut Call<'_>, layout: Out<u64>, dtype: i32, rows: u64, columns: u64, leading: i64,
) -> Outcome {
    Ok(layout.write(libraries().blas.create_layout(lt::Shape { dtype, rows, columns, leading }))?)
}

/// What `cublasLtMatrixLayoutInit` calls: the caller's struct gets the handle as its first word.
pub(crate) fn init_layout(
    call: &mut Call<'_>, layout: Out<u64>, _size: usize, dtype: i32, rows: u64, columns: u64, leading: i64,
) -> Outcome {
    create_layout(call, layout, dtype, rows, columns, leading)
}

/// `cublasLtMatmulDescCreate`.
pub(crate) fn create_operation(_: &mut Call<'_>, operation: Out<u64>, compute: i32, scale: i32) -> Outcome {
    Ok(operation.write(libraries().blas.create_operation(compute, scale))?)
}

/// No attribute is larger, in bytes.
const LARGEST_ATTRIBUTE: usize = 4096;

/// What `cublasLtMatmulDescInit` calls.
pub(crate) fn init_operation(
    call: &mut Call<'_>, operation: Out<u64>, _size: usize, compute: i32, scale: i32,
) -> Outcome {
    create_operation(call, operation, compute, scale)
}

/// `cublasLtMatmulPreferenceCreate`.
pub(crate) fn create_preference(_: &mut Call<'_>, preference: Out<u64>) -> Outcome {
    Ok(preference.write(libraries().blas.create_preference())?)
}

/// What `cublasLtMatmulPreferenceInit` calls.
pub(crate) fn init_preference(call: &mut Call<'_>, preference: Out<u64>, _size: usize) -> Outcome {
    create_preference(call, preference)
}

/// A handle as it is, or the one in the first word of a struct that the caller owns (see [`init_layout`]). Handles are
/// no addresses of user space, so the two cannot be mistaken.
fn resolve(object: u64) -> u64 {
    const USER_SPACE: std::ops::Range<u64> = 1 << 16..1 << 47;
    const DEVICES: std::ops::Range<u64> = DEVICE_BASE..VIRTUAL_END;
    if !USER_SPACE.contains(&object) || DEVICES.contains(&object) || !object.is_multiple_of(8) {
        return object;
    }
    In::<u64>::new(object as usize).read().unwrap_or(object)
}

/// `cublasLt…Destroy`.
pub(crate) fn destroy_object(_: &mut Call<'_>, object: u64) -> Outcome {
    Ok(libraries().blas.destroy_object(resolve(object))?)
}

/// `cublasLt…SetAttribute`.
pub(crate) fn set_attribute(
    _: &mut Call<'_>, object: u64, name: i32, value: In<u8>, bytes: usize,
) -> Outcome {
    // Nearly all are numbers or addresses, and there are several for each product: no detour over the heap.
    let place = value.address();
    match bytes {
        4 => set_bytes(object, name, &In::<[u8; 4]>::new(place).read()?),
        8 => set_bytes(object, name, &In::<[u8; 8]>::new(place).read()?),
        _ => {
            let mut content = Vec::new();
            value.append_to(&mut content, bytes)?;
            set_bytes(object, name, &content)
        }
    }
}

fn set_bytes(object: u64, name: i32, bytes: &[u8]) -> Outcome {
    libraries().blas.attributes(resolve(object))?.set(name, bytes);
    Ok(())
}

/// `cublasLt…GetAttribute`. What was never set reads zero, the default of nearly all attributes.
pub(crate) fn get_attribute(
    _: &mut Call<'_>, object: u64, name: i32, value: Out<u8>, bytes: usize, written: Out<u64>,
) -> Outcome {
    let mut content = libraries().blas.attributes(resolve(object))?.get(name);
    if bytes == 0 {
        return Ok(written.write(content.len() as u64)?);
    }
    if bytes > LARGEST_ATTRIBUTE {
        return Err(LibraryFailure::InvalidValue);
    }
    content.resize(bytes, 0);
    value.write_bytes(&content)?;
    written.write_if_given(bytes as u64);
    Ok(())
}

fn write_result(results: Out<u8>) -> Outcome {
    let mut result = [0; RESULT_BYTES];
    // The algorithm's number, no workspace, state success, one wave.
    result[..4].copy_from_slice(&ALGORITHM_ID.to_le_bytes());
    result[ALGORITHM_BYTES + 12..ALGORITHM_BYTES + 16].copy_from_slice(&1.0_f32.to_le_bytes());
    Ok(results.write_bytes(&result)?)
}

/// `cublasLtMatmulAlgoGetHeuristic`: one algorithm, which needs no workspace.
pub(crate) fn heuristic(
    _: &mut Call<'_>, _handle: u64, operation: u64, a: u64, b: u64, _c: u64, d: u64, _preference: u64,
    requested: i32, results: Out<u8>, returned: Out<i32>,
) -> Outcome {
    if requested < 1 {
        return Err(LibraryFailure::InvalidValue);
    }
    let call = lt::Call { operation: resolve(operation), layouts: [a, b, d].map(resolve), accumulate: false };
    libraries().blas.product(call)?;
    write_result(results)?;
    returned.write_if_given(1);
    Ok(())
}

/// `cublasLtMatmulAlgoCheck`.
pub(crate) fn check(
    _: &mut Call<'_>, _handle: u64, _operation: u64, _a: u64, _b: u64, _c: u64, _d: u64, _algorithm: u64,
    result: Out<u8>,
) -> Outcome {
    write_result(result)
}

/// `cublasLtMatmulAlgoGetIds`.
pub(crate) fn algorithm_ids(
    _: &mut Call<'_>, _handle: u64, _compute: i32, _scale: i32, _a: i32, _b: i32, _c: i32, _d: i32,
    requested: i32, ids: Out<i32>, returned: Out<i32>,
) -> Outcome {
    if requested < 1 {
        return Err(LibraryFailure::InvalidValue);
    }
    ids.write(ALGORITHM_ID)?;
    Ok(returned.write(1)?)
}

/// `cublasLtMatmulAlgoInit`.
pub(crate) fn init_algorithm(
    _: &mut Call<'_>, _handle: u64, _compute: i32, _scale: i32, _a: i32, _b: i32, _c: i32, _d: i32, id: i32,
    algorithm: Out<u8>,
) -> Outcome {
    let mut bytes = [0; ALGORITHM_BYTES];
    bytes[..4].copy_from_slice(&id.to_le_bytes());
    Ok(algorithm.write_bytes(&bytes)?)
}

/// Where an attribute of an algorithm lies in the caller's opaque struct: eight bytes each.
fn algorithm_place(algorithm: u64, name: i32) -> Option<usize> {
    let index = usize::try_from(name).ok().filter(|index| (index + 1) * 8 <= ALGORITHM_BYTES)?;
    Some(algorithm as usize + index * 8)
}

/// `cublasLtMatmulAlgoConfigGetAttribute`.
pub(crate) fn get_algorithm_attribute(
    _: &mut Call<'_>, algorithm: u64, name: i32, value: Out<u8>, bytes: usize, written: Out<u64>,
) -> Outcome {
    let mut content = Vec::new();
    if let Some(place) = algorithm_place(algorithm, name) {
        In::<u8>::new(place).append_to(&mut content, bytes.min(8))?;
    }
    if bytes > LARGEST_ATTRIBUTE {
        return Err(LibraryFailure::InvalidValue);
    }
    let known = if name == CONFIG_ID { 4 } else { content.len() };
    if bytes > 0 {
        content.resize(bytes, 0);
        value.write_bytes(&content)?;
    }
    written.write_if_given(known.max(bytes) as u64);
    Ok(())
}

/// `cublasLtMatmulAlgoConfigSetAttribute`.
pub(crate) fn set_algorithm_attribute(
    _: &mut Call<'_>, algorithm: u64, name: i32, value: In<u8>, bytes: usize,
) -> Outcome {
    let mut content = Vec::new();
    value.append_to(&mut content, bytes.min(8))?;
    match algorithm_place(algorithm, name) {
        Some(place) => Ok(Out::<u8>::new(place).write_bytes(&content)?),
        None => Ok(()),
    }
}

/// `cublasLtMatmul`. The handle may be a cuBLAS one, whose math mode then counts.
pub(crate) fn matmul(
    call: &mut Call<'_>, handle: u64, operation: u64, _alpha: u64, _a: u64, a_layout: u64, _b: u64,
    b_layout: u64, beta: u64, _c: u64, _c_layout: u64, _d: u64, d_layout: u64, _algorithm: u64,
    _workspace: u64, _workspace_bytes: usize, stream: u64,
) -> Outcome {
    let operation = resolve(operation);
    let layouts = [a_layout, b_layout, d_layout].map(resolve);
    let (mut product, host_scalars, scale) = {
        let libraries = libraries();
        let product = libraries.blas.product(lt::Call { operation, layouts, accumulate: false })?;
        let description = libraries.blas.operation(operation)?;
        (product, description.host_scalars(), description.scale_type())
    };
    product.accumulate = accumulates(host_scalars, beta, scalar_size(product.compute, scale));
    let math_mode = library(handle).map_or(0, |library| library.math_mode);
    record_product(call, stream, math_mode, &product)
}
