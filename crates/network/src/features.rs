//! What a choice of algorithm asks of the links: steps and bytes, by counting.

use crate::operation::Operation;
use crate::placement::Placement;
use crate::tuner::Algorithm;

/// The work of one operation, per rank and per node.
///
/// Per rank, what its links inside the node carry; per node, what its adapters carry together, one direction. Rings:
/// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005). Trees:
/// Sanders, Speck and Träff, "Two-tree algorithms" (2009): across two nodes each sends its data once, across more each
/// sends it twice, inner node of one tree and leaf of the other. NVLS: a rank's data goes up to the switch once, and its
/// share of the result once more. CollNet and NVLS across nodes (Graham et al., "Scalable hierarchical aggregation protocol
/// (SHARP)", 2016): the network's switches reduce, so a node sends its data once and gets the result once, in one step
/// whatever the number of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// Steps inside nodes that follow one another.
    pub steps: f64,
    /// Steps between nodes that follow one another.
    pub network_steps: f64,
    /// Bytes that the links of one device carry.
    pub wire: f64,
    /// Bytes of one rank's own part.
    pub own: f64,
    /// Bytes that the adapters of one node carry.
    pub network: f64,
}

impl Features {
    /// The work of `operation` on `bytes` (counted as [`Operation`] says) by `algorithm`.
    #[must_use]
    pub fn of(operation: Operation, algorithm: Algorithm, bytes: f64, placement: &Placement) -> Self {
        let n = f64::from(placement.ranks.max(1));
        let nodes = f64::from(placement.nodes.max(1));
        let local = f64::from(placement.per_node().max(1));
        let own = match operation {
            Operation::AllReduce | Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => {
                bytes / n
            }
            Operation::Broadcast | Operation::Reduce | Operation::SendReceive => 0.0,
        };
        let log_nodes = f64::from(placement.nodes.max(1).next_power_of_two().ilog2());
        let bus = operation.bus_factor(placement.ranks) * bytes;
        let across_tree = match placement.nodes {
            ..=1 => 0.0,
            2 => bytes,
            _ => 2.0 * bytes,
        };
        // A node's part once out, the others' once in: whichever is more.
        let through_switches = match (placement.nodes, operation) {
            (..=1, _) => 0.0,
            (_, Operation::AllReduce) => bytes,
            _ => bytes * (nodes - 1.0) / nodes,
        };
        let (steps, network_steps, wire, network) = match algorithm {
            Algorithm::Ring => {
                let rounds = if operation == Operation::AllReduce { 2.0 } else { 1.0 };
                let between = rounds * (nodes - 1.0);
                let network = if placement.nodes > 1 { bus } else { 0.0 };
                (rounds * (n - 1.0) - between, between, bus, network)
            }
            Algorithm::Tree => (2.0 * (local - 1.0), 2.0 * log_nodes, 2.0 * bytes, across_tree),
            Algorithm::CollnetDirect => {
                let passes = if operation == Operation::AllReduce { 2.0 } else { 1.0 };
                let inside = passes * bytes * (local - 1.0) / local;
                (passes * (local - 1.0).min(1.0), 1.0, inside, through_switches)
            }
            Algorithm::CollnetChain => (2.0 * (local - 1.0), 1.0, 2.0 * bytes, through_switches),
            Algorithm::Nvls => {
                let between = if placement.nodes > 1 { 1.0 } else { 0.0 };
                (local - 1.0, between, bytes * (1.0 + 1.0 / local), through_switches)
            }
            Algorithm::NvlsTree => (local - 1.0, 2.0 * log_nodes, bytes * (1.0 + 1.0 / local), across_tree),
            Algorithm::Pat => (0.0, log_nodes, bus, bus),
            Algorithm::Direct if operation == Operation::AllToAll => {
                let inside = bytes * (local - 1.0) / n;
                (local - 1.0, n - local, inside, bytes * local * (n - local) / n)
            }
            Algorithm::Direct if placement.nodes > 1 => (0.0, 1.0, 0.0, bytes),
            Algorithm::Direct => (1.0, 0.0, bytes, 0.0),
        };
        Self { steps, network_steps, wire, own, network }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let check = |operation, algorithm, (nodes, local), expect: [f64; 5]| {
            let f = Features::of(operation, algorithm, 1600.0, &Placement::regular(nodes, local));
            assert_eq!(
                [f.steps, f.network_steps, f.wire, f.own, f.network],
                expect,
                "{operation:?} by {algorithm:?} on {nodes} x {local}"
            );
        };
        use Algorithm::{CollnetChain, CollnetDirect, Direct, Nvls, NvlsTree, Pat, Ring, Tree};
        use Operation::{AllGather, AllReduce, AllToAll, Broadcast, SendReceive};
        check(AllReduce, Ring, (1, 8), [14.0, 0.0, 2800.0, 200.0, 0.0]);
        check(AllReduce, Ring, (2, 8), [28.0, 2.0, 3000.0, 100.0, 3000.0]);
        check(AllGather, Ring, (1, 4), [3.0, 0.0, 1200.0, 400.0, 0.0]);
        check(AllGather, Pat, (16, 1), [0.0, 4.0, 1500.0, 100.0, 1500.0]);
        check(AllReduce, Tree, (1, 8), [14.0, 0.0, 3200.0, 200.0, 0.0]);
        check(AllReduce, Tree, (2, 8), [14.0, 2.0, 3200.0, 100.0, 1600.0]);
        check(AllReduce, NvlsTree, (4, 4), [3.0, 4.0, 2000.0, 100.0, 3200.0]);
        check(AllReduce, Nvls, (1, 8), [7.0, 0.0, 1800.0, 200.0, 0.0]);
        check(AllReduce, Nvls, (4, 8), [7.0, 1.0, 1800.0, 50.0, 1600.0]);
        check(AllReduce, CollnetDirect, (4, 8), [2.0, 1.0, 2800.0, 50.0, 1600.0]);
        check(AllReduce, CollnetDirect, (4, 1), [0.0, 1.0, 0.0, 400.0, 1600.0]);
        check(AllGather, CollnetDirect, (4, 8), [1.0, 1.0, 1400.0, 50.0, 1200.0]);
        check(AllReduce, CollnetChain, (4, 8), [14.0, 1.0, 3200.0, 50.0, 1600.0]);
        check(Broadcast, Ring, (1, 8), [7.0, 0.0, 1600.0, 0.0, 0.0]);
        check(AllToAll, Direct, (1, 4), [3.0, 0.0, 1200.0, 400.0, 0.0]);
        check(AllToAll, Direct, (2, 8), [7.0, 8.0, 700.0, 100.0, 6400.0]);
        check(SendReceive, Direct, (1, 2), [1.0, 0.0, 1600.0, 0.0, 0.0]);
        check(SendReceive, Direct, (2, 1), [0.0, 1.0, 0.0, 0.0, 1600.0]);
    }
}
