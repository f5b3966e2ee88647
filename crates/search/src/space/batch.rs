//! The batch that stays the same at every point, so that points can be compared.

use crate::expression::Expression;

/// A fixed global batch.
#[derive(Debug)]
pub struct Batch {
    /// Samples of one optimizer step of the whole job.
    pub global: Expression,
    /// Tokens of a sample, where samples are sequences.
    pub sequence: Option<Expression>,
    /// Samples that one rank takes at once.
    pub micro: Expression,
    /// Ranks (or groups of ranks) that take different samples.
    pub data_parallel: Expression,
}

/// Name of the number of micro-batches of a step on each rank: `global / (micro × data_parallel)`.
pub const MICRO_BATCHES: &str = "micro_batches";
/// Name of the samples of a step.
pub const GLOBAL_BATCH: &str = "global_batch";

impl Batch {
    /// The condition that the global batch divides evenly.
    pub(super) fn divides(&self) -> String {
        let (micro, parallel) = (&self.micro.source, &self.data_parallel.source);
        format!(
            "({parallel}) >= 1 and {GLOBAL_BATCH} >= ({micro}) * ({parallel}) and {GLOBAL_BATCH} % (({micro}) * ({parallel})) == 0"
        )
    }

    /// How the number of micro-batches follows.
    pub(super) fn micro_batches(&self) -> String {
        format!("{GLOBAL_BATCH} // (({}) * ({}))", self.micro.source, self.data_parallel.source)
    }
}
