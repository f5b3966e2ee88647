//! Collectives priced by the network model: a trace's words become the model's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trompe_base::{Bytes, Duration, Rank};
use trompe_hardware::ClusterSheet;
use trompe_network::flow::{self, Load};
use trompe_network::{Estimate, NetworkModel, Operation, Placement};
use trompe_trace::record::CollectiveKind;

use crate::collective::{CollectiveCall, CollectiveModel, Neighbourhood, Others, Traffic};
use crate::price::Price;

/// Prices collectives on a cluster's links. Rank `r` is device `r`: ranks fill node after node.
#[derive(Debug)]
pub struct Network {
    model: NetworkModel,
    /// Prices by members: a job calls the same few operations again and again.
    known: Mutex<BTreeMap<Vec<Rank>, BTreeMap<Call, Quoted>>>,
    shared: Mutex<Shared>,
}

/// What is known of operations that share links.
#[derive(Debug, Default)]
struct Shared {
    /// By number of a [`Traffic`].
    loads: Vec<Load>,
    /// The nodes that its links belong to, by the same number.
    places: Vec<Box<[u32]>>,
    /// Which two meet. Nothing ever walks through it.
    meet: HashMap<(u32, u32), bool>,
    /// Speeds of those under way together, by their numbers in ascending order.
    speeds: BTreeMap<Vec<u32>, Vec<f64>>,
}

/// Sets of operations whose speeds are kept: jobs repeat the same few thousand.
const KEPT: usize = 1 << 16;

/// What distinguishes calls among the same members.
type Call = (Operation, u64, Option<(u32, u32)>, u32);

/// Price and start.
type Quoted = (Price, Duration);

impl Network {
    /// Prices by `model`.
    #[must_use]
    pub fn new(model: NetworkModel) -> Self {
        Self { model, known: Mutex::default(), shared: Mutex::default() }
    }

    /// Prices on the cluster of a sheet.
    #[must_use]
    pub fn of_cluster(cluster: &ClusterSheet) -> Self {
        Self::new(NetworkModel::of_cluster(cluster))
    }

    /// The full estimate of a call: algorithm, protocol, channels and what the price rests on.
    #[must_use]
    pub fn estimate(&self, call: &CollectiveCall<'_>) -> Estimate {
        self.estimate_with_load(call, call.members, None).0
    }

    /// The estimate of a call among `members`, what it asks of the links of these `nodes` (of all, when `None`), and the
    /// part of its time before its bytes move.
    fn estimate_with_load(
        &self,
        call: &CollectiveCall<'_>,
        members: &[Rank],
        nodes: Option<&BTreeSet<u32>>,
    ) -> (Estimate, Load, Duration) {
        let (operation, _, ends, together) = key(call);
        let member = |place: u32| members.get(place as usize).map(|rank| rank.0);
        let devices: Vec<u32> = match ends {
            Some((from, to)) => [from, to].into_iter().filter_map(member).collect(),
            None => members.iter().map(|rank| rank.0).collect(),
        };
        let per_node = self.model.fabric().devices_per_node;
        let counts = |wire: trompe_network::Wire| match (nodes, wire.node(per_node)) {
            (Some(nodes), Some(node)) => nodes.contains(&node),
            _ => true,
        };
        let (mut estimate, load) = self.model.estimate_with_load(operation, call.bytes, &devices, counts);
        let Some((start, bytes)) = self.parts(together, call.bytes, (members, &devices)) else {
            return (estimate, load, Duration::ZERO);
        };
        // The bytes alone fill their links as much as they can.
        let before = estimate.time;
        let factor = (start + bytes).as_secs_f64() / before.as_secs_f64().max(1e-12);
        for time in [&mut estimate.time, &mut estimate.low, &mut estimate.high] {
            *time = time.scale(factor);
        }
        (estimate, load.over(bytes.as_secs_f64() / before.as_secs_f64().max(1e-12)), start)
    }

    /// Start and bytes' time of a message that is one of `together` in a group call; `None` when it is the only one.
    ///
    /// A group call is a part of an all-to-all among the members, whose start was measured; its messages share their links
    /// for the bytes' time only.
    fn parts(
        &self,
        together: u32,
        bytes: Bytes,
        (members, ends): (&[Rank], &[u32]),
    ) -> Option<(Duration, Duration)> {
        if together < 2 || members.len() < 3 {
            return None;
        }
        let all: Vec<u32> = members.iter().map(|rank| rank.0).collect();
        let split = |operation, bytes, devices: &[u32]| {
            let (estimate, load) = self.model.estimate_with_load(operation, bytes, devices, |_| true);
            let used = estimate.time.scale(load.busiest().map_or(0.0, |(_, share)| share.min(1.0)));
            (estimate.time - used, used)
        };
        let (one, linear) = split(Operation::SendReceive, bytes, ends);
        let (many, _) = split(Operation::AllToAll, Bytes(bytes.0 * members.len() as u64), &all);
        let others = members.len() - 1;
        let share = f64::from(together.min(others as u32)) / others as f64;
        Some((one.max(many.scale(share)), linear))
    }

