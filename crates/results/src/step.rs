//! One step: its time, its rates, its floating-point work, and where the time goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trompe_base::DType;

use crate::{GroupKind, Kind};

/// Predicted time of one step of the steady state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepTime {
    /// The prediction in seconds.
    pub seconds: f64,
    /// Lower end of the interval in seconds.
    pub low: f64,
    /// Upper end of the interval in seconds.
    pub high: f64,
    /// The share of real runs that the interval is meant to contain (0.8: eight of ten).
    pub level: f64,
    /// How prediction and interval were formed.
    pub basis: String,
}

/// How fast the job goes through its data, all ranks together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Samples per second; `None` when the batch size could not be found.
    pub samples: Option<Rate>,
    /// Tokens per second; `None` when the job has no tokens or they could not be found.
    pub tokens: Option<Rate>,
}

/// A rate of the whole job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Items per second.
    pub per_second: f64,
    /// Items per step.
    pub per_step: f64,
    /// How the number of items was found ("first dimension of the embedding's input", …).
    pub found_by: String,
}

/// Floating-point work of a step on one device against that device's peak. A multiply-add counts as two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlopsUse {
    /// Floating-point operations per step and device that the model needs (recomputation not counted).
    pub model_flops: f64,
    /// Floating-point operations per step and device that are executed (recomputation counted).
    pub hardware_flops: f64,
    /// `model_flops` / (step time × peak): model FLOPs utilisation as PaLM (arXiv:2204.02311, appendix B) defines it.
    pub mfu: f64,
    /// `hardware_flops` / (step time × peak).
    pub hfu: f64,
    /// The peak used, in dense floating-point operations per second.
    pub peak_flops_per_second: f64,
    /// The element type that the peak is for: the one most of the work is done in.
    #[schemars(with = "Option<String>")]
    pub peak_dtype: Option<DType>,
    /// Where the peak comes from.
    pub peak_source: String,
    /// How the two counts were found.
    pub found_by: String,
}

/// How much of a step the device works.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Seconds of a step in which at least one kernel or copy runs.
    pub busy_seconds: f64,
    /// `busy_seconds` as a share of the step.
    pub busy_share: f64,
    /// Seconds of a step in which the device is idle because the host has not launched its next work yet.
    pub host_bound_seconds: f64,
    /// `host_bound_seconds` as a share of the step.
    pub host_bound_share: f64,
}

/// Communication between devices during a step, on the rank where it is longest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Communication {
    /// Seconds in which at least one collective or point-to-point kernel runs.
    pub seconds: f64,
    /// The part of `seconds` in which nothing else runs on the device.
    pub exposed_seconds: f64,
    /// The same by group of ranks; the rows may overlap in time.
    pub groups: Vec<GroupTime>,
}

/// Communication of one kind inside one kind of group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTime {
    /// What the group is for ("data parallel", "tensor parallel") or, when that is not known, its members.
    pub group: String,
    /// What the group is for, deduced from what is called on it where the program does not say.
    #[serde(default)]
    pub kind: GroupKind,
    /// The operation ("all-reduce", "all-gather", …).
    pub operation: String,
    /// Number of ranks in the group.
    pub ranks: u32,
    /// Calls per step.
    pub count: u64,
    /// Bytes per step and rank, as the operation's own size argument counts them.
    pub bytes: u64,
    /// Summed seconds per step.
    pub seconds: f64,
    /// The part of `seconds` in which nothing else runs on the device.
    pub exposed_seconds: f64,
    /// Idle seconds of the device per step while these calls wait for other ranks.
    #[serde(default)]
    pub bubble_seconds: f64,
}

/// The part of a step that belongs to one kind of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindTime {
    /// The kind of work.
    pub kind: Kind,
    /// Seconds of the step that are counted for this kind. Where several kinds run at once the moment counts for the
    /// first of them in the order of [`Kind`], so `communication` here is exposed communication.
    pub seconds: f64,
    /// `seconds` as a share of the step.
    pub share: f64,
    /// Summed time of the kernels of this kind in seconds, overlapped or not; 0 for the idle kinds.
    pub kernel_seconds: f64,
    /// Number of kernels and copies of this kind per step.
    pub count: u64,
}

/// The steps that were seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steps {
    /// The rule that found the step boundary.
    pub rule: StepRule,
    /// The rule in words, with the operation or range it looked for.
    pub found_by: String,
    /// Number of complete steps in the trace.
    pub seen: u32,
    /// Number of first steps that were left out as warm-up.
    pub warm_up: u32,
    /// Number of steps that the prediction rests on.
    pub used: u32,
    /// Every complete step in order.
    pub table: Vec<Step>,
}

/// How the boundary between steps was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepRule {
    /// A call of an optimizer's `step` ends a step.
    Optimizer,
    /// The shortest period of the sequence of operations.
    Period,
    /// The user named the steps.
    User,
    /// An NVTX (or profiler) range around each step.
    Range,
    /// No repetition was found; the whole run counts as one step.
    #[default]
    WholeRun,
}

/// One step as simulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Position in the run, from 0.
    pub index: u32,
    /// Simulated seconds from the start of the step to the start of the next.
    pub seconds: f64,
    /// Seconds in which the device works.
    pub busy_seconds: f64,
    /// Seconds of host time that the step was modelled with.
    pub host_seconds: f64,
    /// Kernels and copies that the step launched.
    pub kernels: u64,
    /// Largest number of bytes allocated at once during the step.
    pub peak_allocated_bytes: u64,
    /// Whether the prediction rests on this step.
    pub used: bool,
    /// Why it was left out; `None` when it was used.
    pub excluded_because: Option<String>,
}
