//! Occupancy questions.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, LaunchConfig};
use trompe_device::kernel::Kernel;
use trompe_device::occupancy::{Demand, blocks_per_multiprocessor};
use trompe_hardware::Compute;

use super::{Outcome, function};
use crate::door::Call;
use crate::failure::Failure;

fn resident(compute: &Compute, kernel: &Kernel, threads: u32, dynamic: u64) -> u32 {
    let (registers, fixed) =
        kernel.info().map_or((0, 0), |info| (info.registers, u64::from(info.static_shared)));
    blocks_per_multiprocessor(compute, Demand { threads, registers, shared: fixed + dynamic })
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
pub(crate) fn max_blocks(
    call: &mut Call<'_>,
    blocks: Out<i32>,
    kernel: Address,
    threads: i32,
    dynamic: usize,
) -> Outcome {
    let threads = u32::try_from(threads).ok().filter(|&threads| threads > 0).ok_or(Failure::InvalidValue)?;
    let mut machine = call.machine();
    function::learn(&mut machine, kernel)?;
    let compute = &machine.sheet().ok_or(Failure::NoDevice)?.compute;
    blocks.write(resident(compute, machine.kernels.get(kernel)?, threads, dynamic as u64) as i32)?;
    Ok(())
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
pub(crate) fn max_blocks_with_flags(
    call: &mut Call<'_>,
    blocks: Out<i32>,
    kernel: Address,
    threads: i32,
    dynamic: usize,
    _: u32,
) -> Outcome {
    max_blocks(call, blocks, kernel, threads, dynamic)
}

/// `cuOccupancyMaxPotentialBlockSize` without a size function: the block with the most resident threads.
pub(crate) fn potential_block_size(
    call: &mut Call<'_>,
    grid: Out<i32>,
    block: Out<i32>,
    kernel: Address,
    _: Address,
    dynamic: usize,
    limit: i32,
) -> Outcome {
    let mut machine = call.machine();
    function::learn(&mut machine, kernel)?;
    let sheet = machine.sheet().ok_or(Failure::NoDevice)?;
    let kernel = machine.kernels.get(kernel)?;
    let most = function::attributes(sheet, kernel).max_threads;
    let most = u32::try_from(limit).ok().filter(|&limit| limit > 0).map_or(most, |limit| most.min(limit));
    let compute = &sheet.compute;
    let blocks = |threads| resident(compute, kernel, threads, dynamic as u64);
    let sizes = (1..=most.div_ceil(compute.warp_size)).map(|warps| (warps * compute.warp_size).min(most));
    let best =
        sizes.max_by_key(|&threads| (blocks(threads) * threads, threads)).ok_or(Failure::InvalidValue)?;
    block.write(best as i32)?;
    grid.write((blocks(best) * compute.sm_count) as i32)?;
    Ok(())
}

/// `cuOccupancyAvailableDynamicSMemPerBlock`.
pub(crate) fn available_shared(
    call: &mut Call<'_>,
    bytes: Out<u64>,
    kernel: Address,
    blocks: i32,
    threads: i32,
) -> Outcome {
    let (Ok(blocks), Ok(_)) = (u64::try_from(blocks), u64::try_from(threads)) else {
        return Err(Failure::InvalidValue);
    };
    let mut machine = call.machine();
    function::learn(&mut machine, kernel)?;
    let compute = &machine.sheet().ok_or(Failure::NoDevice)?.compute;
    let fixed = machine.kernels.get(kernel)?.info().map_or(0, |info| u64::from(info.static_shared));
    let share = compute.shared_per_sm.0.checked_div(blocks).ok_or(Failure::InvalidValue)?;
    let left = share.saturating_sub(compute.shared_reserved_per_block.0 + fixed);
    bytes.write(left.min(compute.shared_per_block_optin.0))?;
    Ok(())
}

/// `cuOccupancyMaxActiveClusters`, `cudaOccupancyMaxActiveClusters`: resident blocks over blocks per cluster, if the
/// device has clusters.
pub(crate) fn max_clusters(
    call: &mut Call<'_>,
    clusters: Out<i32>,
    kernel: Address,
    config: In<LaunchConfig>,
) -> Outcome {
    let config = config.read()?;
    let mut machine = call.machine();
    function::learn(&mut machine, kernel)?;
    let compute = &machine.sheet().ok_or(Failure::NoDevice)?.compute;
    if compute.capability_major < 9 {
        return Err(trompe_cuda_abi::runtime::RuntimeError::NOT_SUPPORTED.into());
    }
    let threads = config.block.x * config.block.y * config.block.z;
    let kernel = machine.kernels.get(kernel)?;
    let blocks = resident(compute, kernel, threads, config.dynamic_shared_bytes as u64) * compute.sm_count;
    clusters.write((blocks / cluster_blocks(&config)) as i32)?;
    Ok(())
}

/// `cuOccupancyMaxPotentialClusterSize`: the portable limit of eight blocks.
pub(crate) fn potential_cluster(
    call: &mut Call<'_>,
    size: Out<i32>,
    kernel: Address,
    config: In<LaunchConfig>,
) -> Outcome {
    config.read()?;
    let machine = call.machine();
    machine.kernels.get(kernel)?;
    if machine.sheet().ok_or(Failure::NoDevice)?.compute.capability_major < 9 {
        return Err(trompe_cuda_abi::runtime::RuntimeError::NOT_SUPPORTED.into());
    }
    size.write(8)?;
    Ok(())
}

/// Blocks per cluster from a launch configuration's attributes (64 bytes after an 8-byte header each).
fn cluster_blocks(config: &LaunchConfig) -> u32 {
    const CLUSTER_DIMENSION: u32 = 4;
    const STRIDE: usize = 72 / 4;
    let words = In::<u32>::new(config.attributes as usize);
    let count = if words.is_null() { 0 } else { config.attribute_count as usize };
    (0..count).find(|index| words.read_at(index * STRIDE) == Ok(CLUSTER_DIMENSION)).map_or(1, |index| {
        (2..5).map(|word| words.read_at(index * STRIDE + word).unwrap_or(1).max(1)).product()
    })
}
