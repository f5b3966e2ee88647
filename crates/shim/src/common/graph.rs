//! Graphs and their executables.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_device::graph::{Effect, NodeKind};
use trompe_trace::record::Record;

use super::{Outcome, copy, fill, host, user_object};
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

/// `cudaGraphCreate`, `cuGraphCreate`.
pub(crate) fn create(call: &mut Call<'_>, out: Out<u64>, _: u32) -> Outcome {
    let graph = call.machine().graphs.create();
    call.arguments = [graph, 0, 0, 0];
    out.write(graph)?;
    Ok(())
}

/// `cudaGraphDestroy`, `cuGraphDestroy`.
pub(crate) fn destroy(call: &mut Call<'_>, graph: Address) -> Outcome {
    let retained = call.machine().graphs.destroy(graph)?;
    call.arguments = [graph, 0, 0, 0];
    user_object::release_all(&retained);
    Ok(())
}

/// `cudaGraphGetNodes`, `cuGraphGetNodes`.
pub(crate) fn nodes(call: &mut Call<'_>, graph: Address, nodes: Out<u64>, count: Out<u64>) -> Outcome {
    let machine = call.machine();
    write_list(&machine.graphs.graph(graph)?.nodes, nodes, count)
}

/// `cudaGraphNodeGetDependencies`, `cuGraphNodeGetDependencies_v2`.
pub(crate) fn dependencies(
    call: &mut Call<'_>,
    node: Address,
    nodes: Out<u64>,
    edges: Out<u64>,
    count: Out<u64>,
) -> Outcome {
    let machine = call.machine();
    let found = &machine.graphs.node(node)?.dependencies;
    if !edges.is_null() {
        // Edge data of 8 bytes each: zero is an ordinary full dependency.
        let room = usize::try_from(count.read()?).unwrap_or(0);
        for index in 0..found.len().min(room) {
            edges.write_at(index, 0)?;
        }
    }
    write_list(found, nodes, count)
}

/// `cudaGraphGetEdges`, `cuGraphGetEdges_v2`.
pub(crate) fn edges(
    call: &mut Call<'_>,
    graph: Address,
    from: Out<u64>,
    to: Out<u64>,
    edges: Out<u64>,
    count: Out<u64>,
) -> Outcome {
    let machine = call.machine();
    let mut pairs = Vec::new();
    for &node in &machine.graphs.graph(graph)?.nodes {
        pairs.extend(machine.graphs.node(node)?.dependencies.iter().map(|&before| (before, node)));
    }
    if !from.is_null() {
        let room = usize::try_from(count.read()?).unwrap_or(0);
        for (index, &(before, after)) in pairs.iter().enumerate().take(room) {
            from.write_at(index, before)?;
            to.write_at(index, after)?;
            if !edges.is_null() {
                edges.write_at(index, 0)?;
            }
        }
    }
    count.write(pairs.len() as u64)?;
    Ok(())
}

/// Writes as much of a list as there is room for, and its length.
fn write_list(list: &[u64], place: Out<u64>, count: Out<u64>) -> Outcome {
    if !place.is_null() {
        let room = usize::try_from(count.read()?).unwrap_or(0);
        for (index, &item) in list.iter().enumerate().take(room) {
            place.write_at(index, item)?;
        }
    }
    count.write(list.len() as u64)?;
    Ok(())
}

/// `cudaGraphNodeGetType`, `cuGraphNodeGetType`.
pub(crate) fn node_type(call: &mut Call<'_>, node: Address, kind: Out<i32>) -> Outcome {
    let value = call.machine().graphs.node(node)?.kind as i32;
    kind.write(value)?;
    Ok(())
}

/// `cudaGraphAddNode`, `cuGraphAddNode_v2`: the node is kept with its kind and dependencies.
pub(crate) fn add_node(
    call: &mut Call<'_>,
    out: Out<u64>,
    graph: Address,
    dependencies: In<u64>,
    _: Address,
    count: usize,
    parameters: In<i32>,
) -> Outcome {
    let kind = match parameters.read()? {
        0 => NodeKind::Kernel,
        1 => NodeKind::Copy,
        2 => NodeKind::Set,
        3 => NodeKind::Host,
        4 => NodeKind::Child,
        5 => NodeKind::Empty,
        6 => NodeKind::WaitEvent,
        7 => NodeKind::RecordEvent,
        10 => NodeKind::Allocate,
        11 => NodeKind::Free,
        // Conditional nodes carry graphs that run or not by a value on the device, which is never computed here.
        13 => return Err(RuntimeError::NOT_SUPPORTED.into()),
        _ => return Err(Failure::InvalidValue),
    };
    let dependencies = dependencies.read_many(count)?;
    let node = call.machine().graphs.add_node(graph, kind, dependencies)?;
    call.arguments = [node, graph, kind as u64, 0];
    out.write(node)?;
    Ok(())
}

