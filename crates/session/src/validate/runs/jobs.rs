//! From a row of a table to the job that is emulated for it.

use trompe_measure::runs::RunRow;
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
    /// Processes per node.
    pub(super) per_node: u64,
    /// Processes of the job.
    pub(super) world: u64,
    /// Which ranks run (`--ranks`).
    pub(super) ranks: String,
    /// Micro batches of a step.
    pub(super) micro_batches: u64,
    /// Numbers of micro batches must be a multiple of this.
    pub(super) multiple: u64,
    /// Sequences of a step per micro batch: micro batch times data parallelism.
    pub(super) sequences: u64,
    /// What the row does not state.
    pub(super) assumed: Vec<String>,
}

/// Micro batches up to which a step is emulated as it is.
const WHOLE: u64 = 16;

impl Job {
    /// The numbers of micro batches that are emulated: all of them, or two from which the step follows along a line
    /// (what a schedule does between its warm-up and its end repeats).
    pub(super) fn counts(&self) -> Vec<u64> {
        if self.micro_batches <= WHOLE {
            return vec![self.micro_batches];
        }
        let up = |count: u64| count.div_ceil(self.multiple) * self.multiple;
        let (first, second) = (up(8), up(12).max(up(8) + self.multiple));
        if second >= self.micro_batches { vec![self.micro_batches] } else { vec![first, second] }
    }

    /// The arguments with `count` micro batches.
    pub(super) fn with_micro_batches(&self, count: u64) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        arguments.extend(["--global-batch-size".to_owned(), (count * self.sequences).to_string()]);
        arguments
    }
}

/// The job of `row`.
///
/// # Errors
/// In words, when there is none.
pub(super) fn job(row: &RunRow, sources: &Sources) -> Result<Job, String> {
    let framework = row.framework.to_ascii_lowercase();
    if row.precision.to_ascii_lowercase().contains("fp8") {
        return Err("FP8 training needs TransformerEngine, which is not emulated".to_owned());
    }
    if row.n_experts.is_some_and(|experts| experts > 1) || row.ep.is_some_and(|ep| ep > 1) {
        return Err("mixtures of experts state too little of their model".to_owned());
    }
    if framework.contains("foundry") || framework.contains("fsdp") {
        mpt::job(row, sources)
    } else if ["megatron", "nemo", "vtrain"].iter().any(|name| framework.contains(name)) {
        megatron::job(row, sources)
    } else {
        Err(format!("no script stands for the framework `{}`", row.framework))
    }
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

/// `--name value`.
pub(super) fn option(arguments: &mut Vec<String>, name: &str, value: impl ToString) {
    arguments.extend([format!("--{name}"), value.to_string()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(micro_batches: u64, multiple: u64) -> Vec<u64> {
        let job = Job {
            script: "x.py",
            arguments: Vec::new(),
            cluster: "a100-sxm4-80:8x1".to_owned(),
            per_node: 8,
            world: 8,
            ranks: "auto".to_owned(),
            micro_batches,
            multiple,
            sequences: 4,
            assumed: Vec::new(),
        };
        job.counts()
    }

    #[test]
    fn long_steps_are_sampled_at_two_lengths() {
        assert_eq!(counts(16, 1), [16]);
        assert_eq!(counts(64, 1), [8, 12]);
        assert_eq!(counts(64, 8), [8, 16]);
        assert_eq!(counts(17, 8), [8, 16]);
        assert_eq!(counts(256, 35), [35, 70]);
        assert_eq!(counts(40, 35), [40]);
    }

    #[test]
    fn rows_without_a_script_say_why() {
        let sources = Sources::builtin();
        let check = |row: RunRow, expect: &str| {
            let error = job(&row, &sources).unwrap_err();
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
        check(row("JAX"), "no script stands for the framework `JAX`");
        check(row("Megatron-LM"), "`hidden` is empty");
        check(RunRow { precision: "FP8".to_owned(), ..row("NeMo") }, "TransformerEngine");
        check(
            RunRow { gpu: "H9000".to_owned(), hidden: Some(64), ..row("Megatron") },
            "no sheet knows the GPU",
        );
    }
}
