//! What joins the devices of a cluster, as far as collectives care.
//!
//! A [`Fabric`] comes from a cluster sheet ([`Fabric::from_cluster`]) or from what another tool printed
//! ([`crate::readers`]). Bandwidths are nominal: bytes per second in one direction, before any protocol.

mod rings;
mod wires;

use trompe_base::Duration;
use trompe_hardware::{Architecture, BytesPerSecond, ClusterSheet, LinkKind, NetworkKind, Topology};

use crate::constants::Carrier;
use crate::placement::Placement;
use crate::tuner::{Communicator, Generation};

pub use wires::Wire;

/// Equal nodes and the network between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// Generation of the devices.
    pub architecture: Architecture,
    /// Devices in each node; global device numbers run node after node.
    pub devices_per_node: u32,
    /// What joins them inside a node.
    pub inside: Inside,
    /// Between a device and the host, the way between devices that nothing better joins.
    pub host: BytesPerSecond,
    /// Network adapters of a node, spread evenly over its devices.
    pub adapters: u32,
    /// One adapter.
    pub adapter: BytesPerSecond,
    /// What the network adds to the latency of a step.
    pub adapter_latency: Duration,
    /// Whether the network is Ethernet (RoCE, EFA, Slingshot and the like) rather than InfiniBand.
    pub ethernet: bool,
    /// How the network is cabled.
    pub network: NetworkKind,
    /// Bandwidth into a leaf of the network over bandwidth from it into the core.
    pub oversubscription: f64,
    /// Nodes that share a leaf; without it each node of a fat tree has its own, and one leaf per rail holds all nodes of
    /// a rail-optimised network.
    pub nodes_per_leaf: Option<u32>,
    /// Whether the network's switches reduce (SHARP), so that NCCL's CollNet can be used.
    pub reduces: bool,
}

/// What joins the devices inside a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Inside {
    /// Switches: every device has the full rate to any other.
    Switch(BytesPerSecond),
    /// Links between pairs: `links[a][b]` of them, each at `per_link`.
    Links {
        /// Number of links between each two devices.
        links: Vec<Vec<u32>>,
        /// One link.
        per_link: BytesPerSecond,
    },
    /// The host's PCIe tree.
    Pcie(BytesPerSecond),
}

/// What some devices of one node can use between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Nominal rate of a ring through all of them.
    pub ring: BytesPerSecond,
    /// What it runs over.
    pub carrier: Carrier,
}

/// Share of NVLink's nominal rate that NCCL counts on (NCCL `src/graph/topo.h`: 20 of 25 GB/s per link, 20.6 on
/// Hopper, 40.1 of 50 on Blackwell).
const NVLINK_SHARE: f64 = 0.8;
/// The same for PCIe (12 of 15.75 GB/s for a third-generation x16 slot).
const PCIE_SHARE: f64 = 12.0 / 15.75;

impl Fabric {
    /// The fabric that a cluster sheet describes.
    #[must_use]
    pub fn from_cluster(cluster: &ClusterSheet) -> Self {
        let node = &cluster.node;
        let device = cluster.device();
        let inside = match node.peer.kind {
            LinkKind::NvSwitch => Inside::Switch(node.peer.bandwidth),
            LinkKind::NvLinkMesh | LinkKind::Hccs => Inside::Links {
                links: mesh(&node.topology, node.device_count, device.interconnect.nvlink_links),
                per_link: BytesPerSecond(
                    device.interconnect.nvlink_bandwidth.0
                        / f64::from(device.interconnect.nvlink_links.max(1)),
                ),
            },
            LinkKind::Pcie | LinkKind::InfiniBand | LinkKind::Ethernet => Inside::Pcie(node.peer.bandwidth),
        };
        Self {
            architecture: device.architecture(),
            devices_per_node: node.device_count.max(1),
            inside,
            host: device.interconnect.pcie_bandwidth,
            adapters: node.nic_count,
            adapter: node.nic.bandwidth,
            adapter_latency: node.nic.latency,
            ethernet: node.nic.kind == LinkKind::Ethernet,
            network: cluster.network,
            oversubscription: cluster.oversubscription.max(1.0),
            nodes_per_leaf: cluster.nodes_per_leaf,
            reduces: cluster.sharp,
        }
    }

    /// What the devices `local` of one node can use between them.
    #[must_use]
    pub fn layout(&self, local: &[u32]) -> Layout {
        match &self.inside {
            Inside::Switch(rate) => Layout { ring: *rate, carrier: Carrier::Switched },
            Inside::Pcie(rate) => Layout { ring: *rate, carrier: Carrier::Pcie },
            Inside::Links { links, per_link } => match rings::count(links, local) {
                0 => Layout { ring: self.host, carrier: Carrier::Pcie },
                rings => {
                    Layout { ring: BytesPerSecond(per_link.0 * f64::from(rings)), carrier: Carrier::Linked }
                }
            },
        }
    }

    /// Adapters that the devices `local` of one node use: each device its nearest.
    #[must_use]
    pub fn adapters_of(&self, local: &[u32]) -> u32 {
        self.adapter_numbers(local).len() as u32
    }

