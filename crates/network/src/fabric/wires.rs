//! The links of a cluster one by one: what can be full when operations overlap.
//!
//! A [`Wire`] is one direction of one thing that carries bytes. Which exist follows from the fabric: ports of a device
//! into its switches, links between two devices of a mesh, the host's PCIe tree, adapters, and the way from a leaf of
//! the network into its core. Between the core's own switches nothing is counted: they are as wide as the leaves' ways
//! into them.

use trompe_hardware::NetworkKind;

use super::{Fabric, Inside};

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wire {
    /// From a device (a global number) into its switches or its slot.
    Out(u32),
    /// Into a device.
    In(u32),
    /// From a device to another of its node that links join to it.
    Pair(u32, u32),
    /// The host's PCIe tree of a node.
    Host(u32),
    /// Out of an adapter: node and number in the node.
    AdapterOut(u32, u32),
    /// Into an adapter.
    AdapterIn(u32, u32),
    /// From a leaf of the network into its core: leaf and rail.
    Up(u32, u32),
    /// From the core into a leaf.
    Down(u32, u32),
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Out(device) => write!(f, "port out of device {device}"),
            Self::In(device) => write!(f, "port into device {device}"),
            Self::Pair(from, to) => write!(f, "links {from} to {to}"),
            Self::Host(node) => write!(f, "PCIe tree of node {node}"),
            Self::AdapterOut(node, adapter) => write!(f, "adapter {adapter} of node {node}, out"),
            Self::AdapterIn(node, adapter) => write!(f, "adapter {adapter} of node {node}, in"),
            Self::Up(leaf, rail) => write!(f, "leaf {leaf}, rail {rail} into the core"),
            Self::Down(leaf, rail) => write!(f, "core into leaf {leaf}, rail {rail}"),
        }
    }
}

impl Wire {
    /// The node that it belongs to, when it belongs to one; `devices` in each node.
    #[must_use]
    pub fn node(self, devices: u32) -> Option<u32> {
        match self {
            Self::Out(device) | Self::In(device) | Self::Pair(device, _) => Some(device / devices.max(1)),
            Self::Host(node) | Self::AdapterOut(node, _) | Self::AdapterIn(node, _) => Some(node),
            Self::Up(..) | Self::Down(..) => None,
        }
    }
}

/// What links carry at most of their nominal rate when several transfers keep them full: protocol and packet headers.
/// NVLink: `p2pBandwidthLatencyTest` prints 390 to 400 of 450 GB/s on H100. Adapters: rings over ten nodes of H100 reach
/// all of 400 Gbit/s (`constants/fitted.toml`). PCIe: `bandwidthTest` prints 55 of 63 GB/s.
const NVLINK: f64 = 0.87;
const ADAPTER: f64 = 1.0;
const PCIE: f64 = 0.87;

impl Fabric {
    /// Bytes per second that a wire carries at most; `share` is the rate at a number of ranks over that of two on PCIe.
    #[must_use]
    pub fn capacity(&self, wire: Wire, share: impl Fn(u32) -> f64) -> f64 {
        match wire {
            Wire::Out(_) | Wire::In(_) => match &self.inside {
                Inside::Switch(rate) => rate.0 * NVLINK,
                Inside::Pcie(rate) => rate.0 * PCIE,
                Inside::Links { .. } => self.host.0 * PCIE,
            },
            Wire::Pair(from, to) => match &self.inside {
                Inside::Links { links, per_link } => {
                    let place = |device: u32| (device % self.devices_per_node.max(1)) as usize;
                    per_link.0 * f64::from(links[place(from)][place(to)]) * NVLINK
                }
                Inside::Switch(rate) | Inside::Pcie(rate) => rate.0 * NVLINK,
            },
            // The most that any number of devices moves together.
            Wire::Host(_) => {
                let rate = if let Inside::Pcie(rate) = self.inside { rate.0 } else { self.host.0 };
                let together = |ranks: u32| f64::from(ranks) * share(ranks);
                rate * PCIE * (2..=self.devices_per_node.max(2)).map(together).fold(1.0, f64::max)
            }
            Wire::AdapterOut(..) | Wire::AdapterIn(..) => self.adapter.0 * ADAPTER,
            Wire::Up(..) | Wire::Down(..) => {
                let adapters = match self.network {
                    NetworkKind::FatTree => self.adapters,
                    NetworkKind::RailOptimised => 1,
                };
                let nodes = self.nodes_per_leaf.unwrap_or(1).max(1);
                self.adapter.0 * ADAPTER * f64::from(adapters * nodes) / self.oversubscription
            }
        }
    }

    /// How many consecutive devices share wires beside their own, and whether their places among them matter: they do
    /// unless each device has its own way into switches and its own adapters.
    #[must_use]
    pub fn neighbourhood(&self) -> (u32, bool) {
        let own = matches!(self.inside, Inside::Switch(_)) && self.adapters >= self.devices_per_node;
        let leaf = if self.leaf(0).is_some() { self.nodes_per_leaf.unwrap_or(1).max(1) } else { 1 };
        (self.devices_per_node.max(1) * leaf, !own || self.leaf(0).is_some())
    }

    /// The leaf that a node hangs on; `None` where one leaf holds all nodes, or where the core carries whatever the
    /// adapters can send.
    #[must_use]
    pub(crate) fn leaf(&self, node: u32) -> Option<u32> {
        if self.oversubscription <= 1.0 {
            return None;
        }
        match (self.nodes_per_leaf, self.network) {
            (Some(nodes), _) => Some(node / nodes.max(1)),
            (None, NetworkKind::FatTree) => Some(node),
            (None, NetworkKind::RailOptimised) => None,
        }
    }

    /// The rail of an adapter: those of a fat tree share their leaf.
    #[must_use]
    pub(crate) const fn rail(&self, adapter: u32) -> u32 {
        match self.network {
            NetworkKind::FatTree => 0,
            NetworkKind::RailOptimised => adapter,
        }
    }

    /// The adapters that the devices `local` of one node use: each device its nearest; ascending.
    #[must_use]
    pub(crate) fn adapter_numbers(&self, local: &[u32]) -> Vec<u32> {
        let (adapters, devices) = (self.adapters, self.devices_per_node.max(1));
        let mut used: Vec<u32> = if adapters >= devices {
            let each = adapters / devices;
            local.iter().flat_map(|&place| place * each..(place + 1) * each).collect()
        } else {
            local.iter().map(|&place| place * adapters / devices).collect()
        };
        used.sort_unstable();
        used.dedup();
        used
    }
}
