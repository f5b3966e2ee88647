//! Device memory: peaks against capacity, who owns the peak, and how it developed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Device memory of the job; the totals are those of the fullest rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Largest `torch.cuda.max_memory_allocated()` of any emulated rank, in bytes.
    pub peak_allocated_bytes: u64,
    /// Largest `torch.cuda.max_memory_reserved()` of any emulated rank, in bytes.
    pub peak_reserved_bytes: u64,
    /// Largest use of the whole device on any emulated rank in bytes, as `nvidia-smi` would show it: what the
    /// allocator holds, plus everything charged outside of it.
    pub total_bytes: u64,
    /// Memory of one device in bytes.
    pub capacity_bytes: u64,
    /// Where the capacity comes from.
    pub capacity_source: String,
    /// The rank with the largest total.
    pub fullest_rank: u32,
    /// Each emulated rank.
    pub ranks: Vec<RankMemory>,
}

/// Device memory of one emulated rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankMemory {
    /// The rank.
    pub rank: u32,
    /// Most bytes in live tensors at once (`torch.cuda.max_memory_allocated()`).
    pub peak_allocated_bytes: u64,
    /// Most bytes that the allocator held from the device at once (`torch.cuda.max_memory_reserved()`).
    pub peak_reserved_bytes: u64,
    /// Most bytes of the device in use at once.
    pub total_bytes: u64,
    /// Bytes in use outside the framework's allocator, each with its reason.
    pub charges: Vec<Charge>,
    /// What the horizontal axis of `samples` is.
    pub axis: MemoryAxis,
    /// Memory over the run, in order. Thinned so that every peak is kept.
    pub samples: Vec<MemorySample>,
    /// Where each step starts on the axis of `samples`.
    pub step_starts: Vec<f64>,
    /// Where on that axis the peak of allocated bytes is; `None` when no allocation was seen.
    pub peak_at: Option<f64>,
    /// Who owned the bytes allocated at the peak, largest first.
    pub owners: Vec<MemoryOwner>,
    /// Allocations that the framework's allocator served; `None` when they were not counted.
    pub allocations: Option<u64>,
    /// How often the allocator had to free its cache and try again; `None` when it was not counted.
    pub retries: Option<u64>,
}

/// Device memory in use outside the framework's allocator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Charge {
    /// What uses it ("CUDA context", "cuBLAS workspace", "NCCL buffers", …).
    pub what: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Where the size comes from.
    pub source: String,
}

/// The meaning of [`MemorySample::at`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAxis {
    /// Seconds of simulated time.
    SimulatedSeconds,
    /// Seconds since the emulated process started.
    RecordedSeconds,
    /// Number of the allocator event.
    #[default]
    Event,
}

/// Device memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySample {
    /// The moment, in units of [`RankMemory::axis`].
    pub at: f64,
    /// Bytes in live tensors.
    pub allocated_bytes: u64,
    /// Bytes that the allocator holds from the device.
    pub reserved_bytes: u64,
}

/// A share of the bytes allocated at the peak.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryOwner {
    /// The operator or module that allocated the bytes.
    pub owner: String,
    /// What they are for.
    pub kind: OwnerKind,
    /// Bytes alive at the peak.
    pub bytes: u64,
    /// Number of live allocations; `None` when they were not counted.
    pub allocations: Option<u64>,
}

/// What allocated bytes are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// Weights and buffers that live through the whole run.
    Parameters,
    /// Gradients of weights.
    Gradients,
    /// State of the optimizer.
    OptimizerState,
    /// Results kept for the backward pass.
    Activations,
    /// Inputs and targets.
    Inputs,
    /// Scratch space of a library.
    Workspace,
    /// Anything else.
    #[default]
    Unknown,
}

impl OwnerKind {
    /// The name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activations => "activations",
            Self::Inputs => "inputs",
            Self::Workspace => "workspace",
            Self::Unknown => "other",
        }
    }
}