/// `cudaGraphAddEmptyNode`, `cuGraphAddEmptyNode`.
pub(crate) fn add_empty_node(
    call: &mut Call<'_>,
    out: Out<u64>,
    graph: Address,
    dependencies: In<u64>,
    count: usize,
) -> Outcome {
    let dependencies = dependencies.read_many(count)?;
    let node = call.machine().graphs.add_node(graph, NodeKind::Empty, dependencies)?;
    out.write(node)?;
    Ok(())
}

/// `cudaGraphInstantiate`, `cuGraphInstantiateWithFlags`.
pub(crate) fn instantiate(call: &mut Call<'_>, out: Out<u64>, graph: Address, _: u64) -> Outcome {
    let mut machine = call.machine();
    let (executable, graph, id) = machine.graphs.instantiate(graph)?;
    user_object::retain_all(&machine.graphs.executable(executable)?.retained);
    drop(machine);
    call.record(&Record::GraphInstantiate { graph, executable: id });
    out.write(executable)?;
    Ok(())
}

/// `cudaGraphExecDestroy`, `cuGraphExecDestroy`.
pub(crate) fn destroy_executable(call: &mut Call<'_>, executable: Address) -> Outcome {
    let retained = call.machine().graphs.destroy_executable(executable)?;
    user_object::release_all(&retained);
    Ok(())
}

/// `cudaGraphLaunch`, `cuGraphLaunch`.
pub(crate) fn launch(call: &mut Call<'_>, executable: Address, stream: Address) -> Outcome {
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream)?;
    let machine_ref: &mut HostMachine = &mut machine;
    let (id, effects) = {
        let executable = machine_ref.graphs.executable(executable)?;
        (executable.id, executable.effects.clone())
    };
    call.record(&Record::GraphLaunch { api: call.api.0, executable: id, stream: stream.id });
    if let Some(capture) = stream.capture {
        machine_ref.graphs.enqueue(capture, stream.id, NodeKind::Child, None);
        return Ok(());
    }
    machine_ref.progress.enqueue(stream.id, stream.device);
    let mut calls = Vec::new();
    for effect in effects {
        match effect {
            // Memory may have gone since the capture; pageable memory is the program's, so nobody knows.
            Effect::Copy { to, from, bytes } => {
                if machine_ref.memory.is_known(to, bytes) && machine_ref.memory.is_known(from, bytes) {
                    copy::perform(machine_ref, to, from, bytes);
                }
            }
            Effect::Fill { to, pattern, count } => {
                if machine_ref.memory.is_known(to, count * pattern.len() as u64) {
                    fill::perform(machine_ref, to, &pattern, count);
                }
            }
            Effect::Host { function, argument } => calls.push((function, argument)),
        }
    }
    drop(machine);
    call.settle();
    for (function, argument) in calls {
        host::run(function, argument);
    }
    Ok(())
}

/// `cudaGraphUpload`, `cuGraphUpload`.
pub(crate) fn upload(call: &mut Call<'_>, executable: Address, stream: Address) -> Outcome {
    let machine = call.machine();
    machine.graphs.executable(executable)?;
    call.stream(&machine, stream).map(drop)
}

/// `cudaGraphRetainUserObject`, `cuGraphRetainUserObject`.
pub(crate) fn retain_user_object(
    call: &mut Call<'_>,
    graph: Address,
    object: Address,
    count: u32,
    flags: u32,
) -> Outcome {
    const MOVE: u32 = 1;
    let objects = user_object::references(object, count)?;
    let mut machine = call.machine();
    machine.graphs.graph_mut(graph)?.retained.extend(&objects);
    drop(machine);
    if flags & MOVE == 0 {
        user_object::retain_all(&objects);
    }
    Ok(())
}

/// `cudaDeviceGetGraphMemAttribute`: graphs allocate no memory of their own here.
pub(crate) fn memory_attribute(call: &mut Call<'_>, device: i32, _: i32, value: Out<u64>) -> Outcome {
    call.checked_device(device)?;
    value.write(0)?;
    Ok(())
}

/// `cudaDeviceSetGraphMemAttribute`.
pub(crate) fn set_memory_attribute(call: &mut Call<'_>, device: i32, _: i32, _: Address) -> Outcome {
    call.checked_device(device).map(drop)
}
