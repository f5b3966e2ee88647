//! The records of a worker trace: one per API call, framework operator, allocator event or mark.
//!
//! A [`Record`] borrows its text and byte strings, so that writing one allocates nothing and reading one copies
//! nothing. Ids (kernels, API functions, operator names, streams, events) are small integers given at first use and
//! announced by a record of their own; they differ from process to process. Announcements may lie in another thread's
//! chunks than their uses, so a reader collects them from the whole file first ([`crate::reader::Names`]).
//!
//! Compatibility: bodies are [postcard](https://docs.rs/postcard) of this enum. New variants and new fields are added
//! only with a new [`FORMAT_VERSION`]; a reader refuses versions that it does not know.

use serde::{Deserialize, Serialize};
use trompe_base::{DType, DeviceIndex, EventId, KernelId, StreamId};

use crate::descriptor::{Attention, Convolution, Copy, Gemm, Rnn};

/// Version of the file layout and of every record body.
pub const FORMAT_VERSION: u32 = 3;

/// Begin and end of what a record describes, in ticks of the process's counter (see [`Record::Clock`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Counter value at entry.
    pub begin: u64,
    /// Ticks from entry to exit, saturating.
    pub ticks: u32,
}

/// Which table a [`Record::Name`] extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NameTable {
    /// API functions; the name is `library/symbol/class`, for example `cudart/cudaMalloc/emulated`.
    Api,
    /// Framework operators, for example `aten::linear`.
    Operator,
    /// Places in the program, for example `train.py:31`.
    Place,
}

/// Kinds of [`Record::Marker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkerKind {
    /// A point in time.
    Instant,
    /// Begin of a range; ranges nest per thread.
    Push,
    /// End of the innermost range.
    Pop,
}

/// How work on a stream orders against the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StreamKind {
    /// The legacy default stream: synchronises with every blocking stream of its device.
    Legacy,
    /// A per-thread default stream.
    PerThread,
    /// Created blocking: ordered against the legacy stream.
    Blocking,
    /// Created with the non-blocking flag.
    NonBlocking,
}

/// Collective and point-to-point operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum CollectiveKind {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    Reduce,
    AllToAll,
    Gather,
    Scatter,
    Send,
    Recv,
}

impl CollectiveKind {
    /// The operation's name for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::AllToAll => "all-to-all",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Send => "send",
            Self::Recv => "receive",
        }
    }
}

/// A collective call as one rank makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// Which operation.
    pub kind: CollectiveKind,
    /// The communicator's id in this process (see [`Record::Communicator`]).
    pub communicator: u32,
    /// The call's number in its communicator, from 0. Sends and receives are counted apart from the other calls, per
    /// direction and peer, because members make different numbers of them.
    pub sequence: u64,
    /// Elements, as the caller counts them (per rank for all-gather and reduce-scatter).
    pub count: u64,
    /// Element type.
    pub dtype: DType,
    /// Reduction operator number (`ncclRedOp_t`), or zero.
    pub operator: u32,
    /// Root or peer rank in the communicator; zero where there is none.
    pub peer: u32,
    /// Number of the group call this one is part of (from 1), or zero outside of a group.
    pub group: u64,
}

