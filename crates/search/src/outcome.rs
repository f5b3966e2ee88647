//! How a trial ended, as plain data: what is told to a study, kept in the journal and in the memo.

use serde::{Deserialize, Serialize};
use trompe_results::study::{Metrics, TrialStatus};

use crate::space::{self, Limits, Objective};

/// How a trial ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// In one word.
    pub status: TrialStatus,
    /// Its numbers, where it has a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Bytes that were missing at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_bytes: Option<u64>,
    /// Memory of a device in bytes, where memory was the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// A step takes at least so many seconds, where it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_seconds: Option<f64>,
    /// The end of its output, when it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// What the user should know about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Real seconds that it took.
    #[serde(default)]
    pub seconds: f64,
}

/// Losses of trials without a result, as logarithms: worse than every result, and smaller the nearer they came.
const OVER_LIMIT: f64 = 40.0;
const OUT_OF_MEMORY: f64 = 50.0;
const FAILED: f64 = 100.0;

impl Outcome {
    /// A trial that fits.
    #[must_use]
    pub fn fits(metrics: Metrics) -> Self {
        Self { status: TrialStatus::Fits, metrics: Some(metrics), ..Self::default() }
    }

    /// A trial that is out of memory.
    #[must_use]
    pub fn out_of_memory(missing: Option<u64>, capacity: u64) -> Self {
        Self {
            status: TrialStatus::OutOfMemory,
            missing_bytes: missing,
            capacity_bytes: Some(capacity),
            ..Self::default()
        }
    }

    /// A trial that failed.
    #[must_use]
    pub fn failed(last_lines: Vec<String>) -> Self {
        Self { last_lines, ..Self::default() }
    }

    /// Whether it fits.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.status == TrialStatus::Fits
    }

    /// The same, over a limit where it is.
    #[must_use]
    pub fn limited(mut self, limits: &Limits) -> Self {
        if let (TrialStatus::Fits, Some(metrics)) = (self.status, &self.metrics) {
            let memory = limits.memory_bytes.is_some_and(|most| metrics.memory_bytes > most);
            let time = limits.step_seconds.is_some_and(|most| metrics.step_seconds > most);
            if memory || time {
                self.status = TrialStatus::OverLimit;
            }
        }
        self
    }

    /// What a strategy is told: the logarithm of the loss, or something above every logarithm of a loss.
    #[must_use]
    pub fn logarithm(&self, objectives: &[Objective]) -> f64 {
        let share = |part: Option<u64>| match (part, self.capacity_bytes) {
            (Some(part), Some(whole)) if whole > 0 => (part as f64 / whole as f64).min(40.0),
            _ => 1.0,
        };
        match (self.status, &self.metrics) {
            (TrialStatus::Fits, Some(metrics)) => {
                space::loss(objectives, metrics).map_or(FAILED, |loss| loss.ln().clamp(-35.0, 35.0))
            }
            (TrialStatus::OverLimit, Some(_)) => OVER_LIMIT,
            (TrialStatus::OutOfMemory, _) => OUT_OF_MEMORY + share(self.missing_bytes),
            (TrialStatus::Stopped | TrialStatus::NoBetter, _) => {
                self.at_least_seconds.map_or(OVER_LIMIT - 1.0, |seconds| seconds.max(1e-15).ln().min(35.0))
            }
            _ => FAILED,
        }
    }
}

/// Whether a logarithm that a strategy was told is that of a result.
#[must_use]
pub fn is_result(logarithm: f64) -> bool {
    logarithm < 36.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_result_is_worse_than_every_result() {
        let step = |seconds| Outcome::fits(Metrics { step_seconds: seconds, ..Metrics::default() });
        let objectives = [Objective::StepTime];
        let order = [
            step(1e-3),
            step(2.0),
            step(1e6),
            Outcome::out_of_memory(Some(1 << 30), 80 << 30),
            Outcome::out_of_memory(Some(70 << 30), 80 << 30),
            Outcome::failed(Vec::new()),
        ]
        .map(|outcome| outcome.logarithm(&objectives));
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
        assert!(is_result(order[2]) && !is_result(order[3]));
    }

    #[test]
    fn limits_take_a_result_out_of_the_ranking() {
        let outcome = Outcome::fits(Metrics { memory_bytes: 10, ..Metrics::default() });
        let limits = Limits { memory_bytes: Some(9), ..Limits::default() };
        assert_eq!(outcome.clone().limited(&limits).status, TrialStatus::OverLimit);
        assert_eq!(outcome.limited(&Limits::default()).status, TrialStatus::Fits);
    }
}
