//! A search for the best configuration: every trial with its numbers, the ranking, and what the knobs are worth.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{NamedValue, Note};

/// The version of the study's shape; see [`crate::SCHEMA_VERSION`].
pub const STUDY_SCHEMA_VERSION: u32 = 1;

/// Everything that one search says to its user (`study.json`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// [`STUDY_SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// Version of trompe that wrote it.
    pub trompe_version: String,
    /// Name of the space.
    pub name: String,
    /// The space file.
    pub space: String,
    /// The cluster as the user named it; empty when each trial has its own.
    pub cluster: String,
    /// The strategy that chose the points.
    pub strategy: String,
    /// Seed of the strategy.
    pub seed: u64,
    /// What was sought, by name; the first decides the ranking of equals.
    pub objectives: Vec<String>,
    /// The knobs in the order of the space file.
    pub knobs: Vec<KnobReport>,
    /// How many points there are and what became of them.
    pub counts: Counts,
    /// Real seconds that the search took, all its sessions together.
    pub seconds: f64,
    /// Why it ended.
    pub ended: String,
    /// Every trial in the order in which it was chosen.
    pub trials: Vec<Trial>,
    /// Numbers of the trials that fit, best first.
    pub ranking: Vec<u32>,
    /// Numbers of the trials that no other one beats in every objective; with one objective the best alone.
    pub pareto: Vec<u32>,
    /// The best value of the first objective after so many trials.
    pub convergence: Vec<Progress>,
    /// What the user must know before trusting the ranking.
    pub notes: Vec<Note>,
}

/// A knob and what it is worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnobReport {
    /// Its name.
    pub name: String,
    /// Its values in order.
    pub values: Vec<KnobValue>,
    /// How much the best reachable result changes between its best and its worst value (0.25: a quarter worse); `None`
    /// when fewer than two of its values have a trial that fits.
    pub spread: Option<f64>,
    /// The share of the variance of the logarithm of the result that it explains alone, among trials that fit.
    pub explained_share: Option<f64>,
}

/// A value of a knob.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnobValue {
    /// The value as text.
    pub value: String,
    /// The best result of the first objective with it; `None` when no trial with it fits.
    pub best: Option<f64>,
    /// Trials with it that fit.
    pub fits: u32,
    /// Trials with it that are out of memory.
    pub out_of_memory: u32,
}

/// What became of the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Combinations of knob values.
    pub combinations: u64,
    /// Those that meet every constraint.
    pub feasible: u64,
    /// Trials that ran.
    pub executed: u32,
    /// Trials whose result was known from an earlier study.
    pub cached: u32,
    /// Trials that were simulated from a trace of another trial.
    pub simulated: u32,
    /// Trials that a rule made needless.
    pub pruned: u32,
    /// Trials that fit.
    pub fits: u32,
    /// Trials that are out of memory, pruned ones included.
    pub out_of_memory: u32,
    /// Trials that failed.
    pub failed: u32,
    /// Trials that were stopped because they could not win.
    pub stopped: u32,
}

/// The best result after some trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Trials chosen so far.
    pub trials: u32,
    /// Real seconds since the search began.
    pub seconds: f64,
    /// The best value of the first objective.
    pub best: f64,
}

/// One point of the space and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Its number, from 0.
    pub number: u32,
    /// The value of each knob.
    pub knobs: Vec<NamedValue>,
    /// Values that follow from them.
    pub derived: Vec<NamedValue>,
    /// The job.
    pub job: TrialJob,
    /// How it ended.
    pub status: TrialStatus,
    /// Where the result comes from.
    pub origin: TrialOrigin,
    /// The rule or bound that made it needless to run it (to its end).
    pub rule: Option<String>,
    /// The trial that the result was told from.
    pub because_of: Option<u32>,
    /// Its numbers; `None` when it did not fit or not run.
    pub metrics: Option<Metrics>,
    /// Bytes of device memory that it lacked at least, when it is out of memory and that is known.
    pub missing_bytes: Option<u64>,
    /// The end of its output, when it failed.
    pub last_lines: Vec<String>,
    /// Why it is worse than the best; `None` for the best.
    pub why: Option<String>,
    /// Real seconds that it took.
    pub seconds: f64,
}

/// The job of a trial, as the user would start it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialJob {
    /// The words of the command.
    pub command: Vec<String>,
    /// The cluster.
    pub cluster: String,
    /// Variables to set.
    pub environment: BTreeMap<String, String>,
    /// Files to write: name and content.
    pub files: BTreeMap<String, String>,
    /// The working directory.
    pub directory: String,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    /// It fits and has a step time.
    Fits,
    /// It needs more memory than there is.
    OutOfMemory,
    /// It needs more than a limit of the space file allows.
    OverLimit,
    /// It ended with an error of its own, or had no step.
    #[default]
    Failed,
    /// It could not have been the best.
    Stopped,
    /// A rule says that it is no better than another one.
    NoBetter,
}

impl TrialStatus {
    /// The word for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::OutOfMemory => "out of memory",
            Self::OverLimit => "over a limit",
            Self::Failed => "failed",
            Self::Stopped => "cannot win",
            Self::NoBetter => "no better",
        }
    }
}

/// Where the result of a trial comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialOrigin {
    /// It ran under emulation.
    #[default]
    Executed,
    /// The same job ran in an earlier study.
    Cached,
    /// The trace of another trial was simulated on this one's cluster.
    Simulated,
    /// A pruning rule.
    Pruned,
    /// The caller told it (a study driven from outside).
    Told,
}

/// The numbers of a trial that fits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Seconds of a step.
    pub step_seconds: f64,
    /// Lower end of its interval.
    pub step_seconds_low: f64,
    /// Upper end of its interval.
    pub step_seconds_high: f64,
    /// Bytes of the fullest device.
    pub memory_bytes: u64,
    /// Bytes that a device has.
    pub capacity_bytes: u64,
    /// Tokens per second and device; `None` without tokens in the batch.
    pub tokens_per_second_per_gpu: Option<f64>,
    /// Samples per second of the whole job; `None` without a batch.
    pub samples_per_second: Option<f64>,
    /// Money for a million tokens; `None` without a price or tokens.
    pub cost_per_million_tokens: Option<f64>,
    /// Model FLOPs utilisation.
    pub mfu: Option<f64>,
    /// Where the time of the step goes.
    pub parts: Parts,
}

/// Where the time of a step goes, in seconds; the parts add up to the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Kernels and copies that the model needs.
    pub compute: f64,
    /// Kernels that compute again what was not kept.
    pub recompute: f64,
    /// Communication during which nothing else runs.
    pub communication: f64,
    /// Waiting for other ranks.
    pub bubble: f64,
    /// Waiting for the host.
    pub host: f64,
}

impl Parts {
    /// The parts with their names.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("compute", self.compute),
            ("recompute", self.recompute),
            ("communication", self.communication),
            ("bubble", self.bubble),
            ("host", self.host),
        ]
    }
}

/// The JSON schema (draft 2020-12) of `study.json`.
///
/// `docs/study.schema.json` is this value; a test keeps the two equal.
#[must_use]
pub fn schema() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Study>();
    schema.insert("title".to_owned(), "trompe study".into());
    schema
}