/// One record's body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record<'a> {
    /// Pairs the record's own `begin` ticks with the monotonic clock; written at start, at the end and now and then.
    Clock {
        /// `CLOCK_MONOTONIC` in nanoseconds.
        monotonic_ns: u64,
        /// Nanoseconds since 1970.
        unix_ns: u64,
    },
    /// A fact about the process: versions, environment, arguments, statistics.
    Meta {
        /// Dotted name, for example `torch.version`.
        key: &'a str,
        /// Its value.
        value: &'a str,
    },
    /// Announces an id.
    Name {
        /// The table.
        table: NameTable,
        /// The new id.
        id: u32,
        /// What it stands for.
        name: &'a str,
    },
    /// Announces a kernel.
    Kernel {
        /// The new id.
        id: KernelId,
        /// Mangled name.
        name: &'a str,
        /// Registers per thread; zero when unknown.
        registers: u32,
        /// Static shared memory in bytes.
        static_shared: u32,
        /// Sizes of the parameters in bytes, in order; empty when unknown.
        #[serde(serialize_with = "bytes")]
        parameters: &'a [u8],
        /// Whether the kernel came from a module loaded at run time (Triton, NVRTC).
        from_module: bool,
    },
    /// Announces a stream.
    Stream {
        /// The new id.
        id: StreamId,
        /// Its device.
        device: DeviceIndex,
        /// CUDA priority, lower is more urgent.
        priority: i32,
        /// Ordering rule.
        kind: StreamKind,
    },
    /// Announces a communicator.
    Communicator {
        /// The new id.
        id: u32,
        /// Equal on all members, different between communicators.
        identity: u64,
        /// Members.
        size: u32,
        /// This process's place in it.
        rank: u32,
        /// The device it works on.
        device: DeviceIndex,
        /// Global ranks of the members in order, little-endian `u32`s; empty when not known.
        #[serde(serialize_with = "bytes")]
        members: &'a [u8],
    },
    /// An API call without a record of its own kind.
    Call {
        /// API id.
        api: u16,
        /// First integer arguments.
        arguments: [u64; 4],
    },
    /// A kernel launch.
    Launch {
        /// API id.
        api: u16,
        /// Which kernel.
        kernel: KernelId,
        /// Where.
        stream: StreamId,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// Threads per block in x, y, z.
        block: [u32; 3],
        /// Dynamic shared memory in bytes.
        shared: u32,
        /// Parameter values, one after the other in the order of [`Record::Kernel::parameters`].
        #[serde(serialize_with = "bytes")]
        parameters: &'a [u8],
    },
    /// A matrix product by a library.
    Gemm {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// What.
        gemm: Gemm,
    },
    /// A convolution by a library.
    Convolution {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// What.
        convolution: Convolution,
    },
    /// Fused attention by a library.
    Attention {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// What.
        attention: Attention,
    },
    /// A recurrent network by a library.
    Rnn {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// What.
        rnn: Rnn,
    },
    /// Another device operation by a library (batch norm, FFT, solver, sparse, random, an operation graph).
    Library {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// Bytes read, ideal; zero when unknown.
        read: u64,
        /// Bytes written, ideal; zero when unknown.
        written: u64,
        /// What the call is made of, for people, for example an operation graph.
        detail: &'a str,
    },
    /// A collective or point-to-point call.
    Collective {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// What.
        collective: Collective,
    },
    /// A memory copy.
    Copy {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// What.
        copy: Copy,
        /// The host waits for it (synchronous call, or pageable memory).
        blocking: bool,
    },
    /// A memory fill.
    Set {
        /// API id.
        api: u16,
        /// Where.
        stream: StreamId,
        /// Length in bytes.
        bytes: u64,
        /// The byte or word written.
        value: u32,
    },
    /// Device memory reserved from the driver (not from a framework's caching allocator).
    Malloc {
        /// API id.
        api: u16,
        /// Device.
        device: DeviceIndex,
        /// Address, or zero when out of memory.
        address: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// Device memory given back to the driver.
    Free {
        /// API id.
        api: u16,
        /// Device.
        device: DeviceIndex,
        /// Address.
        address: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// Device memory taken or given back by something that is no allocation of the program.
    Charge {
        /// Device.
        device: DeviceIndex,
        /// Who, for example `cuda_context` or `cublas_workspace`.
        owner: &'a str,
        /// Bytes, negative when given back.
        bytes: i64,
    },
    /// An event recorded on a stream.
    EventRecord {
        /// API id.
        api: u16,
        /// Event.
        event: EventId,
        /// How often the event was recorded before.
        version: u32,
        /// Stream.
        stream: StreamId,
    },
    /// A stream made to wait for an event.
    StreamWaitEvent {
        /// API id.
        api: u16,
        /// The waiting stream.
        stream: StreamId,
        /// Event.
        event: EventId,
        /// The recording waited for; [`u32::MAX`] when never recorded (no wait).
        version: u32,
    },
    /// The host waits for an event.
    EventSynchronize {
        /// API id.
        api: u16,
        /// Event.
        event: EventId,
        /// The recording waited for; [`u32::MAX`] when never recorded.
        version: u32,
    },
    /// The host asks whether an event is over.
    EventQuery {
        /// API id.
        api: u16,
        /// Event.
        event: EventId,
        /// The recording asked for; [`u32::MAX`] when never recorded.
        version: u32,
    },
    /// The host waits for a stream.
    StreamSynchronize {
        /// API id.
        api: u16,
        /// Stream.
        stream: StreamId,
    },
    /// The host waits for a device.
    DeviceSynchronize {
        /// API id.
        api: u16,
        /// Device.
        device: DeviceIndex,
    },
    /// A host function enqueued on a stream.
    HostFunction {
        /// API id.
        api: u16,
        /// Stream.
        stream: StreamId,
    },
    /// A stream begins to record a graph: until [`Record::CaptureEnd`], operations on it and on streams that wait
    /// for it are nodes of the graph and do not run.
    CaptureBegin {
        /// Stream.
        stream: StreamId,
        /// Graph id.
        graph: u32,
    },
    /// The graph is complete.
    CaptureEnd {
        /// Stream.
        stream: StreamId,
        /// Graph id.
        graph: u32,
    },
    /// An executable graph made of a graph.
    GraphInstantiate {
        /// Graph id.
        graph: u32,
        /// Executable's id.
        executable: u32,
    },
    /// An executable graph launched.
    GraphLaunch {
        /// API id.
        api: u16,
        /// Executable's id.
        executable: u32,
        /// Stream.
        stream: StreamId,
    },
    /// A framework operator begins; its record's time is the begin of the operator.
    OperatorBegin {
        /// Operator name id.
        name: u32,
        /// `at::RecordScope` number.
        scope: u8,
        /// Autograd sequence number, -1 when none.
        sequence: i64,
        /// Thread that ran the forward operator of this backward node, or 0.
        forward_thread: u64,
        /// Inputs, see [`crate::values`].
        #[serde(serialize_with = "bytes")]
        values: &'a [u8],
    },
    /// The innermost framework operator of this thread ends.
    OperatorEnd {
        /// Outputs, see [`crate::values`].
        #[serde(serialize_with = "bytes")]
        values: &'a [u8],
    },
    /// An event of the framework's caching allocator.
    Allocator {
        /// `CUDACachingAllocator::TraceEntry::Action` number.
        action: u8,
        /// Address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// The framework's stream handle.
        stream: u64,
    },
    /// A mark by the program.
    Marker {
        /// Instant, push or pop.
        kind: MarkerKind,
        /// Text; empty for pop.
        text: &'a str,
    },
    /// How often an API function was called in the whole process (also those that are only counted).
    ApiCount {
        /// API id.
        api: u16,
        /// Calls.
        calls: u64,
    },
    /// Records that could not be written.
    Dropped {
        /// How many.
        records: u64,
        /// Why.
        reason: &'a str,
    },
    /// The process ended in an orderly way.
    End,
    /// This thread is about to communicate on behalf of a line of the program, until the next such record.
    Place {
        /// Place id; zero ends the one before.
        place: u32,
    },
    /// This thread hands something over to another one: what follows [`Record::Take`] of the same token there comes
    /// after this.
    Give {
        /// Equal on both sides; given once.
        token: u64,
    },
    /// This thread has taken what another one gave; its record's time is that of waiting for it.
    Take {
        /// Equal on both sides; may be taken by several.
        token: u64,
    },
}

/// Writes a byte string at once; serde's own form of a slice goes byte by byte, into the same bytes.
fn bytes<S: serde::Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

impl Record<'_> {
    /// The API function that the record stands for; `None` for records of something else.
    #[must_use]
    pub const fn api(&self) -> Option<u16> {
        match self {
            Self::Call { api, .. }
            | Self::Launch { api, .. }
            | Self::Gemm { api, .. }
            | Self::Convolution { api, .. }
            | Self::Attention { api, .. }
            | Self::Rnn { api, .. }
            | Self::Library { api, .. }
            | Self::Collective { api, .. }
            | Self::Copy { api, .. }
            | Self::Set { api, .. }
            | Self::Malloc { api, .. }
            | Self::Free { api, .. }
            | Self::EventRecord { api, .. }
            | Self::StreamWaitEvent { api, .. }
            | Self::EventSynchronize { api, .. }
            | Self::EventQuery { api, .. }
            | Self::StreamSynchronize { api, .. }
            | Self::DeviceSynchronize { api, .. }
            | Self::HostFunction { api, .. }
            | Self::GraphLaunch { api, .. } => Some(*api),
            _ => None,
        }
    }
}
