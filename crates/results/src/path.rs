//! The critical path of a step: what carries its time, and what a gain there would bring.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Kind;

/// The unbroken chain of work that ends when the step of the slowest rank ends: every moment of the step belongs to one
/// owner, so the seconds of all owners add up to the step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalPath {
    /// The rank whose step it is.
    pub rank: u32,
    /// The step, counted from the first one of the run.
    pub step: u32,
    /// How long that step takes.
    pub seconds: f64,
    /// Who carries it, longest first.
    pub owners: Vec<PathOwner>,
    /// The ranks over which it leads, longest first, at most eight.
    pub ranks: Vec<PathRank>,
    /// By what a gain was computed for.
    pub faster_share: f64,
}

/// One owner of time on the critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathOwner {
    /// Its name: a kernel, a collective with its kind of group, a part of the host program.
    pub what: String,
    /// Which sort of thing it is.
    pub sort: PathSort,
    /// The kind of work; `None` for the host and latencies.
    pub kind: Option<Kind>,
    /// Seconds of the step that it carries.
    pub seconds: f64,
    /// `seconds` as a share of the step.
    pub share: f64,
    /// In how many pieces.
    pub pieces: u64,
    /// Seconds that the mean step would be shorter if all of its kind were faster by
    /// [`faster_share`](CriticalPath::faster_share), from a replay in which they are; `None` when that was not replayed.
    pub gain_seconds: Option<f64>,
}

/// Sorts of owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathSort {
    /// A kernel or copy.
    Kernel,
    /// A collective or point-to-point operation on the wire.
    Collective,
    /// The host program.
    Host,
    /// The way from a launch to its start, or from an end to the host that waits for it.
    #[default]
    Latency,
}

/// Time on the critical path by rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathRank {
    /// The rank.
    pub rank: u32,
    /// Seconds of the path on it.
    pub seconds: f64,
}
