//! How long a collective takes on the wire, once every member has arrived: a strategy, picked by whoever starts the
//! replay.

use trompe_base::{Bytes, DType, Duration, Rank};
use trompe_trace::record::CollectiveKind;

use crate::price::Price;

/// A collective or point-to-point operation whose members have all arrived.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCall<'a> {
    /// Which operation.
    pub kind: CollectiveKind,
    /// Bytes as nccl-tests counts them: the large buffer for all-gather and reduce-scatter.
    pub bytes: Bytes,
    /// Element type.
    pub dtype: DType,
    /// Global ranks of the communicator, in communicator order.
    pub members: &'a [Rank],
    /// Root, or for point-to-point operations the two ends, as places in `members`.
    pub ends: (u32, u32),
}

/// Prices collectives. An implementation must return the same price for the same call.
pub trait CollectiveModel {
    /// The time from the last member's arrival to the end of the operation on every member.
    fn price(&self, call: &CollectiveCall<'_>) -> Price;
}

/// Latency per hop plus bytes over bandwidth: ring algorithms on links of one rate.
///
/// With `n` members and `b` bytes (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations
/// in MPICH", 2005, ring algorithms): all-reduce `2 (n-1) α + 2 (n-1)/n · b/β`; all-gather, reduce-scatter and
/// all-to-all `(n-1) α + (n-1)/n · b/β`; the pipelined broadcast and reduce `(n-1) α + b/β`; gather and scatter
/// `(n-1) α + (n-1)/n · b/β`; point-to-point `α + b/β`. One member: `α` alone, the cost of the launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlphaBeta {
    /// Time per hop.
    pub alpha: Duration,
    /// Bytes per second that one member sends.
    pub bytes_per_second: f64,
}

impl CollectiveModel for AlphaBeta {
    fn price(&self, call: &CollectiveCall<'_>) -> Price {
        let n = call.members.len().max(1) as f64;
        let bytes = call.bytes.as_f64();
        let (hops, sent) = match call.kind {
            _ if call.members.len() < 2 => (1.0, 0.0),
            CollectiveKind::AllReduce => (2.0 * (n - 1.0), 2.0 * (n - 1.0) / n * bytes),
            CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::Scatter => (n - 1.0, (n - 1.0) / n * bytes),
            CollectiveKind::Broadcast | CollectiveKind::Reduce => (n - 1.0, bytes),
            CollectiveKind::Send | CollectiveKind::Recv => (1.0, bytes),
        };
        Price::exact(self.alpha.scale(hops) + Duration::from_secs_f64(sent / self.bytes_per_second))
    }
}

/// Operations that take no time on the wire: what remains is waiting for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant;

impl CollectiveModel for Instant {
    fn price(&self, _call: &CollectiveCall<'_>) -> Price {
        Price::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_formulas() {
        let model = AlphaBeta { alpha: Duration::from_micros(1), bytes_per_second: 1e9 };
        let members: Vec<Rank> = (0..4).map(Rank).collect();
        let check = |kind, members: &[Rank], micros: u64| {
            let call =
                CollectiveCall { kind, bytes: Bytes(4_000_000), dtype: DType::F32, members, ends: (0, 1) };
            assert_eq!(model.price(&call).time, Duration::from_micros(micros), "{kind:?}");
        };
        check(CollectiveKind::AllReduce, &members, 6 + 6000);
        check(CollectiveKind::AllGather, &members, 3 + 3000);
        check(CollectiveKind::ReduceScatter, &members, 3 + 3000);
        check(CollectiveKind::Broadcast, &members, 3 + 4000);
        check(CollectiveKind::Send, &members, 1 + 4000);
        check(CollectiveKind::AllReduce, &members[..1], 1);
    }
}
