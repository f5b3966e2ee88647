//! Libraries of kernels loaded at run time, with the runtime's signatures.

use trompe_cuda_abi::pointer::{Out, Text};
use trompe_cuda_abi::runtime::Address;

use crate::common::{Outcome, module};
use crate::door::Call;

/// `cudaLibraryLoadData`, `cuLibraryLoadData`: options are not looked at.
pub(crate) fn load(
    call: &mut Call<'_>,
    library: Out<u64>,
    image: Address,
    _: Address,
    _: Address,
    _: u32,
    _: Address,
    _: Address,
    _: u32,
) -> Outcome {
    module::load(call, library, image)
}

/// `cudaLibraryLoadFromFile`, `cuLibraryLoadFromFile`.
pub(crate) fn load_file(
    call: &mut Call<'_>,
    library: Out<u64>,
    path: Text,
    _: Address,
    _: Address,
    _: u32,
    _: Address,
    _: Address,
    _: u32,
) -> Outcome {
    module::load_file(call, library, path)
}

/// `cudaLibraryGetUnifiedFunction`, `cuLibraryGetUnifiedFunction`: device functions have no address here.
pub(crate) fn unified_function(call: &mut Call<'_>, _: Out<u64>, library: Address, _: Text) -> Outcome {
    call.machine().kernels.module(library)?;
    Err(trompe_cuda_abi::runtime::RuntimeError::NOT_SUPPORTED.into())
}
