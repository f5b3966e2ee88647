//! Reader of the traces that PyTorch's profiler writes (Kineto), from machines with real devices.
//!
//! A trace is Chrome trace event JSON, plain or gzip, of one process: operators with shapes, calls of the runtime, device
//! work with stream and correlation, annotations, allocator events (pytorch/kineto, `output_json.cpp`; the names of
//! categories and arguments changed over the years, and all spellings since 2021 are read).
//!
//! The file is read as a stream: only what is kept takes memory. Names are shared. Nothing is guessed: what a trace does not
//! state is `None`, and events of other kinds are counted in [`KinetoTrace::skipped`].
//!
//! Times are nanoseconds. Files state microseconds, since 2024 with three decimals; a file that holds nanoseconds is
//! recognised by its times: as microseconds since 1970 they would lie beyond the year 5000.

mod document;
mod error;
mod event;
mod join;
mod number;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

pub use error::KinetoError;
pub use join::{Launch, Step};

/// One process's trace. Every list is in order of start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KinetoTrace {
    /// Rank in the job, where the trace states it.
    pub rank: Option<u32>,
    /// Ranks of the job.
    pub world_size: Option<u32>,
    /// Communication backend (`nccl`).
    pub backend: Option<String>,
    /// Version of NCCL.
    pub nccl_version: Option<String>,
    /// Process groups.
    pub groups: Vec<ProcessGroup>,
    /// Devices of the machine.
    pub gpus: Vec<Gpu>,
    /// Nanoseconds since 1970 that times are counted from; counted from 1970 when `None`.
    pub base_time_ns: Option<i64>,
    /// Whether any time has a part below a microsecond; otherwise all are rounded to microseconds.
    pub has_nanoseconds: bool,
    /// Kernels, copies, fills and waits of devices.
    pub device_events: Vec<DeviceEvent>,
    /// Calls of the CUDA runtime and driver.
    pub runtime_calls: Vec<RuntimeCall>,
    /// Framework operators.
    pub operators: Vec<Operator>,
    /// Ranges named by programs, `ProfilerStep#N` among them.
    pub annotations: Vec<Annotation>,
    /// Allocator events.
    pub memory: Vec<MemoryEvent>,
    /// Events of other kinds, by category or phase.
    pub skipped: BTreeMap<String, u64>,
    /// Events of use that were passed over because there were too many of them.
    pub left: u64,
}

/// A process group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessGroup {
    /// Its name (often a number).
    pub name: String,
    /// What its maker calls it.
    pub description: String,
    /// Members, as global ranks.
    pub ranks: Vec<u32>,
    /// Number of members.
    pub size: Option<u32>,
}

/// A device, as the driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Number.
    pub id: u32,
    /// Marketing name.
    pub name: String,
    /// Bytes of memory.
    pub total_memory: u64,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Streaming multiprocessors, where stated.
    pub sm_count: Option<u32>,
}

/// Kinds of device events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceEventKind {
    /// A kernel.
    Kernel,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A wait for a stream, an event or the device.
    Synchronization,
}

/// Device work.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceEvent {
    /// What it is.
    pub kind: DeviceEventKind,
    /// Demangled kernel name, or `Memcpy DtoD (Device -> Device)` and the like.
    pub name: Arc<str>,
    /// Start.
    pub start_ns: i64,
    /// Duration.
    pub duration_ns: u64,
    /// Device number.
    pub device: Option<i64>,
    /// Stream number; -1 where the trace says so (waits for a device).
    pub stream: Option<i64>,
    /// Number shared with the call that launched it.
    pub correlation: Option<u64>,
    /// Number shared with the operator that launched it. Old traces repeat the correlation here: see
    /// [`KinetoTrace::launches`].
    pub external_id: Option<u64>,
    /// Blocks.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block.
    pub block: Option<[u32; 3]>,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Shared memory of a block in bytes.
    pub shared_memory: Option<u64>,
    /// Bytes copied or filled.
    pub bytes: Option<u64>,
    /// Correlation of the record call that this waits for.
    pub waits_for: Option<u64>,
    /// What a collective's kernel states.
    pub collective: Option<Box<Collective>>,
}

