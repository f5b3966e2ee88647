//! cuBLAS and cuBLASLt.

// Modules whose functions have the library's long signatures keep several parameters on a line.
#[rustfmt::skip]
pub(crate) mod grouped;
pub(crate) mod handle;
#[rustfmt::skip]
pub(crate) mod lt;
pub(crate) mod other;
#[rustfmt::skip]
pub(crate) mod product;
#[rustfmt::skip]
pub(crate) mod solve;
#[rustfmt::skip]
pub(crate) mod transfer;
#[rustfmt::skip]
pub(crate) mod vector;

use trompe_cuda_abi::pointer::In;
use trompe_device::blas::{Library, Product};
use trompe_device::pace;
use trompe_hardware::DeviceSheet;
use trompe_trace::record::Record;

use super::{LibraryFailure, Outcome, enqueue_work, libraries, record_library};
use crate::door::Call;

/// State of a cuBLAS handle.
fn library(handle: u64) -> Result<Library, LibraryFailure> {
    Ok(*libraries().blas.library(handle)?)
}

/// Puts a product on a stream and records it. A product without elements does nothing.
fn record_product(call: &mut Call<'_>, stream: u64, math_mode: u32, product: &Product) -> Outcome {
    if product.shape.contains(&0) || product.batch == 0 {
        return Ok(());
    }
    let traits = libraries().traits;
    match product.describe(math_mode, traits) {
        Some(gemm) => {
            let takes = |sheet: &DeviceSheet| pace::product_ns(sheet, &gemm);
            let (stream, _) = enqueue_work(call, stream, takes)?;
            call.record(&Record::Gemm { api: call.api.0, stream, gemm });
            Ok(())
        }
        None => record_library(call, stream, [0, 0], &product.text()),
    }
}

/// Bytes of the scalars alpha and beta, from `cublasComputeType_t` and `cudaDataType_t` of the result.
const fn scalar_size(compute: i32, result: i32) -> usize {
    let real = match compute {
        64 | 65 => 2,
        70 | 71 | 79 => 8,
        _ => 4,
    };
    if matches!(result, 4 | 5) { 2 * real } else { real }
}

/// Whether C is read: beta is not zero, or lies in device memory, where nothing is known of it.
fn accumulates(host_scalars: bool, beta: u64, size: usize) -> bool {
    if !host_scalars || beta == 0 {
        return !host_scalars;
    }
    let bytes = In::<u8>::new(beta as usize);
    (0..size).any(|index| bytes.read_at(index).is_ok_and(|byte| byte != 0))
}
