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
    /// For a message: how many the same group call sends (or receives) on this communicator, this one included; else 1.
    pub together: u32,
}

impl CollectiveCall<'_> {
    /// Bytes that one member moves from and to its own memory.
    ///
    /// What is sent is read and what is received is written once; an operation that adds reads its own operand as
    /// well. A ring sends `2 (n-1)/n` of the buffer for an all-reduce, `(n-1)/n` for the others.
    #[must_use]
    pub fn device_traffic(&self) -> f64 {
        let n = self.members.len().max(1) as f64;
        let part = (n - 1.0) / n;
        let passes = match self.kind {
            CollectiveKind::AllReduce => 3.0 * 2.0 * part,
            CollectiveKind::ReduceScatter => 3.0 * part,
            CollectiveKind::AllGather | CollectiveKind::AllToAll => 2.0 * part,
            CollectiveKind::Gather | CollectiveKind::Scatter => 2.0 * part,
            CollectiveKind::Broadcast => 2.0,
            CollectiveKind::Reduce => 3.0,
            CollectiveKind::Send | CollectiveKind::Recv => 1.0,
        };
        passes * self.bytes.as_f64()
    }
}

/// What an operation asks of the links while it runs, as the model that made it knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// The model's own number for it.
    pub id: u32,
    /// Its speed when nothing else is under way; below 1 when operations that stand behind it are in its way.
    pub alone: f64,
}

/// What goes on in a job beside a call, when only some of its ranks are replayed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Others<'a> {
    /// Members of communicators that are not replayed and make the same call whenever this one is made: they use links as
    /// well.
    pub alike: &'a [&'a [Rank]],
    /// The ranks that are replayed; `None` for all. Links far from them are used just as those near them are.
    pub replayed: Option<&'a [Rank]>,
}

/// Ranks whose operations may meet on links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbourhood {
    /// So many consecutive ranks are one neighbourhood (a node).
    pub ranks: u32,
    /// Whether the places in it differ: neighbours share a link of their own (an adapter for two, wires between pairs).
    pub places: bool,
}

/// Prices collectives. An implementation must return the same price for the same call.
pub trait CollectiveModel {
    /// The time from the last member's arrival to the end of the operation on every member, when no other operation is
    /// in its way.
    fn price(&self, call: &CollectiveCall<'_>) -> Price;

    /// The part of a price that passes before the links are used; the rest is shared with others on them.
    fn start(&self, _call: &CollectiveCall<'_>) -> Duration {
        Duration::ZERO
    }

    /// What the call asks of the links; `None` when it is in nobody's way. A new number for each question: ask once for
    /// each distinct call.
    fn traffic(&self, _call: &CollectiveCall<'_>, _others: &Others<'_>) -> Option<Traffic> {
        None
    }

    /// Where an operation's links are: two that have a link in common have a place in common. The default has one place for
    /// all.
    fn whereabouts(&self, _traffic: Traffic, places: &mut Vec<u32>) {
        places.push(0);
    }

    /// Whether two operations have a link in common.
    fn meets(&self, _one: Traffic, _other: Traffic) -> bool {
        false
    }

    /// The speed of each of these operations while exactly they are under way, against its price: above 0, at most 1.
    fn speeds(&self, under_way: &[Traffic]) -> Vec<f64> {
        under_way.iter().map(|traffic| traffic.alone).collect()
    }

    /// Multiprocessors that the operation's kernel holds on each member.
    fn channels(&self, _call: &CollectiveCall<'_>) -> u32 {
        0
    }

    /// What prices depend on in the members of a communicator, at most: calls in communicators with equal answers are
    /// priced once. With `pairs`, also calls between members at the same two places must then have equal prices. The
    /// default tells all communicators with different members apart.
    fn likeness(&self, members: &[Rank], _pairs: bool) -> Vec<u32> {
        members.iter().map(|rank| rank.0).collect()
    }

    /// Whether an operation of these ranks leaves a node.
    fn crosses_nodes(&self, _members: &[Rank]) -> bool {
        true
    }

    /// Which neighbourhoods share links; `None` when calls of different communicators never meet.
    fn neighbourhood(&self) -> Option<Neighbourhood> {
        None
    }
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

    fn likeness(&self, members: &[Rank], _pairs: bool) -> Vec<u32> {
        vec![members.len() as u32]
    }
}

/// Operations that take no time on the wire: what remains is waiting for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant;

impl CollectiveModel for Instant {
    fn price(&self, _call: &CollectiveCall<'_>) -> Price {
        Price::default()
    }

    fn likeness(&self, _members: &[Rank], _pairs: bool) -> Vec<u32> {
        Vec::new()
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
            let call = CollectiveCall {
                kind,
                bytes: Bytes(4_000_000),
                dtype: DType::F32,
                members,
                ends: (0, 1),
                together: 1,
            };
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
