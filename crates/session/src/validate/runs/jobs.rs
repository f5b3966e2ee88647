//! From a row of a table to the job that is emulated for it.

use trompe_measure::runs::RunRow;
use trompe_measure::runs::published::Completed;
use trompe_measure::sources::Sources;

use super::{megatron, mpt};

/// A job that stands for a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// The script, among those that come with this program.
    pub(super) script: &'static str,
    /// Its arguments, without the number of micro batches.
    pub(super) arguments: Vec<String>,
    /// The cluster, as `--cluster` takes it.
    pub(super) cluster: String,
    /// The cluster that it is simulated on, where its links are known better.
    pub(super) simulated: Option<String>,
    /// Processes per node.
    pub(super) per_node: u64,
    /// Which ranks run (`--ranks`).
    pub(super) ranks: String,
    /// Micro batches of a step.
    pub(super) micro_batches: u64,
    /// The numbers of micro batches that are emulated, as `counts` chooses them.
    pub(super) counts: Vec<u64>,
    /// Whether it runs over TransformerEngine.
    pub(super) engine: bool,
    /// Sequences of a step per micro batch: micro batch times data parallelism.
    pub(super) sequences: u64,
    /// What the row does not state.
    pub(super) assumed: Vec<String>,
    /// Stages of its pipeline.
    pub(super) stages: u64,
    /// Jobs with shorter pipelines that are emulated in place of it, where it is deep.
    pub(super) shorter: Vec<Job>,
}

/// Micro batches up to which a step is emulated as it is.
const WHOLE: u64 = 16;
/// Layers times micro batches up to which that costs little.
const LITTLE: u64 = 480;

/// Stages from which on shorter pipelines are emulated: a process for each of 64 stages is more than a machine has room
/// for, and the stages between the first and the last do the same.
const DEEP: u64 = 12;
/// The stages of these.
const SHORTER: [u64; 2] = [4, 6];

/// Layers up to which more micro batches are taken of a long step.
const SMALL: u64 = 30;

/// What must be known of a job to choose how much of a step is emulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// Micro batches of a step.
    pub(super) micro_batches: u64,
    /// Numbers of micro batches must be a multiple of this.
    pub(super) multiple: u64,
    /// Stages of the pipeline: from as many micro batches on, all stages are at work.
    pub(super) stages: u64,
    /// Layers.
    pub(super) layers: u64,
}

impl Length {
    /// The numbers of micro batches that are emulated: all of them, or two from which the step follows along a line
    /// (what a schedule does between its warm-up and its end repeats).
    pub(super) fn counts(self) -> Vec<u64> {
        let whole = vec![self.micro_batches];
        if self.micro_batches <= WHOLE && self.micro_batches * self.layers <= LITTLE {
            return whole;
        }
        let up = |count: u64| count.div_ceil(self.multiple) * self.multiple;
        let (few, more) = if self.layers <= SMALL { (8, 12) } else { (4, 6) };
        let first = up(few.max(self.stages));
        let second = up(more).max(first + self.multiple.max(more - few));
        if second >= self.micro_batches { whole } else { vec![first, second] }
    }

    /// Iterations that are emulated: the first makes the optimizer's state, and host times are medians over the others.
    /// A long step has enough of everything within it.
    pub(super) fn iterations(self) -> u64 {
        let most = self.counts().into_iter().max().unwrap_or(1);
        if most * self.layers <= LITTLE { 4 } else { 2 }
    }
}

impl Job {
    /// The arguments with `count` micro batches.
    pub(super) fn with_micro_batches(&self, count: u64) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        arguments.extend(["--global-batch-size".to_owned(), (count * self.sequences).to_string()]);
        arguments
    }
}

/// The job of a row; with `engine`, the interpreter has TransformerEngine.
///
/// # Errors
/// In words, when there is none.
pub(super) fn job(completed: &Completed, sources: &Sources, engine: bool) -> Result<Job, String> {
    let row = &completed.row;
    let framework = row.framework.to_ascii_lowercase();
    if framework.contains("foundry") || framework.contains("fsdp") {
        mpt::job(row, sources)
    } else if ["megatron", "nemo", "vtrain"].iter().any(|name| framework.contains(name)) {
        megatron::job(completed, sources, engine)
    } else {
        Err(format!("no script stands for the framework `{}`", row.framework))
    }
}

/// The rows that are emulated in place of a row with a deep pipeline: as many layers and devices for each stage.
pub(super) fn shorter(row: &RunRow) -> Vec<RunRow> {
    let (Some(stages), Some(layers), Some(gpus)) = (row.pp, row.layers, row.n_gpus) else {
        return Vec::new();
    };
    if stages < DEEP || layers % stages != 0 || gpus % stages != 0 {
        return Vec::new();
    }
    let with = |pp: u64| RunRow {
        pp: Some(pp),
        layers: Some(layers / stages * pp),
        n_gpus: Some(gpus / stages * pp),
        ..row.clone()
    };
    SHORTER.map(with).to_vec()
}

