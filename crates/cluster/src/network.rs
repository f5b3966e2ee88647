//! Collectives priced by the network model: a trace's words become the model's.

use std::collections::BTreeMap;
use std::sync::Mutex;

use trompe_base::Rank;
use trompe_hardware::ClusterSheet;
use trompe_network::{Estimate, NetworkModel, Operation, Placement};
use trompe_trace::record::CollectiveKind;

use crate::collective::{CollectiveCall, CollectiveModel};
use crate::price::Price;

/// Prices collectives on a cluster's links. Rank `r` is device `r`: ranks fill node after node.
#[derive(Debug)]
pub struct Network {
    model: NetworkModel,
    /// Prices by members: a job calls the same few operations again and again.
    known: Mutex<BTreeMap<Vec<Rank>, BTreeMap<Call, Price>>>,
}

/// What distinguishes calls among the same members.
type Call = (Operation, u64, Option<(u32, u32)>);

impl Network {
    /// Prices by `model`.
    #[must_use]
    pub fn new(model: NetworkModel) -> Self {
        Self { model, known: Mutex::default() }
    }

    /// Prices on the cluster of a sheet.
    #[must_use]
    pub fn of_cluster(cluster: &ClusterSheet) -> Self {
        Self::new(NetworkModel::of_cluster(cluster))
    }

    /// The full estimate of a call: algorithm, protocol, channels and what the price rests on.
    #[must_use]
    pub fn estimate(&self, call: &CollectiveCall<'_>) -> Estimate {
        let (operation, _, ends) = key(call);
        let member = |place: u32| call.members.get(place as usize).map(|rank| rank.0);
        let placement = match ends {
            Some((from, to)) => Placement::of(self.model.fabric(), [from, to].into_iter().filter_map(member)),
            None => Placement::of(self.model.fabric(), call.members.iter().map(|rank| rank.0)),
        };
        self.model.price(operation, call.bytes, &placement)
    }
}

impl CollectiveModel for Network {
    fn price(&self, call: &CollectiveCall<'_>) -> Price {
        let key = key(call);
        // A thread that panicked while it held the lock left only whole entries.
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(price) = known.get(call.members).and_then(|calls| calls.get(&key)) {
            return *price;
        }
        let Estimate { time, low, high, .. } = self.estimate(call);
        let price = Price { time, low, high };
        known.entry(call.members.to_vec()).or_default().insert(key, price);
        price
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
    (operation, call.bytes.0, ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trompe_base::{Bytes, DType};

    #[test]
    fn calls_are_priced_where_their_members_sit() {
        let network = Network::of_cluster(&trompe_hardware::resolve("dgx-h100:2").unwrap());
        let micros = |kind, megabytes: u64, members: &[u32], ends| {
            let members: Vec<Rank> = members.iter().copied().map(Rank).collect();
            let bytes = Bytes(megabytes << 20);
            let call = CollectiveCall { kind, bytes, dtype: DType::Bf16, members: &members, ends };
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
}
