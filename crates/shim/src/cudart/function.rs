//! Attributes and occupancy of kernels, by host function.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, FunctionAttributes, LaunchConfig};

use super::register::resolve;
use crate::common::{Outcome, function, occupancy};
use crate::door::Call;
use crate::failure::Failure;

/// `cudaFuncGetAttributes`.
pub(crate) fn attributes(call: &mut Call<'_>, out: Out<FunctionAttributes>, function: Address) -> Outcome {
    let mut machine = call.machine();
    let kernel = resolve(&mut machine, function)?;
    function::learn(&mut machine, kernel)?;
    let known = function::attributes(machine.sheet().ok_or(Failure::NoDevice)?, machine.kernels.get(kernel)?);
    out.write(FunctionAttributes {
        shared_size_bytes: known.static_shared as usize,
        const_size_bytes: known.constant as usize,
        local_size_bytes: known.local as usize,
        max_threads_per_block: known.max_threads as i32,
        register_count: known.registers as i32,
        ptx_version: known.version as i32,
        binary_version: known.version as i32,
        max_dynamic_shared_size_bytes: known.max_dynamic_shared as i32,
        preferred_shared_carveout: -1,
        ..FunctionAttributes::default()
    })?;
    Ok(())
}

/// `cudaFuncSetAttribute`.
pub(crate) fn set_attribute(call: &mut Call<'_>, function: Address, number: i32, value: i32) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    function::set_attribute(call, kernel, number, value)
}

/// `cudaFuncSetCacheConfig`, `cudaFuncSetSharedMemConfig`: hints.
pub(crate) fn hint(call: &mut Call<'_>, function: Address, _: i32) -> Outcome {
    resolve(&mut call.machine(), function).map(drop)
}

/// `cudaFuncGetName`.
pub(crate) fn name(call: &mut Call<'_>, name: Out<u64>, function: Address) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    function::name(call, name, kernel)
}

/// `cudaFuncGetParamInfo`.
pub(crate) fn parameter_info(
    call: &mut Call<'_>,
    function: Address,
    index: usize,
    offset: Out<u64>,
    size: Out<u64>,
) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    function::parameter_info(call, kernel, index, offset, size)
}

/// `cudaOccupancyMaxActiveBlocksPerMultiprocessor`.
pub(crate) fn max_blocks(
    call: &mut Call<'_>,
    blocks: Out<i32>,
    function: Address,
    threads: i32,
    dynamic: usize,
) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    occupancy::max_blocks(call, blocks, kernel, threads, dynamic)
}

/// `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
pub(crate) fn max_blocks_with_flags(
    call: &mut Call<'_>,
    blocks: Out<i32>,
    function: Address,
    threads: i32,
    dynamic: usize,
    _: u32,
) -> Outcome {
    max_blocks(call, blocks, function, threads, dynamic)
}

/// `cudaOccupancyAvailableDynamicSMemPerBlock`.
pub(crate) fn available_shared(
    call: &mut Call<'_>,
    bytes: Out<u64>,
    function: Address,
    blocks: i32,
    threads: i32,
) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    occupancy::available_shared(call, bytes, kernel, blocks, threads)
}

/// `cudaOccupancyMaxActiveClusters`.
pub(crate) fn max_clusters(
    call: &mut Call<'_>,
    clusters: Out<i32>,
    function: Address,
    config: In<LaunchConfig>,
) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    occupancy::max_clusters(call, clusters, kernel, config)
}

/// `cudaOccupancyMaxPotentialClusterSize`.
pub(crate) fn potential_cluster(
    call: &mut Call<'_>,
    size: Out<i32>,
    function: Address,
    config: In<LaunchConfig>,
) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    occupancy::potential_cluster(call, size, kernel, config)
}
