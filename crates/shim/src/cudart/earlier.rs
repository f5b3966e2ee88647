//! What CUDA 12 has under the same names as CUDA 13 but with other arguments or structures.
//!
//! A process has one runtime, and the node says of which major version it is. Functions of graphs got an argument for
//! the edges' data in 13; a program built for 12 passes what follows it one place earlier.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, DeviceProperties12};

use crate::common::{Outcome, capture, graph};
use crate::cudart::device;
use crate::door::Call;
use crate::failure::Failure;

/// Whether the program was built for CUDA 12.
pub(crate) fn is_12(call: &Call<'_>) -> bool {
    call.machine().node().is_some_and(|node| node.software.cuda_major() == 12)
}

/// `cudaGetDeviceProperties_v2`, which `cudaGetDeviceProperties` stands for in CUDA 12.
pub(crate) fn properties(call: &mut Call<'_>, out: Out<DeviceProperties12>, device: i32) -> Outcome {
    let index = call.checked_device(device)?;
    let machine = call.machine();
    out.write(device::describe_12(machine.node().ok_or(Failure::NoDevice)?, machine.physical(index)))?;
    Ok(())
}

/// `cudaStreamGetCaptureInfo`: in CUDA 12 only the status and the id.
pub(crate) fn capture_info(
    call: &mut Call<'_>,
    handle: Address,
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<u64>,
    dependencies: Out<u64>,
    edges: Out<u64>,
    count: Out<u64>,
) -> Outcome {
    if is_12(call) {
        let null = || Out::new(0);
        return capture::info(call, handle, status, id, null(), null(), null(), null());
    }
    capture::info(call, handle, status, id, graph, dependencies, edges, count)
}

/// `cudaStreamGetCaptureInfo_v2`.
pub(crate) fn capture_info_without_edges(
    call: &mut Call<'_>,
    handle: Address,
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<u64>,
    dependencies: Out<u64>,
    count: Out<u64>,
) -> Outcome {
    capture::info(call, handle, status, id, graph, dependencies, Out::new(0), count)
}

/// `cudaStreamUpdateCaptureDependencies`: in CUDA 12 `(stream, dependencies, count, flags)`.
pub(crate) fn update_dependencies(
    call: &mut Call<'_>,
    handle: Address,
    dependencies: In<u64>,
    edges: Address,
    count: usize,
    flags: u32,
) -> Outcome {
    if is_12(call) {
        return capture::update_dependencies(call, handle, dependencies, 0, edges as usize, count as u32);
    }
    capture::update_dependencies(call, handle, dependencies, edges, count, flags)
}

/// `cudaGraphGetEdges`: in CUDA 12 `(graph, from, to, count)`.
pub(crate) fn edges(
    call: &mut Call<'_>,
    of: Address,
    from: Out<u64>,
    to: Out<u64>,
    edges: Out<u64>,
    count: Out<u64>,
) -> Outcome {
    if is_12(call) {
        return graph::edges(call, of, from, to, Out::new(0), edges);
    }
    graph::edges(call, of, from, to, edges, count)
}

/// `cudaGraphNodeGetDependencies`: in CUDA 12 `(node, nodes, count)`.
pub(crate) fn dependencies(
    call: &mut Call<'_>,
    node: Address,
    nodes: Out<u64>,
    edges: Out<u64>,
    count: Out<u64>,
) -> Outcome {
    if is_12(call) {
        return graph::dependencies(call, node, nodes, Out::new(0), edges);
    }
    graph::dependencies(call, node, nodes, edges, count)
}

/// `cudaGraphAddNode`: in CUDA 12 `(node, graph, dependencies, count, parameters)`.
pub(crate) fn add_node(
    call: &mut Call<'_>,
    node: Out<u64>,
    of: Address,
    dependencies: In<u64>,
    edges: Address,
    count: usize,
    parameters: In<i32>,
) -> Outcome {
    if is_12(call) {
        return graph::add_node(call, node, of, dependencies, 0, edges as usize, In::new(count));
    }
    graph::add_node(call, node, of, dependencies, edges, count, parameters)
}
