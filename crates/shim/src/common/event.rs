//! Events.

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_device::graph::NodeKind;
use trompe_device::progress::Progress;
use trompe_device::stream::Event;
use trompe_trace::record::Record;

use super::Outcome;
use crate::clock;
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;
const EXTERNAL: u32 = 1;
/// Version of an event that was never recorded.
const NEVER: u32 = u32::MAX;

/// `cudaEventCreateWithFlags`, `cuEventCreate`.
pub(crate) fn create_with_flags(call: &mut Call<'_>, out: Out<u64>, flags: u32) -> Outcome {
    if out.is_null() {
        return Err(Failure::NullPointer);
    }
    if flags > 7 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
        return Err(Failure::InvalidValue);
    }
    let device = call.device();
    call.activate(device)?;
    let handle = call.machine().events.create(device, flags & DISABLE_TIMING != 0);
    call.arguments = [handle, u64::from(flags), 0, 0];
    out.write(handle)?;
    Ok(())
}

/// `cudaEventCreate`.
pub(crate) fn create(call: &mut Call<'_>, out: Out<u64>) -> Outcome {
    create_with_flags(call, out, 0)
}

/// `cudaEventDestroy`, `cuEventDestroy`.
pub(crate) fn destroy(call: &mut Call<'_>, handle: Address) -> Outcome {
    let event = call.machine().events.destroy(handle)?;
    call.arguments = [handle, u64::from(event.id.0), 0, 0];
    Ok(())
}

/// `cudaEventRecord`, `cuEventRecord`.
pub(crate) fn record(call: &mut Call<'_>, handle: Address, stream: Address) -> Outcome {
    record_with_flags(call, handle, stream, 0)
}

/// `cudaEventRecordWithFlags`, `cuEventRecordWithFlags`.
pub(crate) fn record_with_flags(
    call: &mut Call<'_>,
    handle: Address,
    stream: Address,
    flags: u32,
) -> Outcome {
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream)?;
    let machine: &mut HostMachine = &mut machine;
    let event = machine.events.get_mut(handle)?;
    let version = event.recordings;
    match stream.capture {
        Some(capture) if flags & EXTERNAL == 0 => {
            let frontier = machine.graphs.capture(capture).and_then(|state| state.frontier.get(&stream.id));
            event.captured = Some((capture, frontier.cloned().unwrap_or_default()));
        }
        Some(capture) => machine.graphs.enqueue(capture, stream.id, NodeKind::RecordEvent, None),
        None => {
            event.captured = None;
            event.place = Some((stream.id, machine.progress.position(stream.id)));
            event.recorded_ns = clock::monotonic_ns();
        }
    }
    event.recordings += 1;
    let event = event.id;
    call.record(&Record::EventRecord { api: call.api.0, event, version, stream: stream.id });
    Ok(())
}

/// `cudaEventQuery`, `cuEventQuery`.
pub(crate) fn query(call: &mut Call<'_>, handle: Address) -> Outcome {
    let (event, version) = outside_capture(call, handle)?;
    call.record(&Record::EventQuery { api: call.api.0, event, version });
    let mut machine = call.machine();
    let machine: &mut HostMachine = &mut machine;
    let over =
        machine.events.get(handle)?.place.is_none_or(|(stream, at)| machine.progress.ask(stream, at.work));
    if over { Ok(()) } else { Err(RuntimeError::NOT_READY.into()) }
}

/// `cudaEventSynchronize`, `cuEventSynchronize`.
pub(crate) fn synchronize(call: &mut Call<'_>, handle: Address) -> Outcome {
    let (event, version) = outside_capture(call, handle)?;
    call.record(&Record::EventSynchronize { api: call.api.0, event, version });
    let mut machine = call.machine();
    let machine: &mut HostMachine = &mut machine;
    if let Some((stream, at)) = machine.events.get(handle)?.place {
        machine.progress.finish(stream, at.work);
    }
    Ok(())
}

