//! Sheets of the hardware that trompe pretends to have.
//!
//! What it is: plain data of a device ([`DeviceSheet`]: all that the emulated CUDA and NVML report and all that the
//! estimators need), a host ([`HostSheet`]), a link ([`LinkSheet`]), a node ([`NodeSheet`]) and a cluster
//! ([`ClusterSheet`]); with feature `loader` a catalogue of built-in sheets and a reader of a user's own TOML
//! ([`resolve`]). Every number in a TOML sheet has a unit and names its source; the loader refuses one that does not.
//!
//! What it is not: it predicts nothing (`estimate` and `network` do), and it knows no CUDA type. [`EmulatedNode`] is
//! the JSON file through which a launcher tells the preloaded library what to pretend.
//!
//! Invariant: a sheet that the loader returns is complete and its numbers are in the unit of their type.

mod device;
mod emulated;
mod host;
mod link;
mod node;
mod unit;

#[cfg(feature = "loader")]
mod loader;

pub use device::{Architecture, Compute, DeviceSheet, Interconnect, Memory, Peaks, Power, Rates, Runtime};
pub use emulated::{EmulatedNode, EmulatedNodeError, PciAddress, SoftwareVersions};
pub use host::{ApiCosts, HostSheet};
pub use link::{LinkKind, LinkSheet};
pub use node::{ClusterSheet, NetworkKind, NodeSheet, Topology};
pub use unit::{BytesPerSecond, FlopsPerSecond, Hertz, Watts};

#[cfg(feature = "loader")]
pub use loader::{Catalogue, Cited, HardwareError, Provenance, resolve, resolve_host};
