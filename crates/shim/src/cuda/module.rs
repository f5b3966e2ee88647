//! Modules, with the driver's signatures.

use trompe_cuda_abi::pointer::{Out, Text};
use trompe_cuda_abi::runtime::Address;

use crate::common::{Outcome, module};
use crate::door::Call;

/// `cuModuleLoadDataEx`: options are not looked at.
pub(crate) fn load_with_options(
    call: &mut Call<'_>,
    module: Out<u64>,
    image: Address,
    _: u32,
    _: Address,
    _: Address,
) -> Outcome {
    module::load(call, module, image)
}

/// `cuModuleGetLoadingMode`: lazy, the default since CUDA 12.2.
pub(crate) fn loading_mode(_: &mut Call<'_>, mode: Out<i32>) -> Outcome {
    const LAZY: i32 = 2;
    mode.write(LAZY)?;
    Ok(())
}

/// `cuModuleGetFunction` by name.
pub(crate) fn function(call: &mut Call<'_>, function: Out<u64>, module: Address, name: Text) -> Outcome {
    module::function(call, function, module, name)
}
