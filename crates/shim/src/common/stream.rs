//! Streams: making, asking, waiting.

use std::sync::atomic::{AtomicU32, Ordering};

use trompe_base::{DeviceIndex, StreamId};
use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_device::stream::{LEGACY, PER_THREAD, legacy_id, per_thread_id};
use trompe_trace::record::{Record, StreamKind};

use super::Outcome;
use super::device::GREATEST_PRIORITY;
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;
use crate::sink;

/// A stream as a call uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRef {
    /// Id in records.
    pub(crate) id: StreamId,
    /// Its device.
    pub(crate) device: DeviceIndex,
    /// Graph that it captures into.
    pub(crate) capture: Option<u32>,
    /// Legacy or per-thread default stream.
    pub(crate) is_default: bool,
}

const NON_BLOCKING: u32 = 1;

impl Call<'_> {
    /// The stream behind a handle. A default stream is announced at its first use.
    ///
    /// # Errors
    /// When the handle is not live.
    pub(crate) fn stream(&mut self, machine: &HostMachine, handle: Address) -> Result<StreamRef, Failure> {
        let device = self.device();
        if handle > PER_THREAD {
            let stream = machine.streams.get(handle)?;
            let (id, device, capture) = (stream.id, stream.device, stream.capture);
            return Ok(StreamRef { id, device, capture, is_default: false });
        }
        let per_thread = handle == PER_THREAD;
        let id = if per_thread { per_thread_id(device) } else { legacy_id(device) };
        if self.recording() {
            let kind = if per_thread { StreamKind::PerThread } else { StreamKind::Legacy };
            announce_default(self, id, device, kind);
        }
        Ok(StreamRef { id, device, capture: None, is_default: true })
    }

    /// The id of the stream behind a handle, for records of library calls.
    ///
    /// # Errors
    /// When the handle is not live.
    pub(crate) fn stream_id(&mut self, handle: Address) -> Result<StreamId, Failure> {
        let machine = self.machine();
        Ok(self.stream(&machine, handle)?.id)
    }
}

fn announce_default(call: &mut Call<'_>, id: StreamId, device: DeviceIndex, kind: StreamKind) {
    static ANNOUNCED: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];
    let now = sink::generation();
    if ANNOUNCED[id.index()].load(Ordering::Relaxed) != now {
        ANNOUNCED[id.index()].store(now, Ordering::Relaxed);
        call.announce(&Record::Stream { id, device, priority: 0, kind });
    }
}

/// `cudaStreamCreateWithPriority`.
pub(crate) fn create_with_priority(call: &mut Call<'_>, out: Out<u64>, flags: u32, priority: i32) -> Outcome {
    if out.is_null() {
        return Err(Failure::NullPointer);
    }
    if flags > NON_BLOCKING {
        return Err(Failure::InvalidValue);
    }
    let device = call.device();
    call.activate(device)?;
    let priority = priority.clamp(GREATEST_PRIORITY, 0);
    let non_blocking = flags == NON_BLOCKING;
    let mut machine = call.machine();
    let handle = machine.streams.create(device, priority, non_blocking);
    let id = machine.streams.get(handle)?.id;
    drop(machine);
    let kind = if non_blocking { StreamKind::NonBlocking } else { StreamKind::Blocking };
    call.announce(&Record::Stream { id, device, priority, kind });
    call.arguments = [handle, u64::from(id.0), 0, 0];
    out.write(handle)?;
    Ok(())
}

/// `cudaStreamCreate`.
pub(crate) fn create(call: &mut Call<'_>, out: Out<u64>) -> Outcome {
    create_with_priority(call, out, 0, 0)
}

/// `cudaStreamCreateWithFlags`, `cuStreamCreate`.
pub(crate) fn create_with_flags(call: &mut Call<'_>, out: Out<u64>, flags: u32) -> Outcome {
    create_with_priority(call, out, flags, 0)
}

/// `cudaStreamDestroy`, `cuStreamDestroy`.
pub(crate) fn destroy(call: &mut Call<'_>, handle: Address) -> Outcome {
    let stream = call.machine().streams.destroy(handle)?;
    call.arguments = [handle, u64::from(stream.id.0), 0, 0];
    Ok(())
}

/// `cudaStreamGetPriority`, `cuStreamGetPriority`.
pub(crate) fn priority(call: &mut Call<'_>, handle: Address, priority: Out<i32>) -> Outcome {
    let value = if handle <= PER_THREAD { 0 } else { call.machine().streams.get(handle)?.priority };
    priority.write(value)?;
    Ok(())
}

/// `cudaStreamGetFlags`, `cuStreamGetFlags`.
pub(crate) fn flags(call: &mut Call<'_>, handle: Address, flags: Out<u32>) -> Outcome {
    let value =
        if handle <= PER_THREAD { 0 } else { u32::from(call.machine().streams.get(handle)?.non_blocking) };
    flags.write(value)?;
    Ok(())
}

/// `cudaStreamGetDevice`, `cuStreamGetDevice`.
pub(crate) fn device(call: &mut Call<'_>, handle: Address, device: Out<i32>) -> Outcome {
    let machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    device.write(stream.device.0 as i32)?;
    Ok(())
}

/// `cudaStreamGetId`, `cuStreamGetId`.
pub(crate) fn id(call: &mut Call<'_>, handle: Address, id: Out<u64>) -> Outcome {
    // The default streams have ids of their own, below those of created ones.
    let value = if handle == 0 { LEGACY } else { u64::from(call.stream_id(handle)?.0) };
    id.write(value)?;
    Ok(())
}

/// `cudaStreamSynchronize`, `cuStreamSynchronize`.
pub(crate) fn synchronize(call: &mut Call<'_>, handle: Address) -> Outcome {
    let mut machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    refuse_in_capture(&mut machine, stream)?;
    call.record(&Record::StreamSynchronize { api: call.api.0, stream: stream.id });
    machine.progress.finish_stream(stream.id);
    Ok(())
}

/// `cudaStreamQuery`, `cuStreamQuery`.
pub(crate) fn query(call: &mut Call<'_>, handle: Address) -> Outcome {
    let mut machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    refuse_in_capture(&mut machine, stream)?;
    call.arguments = [handle, u64::from(stream.id.0), 0, 0];
    let end = machine.progress.position(stream.id).work;
    if machine.progress.ask(stream.id, end) { Ok(()) } else { Err(RuntimeError::NOT_READY.into()) }
}

/// Ends a capture in error when the program asks for something that a capturing stream cannot do.
pub(crate) fn refuse_in_capture(machine: &mut HostMachine, stream: StreamRef) -> Outcome {
    let Some(capture) = stream.capture else { return Ok(()) };
    if let Some(state) = machine.graphs.capture_mut(capture) {
        state.invalidated = true;
    }
    Err(RuntimeError::STREAM_CAPTURE_UNSUPPORTED.into())
}

/// `cudaStreamGetAttribute`, `cuStreamGetAttribute`: attributes are accepted and read zero.
pub(crate) fn get_attribute(call: &mut Call<'_>, handle: Address, _: i32, value: Out<[u8; 64]>) -> Outcome {
    call.stream_id(handle)?;
    value.write([0; 64])?;
    Ok(())
}

/// `cudaStreamSetAttribute`, `cuStreamSetAttribute`.
pub(crate) fn set_attribute(call: &mut Call<'_>, handle: Address, _: i32, _: Address) -> Outcome {
    call.stream_id(handle).map(drop)
}
