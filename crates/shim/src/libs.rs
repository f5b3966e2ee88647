//! The libraries above the runtime: one module per library, one function per exported symbol.
//!
//! What it is: glue. State lives in the device crate (`blas`, `dnn`, …) behind one lock; handlers here read the
//! caller's memory, ask that state what a call means, and write one record of what the device would do.
//!
//! Lock order: a handler never holds [`libraries`] while it asks for the machine.

pub(crate) mod cublas;
pub(crate) mod cudnn;
mod failure;
pub(crate) mod fft;
pub(crate) mod file;
pub(crate) mod nccl;
pub(crate) mod nvml;
pub(crate) mod nvrtc;
pub(crate) mod profiling;
pub(crate) mod random;
pub(crate) mod solver;
pub(crate) mod sparse;
#[rustfmt::skip]
pub(crate) mod structured;
pub(crate) mod symmetric;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use trompe_base::StreamId;
use trompe_device::blas::Blas;
use trompe_device::communicator::Communicators;
use trompe_device::compiler::Compilers;
use trompe_device::dnn::{DeviceTraits, Dnn};
use trompe_device::graph::NodeKind;
use trompe_device::numerics::{FftPlans, SparseShape, Streamed};
use trompe_device::progress::Work;
use trompe_device::{HandleTable, Kind};
use trompe_hardware::DeviceSheet;
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
    pub(crate) communicators: Communicators,
    pub(crate) compilers: Compilers,
    pub(crate) solvers: Streamed,
    pub(crate) sparse: Streamed,
    pub(crate) sparse_matrices: HandleTable<SparseShape>,
    pub(crate) generators: Streamed,
    pub(crate) transforms: FftPlans,
}

static LIBRARIES: OnceLock<Mutex<Libraries>> = OnceLock::new();

/// The libraries' state, locked.
pub(crate) fn libraries() -> MutexGuard<'static, Libraries> {
    let libraries = LIBRARIES.get_or_init(|| Mutex::new(Libraries::new()));
    libraries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Libraries {
    fn new() -> Self {
        let capability = machine()
            .sheet()
            .map_or(0, |sheet| sheet.compute.capability_major * 10 + sheet.compute.capability_minor);
        let traits = DeviceTraits { compute_capability: capability };
        Self {
            traits,
            blas: Blas::new(),
            dnn: Dnn::new(traits),
            communicators: Communicators::new(),
            compilers: Compilers::new(),
            solvers: Streamed::new(Kind::Solver),
            sparse: Streamed::new(Kind::Sparse),
            sparse_matrices: HandleTable::new(Kind::Opaque),
            generators: Streamed::new(Kind::Random),
            transforms: FftPlans::new(),
        }
    }
}

/// Makes the libraries' state anew, if it was made.
pub(crate) fn renew() {
    if let Some(libraries) = LIBRARIES.get() {
        let fresh = Libraries::new();
        *libraries.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }
}

/// The lock, held while the process forks.
pub(crate) fn hold() -> Option<MutexGuard<'static, Libraries>> {
    LIBRARIES.get().map(|libraries| libraries.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Puts a device operation on a stream: gives the stream's id in records, and whether the stream captures a graph,
/// which then has a node for the operation.
pub(crate) fn enqueue(call: &mut Call<'_>, stream: u64) -> Result<(StreamId, bool), LibraryFailure> {
    enqueue_work(call, stream, |_| 0)
}

/// The same with the nanoseconds that it is thought to take on a device.
pub(crate) fn enqueue_work(
    call: &mut Call<'_>,
    stream: u64,
    takes: impl FnOnce(&DeviceSheet) -> u64,
) -> Result<(StreamId, bool), LibraryFailure> {
    /// Numbers of library calls, as kernels; those of kernels are far smaller.
    const CALLS: u32 = 1 << 31;
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream)?;
    match stream.capture {
        Some(capture) => machine.graphs.enqueue(capture, stream.id, NodeKind::Kernel, None),
        None => {
            let ns = machine.sheet().map_or(0, takes);
            let work = Work::Given { kernel: CALLS | u32::from(call.api.0) };
            machine.progress.enqueue_work(stream.id, stream.device, work, ns);
        }
    }
    Ok((stream.id, stream.capture.is_some()))
}

/// Puts a device operation that has no record of its own kind on a stream and records it: bytes read and written, and
/// what it is, for people.
pub(crate) fn record_library(call: &mut Call<'_>, stream: u64, bytes: [u64; 2], detail: &str) -> Outcome {
    let (stream, _) = enqueue(call, stream)?;
    let [read, written] = bytes;
    call.record(&Record::Library { api: call.api.0, stream, read, written, detail });
    Ok(())
}
