//! The job trace: everything a simulation needs, with no trace of how it was recorded.
//!
//! A job is a list of ranks, each an instance of a [`RankTemplate`] (equal ranks share one). A template is one merged
//! list of [`HostEvent`]s in the order the host made them: each waits for some host time and then acts, mostly by
//! enqueueing a device operation. Device operations are interned: an event names a row of [`RankTemplate::operations`],
//! so that each distinct operation is priced once.
//!
//! Host times are those of the recording machine, already robust over the job's steps, without the emulator's own
//! cost. What the real API calls would have cost is not in them: [`CallClass`] says which call it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trompe_base::{Bytes, DType, Duration, EventId, Rank, StreamId, ThreadIndex};

use crate::descriptor::{Descriptor, Direction};
use crate::queues::DispatchQueues;
use crate::record::{CollectiveKind, StreamKind};

/// A whole job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobTrace {
    /// Facts about the recording: command line, versions, environment, processor.
    pub facts: BTreeMap<String, String>,
    /// Distinct behaviours.
    pub templates: Vec<RankTemplate>,
    /// `ranks[r]` is rank `r`.
    pub ranks: Vec<RankInstance>,
    /// All communicators of the job.
    pub communicators: Vec<Communicator>,
    /// What the reader of the traces should tell the user.
    pub notes: Vec<Note>,
}

/// One rank: which template it follows and in which communicators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankInstance {
    /// Row of [`JobTrace::templates`].
    pub template: usize,
    /// For each communicator slot that the template's collectives name, the row of [`JobTrace::communicators`].
    pub communicators: Vec<usize>,
    /// Whether this rank really ran; otherwise it is assumed equal to one that did.
    pub emulated: bool,
}

/// A communicator of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Communicator {
    /// Global ranks of its members, in communicator order.
    pub members: Vec<Rank>,
    /// What it is for where that is known, for example `dp` or `tp`.
    pub purpose: Option<String>,
}

/// Something the user should know about the trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    /// How bad it is.
    pub severity: Severity,
    /// One sentence.
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How bad a [`Note`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Makes some number less trustworthy.
    Warning,
    /// Something is missing or wrong.
    Error,
}

/// What one rank does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankTemplate {
    /// Distinct device operations.
    pub operations: Vec<Operation>,
    /// Distinct places in the program (framework operator and phase) that events come from.
    pub sites: Vec<Site>,
    /// Streams.
    pub streams: Vec<Stream>,
    /// Everything the host does, in order.
    pub events: Vec<HostEvent>,
    /// Where the steps are.
    pub steps: Steps,
    /// Device memory over the run.
    pub memory: Memory,
    /// Calls per API function: `(library/symbol/class, calls)`, sorted by name.
    pub calls: Vec<(String, u64)>,
    /// How the process ended.
    pub ending: Ending,
}

impl RankTemplate {
    /// Which of its threads go on by themselves.
    #[must_use]
    pub fn queues(&self) -> DispatchQueues {
        DispatchQueues::of(&self.events)
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Its trace has an end mark.
    Orderly,
    /// Its trace stops without one (killed, or still running).
    #[default]
    Cut,
}

/// A distinct device operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Raw name: mangled kernel name or API function.
    pub name: String,
    /// The same for people: demangled and shortened.
    pub short_name: String,
    /// What it computes.
    pub descriptor: Descriptor,
    /// Forward, backward or weight gradient, as far as known from the program.
    pub direction: Direction,
    /// How it was launched; `None` for library calls, whose kernels are not seen.
    pub launch: Option<Launch>,
}

/// Launch geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Static and dynamic shared memory per block in bytes.
    pub shared: u32,
    /// Registers per thread; zero when unknown.
    pub registers: u32,
}

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// Innermost framework operator, for example `aten::addmm`; empty when unknown.
    pub operator: String,
    /// Outermost named range or autograd node above it, for example `AddmmBackward0`.
    pub scope: String,
    /// Which part of the step.
    pub phase: Phase,
}

/// Parts of a training step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Forward pass and everything that is not one of the others.
    #[default]
    Forward,
    /// Backward pass.
    Backward,
    /// Forward pass run again inside the backward pass (activation checkpointing).
    Recompute,
    /// Parameter update.
    Optimizer,
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Its id in the events.
    pub id: StreamId,
    /// Device inside the process.
    pub device: u32,
    /// CUDA priority, lower is more urgent.
    pub priority: i32,
    /// How it orders against the legacy default stream.
    pub kind: StreamKind,
}

/// One thing the host does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostEvent {
    /// The thread that made the call.
    pub thread: ThreadIndex,
    /// Host time before the call: the framework's and the program's own work since the previous event.
    pub gap: Duration,
    /// Which kind of API call it was.
    pub call: CallClass,
    /// Row of [`RankTemplate::sites`].
    pub site: u32,
    /// What it does.
    pub action: Action,
}

/// Classes of API calls that differ in what they cost the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallClass {
    /// Kernel launch.
    Launch,
    /// Library call that chooses and launches a kernel (cuBLAS, cuDNN, …).
    LibraryLaunch,
    /// Collective call.
    Collective,
    /// Asynchronous copy or fill.
    Copy,
    /// Recording of an event, or a stream's wait for one.
    Event,
    /// Query or synchronisation.
    Synchronize,
    /// Device memory from or to the driver, page-locked host memory likewise.
    Memory,
    /// Device memory from or to a stream-ordered pool (`cudaMallocAsync`, `cudaFreeAsync`).
    Pool,
    /// Graph launch.
    Graph,
    /// No API call (a mark).
    None,
}

