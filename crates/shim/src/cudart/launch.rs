//! The runtime's launch functions.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, Dim3, LaunchConfig, RuntimeError};

use super::register::resolve;
use crate::common::Outcome;
use crate::common::launch::{Launch, launch};
use crate::door::Call;
use crate::thread::CallConfiguration;

/// `__cudaPushCallConfiguration`.
pub(crate) fn push(call: &mut Call<'_>, grid: Dim3, block: Dim3, shared: usize, stream: Address) -> u32 {
    call.thread.configurations.borrow_mut().push(CallConfiguration { grid, block, shared, stream });
    0
}

/// `__cudaPopCallConfiguration`.
pub(crate) fn pop(
    call: &mut Call<'_>,
    grid: Out<Dim3>,
    block: Out<Dim3>,
    shared: Out<u64>,
    stream: Out<u64>,
) -> Outcome {
    let configuration = call.thread.configurations.borrow_mut().pop();
    let configuration = configuration.ok_or(RuntimeError::MISSING_CONFIGURATION)?;
    grid.write(configuration.grid)?;
    block.write(configuration.block)?;
    shared.write(configuration.shared as u64)?;
    stream.write(configuration.stream)?;
    Ok(())
}

/// `__cudaLaunchKernel`: the function is a kernel handle.
pub(crate) fn by_handle(
    call: &mut Call<'_>,
    kernel: Address,
    grid: Dim3,
    block: Dim3,
    parameters: In<u64>,
    shared: usize,
    stream: Address,
) -> Outcome {
    launch(call, Launch { kernel, grid, block, shared: shared as u64, stream, parameters, packed: None })
}

/// `cudaLaunchKernel`, `cudaLaunchCooperativeKernel`.
pub(crate) fn by_function(
    call: &mut Call<'_>,
    function: Address,
    grid: Dim3,
    block: Dim3,
    parameters: In<u64>,
    shared: usize,
    stream: Address,
) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    by_handle(call, kernel, grid, block, parameters, shared, stream)
}

/// `cudaLaunchKernelExC`.
pub(crate) fn extended(
    call: &mut Call<'_>,
    config: In<LaunchConfig>,
    function: Address,
    parameters: In<u64>,
) -> Outcome {
    let config = config.read()?;
    let shared = config.dynamic_shared_bytes;
    by_function(call, function, config.grid, config.block, parameters, shared, config.stream)
}
