//! What the user must know before trusting a number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A remark with what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// A stable name to search and filter for ("no-shapes", "partial-trace", …).
    pub code: String,
    /// What is the case, with its numbers.
    pub text: String,
    /// What to do; `None` when there is nothing to do.
    pub action: Option<String>,
}

/// How much a note matters, most severe first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The prediction is missing or must not be used.
    Error,
    /// The prediction may be off by more than its interval says.
    Warning,
    /// Good to know.
    #[default]
    Info,
}

impl Severity {
    /// The name in `report.json`, good for people too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}
