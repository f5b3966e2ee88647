//! What ranks do for each other: kinds of groups, and each rank's share of a step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a group of ranks is for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// Its ranks hold parts of the same layers.
    Tensor,
    /// Its ranks hold successive layers.
    Pipeline,
    /// Its ranks work on different samples, with whole or sharded parameters.
    Data,
    /// Its ranks hold different experts.
    Expert,
    /// Its ranks hold parts of the same sequences.
    Context,
    /// Anything else, or not known.
    #[default]
    Other,
}

impl GroupKind {
    /// Every kind in order.
    pub const ALL: [Self; 6] =
        [Self::Tensor, Self::Pipeline, Self::Data, Self::Expert, Self::Context, Self::Other];

    /// The name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tensor => "tensor parallel",
            Self::Pipeline => "pipeline parallel",
            Self::Data => "data parallel",
            Self::Expert => "expert parallel",
            Self::Context => "context parallel",
            Self::Other => "other groups",
        }
    }

    /// The usual abbreviation.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Tensor => "TP",
            Self::Pipeline => "PP",
            Self::Data => "DP",
            Self::Expert => "EP",
            Self::Context => "CP",
            Self::Other => "other",
        }
    }
}

/// Where one rank's step goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankStep {
    /// The rank.
    pub rank: u32,
    /// How many ranks of the job are like it, itself included: equal ranks are simulated once.
    pub stands_for: u32,
    /// Mean seconds of its steps.
    pub seconds: f64,
    /// Seconds in which its device works.
    pub busy_seconds: f64,
    /// Seconds in which its device is idle because the host has not launched its next work yet.
    pub host_bound_seconds: f64,
    /// Seconds in which its device is idle because a collective waits for other ranks: pipeline bubbles and stragglers.
    pub bubble_seconds: f64,
    /// Seconds in which collectives transfer.
    pub communication_seconds: f64,
    /// The part of them in which nothing else runs.
    pub exposed_seconds: f64,
    /// The same by what the groups are for; rows may overlap in time.
    pub groups: Vec<KindOfGroupTime>,
}

/// Communication of one rank in groups of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindOfGroupTime {
    /// What the groups are for.
    pub kind: GroupKind,
    /// Summed transfer seconds per step.
    pub seconds: f64,
    /// The part of `seconds` in which nothing else runs on the device.
    pub exposed_seconds: f64,
    /// Idle seconds of the device per step while these calls wait for other ranks.
    pub bubble_seconds: f64,
}
