//! The driver's launch functions.

use trompe_cuda_abi::driver::DriverLaunchConfig;
use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, Dim3, LaunchConfig};

use crate::common::launch::{Launch, launch};
use crate::common::{Outcome, occupancy};
use crate::door::Call;
use crate::failure::Failure;

/// `cuLaunchKernel`.
pub(crate) fn kernel(
    call: &mut Call<'_>,
    function: Address,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared: u32,
    stream: Address,
    parameters: In<u64>,
    extra: In<u64>,
) -> Outcome {
    let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
    let block = Dim3 { x: block_x, y: block_y, z: block_z };
    let packed = packed_parameters(extra)?;
    launch(
        call,
        Launch { kernel: function, grid, block, shared: u64::from(shared), stream, parameters, packed },
    )
}

/// `cuLaunchCooperativeKernel`.
pub(crate) fn cooperative(
    call: &mut Call<'_>,
    function: Address,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared: u32,
    stream: Address,
    parameters: In<u64>,
) -> Outcome {
    let none = In::new(0);
    kernel(
        call, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, none,
    )
}

/// `cuLaunchKernelEx`.
pub(crate) fn extended(
    call: &mut Call<'_>,
    config: In<DriverLaunchConfig>,
    function: Address,
    parameters: In<u64>,
    extra: In<u64>,
) -> Outcome {
    let config = config.read()?;
    let (grid, block) = (config.grid, config.block);
    let packed = packed_parameters(extra)?;
    let shared = u64::from(config.shared_bytes);
    launch(call, Launch { kernel: function, grid, block, shared, stream: config.stream, parameters, packed })
}

/// The buffer that `extra` names: pairs of a key and a value, ended by a zero key.
fn packed_parameters(extra: In<u64>) -> Result<Option<(Address, u64)>, Failure> {
    const BUFFER: u64 = 1;
    const SIZE: u64 = 2;
    if extra.is_null() {
        return Ok(None);
    }
    let (mut buffer, mut size) = (None, None);
    for pair in 0..4 {
        let value = |index| extra.read_at(index);
        match value(pair * 2)? {
            0 => break,
            BUFFER => buffer = Some(value(pair * 2 + 1)?),
            SIZE => size = Some(In::<u64>::new(value(pair * 2 + 1)? as usize).read()?),
            _ => return Err(Failure::InvalidValue),
        }
    }
    Ok(buffer.zip(size))
}

/// The runtime's form of a driver launch configuration.
fn as_runtime(config: DriverLaunchConfig) -> LaunchConfig {
    LaunchConfig {
        grid: config.grid,
        block: config.block,
        dynamic_shared_bytes: config.shared_bytes as usize,
        stream: config.stream,
        attributes: config.attributes,
        attribute_count: config.attribute_count,
    }
}

/// `cuOccupancyMaxActiveClusters`.
pub(crate) fn max_clusters(
    call: &mut Call<'_>,
    clusters: Out<i32>,
    function: Address,
    config: In<DriverLaunchConfig>,
) -> Outcome {
    let config = as_runtime(config.read()?);
    occupancy::max_clusters(call, clusters, function, In::new(&raw const config as usize))
}

/// `cuOccupancyMaxPotentialClusterSize`.
pub(crate) fn potential_cluster(
    call: &mut Call<'_>,
    size: Out<i32>,
    function: Address,
    config: In<DriverLaunchConfig>,
) -> Outcome {
    let config = as_runtime(config.read()?);
    occupancy::potential_cluster(call, size, function, In::new(&raw const config as usize))
}
