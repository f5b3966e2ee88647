//! Which wires an operation uses, and how much goes over each.
//!
//! Counted from the same features as the price ([`Features`]), so that what a price counts on a device's links is what
//! its wires carry. Rings and trees load every device and every node alike; a message loads its two ends only, which is
//! how many senders to one receiver come to share its wires.

use std::collections::{BTreeMap, BTreeSet};

use crate::constants::Carrier;
use crate::fabric::{Fabric, Inside, Wire};
use crate::features::Features;
use crate::operation::Operation;
use crate::placement::Placement;
use crate::tuner::Algorithm;

/// Bytes by wire, ascending by wire.
pub type Demand = BTreeMap<Wire, f64>;

impl Fabric {
    /// The bytes that `operation` on `bytes` by `algorithm` puts on each wire. `devices` are global numbers; for
    /// [`Operation::SendReceive`] the sender and the receiver.
    #[must_use]
    pub fn demand(&self, operation: Operation, bytes: f64, algorithm: Algorithm, devices: &[u32]) -> Demand {
        let mut demand = Demand::new();
        if operation == Operation::SendReceive {
            if let [from, to] = *devices
                && from != to
            {
                self.message(bytes, (from, to), &mut demand);
            }
            return demand;
        }
        let placement = Placement::of(self, devices.iter().copied());
        if placement.ranks < 2 {
            return demand;
        }
        let features = Features::of(operation, algorithm, bytes, &placement);
        let mut nodes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &device in devices.iter().collect::<BTreeSet<_>>() {
            let per_node = self.devices_per_node.max(1);
            nodes.entry(device / per_node).or_default().push(device % per_node);
        }
        // Of a ring over several nodes one step in as many as a node has devices leaves the node.
        let local = f64::from(placement.per_node());
        let stays =
            if placement.nodes > 1 && algorithm == Algorithm::Ring { (local - 1.0) / local } else { 1.0 };
        for (&node, places) in &nodes {
            if places.len() > 1 {
                self.inside_node(features.wire * stays, (node, places), &mut demand);
            }
            if nodes.len() > 1 {
                let used = self.adapter_numbers(places);
                for &adapter in &used {
                    let part = features.network / used.len().max(1) as f64;
                    demand.insert(Wire::AdapterOut(node, adapter), part);
                    demand.insert(Wire::AdapterIn(node, adapter), part);
                }
            }
        }
        if nodes.len() > 1 {
            self.leaves(operation, features.network, &nodes, &mut demand);
        }
        demand
    }

    /// `bytes` in and out of each of the devices `places` of a node.
    fn inside_node(&self, bytes: f64, (node, places): (u32, &[u32]), demand: &mut Demand) {
        let device = |place: u32| node * self.devices_per_node.max(1) + place;
        let layout = self.layout(places);
        if let (Carrier::Linked, Inside::Links { links, per_link }) = (layout.carrier, &self.inside) {
            // All links between the devices carry what the rings through them carry.
            for (&a, &b) in places.iter().flat_map(|a| places.iter().map(move |b| (a, b))) {
                let count = links[a as usize][b as usize];
                if a != b && count > 0 {
                    let part = bytes * per_link.0 * f64::from(count) / layout.ring.0;
                    demand.insert(Wire::Pair(device(a), device(b)), part.min(bytes));
                }
            }
            return;
        }
        for &place in places {
            demand.insert(Wire::Out(device(place)), bytes);
            demand.insert(Wire::In(device(place)), bytes);
        }
        if layout.carrier == Carrier::Pcie {
            demand.insert(Wire::Host(node), bytes * places.len() as f64);
        }
    }

    fn message(&self, bytes: f64, (from, to): (u32, u32), demand: &mut Demand) {
        let per_node = self.devices_per_node.max(1);
        let ((from_node, from_place), (to_node, to_place)) =
            ((from / per_node, from % per_node), (to / per_node, to % per_node));
        if from_node == to_node {
            let layout = self.layout(&[from_place, to_place]);
            if layout.carrier == Carrier::Linked {
                demand.insert(Wire::Pair(from, to), bytes);
                return;
            }
            demand.insert(Wire::Out(from), bytes);
            demand.insert(Wire::In(to), bytes);
            if layout.carrier == Carrier::Pcie {
                demand.insert(Wire::Host(from_node), bytes);
            }
            return;
        }
        let receiving = self.adapter_numbers(&[to_place]);
        // On rails a message goes over NVLink to the neighbour on the receiver's rail first (NCCL's PXN).
        let switched = matches!(self.inside, Inside::Switch(_));
        let sending = if switched && self.rail(1) == 1 {
            receiving.clone()
        } else {
            self.adapter_numbers(&[from_place])
        };
        let mut rails = BTreeSet::new();
        for adapter in &sending {
            demand.insert(Wire::AdapterOut(from_node, *adapter), bytes / sending.len() as f64);
            rails.insert(self.rail(*adapter));
        }
        for adapter in &receiving {
            demand.insert(Wire::AdapterIn(to_node, *adapter), bytes / receiving.len() as f64);
        }
        if let (Some(up), Some(down)) = (self.leaf(from_node), self.leaf(to_node))
            && up != down
        {
            for &rail in &rails {
                demand.insert(Wire::Up(up, rail), bytes / rails.len() as f64);
                demand.insert(Wire::Down(down, rail), bytes / rails.len() as f64);
            }
        }
    }

