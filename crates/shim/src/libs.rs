//! The libraries above the runtime: one module per library, one function per exported symbol.
//!
//! What it is: glue. State lives in the device crate (`blas`, `dnn`, …) behind one lock; handlers here read the
//! caller's memory, ask that state what a call means, and write one record of what the device would do.
//!
//! Lock order: a handler never holds [`libraries`] while it asks for the machine.

pub(crate) mod cublas;
pub(crate) mod cudnn;
mod failure;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use trompe_base::StreamId;
use trompe_device::blas::Blas;
use trompe_device::dnn::{DeviceTraits, Dnn};
use trompe_device::stream;
use trompe_trace::record::Record;

use crate::door::Call;
use crate::process::machine;

pub(crate) use failure::LibraryFailure;

/// What handlers return.
pub(crate) type Outcome = Result<(), LibraryFailure>;

/// State of all libraries of the process.
#[derive(Debug)]
pub(crate) struct Libraries {
    pub(crate) traits: DeviceTraits,
    pub(crate) blas: Blas,
    pub(crate) dnn: Dnn,
}

static LIBRARIES: OnceLock<Mutex<Libraries>> = OnceLock::new();

/// The libraries' state, locked.
pub(crate) fn libraries() -> MutexGuard<'static, Libraries> {
    let libraries = LIBRARIES.get_or_init(|| {
        let capability = machine()
            .sheet()
            .map_or(0, |sheet| sheet.compute.capability_major * 10 + sheet.compute.capability_minor);
        let traits = DeviceTraits { compute_capability: capability };
        Mutex::new(Libraries { traits, blas: Blas::new(), dnn: Dnn::new(traits) })
    });
    libraries.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, held while the process forks.
pub(crate) fn hold() -> Option<MutexGuard<'static, Libraries>> {
    LIBRARIES.get().map(|libraries| libraries.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The stream's id in records.
pub(crate) fn stream_id(call: &Call<'_>, handle: u64) -> StreamId {
    match handle {
        0 | stream::LEGACY => stream::legacy_id(call.device()),
        stream::PER_THREAD => stream::per_thread_id(call.device()),
        _ => call
            .machine()
            .streams
            .get(handle)
            .map_or_else(|_| stream::legacy_id(call.device()), |stream| stream.id),
    }
}

/// Records a device operation that has no record of its own kind.
pub(crate) fn record_library(call: &mut Call<'_>, stream: u64, bytes: [u64; 2], detail: &str) {
    let stream = stream_id(call, stream);
    let [read, written] = bytes;
    call.record(&Record::Library { api: call.api.0, stream, read, written, detail });
}