    /// What the devices of `placement` on one node can send into the network together. What lies behind the adapters
    /// counts where the wires of an operation are known ([`Fabric::demand`]).
    #[must_use]
    pub fn network_rate(&self, placement: &Placement) -> BytesPerSecond {
        BytesPerSecond(self.adapter.0 * f64::from(self.adapters_of(&placement.fewest)))
    }

    /// What NCCL's tuner knows of a communicator on `placement`.
    #[must_use]
    pub fn communicator(&self, placement: &Placement) -> Communicator {
        const GIGA: f64 = 1e9;
        let layout = self.layout(&placement.local);
        let generation = generation(self.architecture);
        let nvlink = layout.carrier != Carrier::Pcie;
        let share = if nvlink { NVLINK_SHARE } else { PCIE_SHARE };
        let inside = layout.ring.0 * share / GIGA;
        let network = self.adapter.0 * f64::from(self.adapters_of(&placement.fewest)) / GIGA;
        let alone = placement.per_node() < 2;
        // Channels as NCCL reports them on such machines: NVSwitch 24 (Ampere, Hopper) or 32, one per link and
        // direction on a mesh, two over PCIe.
        let channels = match (layout.carrier, generation) {
            (Carrier::Switched, Generation::Blackwell) => 32,
            (Carrier::Switched, _) => 24,
            (Carrier::Linked, _) => 12,
            (Carrier::Pcie, _) => 2,
        };
        let reduces = matches!(generation, Generation::Hopper | Generation::Blackwell);
        Communicator {
            ranks: placement.ranks,
            nodes: placement.nodes,
            generation,
            nvlink,
            // NCCL takes NVLS for three ranks or more per node.
            nvls: layout.carrier == Carrier::Switched && reduces && placement.per_node() > 2,
            channels,
            // A lone device is bound by its network alone.
            inside: if alone && placement.nodes > 1 { f64::INFINITY } else { inside },
            network,
            collnet: self.reduces && placement.nodes > 1,
            adapters: self.adapters_of(&placement.fewest),
            network_latency: self.adapter_latency.as_micros_f64(),
        }
    }
}

const fn generation(architecture: Architecture) -> Generation {
    match architecture {
        Architecture::Volta | Architecture::Turing => Generation::Volta,
        Architecture::Ampere | Architecture::AmpereGraphics | Architecture::Ada => Generation::Ampere,
        Architecture::Hopper => Generation::Hopper,
        Architecture::Blackwell | Architecture::BlackwellGraphics => Generation::Blackwell,
    }
}

/// The link matrix of a node without switches: as stated, else islands, else all with all.
fn mesh(topology: &Topology, devices: u32, links: u32) -> Vec<Vec<u32>> {
    let size = devices as usize;
    if let Some(text) = &topology.links {
        let mut rows: Vec<Vec<u32>> = text
            .split(';')
            .map(|row| row.split_whitespace().filter_map(|count| count.parse().ok()).collect())
            .collect();
        // A node with fewer devices than the sheet describes has the first of them.
        rows.truncate(size);
        rows.resize(size, Vec::new());
        for row in &mut rows {
            row.resize(size, 0);
        }
        return rows;
    }
    let island = topology.island.unwrap_or(devices).max(1) as usize;
    // A device's links go evenly to the others of its island.
    let each = links / (island.min(size) as u32).saturating_sub(1).max(1);
    let between = |a: usize, b: usize| if a != b && a / island == b / island { each } else { 0 };
    (0..size).map(|a| (0..size).map(|b| between(a, b)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn layout(spec: &str, local: &[u32]) -> (u64, bool) {
        let fabric = Fabric::from_cluster(&trompe_hardware::resolve(spec).unwrap());
        let layout = fabric.layout(local);
        ((layout.ring.0 / 1e9).round() as u64, layout.carrier != Carrier::Pcie)
    }

    #[test]
    fn rings_of_the_sheets() {
        assert_eq!(layout("dgx-h100", &[0, 5]), (450, true));
        assert_eq!(layout("dgx-v100", &[0, 1, 2, 3, 4, 5, 6, 7]), (150, true));
        assert_eq!(layout("dgx-v100", &[0, 1, 2, 3]), (100, true));
        assert_eq!(layout("dgx-v100", &[0, 1, 2]), (50, true));
        assert_eq!(layout("dgx-v100", &[0, 1]), (25, true));
        assert_eq!(layout("dgx-v100", &[0, 3]), (50, true));
        assert_eq!(layout("dgx-v100", &[0, 6]), (16, false));
        assert_eq!(layout("a40-pairs", &[0, 1]), (56, true));
        assert_eq!(layout("a40-pairs", &[0, 1, 2, 3]), (32, false));
        assert!(!layout("pcie-server", &[0, 1]).1);
    }

    #[test]
    fn adapters_near_the_devices() {
        let fabric = Fabric::from_cluster(&trompe_hardware::resolve("dgx-v100:2").unwrap());
        let check = |local: &[u32], used| assert_eq!(fabric.adapters_of(local), used, "{local:?}");
        check(&[0], 1);
        check(&[0, 1], 1);
        check(&[0, 2], 2);
        check(&[0, 1, 2, 3, 4, 5, 6, 7], 4);
    }
}
