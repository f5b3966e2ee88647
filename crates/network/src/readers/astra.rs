//! Network files of ASTRA-sim's analytical back end.
//!
//! One entry per dimension, the innermost first: `topology` (`Ring`, `FullyConnected`, `Switch`), `npus_count`, `bandwidth` in
//! GB/s and `latency` in ns (ASTRA-sim, `astra-network-analytical`), as YAML (a list in brackets or of dashes, comments after
//! `#`) or as JSON; and the JSON of ASTRA-sim's first version, whose keys are `topologies-per-dim`, `units-count`,
//! `links-count`, `link-bandwidth` and `link-latency` and count links one by one.

use trompe_base::Duration;
use trompe_hardware::BytesPerSecond;

use crate::fabric::{Fabric, Inside};

/// One dimension of an ASTRA-sim network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AstraDimension {
    /// How its devices are joined.
    pub block: AstraBlock,
    /// How many they are.
    pub devices: u32,
    /// Rate of a device's link.
    pub bandwidth: BytesPerSecond,
    /// Latency of a link.
    pub latency: Duration,
}

/// Building blocks of an ASTRA-sim network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AstraBlock {
    /// Each with two neighbours.
    Ring,
    /// Each with every other.
    FullyConnected,
    /// All on one switch.
    Switch,
}

/// Why a text is no such file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AstraError {
    /// A key is missing.
    #[error("`{key}` is missing; it must be a list in brackets with one entry per dimension")]
    Missing {
        /// Its name.
        key: &'static str,
    },
    /// Lists of different lengths.
    #[error("`{key}` has {found} entries, `topology` has {expected}; give one per dimension")]
    Length {
        /// Which list.
        key: &'static str,
        /// Its length.
        found: usize,
        /// Number of dimensions.
        expected: usize,
    },
    /// An entry that cannot be.
    #[error(
        "`{key}` has `{entry}`; topologies are `Ring`, `FullyConnected` and `Switch`, numbers above zero"
    )]
    Entry {
        /// Which list.
        key: &'static str,
        /// The entry.
        entry: String,
    },
}

/// Reads the dimensions of an ASTRA-sim network file.
///
/// # Errors
/// When the text is no such file.
pub fn read_astra_network(text: &str) -> Result<Vec<AstraDimension>, AstraError> {
    let first_version = text.contains("\"topologies-per-dim\"");
    let [topology, count, bandwidth, latency] = if first_version {
        ["topologies-per-dim", "units-count", "link-bandwidth", "link-latency"]
    } else {
        ["topology", "npus_count", "bandwidth", "latency"]
    };
    let blocks = list(text, topology)?;
    let numbers = |key: &'static str, least: f64| -> Result<Vec<f64>, AstraError> {
        let mut entries = list(text, key)?;
        // The first version goes on to name dimensions that it does not use.
        if first_version {
            entries.truncate(blocks.len());
        }
        if entries.len() != blocks.len() {
            return Err(AstraError::Length { key, found: entries.len(), expected: blocks.len() });
        }
        let number = |entry: &String| {
            let value = entry.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= least);
            value.ok_or_else(|| AstraError::Entry { key, entry: entry.clone() })
        };
        entries.iter().map(number).collect()
    };
    let counts = numbers(count, 1.0)?;
    let bandwidths = numbers(bandwidth, f64::MIN_POSITIVE)?;
    let latencies = numbers(latency, 0.0)?;
    let links = if first_version { Some(numbers("links-count", 1.0)?) } else { None };
    let dimension = |(place, block): (usize, &String)| {
        let block = match block.as_str() {
            "Ring" => AstraBlock::Ring,
            "FullyConnected" => AstraBlock::FullyConnected,
            "Switch" => AstraBlock::Switch,
            other => return Err(AstraError::Entry { key: topology, entry: other.to_owned() }),
        };
        // How many of a device's links go the same way.
        let beside = links.as_ref().map_or(1.0, |links| match block {
            AstraBlock::Ring => links[place] / 2.0,
            AstraBlock::FullyConnected => links[place] / (counts[place] - 1.0).max(1.0),
            AstraBlock::Switch => links[place],
        });
        Ok(AstraDimension {
            block,
            devices: counts[place] as u32,
            bandwidth: BytesPerSecond(bandwidths[place] * beside.max(1.0) * 1e9),
            latency: Duration::from_secs_f64(latencies[place] * 1e-9),
        })
    };
    blocks.iter().enumerate().map(dimension).collect()
}

impl Fabric {
    /// This fabric with the shape of an ASTRA-sim network, and its number of nodes: the first dimension is a node, the
    /// others are the network between nodes, at the least of their rates and the sum of their latencies.
    #[must_use]
    pub fn with_astra(&self, dimensions: &[AstraDimension]) -> (Self, u32) {
        let mut fabric = self.clone();
        let Some((node, network)) = dimensions.split_first() else { return (fabric, 1) };
        let size = node.devices;
        let matrix = |joined: &dyn Fn(u32, u32) -> bool| {
            let row = |a| (0..size).map(|b| u32::from(a != b && joined(a, b))).collect();
            (0..size).map(row).collect()
        };
        fabric.devices_per_node = size;
        fabric.inside = match node.block {
            AstraBlock::Switch => Inside::Switch(node.bandwidth),
            AstraBlock::FullyConnected => {
                Inside::Links { links: matrix(&|_, _| true), per_link: node.bandwidth }
            }
            AstraBlock::Ring => {
                let next = |a: u32, b: u32| (a + 1) % size == b || (b + 1) % size == a;
                Inside::Links { links: matrix(&next), per_link: node.bandwidth }
            }
        };
        if !network.is_empty() {
            let rate = network.iter().map(|dimension| dimension.bandwidth.0).fold(f64::INFINITY, f64::min);
            fabric.adapters = size;
            fabric.adapter = BytesPerSecond(rate);
            fabric.adapter_latency = network.iter().map(|dimension| dimension.latency).sum();
        }
        (fabric, network.iter().map(|dimension| dimension.devices).product())
    }
}

/// The entries of a key's list.
fn list(text: &str, key: &'static str) -> Result<Vec<String>, AstraError> {
    let missing = AstraError::Missing { key };
    if text.trim_start().starts_with('{') {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|_| missing.clone())?;
        let entries = value.get(key).and_then(serde_json::Value::as_array).ok_or(missing.clone())?;
        let plain = |entry: &serde_json::Value| entry.as_str().map_or(entry.to_string(), str::to_owned);
        return if entries.is_empty() { Err(missing) } else { Ok(entries.iter().map(plain).collect()) };
    }
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let found = lines.by_ref().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    });
    let value = found.ok_or(missing.clone())?;
    let bare = |entry: &str| entry.trim().trim_matches(['"', '\'']).to_owned();
    let entries: Vec<String> = if value.is_empty() {
        let dashes = lines.filter(|line| !line.trim().is_empty());
        dashes.map_while(|line| line.trim().strip_prefix('-').map(bare)).collect()
    } else {
        let inner =
            value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).ok_or(missing.clone())?;
        inner.split(',').map(bare).filter(|entry| !entry.is_empty()).collect()
    };
    if entries.is_empty() { Err(missing) } else { Ok(entries) }
}