/// The value of a cell that must be there.
pub(super) fn needed(value: Option<u64>, name: &str) -> Result<u64, String> {
    value.ok_or_else(|| format!("`{name}` is empty"))
}

/// The cluster of `row`, and how many processes a node has.
pub(super) fn cluster(row: &RunRow, sources: &Sources) -> Result<(String, u64, u64), String> {
    let gpus = needed(row.n_gpus, "n_gpus")?;
    let sheet = sources.device(&row.gpu).ok_or_else(|| format!("no sheet knows the GPU `{}`", row.gpu))?;
    let per_node = row.gpus_per_node.unwrap_or(8).clamp(1, gpus);
    if gpus % per_node != 0 {
        return Err(format!("{gpus} GPUs are no whole number of nodes with {per_node}"));
    }
    Ok((format!("{}:{per_node}x{}", sheet.name, gpus / per_node), per_node, gpus))
}

/// The cluster that a job for `cluster` is emulated on, where that is another one: recent PyTorch has no kernels for
/// devices older than compute capability 7.5 (CUDA 13), and fails on them.
pub(super) fn stand_in(row: &RunRow, sources: &Sources, cluster: &str) -> Option<String> {
    let sheet = sources.device(&row.gpu)?;
    let old = (sheet.compute.capability_major, sheet.compute.capability_minor) < (7, 5);
    let (_, shape) = cluster.split_once(':')?;
    old.then(|| format!("a100-sxm4-80:{shape}"))
}

/// `--name value`.
pub(super) fn option(arguments: &mut Vec<String>, name: &str, value: impl ToString) {
    arguments.extend([format!("--{name}"), value.to_string()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_steps_are_sampled_at_two_lengths() {
        let check = |micro_batches, multiple, stages, layers, expect: &[u64], iterations| {
            let length = Length { micro_batches, multiple, stages, layers };
            assert_eq!((length.counts().as_slice(), length.iterations()), (expect, iterations), "{length:?}");
        };
        check(16, 1, 1, 20, &[16], 4);
        check(64, 1, 1, 20, &[8, 12], 4);
        check(64, 1, 1, 32, &[4, 6], 4);
        check(4, 1, 1, 96, &[4], 4);
        check(16, 1, 1, 30, &[16], 4);
        check(32, 1, 1, 30, &[8, 12], 4);
        check(16, 1, 1, 96, &[4, 6], 2);
        check(64, 8, 8, 96, &[8, 16], 2);
        check(64, 1, 8, 96, &[8, 10], 2);
        check(280, 35, 35, 105, &[35, 70], 2);
        check(40, 35, 35, 105, &[40], 2);
    }

    #[test]
    fn deep_pipelines_are_emulated_shorter() {
        let row = |pp, layers| RunRow {
            pp: Some(pp),
            layers: Some(layers),
            n_gpus: Some(8 * pp),
            ..RunRow::default()
        };
        let check = |row: RunRow, expect: &[(u64, u64, u64)]| {
            let found: Vec<_> = shorter(&row)
                .iter()
                .map(|row| (row.pp.unwrap(), row.layers.unwrap(), row.n_gpus.unwrap()))
                .collect();
            assert_eq!(found, expect);
        };
        check(row(8, 96), &[]);
        check(row(64, 128), &[(4, 8, 32), (6, 12, 48)]);
        check(row(35, 105), &[(4, 12, 32), (6, 18, 48)]);
        check(row(16, 100), &[]);
    }

    #[test]
    fn rows_without_a_script_say_why() {
        let sources = Sources::builtin();
        let check = |row: RunRow, engine: bool, expect: &str| {
            let completed = Completed { row, ..Completed::default() };
            let error = job(&completed, &sources, engine).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        let row = |framework: &str| RunRow {
            framework: framework.to_owned(),
            gpu: "A100-SXM4-80GB".to_owned(),
            n_gpus: Some(8),
            layers: Some(2),
            seq: Some(128),
            micro_batch: Some(1),
            ..RunRow::default()
        };
        check(row("JAX"), true, "no script stands for the framework `JAX`");
        check(row("Megatron-LM"), true, "`hidden` is empty");
        let wide = |framework: &str| RunRow { hidden: Some(64), global_batch: Some(8), ..row(framework) };
        check(RunRow { precision: "FP8".to_owned(), ..wide("NeMo") }, false, "has no FP8");
        check(RunRow { n_experts: Some(8), ..wide("NeMo") }, true, "experts a token goes to");
        check(RunRow { gpu: "H9000".to_owned(), ..wide("Megatron") }, true, "no sheet knows the GPU");
    }
}
