//! The answer in one word: does the job fit and run?

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer in one word, one sentence, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The answer in one word.
    pub status: VerdictStatus,
    /// The answer as a sentence with its numbers.
    pub text: String,
    /// What the user can do about it; `None` when there is nothing to mend.
    pub hint: Option<String>,
    /// The allocation that failed, when `status` is `out_of_memory`.
    pub out_of_memory: Option<OutOfMemory>,
}

/// How the job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictStatus {
    /// The job ran to its end and its memory fits on every rank.
    Fits,
    /// A rank asked for more memory than its device has.
    OutOfMemory,
    /// The job ended with an error of its own (or could not be simulated).
    #[default]
    Failed,
    /// The user stopped the job; the report covers the part that ran.
    Interrupted,
}

impl VerdictStatus {
    /// The word for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::OutOfMemory => "out of memory",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The first allocation that did not fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutOfMemory {
    /// The rank it happened on.
    pub rank: u32,
    /// Size of the request in bytes.
    pub requested_bytes: u64,
    /// Device memory that was free at that moment, in bytes.
    pub free_bytes: u64,
    /// The step during which it happened, counted from 0; `None` before the first step.
    pub step: Option<u32>,
    /// The operator or module that asked; `None` when the trace does not say.
    pub owner: Option<String>,
}
