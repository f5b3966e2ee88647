//! Stream capture.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_trace::record::Record;

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

/// `cudaThreadExchangeStreamCaptureMode`, `cuThreadExchangeStreamCaptureMode`.
pub(crate) fn exchange_mode(call: &mut Call<'_>, mode: Out<i32>) -> Outcome {
    let wanted = mode.read()?;
    if !(0..=2).contains(&wanted) {
        return Err(Failure::InvalidValue);
    }
    mode.write(call.thread.capture_mode.replace(wanted))?;
    Ok(())
}

/// `cudaStreamBeginCapture`, `cuStreamBeginCapture`.
pub(crate) fn begin(call: &mut Call<'_>, handle: Address, mode: i32) -> Outcome {
    begin_into(call, handle, None, vec![], mode)
}

/// `cudaStreamBeginCaptureToGraph`, `cuStreamBeginCaptureToGraph`.
pub(crate) fn begin_to_graph(
    call: &mut Call<'_>,
    handle: Address,
    graph: Address,
    dependencies: In<u64>,
    _: Address,
    count: usize,
    mode: i32,
) -> Outcome {
    let after = dependencies.read_many(count)?;
    begin_into(call, handle, Some(graph), after, mode)
}

fn begin_into(
    call: &mut Call<'_>,
    handle: Address,
    graph: Option<u64>,
    after: Vec<u64>,
    mode: i32,
) -> Outcome {
    if !(0..=2).contains(&mode) {
        return Err(Failure::InvalidValue);
    }
    let mut machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    if stream.is_default {
        return Err(RuntimeError::STREAM_CAPTURE_UNSUPPORTED.into());
    }
    if stream.capture.is_some() {
        return Err(RuntimeError::ILLEGAL_STATE.into());
    }
    let id = machine.graphs.begin(stream.id, graph, after)?;
    if mode == 0
        && let Some(state) = machine.graphs.capture_mut(id)
    {
        state.thread = Some(call.thread_key());
    }
    machine.streams.get_mut(handle)?.capture = Some(id);
    call.record(&Record::CaptureBegin { stream: stream.id, graph: id });
    Ok(())
}

/// `cudaStreamEndCapture`, `cuStreamEndCapture`.
pub(crate) fn end(call: &mut Call<'_>, handle: Address, graph: Out<u64>) -> Outcome {
    let mut machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    let machine: &mut HostMachine = &mut machine;
    let id = stream.capture.ok_or(Failure::Cuda(RuntimeError::ILLEGAL_STATE))?;
    let ended = machine.graphs.end(id, stream.id);
    if machine.graphs.capture(id).is_none() {
        for stream in machine.streams.iter_mut().filter(|stream| stream.capture == Some(id)) {
            stream.capture = None;
        }
        call.record(&Record::CaptureEnd { stream: stream.id, graph: id });
    }
    graph.write_if_given(ended.as_ref().map_or(0, |&graph| graph));
    ended.map(drop).map_err(Failure::from)
}

/// `cudaStreamIsCapturing`, `cuStreamIsCapturing`.
pub(crate) fn is_capturing(call: &mut Call<'_>, handle: Address, status: Out<i32>) -> Outcome {
    let machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    status.write(status_of(&machine, stream.capture))?;
    Ok(())
}

/// None, active or invalidated, as `cudaStreamCaptureStatus` numbers them.
fn status_of(machine: &HostMachine, capture: Option<u32>) -> i32 {
    match capture.and_then(|capture| machine.graphs.capture(capture)) {
        None => 0,
        Some(state) => 1 + i32::from(state.invalidated),
    }
}

/// `cudaStreamGetCaptureInfo`, `cuStreamGetCaptureInfo_v3`.
pub(crate) fn info(
    call: &mut Call<'_>,
    handle: Address,
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<u64>,
    dependencies: Out<u64>,
    edges: Out<u64>,
    count: Out<u64>,
) -> Outcome {
    let machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    status.write(status_of(&machine, stream.capture))?;
    if let Some(state) = stream.capture.and_then(|capture| machine.graphs.capture(capture)) {
        let frontier = state.frontier.get(&stream.id).map_or(&[][..], Vec::as_slice);
        id.write_if_given(u64::from(state.id));
        graph.write_if_given(state.graph);
        // Valid until the stream's next call, as documented.
        dependencies.write_if_given(if frontier.is_empty() { 0 } else { frontier.as_ptr() as u64 });
        edges.write_if_given(0);
        count.write_if_given(frontier.len() as u64);
    }
    Ok(())
}

/// `cudaStreamUpdateCaptureDependencies`, `cuStreamUpdateCaptureDependencies_v2`.
pub(crate) fn update_dependencies(
    call: &mut Call<'_>,
    handle: Address,
    dependencies: In<u64>,
    _: Address,
    count: usize,
    flags: u32,
) -> Outcome {
    const SET: u32 = 1;
    let nodes = dependencies.read_many(count)?;
    let mut machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    let capture = stream.capture.ok_or(Failure::Cuda(RuntimeError::ILLEGAL_STATE))?;
    if flags & SET != 0
        && let Some(state) = machine.graphs.capture_mut(capture)
    {
        state.frontier.insert(stream.id, Vec::new());
    }
    machine.graphs.join(capture, stream.id, &nodes);
    Ok(())
}
