//! The operations that have a price, and how their bytes are counted.

use serde::{Deserialize, Serialize};

/// A collective or point-to-point operation.
///
/// Bytes are counted as nccl-tests does: the buffer of an all-reduce, broadcast, reduce or message; the large buffer of
/// all-gather and reduce-scatter; the whole send buffer of one rank for all-to-all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the field's standard terms")]
pub enum Operation {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    Reduce,
    /// Every rank sends a different part of its buffer to every other.
    AllToAll,
    /// One rank sends, one receives.
    SendReceive,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::Reduce,
        Self::AllToAll,
        Self::SendReceive,
    ];

    /// Whether NCCL's tuner chooses its algorithm; the others are made of point-to-point transfers.
    #[must_use]
    pub const fn is_tuned(self) -> bool {
        !matches!(self, Self::AllToAll | Self::SendReceive)
    }

    /// nccl-tests' bus bandwidth over its algorithm bandwidth, for `ranks` ranks (nccl-tests, `doc/PERFORMANCE.md`).
    #[must_use]
    pub fn bus_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks.max(1));
        match self {
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => (n - 1.0) / n,
            Self::Broadcast | Self::Reduce | Self::SendReceive => 1.0,
        }
    }
}