    /// What leaves and enters the leaves, when each node sends `bytes` into the network.
    fn leaves(&self, operation: Operation, bytes: f64, nodes: &BTreeMap<u32, Vec<u32>>, demand: &mut Demand) {
        let mut leaves: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &node in nodes.keys() {
            let Some(leaf) = self.leaf(node) else { return };
            leaves.entry(leaf).or_default().push(node);
        }
        if leaves.len() < 2 {
            return;
        }
        let ranks: usize = nodes.values().map(Vec::len).sum();
        for (&leaf, members) in &leaves {
            // A ring passes each leaf once, whatever the number of nodes on it; so do the trees, about. Messages from
            // all to all leave it for every device that is elsewhere.
            let out = if operation == Operation::AllToAll {
                let within: usize = members.iter().map(|node| nodes[node].len()).sum();
                let share = |node: &u32| (ranks - within) as f64 / (ranks - nodes[node].len()) as f64;
                bytes * members.iter().map(share).sum::<f64>()
            } else {
                bytes
            };
            let rails: BTreeSet<u32> = members
                .iter()
                .flat_map(|node| self.adapter_numbers(&nodes[node]))
                .map(|adapter| self.rail(adapter))
                .collect();
            for &rail in &rails {
                demand.insert(Wire::Up(leaf, rail), out / rails.len() as f64);
                demand.insert(Wire::Down(leaf, rail), out / rails.len() as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trompe_hardware::NetworkKind;

    fn fabric(spec: &str) -> Fabric {
        Fabric::from_cluster(&trompe_hardware::resolve(spec).unwrap())
    }

    #[track_caller]
    fn check(
        fabric: &Fabric,
        operation: Operation,
        algorithm: Algorithm,
        devices: &[u32],
        expect: &[(Wire, f64)],
    ) {
        let demand = fabric.demand(operation, 1600.0, algorithm, devices);
        for (wire, bytes) in expect {
            let found = demand.get(wire).copied().unwrap_or(0.0);
            assert!((found - bytes).abs() < 1e-9, "{wire:?}: {found} for {bytes}; {demand:?}");
        }
    }

    use Algorithm::{Direct, Ring};
    use Operation::{AllReduce, AllToAll, SendReceive};
    use Wire::{AdapterIn, AdapterOut, Down, Host, In, Out, Pair, Up};

    #[test]
    fn switches_and_adapters() {
        let h100 = fabric("dgx-h100:4");
        let node: Vec<u32> = (8..16).collect();
        check(&h100, AllReduce, Ring, &node, &[(Out(8), 2800.0), (In(15), 2800.0), (AdapterOut(1, 0), 0.0)]);
        let pair: Vec<u32> = (0..16).collect();
        // Eight adapters share what one ring takes out of a node; seven of eight steps stay inside.
        check(
            &h100,
            AllReduce,
            Ring,
            &pair,
            &[(AdapterOut(0, 3), 375.0), (AdapterIn(1, 7), 375.0), (Out(0), 2625.0)],
        );
        check(
            &h100,
            AllReduce,
            Ring,
            &[3, 11],
            &[(AdapterOut(0, 3), 1600.0), (AdapterOut(0, 0), 0.0), (Out(3), 0.0)],
        );
        check(&h100, AllToAll, Direct, &pair, &[(AdapterOut(1, 0), 800.0), (Out(9), 700.0)]);
        check(&h100, SendReceive, Direct, &[3, 9], &[(AdapterOut(0, 3), 1600.0), (AdapterIn(1, 1), 1600.0)]);
        check(&h100, SendReceive, Direct, &[3, 4], &[(Out(3), 1600.0), (In(4), 1600.0), (In(3), 0.0)]);
        // Two devices share an adapter.
        check(&fabric("aws-p4de:2"), AllReduce, Ring, &[1, 9], &[(AdapterOut(0, 0), 1600.0)]);
    }

    #[test]
    fn meshes_and_trees() {
        let v100 = fabric("dgx-v100");
        check(
            &v100,
            AllReduce,
            Ring,
            &[0, 3],
            &[(Pair(0, 3), 1600.0), (Pair(3, 0), 1600.0), (Pair(0, 1), 0.0)],
        );
        check(&v100, SendReceive, Direct, &[0, 6], &[(Out(0), 1600.0), (Host(0), 1600.0)]);
        let pcie = fabric("pcie-server");
        check(&pcie, AllReduce, Ring, &[0, 1], &[(Out(0), 1600.0), (Host(0), 3200.0)]);
    }

    #[test]
    fn leaves_of_the_network() {
        let base = Fabric { oversubscription: 2.0, nodes_per_leaf: Some(2), ..fabric("dgx-h100:4") };
        let tree = Fabric { network: NetworkKind::FatTree, ..base.clone() };
        let all: Vec<u32> = (0..32).collect();
        // One ring over four nodes passes each leaf once.
        let bus = 1600.0 * 2.0 * 31.0 / 32.0;
        check(&tree, AllReduce, Ring, &all, &[(Up(0, 0), bus), (Down(1, 0), bus)]);
        check(&tree, AllReduce, Ring, &all[..16], &[(Up(0, 0), 0.0)]);
        // From 16 devices half of what each has goes to the other leaf.
        check(&tree, AllToAll, Direct, &all, &[(Up(0, 0), 16.0 * 800.0)]);
        let rails = Fabric { network: NetworkKind::RailOptimised, ..base };
        check(&rails, AllReduce, Ring, &all, &[(Up(0, 5), bus / 8.0), (Up(0, 0), bus / 8.0)]);
        check(&rails, AllReduce, Ring, &[5, 13, 21, 29], &[(Up(0, 5), 2400.0), (Up(0, 0), 0.0)]);
        // A message to another place goes over the receiver's rail.
        check(
            &rails,
            SendReceive,
            Direct,
            &[1, 20],
            &[(AdapterOut(0, 4), 1600.0), (Up(0, 4), 1600.0), (Down(1, 4), 1600.0)],
        );
    }
}
