//! A job made of kernels: what every device of a cluster does in a step, as plain data.
//!
//! A job file is JSON (its schema is `docs/npu/job.schema.json`): kernels by name, groups of ranks, and the calls that
//! ranks make in each step: one list for all of them, or one for each stage of a pipeline. Whoever simulates clusters
//! turns it into a job trace; this module only says what is wrong with one.

mod agree;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::element::ElementType;
use crate::error::LoadError;
use crate::program::{Program, schema_text, versioned};

/// What the `format` field of a job says.
pub const FORMAT: &str = "trompe-npu-job";
/// The version of the format that this crate reads.
pub const VERSION: u32 = 1;

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Always `trompe-npu-job`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// The job's name.
    pub name: String,
    /// Number of devices.
    pub ranks: u32,
    /// How many times the step runs.
    #[serde(default = "three")]
    pub steps: u32,
    /// Tokens that one step processes on one rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Sequences or images that one step processes on one rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Ranks that work together, by name.
    #[serde(default)]
    pub groups: BTreeMap<String, Group>,
    /// Kernels by name.
    pub kernels: BTreeMap<String, Kernel>,
    /// What every rank does in a step, in order; empty in a job with stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step: Vec<Call>,
    /// Stages of a pipeline: the first has the first ranks, and each as many as another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Device memory of a rank by what it is for.
    #[serde(default)]
    pub memory: BTreeMap<String, u64>,
}

/// A stage of a pipeline: what its ranks do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// What each of its ranks does in a step, in order.
    pub step: Vec<Call>,
    /// Device memory of a rank besides what every rank has.
    #[serde(default)]
    pub memory: BTreeMap<String, u64>,
}

const fn three() -> u32 {
    3
}

/// Ranks that work together: `size` ranks, `stride` apart, so many times that every rank is in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Ranks in a group.
    pub size: u32,
    /// Distance of neighbours.
    #[serde(default = "one")]
    pub stride: u32,
}

const fn one() -> u32 {
    1
}

impl Group {
    /// The groups of a job of `ranks` ranks, each with its members in order.
    #[must_use]
    pub fn members(self, ranks: u32) -> Vec<Vec<u32>> {
        let block = self.size * self.stride;
        (0..ranks)
            .filter(|rank| rank % block < self.stride)
            .map(|first| (0..self.size).map(|place| first + place * self.stride).collect())
            .collect()
    }
}

/// A kernel of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// The program.
    pub program: Program,
    /// What it counts for in a report.
    #[serde(default)]
    pub does: Work,
}

/// What a kernel counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Work {
    Gemm,
    Attention,
    Normalization,
    Elementwise,
    Reduction,
    Embedding,
    Optimizer,
    #[default]
    Other,
}

/// Which part of a training step a call belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Phase {
    #[default]
    Forward,
    Backward,
    Recompute,
    Optimizer,
}

/// One thing that a rank does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// Enqueues a kernel.
    Kernel {
        /// Its name in [`Job::kernels`].
        kernel: String,
        /// Where.
        #[serde(default)]
        stream: u32,
        /// What it is part of, for the report: `mlp.up`.
        #[serde(default)]
        operator: String,
        /// Which part of the step.
        #[serde(default)]
        phase: Phase,
    },
    /// Enqueues a collective of a group.
    Collective {
        /// Which.
        kind: Collective,
        /// Name in [`Job::groups`].
        group: String,
        /// Bytes of the large buffer: the one that all ranks have after an all-gather or before a reduce-scatter.
        bytes: u64,
        /// Element type.
        dtype: ElementType,
        /// Where.
        #[serde(default)]
        stream: u32,
        /// What it is part of.
        #[serde(default)]
        operator: String,
        /// Which part of the step.
        #[serde(default)]
        phase: Phase,
    },
    /// Enqueues a send to the rank at the same place in another stage.
    Send {
        /// Number of that stage.
        to: u32,
        /// Bytes.
        bytes: u64,
        /// Element type.
        dtype: ElementType,
        /// Where.
        #[serde(default)]
        stream: u32,
        /// What it is part of.
        #[serde(default)]
        operator: String,
        /// Which part of the step.
        #[serde(default)]
        phase: Phase,
    },
    /// Enqueues a receive from the rank at the same place in another stage.
    Receive {
        /// Number of that stage.
        from: u32,
        /// Bytes.
        bytes: u64,
        /// Element type.
        dtype: ElementType,
        /// Where.
        #[serde(default)]
        stream: u32,
        /// What it is part of.
        #[serde(default)]
        operator: String,
        /// Which part of the step.
        #[serde(default)]
        phase: Phase,
    },
    /// Records an event on a stream.
    Record {
        /// Its name.
        event: String,
        /// Where.
        #[serde(default)]
        stream: u32,
    },
    /// Makes a stream wait for the event's last recording.
    Wait {
        /// Its name.
        event: String,
        /// Which waits.
        #[serde(default)]
        stream: u32,
    },
    /// The host waits until the device has done everything.
    Synchronize,
    /// The host works.
    Host {
        /// So long.
        microseconds: f64,
    },
}

/// Collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    AllToAll,
}

