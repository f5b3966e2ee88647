//! A node (one host and its devices) and a cluster of equal nodes.

use serde::{Deserialize, Serialize};

use crate::{DeviceSheet, HostSheet, LinkSheet};

/// One host with its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSheet {
    /// The sheet's own name.
    pub name: String,
    /// Other names a user may give.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The devices, all alike.
    pub device: DeviceSheet,
    /// How many devices.
    pub device_count: u32,
    /// The host.
    pub host: HostSheet,
    /// Between two devices of the node, per device.
    pub peer: LinkSheet,
    /// Between a device and the host.
    pub host_link: LinkSheet,
    /// One network adapter of the node.
    pub nic: LinkSheet,
    /// How many network adapters.
    pub nic_count: u32,
    /// Which devices `peer` joins, where that is not all with all.
    #[serde(default)]
    pub topology: Topology,
}

/// Which devices of a node are joined by NVLink without switches; empty: all with all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Devices are joined in groups of this many, in order; groups reach each other over PCIe.
    #[serde(default)]
    pub island: Option<u32>,
    /// Number of links between each two devices: rows of a matrix, separated by `;`.
    #[serde(default)]
    pub links: Option<String>,
}

/// How the network between nodes is cabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// All adapters of a node share their first switches; oversubscription bounds all traffic between nodes.
    #[default]
    FatTree,
    /// Adapter `i` of every node meets on rail `i`, below the oversubscribed level.
    RailOptimised,
}

/// Equal nodes behind one network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSheet {
    /// The specification it was resolved from (`dgx-h100:4`).
    pub name: String,
    /// One node.
    pub node: NodeSheet,
    /// How many nodes.
    pub node_count: u32,
    /// Bandwidth into the network over bandwidth across it; 1 for a full fat tree.
    pub oversubscription: f64,
    /// How the network is cabled.
    #[serde(default)]
    pub network: NetworkKind,
    /// Nodes whose adapters meet on one first-level switch (fat tree) or on one per rail (rail-optimised); only traffic
    /// between such groups is oversubscribed. Without it each node of a fat tree is its own group, and all nodes of a
    /// rail-optimised network are one.
    #[serde(default)]
    pub nodes_per_leaf: Option<u32>,
    /// Whether its switches reduce in the network (SHARP) and the software to ask them for it is there.
    #[serde(default)]
    pub sharp: bool,
}

impl ClusterSheet {
    /// Number of devices in the whole cluster.
    #[must_use]
    pub const fn device_count(&self) -> u32 {
        self.node.device_count * self.node_count
    }

    /// The device that every node holds.
    #[must_use]
    pub const fn device(&self) -> &DeviceSheet {
        &self.node.device
    }
}
