//! Where the ranks of a communicator sit.

use std::collections::{BTreeMap, BTreeSet};

use crate::fabric::Fabric;

/// The shape of a set of devices on a [`Fabric`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// How many ranks take part.
    pub ranks: u32,
    /// On how many nodes.
    pub nodes: u32,
    /// The places inside the node that holds most of them, ascending.
    pub local: Vec<u32>,
    /// The places inside the node that holds fewest, whose adapters are the narrowest way.
    pub fewest: Vec<u32>,
}

impl Placement {
    /// The placement of global device numbers, node after node.
    #[must_use]
    pub fn of(fabric: &Fabric, devices: impl IntoIterator<Item = u32>) -> Self {
        let per_node = fabric.devices_per_node.max(1);
        let mut nodes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for device in devices {
            nodes.entry(device / per_node).or_default().insert(device % per_node);
        }
        // Strict comparison keeps the first of equals.
        let mut largest = BTreeSet::new();
        let fewest = nodes.values().min_by_key(|local| local.len()).cloned().unwrap_or_default();
        for local in nodes.values() {
            if local.len() > largest.len() {
                largest.clone_from(local);
            }
        }
        Self {
            ranks: nodes.values().map(|local| local.len() as u32).sum(),
            nodes: nodes.len() as u32,
            local: largest.into_iter().collect(),
            fewest: fewest.into_iter().collect(),
        }
    }

    /// `local` ranks on each of `nodes` nodes, on the first devices of each.
    #[must_use]
    pub fn regular(nodes: u32, local: u32) -> Self {
        Self { ranks: nodes * local, nodes, local: (0..local).collect(), fewest: (0..local).collect() }
    }

    /// Ranks on the fullest node.
    #[must_use]
    pub fn per_node(&self) -> u32 {
        self.local.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let fabric = Fabric::from_cluster(&trompe_hardware::resolve("dgx-h100:4").unwrap());
        let check = |devices: &[u32], ranks, nodes, local: &[u32]| {
            let fewest = if devices == [0, 8, 9] { vec![0] } else { local.to_vec() };
            let expect = Placement { ranks, nodes, local: local.to_vec(), fewest };
            assert_eq!(Placement::of(&fabric, devices.iter().copied()), expect, "{devices:?}");
        };
        check(&[], 0, 0, &[]);
        check(&[5], 1, 1, &[5]);
        check(&[0, 1, 2, 3], 4, 1, &[0, 1, 2, 3]);
        check(&[3, 11, 19, 27], 4, 4, &[3]);
        check(&[0, 8, 9], 3, 2, &[0, 1]);
        check(&[0, 0, 8], 2, 2, &[0]);
    }
}
