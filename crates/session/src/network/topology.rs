//! `--network topology=FILE`: links from what other tools print instead of the sheet's.
//!
//! The form is told by the content: the matrix of `nvidia-smi topo -m`, a topology file of NCCL (XML), a network of ASTRA-sim
//! (YAML or JSON). Such a file says how devices hang together; what the devices are, and what the file leaves open, stays the
//! sheet's.

use std::path::Path;

use trompe_hardware::{BytesPerSecond, ClusterSheet};
use trompe_network::Fabric;
use trompe_network::readers::{NodeLinks, read_astra_network, read_matrix, read_nccl_topology};

use crate::{SessionError, disk};

/// The fabric of `cluster` with the links of `file`.
pub(super) fn fabric(cluster: &ClusterSheet, file: &Path) -> Result<Fabric, SessionError> {
    read(cluster, &disk::read_text(file)?)
        .map_err(|reason| SessionError::Network(format!("`{}`: {reason}", file.display())))
}

fn read(cluster: &ClusterSheet, text: &str) -> Result<Fabric, String> {
    let sheet = Fabric::from_cluster(cluster);
    // Some editors put a byte order mark before the text.
    let text = text.trim_start_matches('\u{feff}');
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if text.trim_start().starts_with('<') {
        return of_node(cluster, &sheet, &read_nccl_topology(text).map_err(|error| error.to_string())?);
    }
    if has(&["npus_count", "topologies-per-dim"]) {
        let (fabric, nodes) = sheet.with_astra(&read_astra_network(text).map_err(|error| error.to_string())?);
        let (found, expected) = (fabric.devices_per_node * nodes, cluster.device_count());
        if found != expected {
            return Err(format!(
                "the network has {found} devices, the cluster {expected}; name a cluster of {found} with `--cluster`"
            ));
        }
        return Ok(fabric);
    }
    if has(&["GPU0"]) {
        return of_node(cluster, &sheet, &read_matrix(text).map_err(|error| error.to_string())?);
    }
    Err("this is no topology that is known; give the output of `nvidia-smi topo -m`, NCCL's XML \
         (`NCCL_TOPO_DUMP_FILE`) or a network file of ASTRA-sim"
        .to_owned())
}

fn of_node(cluster: &ClusterSheet, sheet: &Fabric, links: &NodeLinks) -> Result<Fabric, String> {
    let expected = cluster.node.device_count;
    if links.devices != expected {
        let found = links.devices;
        return Err(format!(
            "its node has {found} devices, a node of the cluster {expected}; name devices and nodes with `--cluster`, as in \
             `h100-sxm:{found}x2`"
        ));
    }
    let interconnect = &cluster.device().interconnect;
    let per_link = interconnect.nvlink_bandwidth.0 / f64::from(interconnect.nvlink_links.max(1));
    if per_link <= 0.0 && links.links.iter().flatten().any(|&count| count > 0) {
        return Err(format!(
            "it has NVLink, but `{}` has none; name the right device",
            cluster.device().name
        ));
    }
    Ok(links.apply(sheet, BytesPerSecond(per_link)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trompe_network::Inside;

    fn of(spec: &str, text: &str) -> Result<Fabric, String> {
        read(&trompe_hardware::resolve(spec).unwrap(), text)
    }

    const PAIRS: &str = "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\nGPU0\t X \tNV12\tSYS\tSYS\tPXB\t0-31\n\
                         GPU1\tNV12\t X \tSYS\tSYS\tPXB\t0-31\nGPU2\tSYS\tSYS\t X \tNV12\tSYS\t32-63\n\
                         GPU3\tSYS\tSYS\tNV12\t X \tSYS\t32-63\n";

    #[test]
    fn each_form_is_recognised() {
        let pairs = of("a100-sxm:4", PAIRS).unwrap();
        assert_eq!((pairs.devices_per_node, pairs.adapters), (4, 1));
        assert_eq!(pairs.layout(&[0, 1]).ring.0, 300e9);
        let xml = r#"<system version="1"><cpu><pci busid="0:1"><gpu dev="0"><nvlink target="0:9" count="18" tclass="0x068000"/></gpu></pci>
            <pci busid="0:2"><gpu dev="1"><nvlink target="0:9" count="18" tclass="0x068000"/></gpu></pci></cpu></system>"#;
        assert_eq!(of("h100-sxm:2", xml).unwrap().inside, Inside::Switch(BytesPerSecond(450e9)));
        let yaml =
            "topology: [ Ring, Switch ]\nnpus_count: [ 8, 2 ]\nbandwidth: [ 100, 25 ]\nlatency: [ 0, 500 ]\n";
        let ring = of("dgx-h100:2", yaml).unwrap();
        assert_eq!((ring.layout(&[0, 1, 2, 3, 4, 5, 6, 7]).ring.0, ring.adapter.0), (200e9, 25e9));
        for (spec, text) in [("a100-sxm:4", PAIRS), ("h100-sxm:2", xml), ("dgx-h100:2", yaml)] {
            assert_eq!(of(spec, &format!("\u{feff}{text}")), of(spec, text), "with a byte order mark");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |spec: &str, text: &str, reason: &str| {
            let error = of(spec, text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        };
        refused("dgx-h100", PAIRS, "4 devices, a node of the cluster 8");
        refused("l4:4", PAIRS, "`l4` has none");
        refused("dgx-h100", "hello", "no topology that is known");
        refused("dgx-h100", "<system></system>", "no `gpu` element");
        let yaml = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 100 ]\nlatency: [ 0 ]\n";
        refused("dgx-h100", yaml, "the network has 4 devices, the cluster 8");
    }
}