/// What a collective's kernel or operator states (PyTorch, `record_param_comms`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collective {
    /// `allreduce`, `_allgather_base`, `reduce_scatter`, `all_to_allv`, `send` and so on.
    pub name: String,
    /// Element type as PyTorch names it (`Float`, `BFloat16`).
    pub dtype: Option<String>,
    /// Elements put in by this rank.
    pub in_elements: Option<u64>,
    /// Elements that this rank gets.
    pub out_elements: Option<u64>,
    /// Ranks of the group.
    pub group_size: Option<u32>,
    /// Name of the group.
    pub group: Option<String>,
    /// What its maker calls it.
    pub group_description: Option<String>,
    /// Members; empty when not stated or cut short.
    pub ranks: Vec<u32>,
    /// Elements for each member (all-to-all with unequal parts).
    pub in_split: Vec<u64>,
    /// Elements from each member.
    pub out_split: Vec<u64>,
    /// Number of the operation in its group.
    pub sequence: Option<u64>,
    /// Peer of a message to.
    pub destination: Option<i64>,
    /// Peer of a message from, or root.
    pub source: Option<i64>,
}

/// A call of the CUDA runtime or driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeCall {
    /// Function (`cudaLaunchKernel`).
    pub name: Arc<str>,
    /// Whether it is the driver's and not the runtime's.
    pub driver: bool,
    /// Thread that called.
    pub thread: i64,
    /// Start.
    pub start_ns: i64,
    /// Duration.
    pub duration_ns: u64,
    /// Number shared with the device work that it launched.
    pub correlation: Option<u64>,
    /// Number shared with the operator that called.
    pub external_id: Option<u64>,
}

/// A framework operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// `aten::mm` and the like.
    pub name: Arc<str>,
    /// Thread that ran it.
    pub thread: i64,
    /// Start.
    pub start_ns: i64,
    /// Duration.
    pub duration_ns: u64,
    /// Its number; device work and calls of the runtime refer to it.
    pub external_id: Option<u64>,
    /// Number that a forward operator shares with its backward.
    pub sequence: Option<u64>,
    /// Thread that ran the forward, for a backward operator.
    pub forward_thread: Option<i64>,
    /// Shape of each argument; empty when the trace was taken without shapes.
    pub shapes: Vec<Shape>,
    /// Stride of each argument.
    pub strides: Vec<Shape>,
    /// Type of each argument (`float`, `c10::BFloat16`, `Scalar`, empty).
    pub types: Vec<Arc<str>>,
    /// Value of each argument that is no tensor.
    pub values: Vec<String>,
    /// What `record_param_comms` states.
    pub collective: Option<Box<Collective>>,
}

/// Shape of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A tensor's; empty also for an argument that is no tensor.
    Tensor(Vec<i64>),
    /// The shapes of a list of tensors.
    List(Vec<Vec<i64>>),
}

/// A range that a program named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is on the device and not on the host.
    pub on_device: bool,
    /// Thread, or stream on the device.
    pub thread: i64,
    /// Start.
    pub start_ns: i64,
    /// Duration.
    pub duration_ns: u64,
    /// Its number.
    pub external_id: Option<u64>,
}

/// A change of allocated memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// When.
    pub at_ns: i64,
    /// Device number; `None` for the host.
    pub device: Option<u32>,
    /// Bytes allocated; negative for freed.
    pub bytes: i64,
    /// Allocated after it.
    pub total_allocated: Option<u64>,
    /// Reserved after it.
    pub total_reserved: Option<u64>,
}

/// Reads the trace in a file, plain or gzip (recognised by content, not by name).
///
/// # Errors
/// When the file cannot be read, is cut short, is no JSON or no such trace; the error names what and where.
pub fn read(path: &Path) -> Result<KinetoTrace, KinetoError> {
    read_most(path, u64::MAX)
}

/// The same of a file that may be larger than memory: what follows `most` events of use (kernels, calls, operators, ranges)
/// is passed over, and [`KinetoTrace::left`] says how many those were.
///
/// # Errors
/// As for [`read`].
pub fn read_most(path: &Path, most: u64) -> Result<KinetoTrace, KinetoError> {
    let at = |error: KinetoError| error.in_file(path);
    let file = File::open(path).map_err(|error| at(KinetoError::Io(error)))?;
    stream(file, most).map_err(at)
}

/// Reads a trace from a stream, plain or gzip.
///
/// # Errors
/// As for [`read`].
pub fn read_from<R: Read>(reader: R) -> Result<KinetoTrace, KinetoError> {
    stream(reader, u64::MAX)
}

fn stream<R: Read>(reader: R, most: u64) -> Result<KinetoTrace, KinetoError> {
    let mut reader = BufReader::with_capacity(1 << 18, reader);
    let compressed = reader.fill_buf().map_err(KinetoError::Io)?.starts_with(&[0x1f, 0x8b]);
    if compressed {
        // Several members one after the other are one file, as `cat` makes them.
        let plain = flate2::bufread::MultiGzDecoder::new(reader);
        document::parse(BufReader::with_capacity(1 << 18, plain), most)
    } else {
        document::parse(reader, most)
    }
}
