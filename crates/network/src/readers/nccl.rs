//! NCCL's topology files (`NCCL_TOPO_FILE`, `NCCL_TOPO_DUMP_FILE`).
//!
//! XML with a `system` of `cpu`, `pci`, `gpu`, `nvlink`, `nic` and `net` elements (NVIDIA NCCL, `src/graph/xml.cc`). An
//! `nvlink` inside a `gpu` has a `count`, a `target` (the bus id of the other end) and a `tclass` (the PCI class of the
//! other end: 0x0302… or 0x0300… a device, 0x0680… a switch). A `net` has a `speed` in Mbit/s.
//!
//! Not a general XML reader: no entities, CDATA or namespaces, which NCCL does not write.

use std::collections::BTreeMap;

use super::NodeLinks;

/// Why a text is no such file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NcclTopologyError {
    /// An element that does not end.
    #[error("byte {at}: an element is not closed; is the file complete?")]
    Open {
        /// Where it begins.
        at: usize,
    },
    /// No device at all.
    #[error("there is no `gpu` element; write the file with `NCCL_TOPO_DUMP_FILE` from a running job")]
    NoDevice,
    /// A number that is none.
    #[error("byte {at}: `{attribute}` is `{value}`, not a number")]
    Number {
        /// Where its element begins.
        at: usize,
        /// Its name.
        attribute: &'static str,
        /// What stands there.
        value: String,
    },
}

/// Reads a topology file of NCCL.
///
/// # Errors
/// When the text is no such file.
pub fn read_nccl_topology(text: &str) -> Result<NodeLinks, NcclTopologyError> {
    let mut found = Found::default();
    let mut at = 0;
    while let Some(begin) = text[at..].find('<').map(|offset| at + offset) {
        let rest = &text[begin..];
        if rest.starts_with("<!--") {
            at = begin + rest.find("-->").ok_or(NcclTopologyError::Open { at: begin })? + 3;
            continue;
        }
        let end = begin + rest.find('>').ok_or(NcclTopologyError::Open { at: begin })?;
        found.element(&text[begin + 1..end], begin)?;
        at = end + 1;
    }
    found.finish()
}

#[derive(Default)]
struct Found {
    /// Bus id of the `pci` elements that are open.
    buses: Vec<String>,
    /// Bus ids of the devices, in order.
    devices: Vec<String>,
    /// Device, other end, whether that is a switch, count.
    links: Vec<(usize, String, bool, u32)>,
    adapters: u32,
    megabits: Option<u32>,
}

impl Found {
    fn element(&mut self, text: &str, at: usize) -> Result<(), NcclTopologyError> {
        let closes = text.ends_with('/');
        let text = text.trim_end_matches('/');
        if let Some(name) = text.strip_prefix('/') {
            if name.trim() == "pci" {
                self.buses.pop();
            }
            return Ok(());
        }
        let (name, attributes) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let attributes = attributes_of(attributes);
        let get = |name: &str| attributes.get(name).copied().unwrap_or_default();
        let number = |attribute: &'static str| -> Result<u32, NcclTopologyError> {
            let value = get(attribute);
            value.parse().map_err(|_| NcclTopologyError::Number { at, attribute, value: value.to_owned() })
        };
        match name {
            "pci" if !closes => self.buses.push(get("busid").to_owned()),
            "gpu" => self.devices.push(self.buses.last().cloned().unwrap_or_default()),
            "nvlink" if !self.devices.is_empty() => {
                let switch = get("tclass").starts_with("0x0680");
                let link = (self.devices.len() - 1, get("target").to_owned(), switch, number("count")?);
                self.links.push(link);
            }
            // What has no port is not cabled; loopback and duplicates have the same name, which NCCL writes once.
            "net" => {
                self.adapters += 1;
                let speed = number("speed")?;
                self.megabits = Some(self.megabits.map_or(speed, |least| least.min(speed)));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<NodeLinks, NcclTopologyError> {
        let size = self.devices.len();
        if size == 0 {
            return Err(NcclTopologyError::NoDevice);
        }
        let mut links = vec![vec![0; size]; size];
        let mut to_switches = vec![0_u32; size];
        for (device, target, switch, count) in &self.links {
            if *switch {
                to_switches[*device] += count;
            } else if let Some(other) = self.devices.iter().position(|bus| bus.eq_ignore_ascii_case(target)) {
                links[*device][other] += count;
            }
        }
        let switched = to_switches.iter().any(|&count| count > 0);
        if switched {
            for (a, row) in links.iter_mut().enumerate() {
                for (b, links) in row.iter_mut().enumerate() {
                    *links = if a == b { 0 } else { to_switches[a].min(to_switches[b]) };
                }
            }
        }
        Ok(NodeLinks {
            devices: size as u32,
            links,
            switched,
            adapters: self.adapters,
            adapter_gigabits: self.megabits.map(|megabits| f64::from(megabits) / 1e3),
        })
    }
}

/// `name="value"` pairs.
fn attributes_of(text: &str) -> BTreeMap<&str, &str> {
    let mut attributes = BTreeMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let Some(quote) = after.chars().next().filter(|c| matches!(c, '"' | '\'')) else { break };
        let Some((value, next)) = after[1..].split_once(quote) else { break };
        attributes.insert(name.trim(), value);
        rest = next;
    }
    attributes
}