/// The effect of a host event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Enqueues a device operation.
    Enqueue {
        /// Where.
        stream: StreamId,
        /// Row of [`RankTemplate::operations`].
        operation: u32,
        /// The host waits until it is done (blocking copy).
        blocking: bool,
    },
    /// Enqueues a collective or point-to-point operation.
    Collective {
        /// Where.
        stream: StreamId,
        /// What.
        collective: Collective,
    },
    /// Records an event on a stream.
    RecordEvent {
        /// Where.
        stream: StreamId,
        /// Event.
        event: EventId,
        /// Recording number.
        version: u32,
    },
    /// Makes a stream wait for a recording.
    WaitEvent {
        /// The waiting stream.
        stream: StreamId,
        /// Event.
        event: EventId,
        /// Recording number.
        version: u32,
    },
    /// The host waits for a recording.
    SynchronizeEvent {
        /// Event.
        event: EventId,
        /// Recording number.
        version: u32,
    },
    /// The host waits for everything enqueued on a stream.
    SynchronizeStream {
        /// Stream.
        stream: StreamId,
    },
    /// The host waits for everything enqueued on a device.
    SynchronizeDevice {
        /// Device inside the process.
        device: u32,
    },
    /// Enqueues operations as one graph: launched at once, run in dependency order without further host cost.
    Graph {
        /// Where.
        stream: StreamId,
        /// The operations in capture order (rows of [`RankTemplate::operations`]).
        operations: Vec<u32>,
    },
    /// Nothing on the device: only host time passes.
    Host,
    /// The thread hands something over to other threads of the process.
    Give {
        /// What, counted from zero; given once.
        token: u32,
    },
    /// The thread goes on when another thread has given this.
    Take {
        /// What.
        token: u32,
    },
}

/// A collective operation of the job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Collective {
    /// Which operation.
    pub kind: CollectiveKind,
    /// Slot in [`RankInstance::communicators`].
    pub communicator: u32,
    /// The call's number in its communicator.
    pub sequence: u64,
    /// Bytes in the convention of nccl-tests (the large buffer for all-gather and reduce-scatter).
    pub bytes: Bytes,
    /// Element type.
    pub dtype: DType,
    /// Root or peer in the communicator.
    pub peer: u32,
    /// Group call it is part of, or zero.
    pub group: u64,
}

/// How the steps were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSource {
    /// The end of each optimizer step.
    Optimizer,
    /// Launches of CUDA graphs that hold the training step.
    Replay,
    /// Ranges that the program marks.
    Marker,
    /// The period of the operation sequence.
    Period,
    /// Given by the user.
    User,
    /// None were found: the whole run is taken as one step.
    #[default]
    WholeRun,
}

/// The steps of a run, as ranges of [`RankTemplate::events`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// Begin of each step, ascending, and the end of the last one (so one more entry than steps).
    pub boundaries: Vec<usize>,
    /// Steps at the start that differ from the later ones and are excluded.
    pub warmup: usize,
    /// How they were found.
    pub source: StepSource,
    /// Sequences or images that one step processes on this rank, where that could be read off the operations.
    pub samples: Option<u64>,
    /// Tokens that one step processes on this rank.
    pub tokens: Option<u64>,
    /// Where [`Self::samples`] and [`Self::tokens`] were read, for people.
    pub samples_from: Option<String>,
}

impl Steps {
    /// Number of steps, warm-up included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.boundaries.len().saturating_sub(1)
    }
}

/// Device memory over a run, all in bytes. The framework's numbers are those of its own caching allocator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// What the device offers.
    pub capacity: Bytes,
    /// Highest sum of live tensors (`torch.cuda.max_memory_allocated`); `None` when nothing reported it.
    pub peak_allocated: Option<Bytes>,
    /// Highest sum of the allocator's segments (`torch.cuda.max_memory_reserved`).
    pub peak_reserved: Option<Bytes>,
    /// Highest total that the device had given out, charges included.
    pub peak_total: Bytes,
    /// Memory that belongs to no allocation of the program: owner and bytes.
    pub charges: Vec<(String, Bytes)>,
    /// The allocator's state over time, thinned to at most a few thousand points.
    pub timeline: Vec<MemorySample>,
    /// Who owned the live tensors at the peak: site (operator and phase) and bytes, largest first.
    pub owners_at_peak: Vec<(String, Bytes)>,
    /// A failed allocation that the program did not survive or had to free memory for.
    pub out_of_memory: Vec<OutOfMemory>,
}

/// The allocator's state after a host event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySample {
    /// Row of [`RankTemplate::events`].
    pub event: u64,
    /// Live tensors.
    pub allocated: Bytes,
    /// Segments.
    pub reserved: Bytes,
}

/// A failed allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfMemory {
    /// Row of [`RankTemplate::events`] before which it happened.
    pub event: u64,
    /// What was asked for.
    pub requested: Bytes,
    /// What the device had given out.
    pub used: Bytes,
    /// The operator that asked.
    pub site: String,
}