    /// Price and start of a call, each worked out once.
    fn quoted(&self, call: &CollectiveCall<'_>) -> Quoted {
        let key = key(call);
        // A thread that panicked while it held the lock left only whole entries.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quoted) = known.get(call.members).and_then(|calls| calls.get(&key)) {
            return *quoted;
        }
        let (Estimate { time, low, high, .. }, _, start) = self.estimate_with_load(call, call.members, None);
        let quoted = (Price { time, low, high }, start);
        known.entry(call.members.to_vec()).or_default().insert(key, quoted);
        quoted
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // A thread that panicked while it held the lock left only whole entries.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CollectiveModel for Network {
    fn price(&self, call: &CollectiveCall<'_>) -> Price {
        self.quoted(call).0
    }

    fn start(&self, call: &CollectiveCall<'_>) -> Duration {
        self.quoted(call).1
    }

    fn channels(&self, call: &CollectiveCall<'_>) -> u32 {
        self.estimate(call).channels
    }

    fn likeness(&self, members: &[Rank], pairs: bool) -> Vec<u32> {
        let per_node = self.model.fabric().devices_per_node.max(1);
        if !pairs {
            // Prices depend on the placement alone.
            let placement = Placement::of(self.model.fabric(), members.iter().map(|rank| rank.0));
            let mut likeness = vec![placement.ranks, placement.nodes, placement.local.len() as u32];
            likeness.extend(placement.local);
            likeness.extend(placement.fewest);
            return likeness;
        }
        // Pairs depend on the two places inside their nodes, and on whether it is one node.
        let mut nodes: Vec<u32> = Vec::new();
        let mut likeness = Vec::with_capacity(2 * members.len());
        for rank in members {
            let node = rank.0 / per_node;
            let number = nodes.iter().position(|&known| known == node).unwrap_or(nodes.len());
            if number == nodes.len() {
                nodes.push(node);
            }
            likeness.extend([number as u32, rank.0 % per_node]);
        }
        likeness
    }

    fn crosses_nodes(&self, members: &[Rank]) -> bool {
        let per_node = self.model.fabric().devices_per_node.max(1);
        let mut nodes = members.iter().map(|rank| rank.0 / per_node);
        let first = nodes.next();
        nodes.any(|node| Some(node) != first)
    }

    fn neighbourhood(&self) -> Option<Neighbourhood> {
        let (ranks, places) = self.model.fabric().neighbourhood();
        Some(Neighbourhood { ranks, places })
    }

    fn traffic(&self, call: &CollectiveCall<'_>, others: &Others<'_>) -> Option<Traffic> {
        let devices = self.model.fabric().devices_per_node;
        let node = |rank: &Rank| rank.0 / devices.max(1);
        let nodes: Option<BTreeSet<u32>> = others.replayed.map(|ranks| ranks.iter().map(node).collect());
        let near = |members: &[Rank]| {
            nodes.as_ref().is_none_or(|nodes| members.iter().any(|rank| nodes.contains(&node(rank))))
        };
        let mut load = self.estimate_with_load(call, call.members, nodes.as_ref()).1;
        for members in others.alike.iter().filter(|members| near(members)) {
            load.join(&self.estimate_with_load(call, members, nodes.as_ref()).1);
        }
        if load.is_empty() {
            return None;
        }
        // What belongs to no node is a place of its own.
        let places: BTreeSet<u32> = load.wires().map(|wire| wire.node(devices).unwrap_or(u32::MAX)).collect();
        let alone = flow::speeds(&[&load])[0];
        let mut shared = self.shared();
        let id = u32::try_from(shared.loads.len()).expect("distinct calls are numbered by u32");
        shared.loads.push(load);
        shared.places.push(places.into_iter().collect());
        Some(Traffic { id, alone })
    }

    fn whereabouts(&self, traffic: Traffic, places: &mut Vec<u32>) {
        places.extend_from_slice(&self.shared().places[traffic.id as usize]);
    }

    fn meets(&self, one: Traffic, other: Traffic) -> bool {
        let pair = (one.id.min(other.id), one.id.max(other.id));
        let shared = &mut *self.shared();
        let loads = &shared.loads;
        *shared.meet.entry(pair).or_insert_with(|| loads[pair.0 as usize].meets(&loads[pair.1 as usize]))
    }

