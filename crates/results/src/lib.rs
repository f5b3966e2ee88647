//! Plain data of everything a user sees: what `report.json` holds, and the [`Timeline`] beside it.
//!
//! What it is: public-field structs that serialise to `report.json`, whose JSON schema ([`schema()`]) is published as
//! `docs/report.schema.json`, and one check of their invariants ([`Report::check`]).
//!
//! What it is not: it computes no prediction, draws nothing and reads no file. Who fills it knows the simulation; who
//! draws it (`report`) knows nothing else.
//!
//! Conventions, kept by every field: times are seconds unless the name says `_ps` (integer picoseconds) or
//! `_nanoseconds`; sizes are bytes; a *share* is a fraction between 0 and 1; *per step* means one optimizer step of
//! the slowest rank; `None` means "not known", never zero. A number that was not counted exactly has a field beside
//! it (or in its parent) that says where it came from.

mod check;
mod coverage;
mod family;
mod host;
mod job;
mod kernel_run;
mod kernels;
mod memory;
mod note;
mod parallel;
mod path;
mod schema;
mod step;
pub mod study;
mod timeline;
mod variation;
mod verdict;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::Inconsistency;
pub use coverage::{CallSeen, Coverage, MethodShare, SustainedClock, UnknownKernel};
pub use family::{Family, Sample};
pub use host::{HostMode, HostModel};
pub use job::{Cluster, Device, Fact, Job, NamedValue, Software};
pub use kernel_run::{CriticalInstruction, KernelRun, MatrixUse, MemoryUse, PathUse, PipeTotal, Wait};
pub use kernels::{Bound, Kernel, Kind, Method};
pub use memory::{Charge, Memory, MemoryAxis, MemoryOwner, MemorySample, OwnerKind, RankMemory};
pub use note::{Note, Severity};
pub use parallel::{GroupKind, KindOfGroupTime, RankStep};
pub use path::{CriticalPath, PathOwner, PathRank, PathSort};
pub use schema::schema;
pub use step::{
    Communication, DeviceUse, FlopsUse, GroupTime, KindTime, Rate, Step, StepRule, StepTime, Steps,
    Throughput,
};
pub use timeline::{Argument, Counter, Mark, NameId, Span, Timeline, TimelineBuilder, Track, TrackKind};
pub use variation::{ContentionEffect, Repeats, Straggler, Variation};
pub use verdict::{OutOfMemory, Verdict, VerdictStatus};

/// The version of the report's shape. A reader of version `n` can read every report of version `n`; fields are added
/// without a new version, and renamed or removed only with one.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that one prediction says to its user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA_VERSION`] of the program that wrote the report.
    pub schema_version: u32,
    /// Version of trompe that wrote the report.
    pub trompe_version: String,
    /// The command that was run and how it ended.
    pub job: Job,
    /// Whether the job fits and runs, in one word and one sentence.
    pub verdict: Verdict,
    /// The machines that were simulated.
    pub cluster: Cluster,
    /// Number of ranks of the whole simulated job.
    pub world_size: u32,
    /// How many of those ranks really ran under emulation; the others were taken to be equal to one of them.
    pub ranks_emulated: u32,
    /// How many more were compared with one of those while they ran, did the same, and were stopped.
    #[serde(default)]
    pub ranks_checked: u32,
    /// Predicted time of one step of the steady state; `None` when no complete step was seen.
    pub step_time: Option<StepTime>,
    /// Samples and tokens per second of the whole job.
    pub throughput: Throughput,
    /// Floating-point work of a step against the device's peak; `None` when no complete step was seen.
    pub flops: Option<FlopsUse>,
    /// How much of a step the device works, and how much it waits for the host; `None` when no complete step was seen.
    pub device_use: Option<DeviceUse>,
    /// Communication of a step; `None` when no complete step was seen, zeros when a step communicates nothing.
    pub communication: Option<Communication>,
    /// Where the time of a step goes: every moment belongs to exactly one kind, so the seconds add up to the step time.
    pub breakdown: Vec<KindTime>,
    /// Where the step of each simulated rank goes, by rank; of many ranks an even choice and the slowest.
    #[serde(default)]
    pub ranks: Vec<RankStep>,
    /// What carries the step of the slowest rank; `None` when no complete step was seen.
    #[serde(default)]
    pub critical_path: Option<CriticalPath>,
    /// What operations that run at once on a device cost each other; `None` when no complete step was seen.
    #[serde(default)]
    pub contention: Option<ContentionEffect>,
    /// Chance and slow machines; `None` when none were asked for.
    #[serde(default)]
    pub variation: Option<Variation>,
    /// Runs of the same job with other choices in values that nobody computes; `None` when there was one run.
    #[serde(default)]
    pub family: Option<Family>,
    /// Device memory: peaks, capacity, and how it developed on each emulated rank.
    pub memory: Memory,
    /// Kernels of a step by total time, longest first.
    pub kernels: Vec<Kernel>,
    /// Which steps were seen and which of them the prediction rests on.
    pub steps: Steps,
    /// How the time of the host program was modelled.
    pub host: HostModel,
    /// How far the prediction rests on measurements, and what was not understood.
    pub coverage: Coverage,
    /// The device sheet that was used, each number with its source.
    pub device: Device,
    /// Software that ran.
    pub software: Software,
    /// What the user must know before trusting a number, most severe first.
    pub notes: Vec<Note>,
}
