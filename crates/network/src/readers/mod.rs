//! Fabrics from what other tools print or read: `nvidia-smi topo -m`, NCCL's topology files, ASTRA-sim's networks; and times
//! from nccl-tests.
//!
//! They say how devices hang together, not what the devices are. A caller reads the links and
//! lays them on a [`crate::Fabric`] ([`NodeLinks::apply`]). Readers take texts; whoever has the file reads it.

mod astra;
mod matrix;
mod nccl;
mod nccl_tests;

pub use astra::{AstraBlock, AstraDimension, AstraError, read_astra_network};
pub use matrix::{MatrixError, read_matrix};
pub use nccl::{NcclTopologyError, read_nccl_topology};
pub use nccl_tests::{Hints, LogError, Measured, operation_in, read_nccl_tests};

use trompe_hardware::BytesPerSecond;

use crate::fabric::{Fabric, Inside};

/// How the devices of one node hang together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLinks {
    /// Number of devices.
    pub devices: u32,
    /// NVLink links between each two devices.
    pub links: Vec<Vec<u32>>,
    /// Whether the links run through switches.
    pub switched: bool,
    /// Network adapters of the node.
    pub adapters: u32,
    /// Gbit/s of the adapters, where stated.
    pub adapter_gigabits: Option<f64>,
}

impl NodeLinks {
    /// The fabric with these links inside its nodes; `per_link` is the rate of one NVLink link in one direction.
    #[must_use]
    pub fn apply(&self, fabric: &Fabric, per_link: BytesPerSecond) -> Fabric {
        let mut fabric = fabric.clone();
        fabric.devices_per_node = self.devices.max(1);
        let most = self.links.iter().flatten().copied().max().unwrap_or(0);
        fabric.inside = if most == 0 {
            Inside::Pcie(fabric.host)
        } else if self.switched {
            // Each device has all its links to the switches, and thereby to any other.
            Inside::Switch(BytesPerSecond(per_link.0 * f64::from(most)))
        } else {
            Inside::Links { links: self.links.clone(), per_link }
        };
        if self.adapters > 0 {
            fabric.adapters = self.adapters;
        }
        if let Some(gigabits) = self.adapter_gigabits {
            fabric.adapter = BytesPerSecond(gigabits * 0.125e9);
        }
        fabric
    }
}
