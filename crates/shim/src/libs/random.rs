//! cuRAND's host interface.

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::tables;

use super::{Outcome, libraries, record_library};
use crate::door::Call;

/// cuRAND 10.4.2, of CUDA 13.2.
const VERSION: i32 = 100_402;

/// `curandCreateGenerator`.
pub(crate) fn create(call: &mut Call<'_>, generator: Out<u64>, _kind: i32) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    let created = libraries().generators.create();
    Ok(generator.write(created)?)
}

/// `curandDestroyGenerator`.
pub(crate) fn destroy(_: &mut Call<'_>, generator: u64) -> Outcome {
    Ok(libraries().generators.destroy(generator)?)
}

/// `curandSetStream`.
pub(crate) fn set_stream(_: &mut Call<'_>, generator: u64, stream: u64) -> Outcome {
    Ok(libraries().generators.set_stream(generator, stream)?)
}

/// `curandGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, version: Out<i32>) -> Outcome {
    Ok(version.write(VERSION)?)
}

/// `curandGenerate` and its like: `count` numbers of `SIZE` bytes.
pub(crate) fn generate<const SIZE: u64>(
    call: &mut Call<'_>,
    generator: u64,
    _output: u64,
    count: usize,
) -> Outcome {
    let stream = libraries().generators.stream(generator)?;
    let symbol = tables::row(call.api).1.symbol;
    record_library(call, stream, [0, (count as u64).saturating_mul(SIZE)], symbol)
}