fn outside_capture(call: &Call<'_>, handle: Address) -> Result<(trompe_base::EventId, u32), Failure> {
    let mut machine = call.machine();
    let machine: &mut HostMachine = &mut machine;
    let event = machine.events.get(handle)?;
    if let Some((capture, _)) = event.captured
        && let Some(state) = machine.graphs.capture_mut(capture)
    {
        state.invalidated = true;
        return Err(RuntimeError::CAPTURED_EVENT.into());
    }
    Ok((event.id, event.recordings.checked_sub(1).unwrap_or(NEVER)))
}

/// `cudaEventElapsedTime`, `cuEventElapsedTime`: what the work between the two recordings is thought to take; the host
/// time between them when there is none, or they are on different streams. Never zero.
pub(crate) fn elapsed_time(
    call: &mut Call<'_>,
    milliseconds: Out<f32>,
    start: Address,
    end: Address,
) -> Outcome {
    /// Resolution of event times in milliseconds, as documented.
    const RESOLUTION: f32 = 0.0005;
    let machine = call.machine();
    let (start, end) = (machine.events.get(start)?, machine.events.get(end)?);
    if [start, end].iter().any(|event| event.recordings == 0 || event.timing_disabled) {
        return Err(RuntimeError::INVALID_RESOURCE_HANDLE.into());
    }
    let over =
        |event: &Event| event.place.is_none_or(|(stream, at)| machine.progress.is_over(stream, at.work));
    if !over(start) || !over(end) {
        return Err(RuntimeError::NOT_READY.into());
    }
    let busy = match (start.place, end.place) {
        (Some((one, from)), Some((other, to))) if one == other => Progress::busy_between(from, to),
        _ => None,
    };
    let elapsed = busy.map_or(end.recorded_ns as f64 - start.recorded_ns as f64, |ns| ns as f64) / 1e6;
    let elapsed = elapsed as f32;
    milliseconds.write(if elapsed.abs() < RESOLUTION { RESOLUTION } else { elapsed })?;
    call.arguments = [u64::from(start.id.0), u64::from(end.id.0), 0, 0];
    Ok(())
}

/// `cudaStreamWaitEvent`, `cuStreamWaitEvent`.
pub(crate) fn stream_wait(
    call: &mut Call<'_>,
    stream_handle: Address,
    event: Address,
    flags: u32,
) -> Outcome {
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream_handle)?;
    let machine: &mut HostMachine = &mut machine;
    let event = machine.events.get(event)?.clone();
    let captured = event.captured.as_ref().filter(|(capture, _)| machine.graphs.capture(*capture).is_some());
    match (captured, stream.capture) {
        (Some((capture, nodes)), None) => {
            if stream.is_default {
                return Err(RuntimeError::STREAM_CAPTURE_IMPLICIT.into());
            }
            machine.streams.get_mut(stream_handle)?.capture = Some(*capture);
            machine.graphs.join(*capture, stream.id, nodes);
        }
        (Some((capture, nodes)), Some(own)) if *capture == own => {
            machine.graphs.join(*capture, stream.id, nodes);
        }
        (Some(_), Some(own)) => {
            if let Some(state) = machine.graphs.capture_mut(own) {
                state.invalidated = true;
            }
            return Err(RuntimeError::STREAM_CAPTURE_MERGE.into());
        }
        (None, Some(own)) if flags & EXTERNAL != 0 => {
            machine.graphs.enqueue(own, stream.id, NodeKind::WaitEvent, None);
        }
        (None, Some(own)) if event.recordings > 0 => {
            if let Some(state) = machine.graphs.capture_mut(own) {
                state.invalidated = true;
            }
            return Err(RuntimeError::STREAM_CAPTURE_ISOLATION.into());
        }
        (None, _) => {
            if let Some((other, at)) = event.place {
                machine.progress.wait((stream.id, stream.device), other, at.work);
            }
        }
    }
    let version = event.recordings.checked_sub(1).unwrap_or(NEVER);
    let record = Record::StreamWaitEvent { api: call.api.0, stream: stream.id, event: event.id, version };
    call.record(&record);
    Ok(())
}
