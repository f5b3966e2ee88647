//! The simulated machines and the numbers of their sheets, each with its source.

use trompe_base::Bytes;
use trompe_hardware::{Catalogue, ClusterSheet, DeviceSheet, LinkKind, LinkSheet, Provenance};
use trompe_results::{Cluster, Device, Fact};

/// The sources of a device sheet's numbers; empty for a user's own sheet, whose file the user has.
pub(super) fn provenance(device: &DeviceSheet) -> Provenance {
    let catalogue = Catalogue::builtin();
    match catalogue.device(&device.name) {
        Ok(known) if known == *device => catalogue.provenance(&device.name).unwrap_or_default(),
        _ => Provenance::new(),
    }
}

/// The source of one number.
pub(super) fn source(provenance: &Provenance, path: &str) -> String {
    provenance.get(path).map_or_else(|| "the user's own sheet".to_owned(), |cited| cited.source.clone())
}

pub(super) fn cluster(sheet: &ClusterSheet) -> Cluster {
    let node = &sheet.node;
    let inside = if node.device_count > 1 {
        format!("{} inside a node", link(&node.peer))
    } else {
        format!("{} to the host", link(&node.host_link))
    };
    let between = if sheet.node_count > 1 {
        format!(", {} × {} between nodes", node.nic_count, link(&node.nic))
    } else {
        String::new()
    };
    Cluster {
        name: sheet.name.clone(),
        nodes: sheet.node_count,
        devices_per_node: node.device_count,
        device: node.device.marketing_name.clone(),
        interconnect: inside + &between,
    }
}

fn link(link: &LinkSheet) -> String {
    let kind = match link.kind {
        LinkKind::NvSwitch => "NVLink through switches",
        LinkKind::NvLinkMesh => "NVLink",
        LinkKind::Hccs => "HCCS",
        LinkKind::Pcie => "PCIe",
        LinkKind::InfiniBand => "InfiniBand",
        LinkKind::Ethernet => "Ethernet",
    };
    format!("{kind} at {} each way", link.bandwidth)
}

pub(super) fn device(sheet: &DeviceSheet, provenance: &Provenance) -> Device {
    let fact = |name: &str, path: &str, value: f64, unit: &str| Fact {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        source: source(provenance, path),
    };
    let count = |name: &str, path: &str, value: u32| fact(name, path, f64::from(value), "");
    let bytes = |name: &str, path: &str, value: Bytes| fact(name, path, value.as_f64(), "B");
    let (compute, memory) = (&sheet.compute, &sheet.memory);
    let mut facts = vec![
        count("multiprocessors", "compute.sm_count", compute.sm_count),
        fact("boost clock", "compute.boost_clock", compute.boost_clock.0, "Hz"),
        bytes("memory", "memory.total", memory.total),
        fact("memory bandwidth", "memory.bandwidth", memory.bandwidth.0, "B/s"),
        bytes("level-2 cache", "memory.l2", memory.l2),
        fact("PCIe bandwidth", "interconnect.pcie_bandwidth", sheet.interconnect.pcie_bandwidth.0, "B/s"),
        bytes("CUDA context", "runtime.context", sheet.runtime.context),
    ];
    for (unit, rates) in [("vector", &sheet.peaks.vector), ("tensor", &sheet.peaks.tensor)] {
        let rates = [
            ("fp64", rates.fp64),
            ("fp32", rates.fp32),
            ("tf32", rates.tf32),
            ("fp16", rates.fp16),
            ("bf16", rates.bf16),
            ("fp8", rates.fp8),
            ("int8", rates.int8),
        ];
        for (dtype, rate) in rates {
            let path = format!("peaks.{unit}.{dtype}");
            let name = format!("dense {dtype} peak, {unit} units");
            facts.extend(rate.map(|rate| fact(&name, &path, rate.0, "FLOP/s")));
        }
    }
    Device { sheet: sheet.name.clone(), name: sheet.marketing_name.clone(), facts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_built_in_device_has_its_source() {
        for name in Catalogue::builtin().devices() {
            let sheet = Catalogue::builtin().device(name).unwrap();
            let device = device(&sheet, &provenance(&sheet));
            for fact in device.facts {
                assert!(fact.source != "the user's own sheet" && fact.value > 0.0, "{name}: {fact:?}");
            }
        }
    }
}
