//! What is known of a run beside its trace, kept in the job trace's own facts so that the trace alone suffices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trompe_results::Note;
use trompe_trace::job::JobTrace;

/// Where the facts stand in [`JobTrace::facts`].
const KEY: &str = "trompe.run";

/// Facts about a `trompe run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The user's command, argument by argument.
    pub command: Vec<String>,
    /// Its working directory.
    pub directory: String,
    /// Exit code of the command; `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended the command, when one did.
    pub ended_by: Option<i32>,
    /// The signal with which the user stopped the run.
    pub interrupted_by: Option<i32>,
    /// Real seconds that the command ran.
    pub seconds: f64,
    /// What was given as `--cluster`.
    pub cluster: String,
    /// Name of the device sheet that the job saw.
    pub device: String,
    /// Memory of one CUDA context on that device, in bytes.
    pub context_bytes: u64,
    /// Compute capability of that device, `(major, minor)`.
    pub capability: (u32, u32),
    /// The processor that the command ran on.
    pub processor: Option<String>,
    /// Operating system and kernel.
    pub system: Option<String>,
    /// Records in the worker traces.
    pub records: u64,
    /// Bytes of the worker traces.
    pub trace_bytes: u64,
    /// What the user should know about the circumstances of the run.
    pub notes: Vec<Note>,
    /// Samples per step and rank, where the user gave them.
    pub samples_per_step: Option<f64>,
    /// Tokens per step and rank, where the user gave them.
    pub tokens_per_step: Option<f64>,
    /// What was given as `--host`.
    pub host: String,
    /// Ranks that were compared with another while they ran and found to do the same.
    #[serde(default)]
    pub ranks_checked: u32,
}

impl RunFacts {
    /// Puts the facts into a job trace.
    ///
    /// # Panics
    /// Never: plain data with string keys has a JSON form.
    pub fn store(&self, job: &mut JobTrace) {
        let text = serde_json::to_string(self).expect("plain data has a JSON form");
        job.facts.insert(KEY.to_owned(), text);
    }

    /// The facts of a job trace; defaults where it has none (it was not made by `trompe run`).
    #[must_use]
    pub fn of(facts: &BTreeMap<String, String>) -> Self {
        facts.get(KEY).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_survive_the_trace() {
        let facts = RunFacts {
            command: vec!["python".into(), "x.py".into()],
            exit_code: Some(3),
            ..RunFacts::default()
        };
        let mut job = JobTrace::default();
        assert_eq!(RunFacts::of(&job.facts), RunFacts::default());
        facts.store(&mut job);
        assert_eq!(RunFacts::of(&job.facts), facts);
    }
}