    fn speeds(&self, under_way: &[Traffic]) -> Vec<f64> {
        let mut ids: Vec<u32> = under_way.iter().map(|traffic| traffic.id).collect();
        ids.sort_unstable();
        let shared = &mut *self.shared();
        if shared.speeds.len() >= KEPT {
            shared.speeds.clear();
        }
        let loads = &shared.loads;
        let found = shared
            .speeds
            .entry(ids.clone())
            .or_insert_with(|| flow::speeds(&ids.iter().map(|&id| &loads[id as usize]).collect::<Vec<_>>()));
        // Equal operations have equal speeds, so the first of them will do.
        let speed = |traffic: &Traffic| found[ids.partition_point(|&id| id < traffic.id)];
        under_way.iter().map(speed).collect()
    }
}

fn key(call: &CollectiveCall<'_>) -> Call {
    let operation = match call.kind {
        CollectiveKind::AllReduce => Operation::AllReduce,
        CollectiveKind::AllGather => Operation::AllGather,
        CollectiveKind::ReduceScatter => Operation::ReduceScatter,
        CollectiveKind::Broadcast => Operation::Broadcast,
        CollectiveKind::Reduce => Operation::Reduce,
        // Gather and scatter are messages of one rank with every other, as many bytes as its part of an all-to-all.
        CollectiveKind::AllToAll | CollectiveKind::Gather | CollectiveKind::Scatter => Operation::AllToAll,
        CollectiveKind::Send | CollectiveKind::Recv => Operation::SendReceive,
    };
    let ends = (operation == Operation::SendReceive).then_some(call.ends);
    let together = if ends.is_some() { call.together } else { 1 };
    (operation, call.bytes.0, ends, together)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trompe_base::DType;

    #[test]
    fn calls_are_priced_where_their_members_sit() {
        let network = Network::of_cluster(&trompe_hardware::resolve("dgx-h100:2").unwrap());
        let micros = |kind, megabytes: u64, members: &[u32], ends| {
            let members: Vec<Rank> = members.iter().copied().map(Rank).collect();
            let bytes = Bytes(megabytes << 20);
            let call =
                CollectiveCall { kind, bytes, dtype: DType::Bf16, members: &members, ends, together: 1 };
            let price = network.price(&call);
            assert_eq!(price, network.price(&call), "priced once more");
            assert!(price.low <= price.time && price.time <= price.high);
            price.time.as_micros_f64()
        };
        let node: Vec<u32> = (0..8).collect();
        let all: Vec<u32> = (0..16).collect();
        let inside = micros(CollectiveKind::AllReduce, 64, &node, (0, 0));
        let across = micros(CollectiveKind::AllReduce, 64, &all, (0, 0));
        assert!(inside < across, "{inside} and {across}");
        // A message inside a node takes NVLink, one between nodes an adapter.
        let near = micros(CollectiveKind::Send, 64, &all, (0, 7));
        let far = micros(CollectiveKind::Send, 64, &all, (0, 8));
        assert!(3.0 * near < far, "{near} and {far}");
        // The same two devices in another communicator.
        assert!((micros(CollectiveKind::Recv, 64, &[3, 8], (0, 1)) - far).abs() < 1e-6);
        assert!(micros(CollectiveKind::AllReduce, 1, &[5], (0, 0)) > 0.0);
    }

    #[test]
    fn operations_that_share_adapters_slow_each_other() {
        let network = Network::of_cluster(&trompe_hardware::resolve("aws-p4de:2").unwrap());
        let traffic = |members: &[u32], alike: &[&[Rank]]| {
            let replayed: Vec<Rank> = members.iter().copied().map(Rank).collect();
            let others = Others { alike, replayed: (!alike.is_empty()).then_some(&replayed) };
            let members: Vec<Rank> = members.iter().copied().map(Rank).collect();
            let call = CollectiveCall {
                kind: CollectiveKind::AllReduce,
                bytes: Bytes(1 << 30),
                dtype: DType::Bf16,
                members: &members,
                ends: (0, 0),
                together: 1,
            };
            network.traffic(&call, &others)
        };
        // Devices 0 and 1 share an adapter, 2 has another.
        let (first, second, third) = (traffic(&[0, 8], &[]), traffic(&[1, 9], &[]), traffic(&[2, 10], &[]));
        let (first, second, third) = (first.unwrap(), second.unwrap(), third.unwrap());
        assert!(network.meets(first, second) && !network.meets(first, third));
        let together = network.speeds(&[third, second, first]);
        assert!(together[1] == together[2] && together[1] < 0.7 && together[0] == 1.0, "{together:?}");
        // One that stands for both is as slow as each of the two.
        let both = traffic(&[0, 8], &[&[Rank(1), Rank(9)]]).unwrap();
        assert_eq!(both.alone, together[1]);
        // Inside a node everything is in one place; a lone member is in nobody's way.
        let whereabouts = |traffic: Traffic| {
            let mut places = Vec::new();
            network.whereabouts(traffic, &mut places);
            places
        };
        assert_eq!(whereabouts(traffic(&[8, 9], &[]).unwrap()), [1]);
        assert_eq!(whereabouts(first), [0, 1]);
        assert_eq!(traffic(&[3], &[]), None);
    }
}
