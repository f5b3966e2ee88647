//! The space: knobs, what follows from them, which combinations make sense, and how a combination becomes a command.
//!
//! A space is read from a TOML file ([`Space::read`]) and checked as a whole: every name in a template or expression is
//! a knob, a derived value or a fact about the cluster; derived values do not need each other in a circle; rules name
//! knobs and values that exist. Which points are feasible on a given cluster is [`crate::feasible`]'s business.

mod batch;
mod check;
mod derived;
mod file;
mod job;
mod knob;
mod objective;
mod rule;

pub use batch::{Batch, GLOBAL_BATCH, MICRO_BATCHES};
pub use derived::Derived;
pub use file::SpaceError;
pub use job::{FILE_PREFIX, FileTemplate, JobTemplate, ResolvedJob};
pub use knob::{Knob, MemoryTrend};
pub use objective::{Goal, Limits, Objective, Prices, loss};
pub use rule::{Effect, Reach, Rule, When};

use crate::Values;
use crate::expression::Expression;
use crate::template::Template;

/// Facts about the cluster of a trial, as expressions see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFacts {
    /// What `--cluster` would get.
    pub cluster: String,
    /// Name of the device sheet.
    pub gpu: String,
    /// Devices of the whole cluster.
    pub gpus: u32,
    /// Devices of a node.
    pub gpus_per_node: u32,
    /// Nodes.
    pub nodes: u32,
    /// Memory of a device in bytes.
    pub memory_bytes: u64,
}

/// Names of the facts that expressions may use.
pub const MACHINE_NAMES: [&str; 6] = ["cluster", "gpu", "gpus", "gpus_per_node", "nodes", "gpu_memory_gib"];

impl MachineFacts {
    /// The facts as values.
    pub fn store(&self, values: &mut Values) {
        use crate::Value;
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        for (name, value) in MACHINE_NAMES.into_iter().zip([
            Value::from(self.cluster.as_str()),
            Value::from(self.gpu.as_str()),
            Value::Integer(self.gpus.into()),
            Value::Integer(self.gpus_per_node.into()),
            Value::Integer(self.nodes.into()),
            Value::of_number(gib),
        ]) {
            values.insert(name.to_owned(), value);
        }
    }
}

/// A condition that every point must meet.
#[derive(Debug)]
pub struct Constraint {
    /// What must hold.
    pub rule: Expression,
    /// Why, in words; the rule itself when the file gives none.
    pub because: String,
}

/// Emulating fewer micro-batches than a step has, and stating the whole step by its exact affine law.
///
/// In a step with gradient accumulation or a pipeline, each micro-batch past the first few adds the same work, so the
/// step's time is `first + (count - first_count) × slope`. Two short runs give both.
#[derive(Debug)]
pub struct Sampling {
    /// Micro-batches of the shorter run, as an expression.
    pub first: Expression,
    /// Micro-batches of the longer run.
    pub second: Expression,
}

/// Taking the trace of a smaller cluster, with fewer data-parallel replicas, for a larger one.
///
/// For jobs in which a rank does the same however many replicas there are beside its own; the file's author vouches for
/// it.
#[derive(Debug)]
pub struct Replicas {
    /// Name of the value that is the number of replicas.
    pub degree: String,
    /// Ranks from one replica to the next.
    pub apart: Expression,
    /// Where it holds.
    pub condition: Option<Expression>,
}

/// How the trials of the space are run.
#[derive(Debug, Default)]
pub struct TrialSettings {
    /// As `--host` of `trompe run`.
    pub host: Option<String>,
    /// As `--steps`.
    pub steps: Option<String>,
    /// As `--ranks`, with places.
    pub ranks: Option<Template>,
    /// Seconds after which a trial is given up.
    pub timeout: Option<f64>,
    /// Files and folders whose content decides what the job does, relative to the space file; the script's own folder
    /// when empty.
    pub code: Vec<String>,
}

/// Knobs, constraints, and how a point becomes a job.
#[derive(Debug)]
pub struct Space {
    /// What the space is of.
    pub name: String,
    /// The knobs, in the order of the file.
    pub knobs: Vec<Knob>,
    /// Values that follow from knobs, each after those it needs.
    pub derived: Vec<Derived>,
    /// What every point must meet.
    pub constraints: Vec<Constraint>,
    /// The fixed batch.
    pub batch: Option<Batch>,
    /// The command, environment and files.
    pub job: JobTemplate,
    /// What is sought; several give a Pareto front.
    pub objectives: Vec<Objective>,
    /// What an acceptable point must keep below.
    pub limits: Limits,
    /// Prices of devices.
    pub prices: Prices,
    /// Pruning rules.
    pub rules: Vec<Rule>,
    /// Emulating few micro-batches.
    pub sampling: Option<Sampling>,
    /// How trials run.
    pub trial: TrialSettings,
    /// Whether one trace serves devices of other kinds.
    pub reuse_trace: bool,
    /// Whether one trace serves more replicas.
    pub replicas: Option<Replicas>,
    /// Digest of the file.
    pub digest: u64,
}

impl Space {
    /// Reads a space file.
    ///
    /// # Errors
    /// What is wrong with it and where.
    pub fn read(text: &str) -> Result<Self, SpaceError> {
        let space = file::read(text)?;
        check::check(&space)?;
        Ok(space)
    }

    /// Position of a knob.
    #[must_use]
    pub fn knob(&self, name: &str) -> Option<usize> {
        self.knobs.iter().position(|knob| knob.name == name)
    }

    /// Number of combinations of knob values, feasible or not.
    #[must_use]
    pub fn size(&self) -> u128 {
        self.knobs.iter().map(|knob| knob.values.len() as u128).product()
    }

    /// The position of a knob that chooses the cluster.
    #[must_use]
    pub fn cluster_knob(&self) -> Option<usize> {
        self.knobs.iter().position(|knob| knob.hardware && knob.name == "cluster")
    }

    /// The position of a knob that chooses the number of nodes.
    #[must_use]
    pub fn nodes_knob(&self) -> Option<usize> {
        self.knobs.iter().position(|knob| knob.hardware && knob.name == "nodes")
    }
}
