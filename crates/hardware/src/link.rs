//! A link between two things: its rate and its latency in one direction.

use serde::{Deserialize, Serialize};
use trompe_base::Duration;

use crate::BytesPerSecond;

/// One link or one bundle of equal links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSheet {
    /// What it is made of.
    pub kind: LinkKind,
    /// Raw rate in one direction, all links of the bundle together.
    pub bandwidth: BytesPerSecond,
    /// Time of the first byte, software included.
    pub latency: Duration,
}

/// Kinds of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// NVLink through switches: every pair has the full rate.
    NvSwitch,
    /// NVLink without switches: pairs share the links.
    NvLinkMesh,
    /// HCCS between NPUs, without switches: pairs share the links.
    Hccs,
    /// PCIe through the host.
    Pcie,
    /// InfiniBand.
    InfiniBand,
    /// Ethernet (RoCE or TCP).
    Ethernet,
}