impl Job {
    /// Reads a job.
    ///
    /// # Errors
    /// When the text is no such JSON or the job contradicts itself.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        let job: Self = versioned(text, (FORMAT, VERSION))?;
        job.check().map_err(LoadError::Job)?;
        Ok(job)
    }

    /// The published JSON schema of jobs.
    #[must_use]
    pub fn schema() -> String {
        schema_text::<Self>()
    }

    fn check(&self) -> Result<(), String> {
        if self.ranks == 0 || self.steps == 0 {
            return Err("`ranks` and `steps` must be at least 1".to_owned());
        }
        for (name, group) in &self.groups {
            let block = group.size.checked_mul(group.stride).filter(|block| *block > 0);
            if block.is_none_or(|block| !self.ranks.is_multiple_of(block)) {
                return Err(format!(
                    "group `{name}` has {} ranks with stride {}, which does not divide {} ranks",
                    group.size, group.stride, self.ranks
                ));
            }
        }
        match (self.step.is_empty(), self.stages.len()) {
            (false, 1..) => {
                return Err("has `step` and `stages`; write what ranks do in one of them".to_owned());
            }
            (true, 1..) if !(self.ranks as usize).is_multiple_of(self.stages.len()) => {
                let stages = self.stages.len();
                return Err(format!(
                    "{} ranks cannot be shared out among {stages} stages evenly",
                    self.ranks
                ));
            }
            _ => {}
        }
        for (stage, step) in self.steps_of_stages().into_iter().enumerate() {
            let place = if self.stages.is_empty() { String::new() } else { format!("stages[{stage}].") };
            let mut recorded = BTreeSet::new();
            for (at, call) in step.iter().enumerate() {
                self.check_call(call, &mut recorded)
                    .map_err(|problem| format!("{place}step[{at}]: {problem}"))?;
            }
            if !step.iter().any(|call| matches!(call, Call::Kernel { .. } | Call::Collective { .. })) {
                return Err(format!("`{place}step` has no kernel and no collective"));
            }
        }
        agree::check(self)
    }

    /// What the ranks of each stage do; one stage for a job without.
    #[must_use]
    pub fn steps_of_stages(&self) -> Vec<&[Call]> {
        if self.stages.is_empty() {
            return vec![&self.step];
        }
        self.stages.iter().map(|stage| stage.step.as_slice()).collect()
    }

    /// Ranks of a stage.
    #[must_use]
    pub fn ranks_per_stage(&self) -> u32 {
        self.ranks / self.stages.len().max(1) as u32
    }

    fn check_call<'a>(&'a self, call: &'a Call, recorded: &mut BTreeSet<&'a str>) -> Result<(), String> {
        let known = |what: &str, name: &str, all: Vec<&String>| {
            if all.iter().any(|other| *other == name) {
                return Ok(());
            }
            let all: Vec<_> = all.iter().map(|name| format!("`{name}`")).collect();
            let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
            Err(format!("there is no {what} `{name}`; the job has {all}"))
        };
        match call {
            Call::Kernel { kernel, .. } => known("kernel", kernel, self.kernels.keys().collect()),
            Call::Collective { group, .. } => known("group", group, self.groups.keys().collect()),
            Call::Send { to: stage, .. } | Call::Receive { from: stage, .. } => {
                if self.stages.get(*stage as usize).is_some() {
                    return Ok(());
                }
                let stages = self.stages.len();
                Err(format!("there is no stage {stage}; the job has {stages}, numbered from 0"))
            }
            Call::Record { event, .. } => {
                recorded.insert(event);
                Ok(())
            }
            Call::Wait { event, .. } if !recorded.contains(event.as_str()) => {
                Err(format!("waits for event `{event}`, which nothing before it records"))
            }
            Call::Host { microseconds } if !(0.0..=1e12).contains(microseconds) => {
                Err(format!("the host cannot work for {microseconds} µs"))
            }
            Call::Wait { .. } | Call::Synchronize | Call::Host { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(change: impl FnOnce(&mut serde_json::Value)) -> String {
        let program = crate::kernels::vector_add(64, 64, 1);
        let mut job = serde_json::json!({
            "format": FORMAT, "version": 1, "name": "two", "ranks": 4,
            "groups": { "tp": { "size": 2 } },
            "kernels": { "add": { "program": program, "does": "elementwise" } },
            "step": [
                { "call": "kernel", "kernel": "add" },
                { "call": "collective", "kind": "all_reduce", "group": "tp", "bytes": 256, "dtype": "f32" },
            ],
        });
        change(&mut job);
        job.to_string()
    }

    #[test]
    fn groups_hold_every_rank_once() {
        let members = |size, stride| Group { size, stride }.members(8);
        assert_eq!(members(4, 1), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(members(2, 4), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(members(2, 2), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(Job::from_json(&text(|_| {})).unwrap().steps, 3);
        let check = |change: fn(&mut serde_json::Value), part: &str| {
            let error = Job::from_json(&text(change)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check(|job| job["format"] = "other".into(), "`format` is `other`");
        check(|job| job["version"] = 2.into(), "version 2, this build reads version 1");
        check(|job| job["ranks"] = 3.into(), "group `tp` has 2 ranks with stride 1, which does not divide 3");
        check(|job| job["ranks"] = 0.into(), "at least 1");
        check(
            |job| job["step"][0]["kernel"] = "sub".into(),
            "step[0]: there is no kernel `sub`; the job has `add`",
        );
        check(
            |job| job["step"][1]["group"] = "dp".into(),
            "step[1]: there is no group `dp`; the job has `tp`",
        );
        check(|job| job["step"] = serde_json::json!([]), "no kernel and no collective");
        check(
            |job| job["step"][0] = serde_json::json!({ "call": "send", "to": 1, "bytes": 8, "dtype": "f32" }),
            "step[0]: there is no stage 1; the job has 0",
        );
        check(
            |job| job["step"][0] = serde_json::json!({ "call": "wait", "event": "e" }),
            "step[0]: waits for event `e`",
        );
        check(
            |job| job["step"][0] = serde_json::json!({ "call": "host", "microseconds": -1.0 }),
            "cannot work for -1",
        );
        check(|job| job["speed"] = 1.into(), "unknown field `speed`");
    }
}
