//! Every built-in sheet loads, cites its sources and agrees with itself.
#![cfg(feature = "loader")]

use trompe_base::{Bytes, DType};
use trompe_hardware::{Catalogue, DeviceSheet, EmulatedNode, LinkKind, resolve};

const DEVICES: [&str; 24] = [
    "a100-pcie-80",
    "a100-sxm4-40",
    "a100-sxm4-80",
    "a40",
    "b200-sxm-180",
    "gb200-189",
    "gh200-96",
    "h100-nvl-94",
    "h100-pcie-80",
    "h100-sxm5-80",
    "h200-sxm-141",
    "h800-sxm5-80",
    "l4",
    "l40s",
    "p100-pcie-16",
    "p4-8",
    "rtx-3090",
    "rtx-4090",
    "rtx-pro-6000",
    "t4",
    "v100-pcie-32",
    "v100-sxm2-16",
    "v100-sxm2-32",
    "v100-sxm3-32",
];

fn devices() -> impl Iterator<Item = DeviceSheet> {
    let catalogue = Catalogue::builtin();
    DEVICES.into_iter().map(move |name| catalogue.device(name).unwrap_or_else(|error| panic!("{error}")))
}

/// Whether `a` and `b` agree within the share `tolerance` of `b`.
#[track_caller]
fn agree(what: &str, a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b, "{what}: {a} against {b}");
}

#[test]
fn the_catalogue_has_all_devices_and_nodes() {
    let catalogue = Catalogue::builtin();
    assert_eq!(catalogue.devices(), DEVICES);
    let nodes = [
        "a100-pcie-pairs",
        "a40-pairs",
        "atlas-800t-a2",
        "aws-p4de",
        "dgx-2",
        "dgx-a100",
        "dgx-b200",
        "dgx-h100",
        "dgx-h200",
        "dgx-v100",
        "gb200-nvl72",
        "gh200-quad",
        "hgx-a100-hdr4",
        "hgx-h100-roce",
        "hgx-h800",
        "pcie-server",
        "pcie3-server",
        "pcie5-server",
        "workstation",
    ];
    assert_eq!(catalogue.nodes(), nodes);
    for node in nodes {
        catalogue.node(node).unwrap_or_else(|error| panic!("{error}"));
    }
    for host in catalogue.hosts() {
        catalogue.host(host).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn clusters_have_their_cabling() {
    use trompe_hardware::NetworkKind::{FatTree, RailOptimised};
    let catalogue = Catalogue::builtin();
    let names = ["fat-tree-2to1", "llama3-24k", "rails-4to1", "superpod-a100", "superpod-h100"];
    assert_eq!(catalogue.clusters(), names);
    let check = |spec: &str, nodes: u32, network, over: f64, leaf: u32, sharp: bool| {
        let cluster = resolve(spec).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (
                cluster.node_count,
                cluster.network,
                cluster.oversubscription,
                cluster.nodes_per_leaf,
                cluster.sharp
            ),
            (nodes, network, over, Some(leaf), sharp),
            "{spec}"
        );
    };
    check("fat-tree-2to1", 16, FatTree, 2.0, 4, false);
    check("llama3-24k", 3072, FatTree, 7.0, 384, false);
    check("rails-4to1:64", 64, RailOptimised, 4.0, 8, false);
    check("selene:140", 140, RailOptimised, 1.0, 20, true);
    check("superpod-h100", 32, RailOptimised, 1.0, 32, true);
    let error = resolve("superpod-h100:8x2").unwrap_err().to_string();
    assert!(error.contains("`8x2`"), "{error}");
}

#[test]
fn every_number_of_every_sheet_has_a_source() {
    let catalogue = Catalogue::builtin();
    assert_eq!(catalogue.npus(), ["ascend-910b3"]);
    for name in catalogue.devices().into_iter().chain(catalogue.npus()) {
        let provenance = catalogue.provenance(name).unwrap();
        let json = serde_json::to_value(catalogue.device(name).unwrap()).unwrap();
        let mut numbers = Vec::new();
        number_paths("", &json, &mut numbers);
        assert!(numbers.len() >= 36, "{name} has only {} numbers", numbers.len());
        for path in numbers {
            let cited = provenance.get(&path).unwrap_or_else(|| panic!("{name}: {path} has no source"));
            assert!(cited.source.len() >= 20, "{name}: {path} cites only `{}`", cited.source);
        }
    }
}

fn number_paths(prefix: &str, value: &serde_json::Value, paths: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                number_paths(&path, value, paths);
            }
        }
        serde_json::Value::Number(_) | serde_json::Value::Bool(_) => paths.push(prefix.to_owned()),
        _ => {}
    }
}

#[test]
fn peaks_follow_from_multiprocessors_and_clocks() {
    for device in devices() {
        let c = &device.compute;
        let per_clock = |rate: trompe_hardware::FlopsPerSecond, clock: trompe_hardware::Hertz| {
            rate.0 / (f64::from(c.sm_count) * clock.0)
        };
        let fp32 = device.peaks.vector.fp32.unwrap();
        let lanes = 2.0 * f64::from(c.fp32_lanes_per_sm);
        agree(&format!("{} fp32", device.name), per_clock(fp32, c.boost_clock), lanes, 0.01);
        let tensor = match (c.capability_major, c.capability_minor) {
            (7, _) | (8, 6 | 9) | (12, _) => 1024.0,
            (8, 0) => 2048.0,
            (9, _) => 4096.0,
            _ => 8192.0,
        };
        // The RTX 3090 halves its tensor rate when it accumulates in fp32, as do the other GeForce parts.
        let tensor = if device.name.starts_with("rtx-3090") || device.name.starts_with("rtx-4090") {
            tensor / 2.0
        } else {
            tensor
        };
        // Pascal has no tensor cores.
        let Some(fp16) = device.peaks.tensor.fp16 else {
            assert_eq!(c.capability_major, 6, "{}", device.name);
            continue;
        };
        agree(&format!("{} fp16", device.name), per_clock(fp16, c.tensor_clock), tensor, 0.01);
        if let Some(tf32) = device.peaks.tensor.tf32 {
            agree(&format!("{} tf32", device.name), tf32.0 * 2.0, fp16.0, 0.02);
        }
        if let Some(fp8) = device.peaks.tensor.fp8 {
            agree(&format!("{} fp8", device.name), fp8.0, fp16.0 * 2.0, 0.02);
        }
    }
}

/// A cube multiplies 16 x 16 x 16 per cycle, a vector core adds and multiplies 256 bytes.
#[test]
fn peaks_of_npus_follow_from_cores_and_clocks() {
    let device = Catalogue::builtin().device("ascend-910b3").unwrap();
    let cycles = f64::from(device.compute.sm_count) * device.compute.boost_clock.0;
    agree("fp16", device.matrix_peak(DType::F16).0, 2.0 * 4096.0 * cycles, 0.001);
    agree("bf16", device.matrix_peak(DType::Bf16).0, 2.0 * 4096.0 * cycles, 0.001);
    agree("int8", device.matrix_peak(DType::I8).0, 2.0 * 8192.0 * cycles, 0.001);
    agree("fp32", device.vector_peak(DType::F32).0, 2.0 * 128.0 * cycles, 0.001);
    let node = resolve("atlas-800t-a2").unwrap().node;
    assert_eq!((node.device.npu.as_deref(), node.peer.kind), (Some("ascend-910b3"), LinkKind::Hccs));
}

#[test]
fn bandwidth_is_bus_times_clock() {
    for device in devices() {
        let m = &device.memory;
        // Two transfers per cycle. Vendors round, and state HBM3e slower than its clock.
        let from_clock = f64::from(m.bus_width) / 8.0 * 2.0 * m.clock.0;
        agree(&format!("{} bandwidth", device.name), m.bandwidth.0, from_clock, 0.06);
    }
}

#[test]
fn capacities_are_in_order() {
    for device in devices() {
        let m = &device.memory;
        assert!(m.total < m.nvml_total, "{}: CUDA sees more than NVML", device.name);
        assert!(m.nvml_total <= m.marketing_capacity || device.name == "rtx-pro-6000", "{}", device.name);
        agree(&format!("{} total", device.name), m.total.as_f64(), m.marketing_capacity.as_f64(), 0.09);
        assert!(device.runtime.context < Bytes::from_mib(1024), "{}", device.name);
        assert!(device.compute.shared_per_block_optin <= device.compute.shared_per_sm);
    }
}

#[test]
fn figures_that_public_measurement_sets_state() {
    // Values of aiconfigurator's system files, NeuSight's device files and Kineto's device properties.
    let check = |name: &str, sm: u32, bandwidth: f64, bf16: Option<f64>, total: Option<u64>| {
        let device = Catalogue::builtin().device(name).unwrap();
        assert_eq!(device.compute.sm_count, sm, "{name}");
        agree(name, device.memory.bandwidth.0, bandwidth, 0.03);
        if let Some(bf16) = bf16 {
            agree(name, device.matrix_peak(DType::Bf16).0, bf16, 0.005);
        }
        if let Some(total) = total {
            assert_eq!(device.memory.total.0, total, "{name}");
        }
    };
    check("t4", 40, 320e9, None, Some(15_843_721_216));
    check("v100-pcie-32", 80, 900e9, None, None);
    check("v100-sxm2-16", 80, 900e9, None, Some(16_945_512_448));
    check("v100-sxm2-32", 80, 900e9, None, Some(34_089_730_048));
    check("v100-sxm3-32", 80, 981e9, None, Some(34_089_730_048));
    check("a100-sxm4-40", 108, 1555e9, Some(312e12), Some(42_505_273_344));
    check("a100-sxm4-80", 108, 2039e9, Some(312e12), Some(84_990_623_744));
    check("a100-pcie-80", 108, 1935e9, Some(312e12), None);
    check("h100-sxm5-80", 132, 3350e9, Some(989e12), None);
    check("h100-pcie-80", 114, 2000e9, Some(756.5e12), None);
    check("h200-sxm-141", 132, 4800e9, Some(989e12), None);
    check("h800-sxm5-80", 132, 3350e9, Some(989e12), None);
    check("gh200-96", 132, 4000e9, Some(989e12), None);
    check("h100-nvl-94", 132, 3938e9, Some(835.5e12), None);
    check("p100-pcie-16", 56, 732e9, None, None);
    check("p4-8", 20, 192e9, None, None);
    check("b200-sxm-180", 148, 7700e9, Some(2250e12), None);
    check("l4", 58, 300e9, Some(121e12), None);
    check("l40s", 142, 864e9, Some(362.05e12), None);
    check("a40", 84, 696e9, Some(149.7e12), None);
    check("rtx-3090", 82, 936e9, None, None);
    check("rtx-4090", 128, 1008e9, None, None);
    check("rtx-pro-6000", 188, 1597e9, Some(467.8e12), None);
}

#[test]
fn specifications_resolve() {
    let check = |spec: &str, device: &str, per_node: u32, nodes: u32, nics: u32| {
        let cluster = resolve(spec).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(cluster.device().name, device, "{spec}");
        let counts = (cluster.node.device_count, cluster.node_count, cluster.node.nic_count);
        assert_eq!(counts, (per_node, nodes, nics), "{spec}");
        assert_eq!(cluster.device_count(), per_node * nodes);
    };
    check("h100-sxm", "h100-sxm5-80", 1, 1, 1);
    check("H100", "h100-sxm5-80", 1, 1, 1);
    check("a100", "a100-sxm4-80", 1, 1, 1);
    check("v100", "v100-sxm2-16", 1, 1, 1);
    check("h100-sxm:8", "h100-sxm5-80", 8, 1, 8);
    check("h100-sxm:8x4", "h100-sxm5-80", 8, 4, 8);
    check("v100-32:4x2", "v100-sxm2-32", 4, 2, 2);
    check("dgx-h100", "h100-sxm5-80", 8, 1, 8);
    check("dgx-h100:4", "h100-sxm5-80", 8, 4, 8);
    check("dgx-b200:9", "b200-sxm-180", 8, 9, 8);
    check("rtx_4090:2", "rtx-4090", 2, 1, 1);
    assert_eq!(resolve("dgx-h100").unwrap().node.peer.kind, LinkKind::NvSwitch);
    assert_eq!(resolve("h100-pcie").unwrap().node.name, "h100-pcie-80");
}

#[test]
fn aliases_are_unique() {
    let catalogue = Catalogue::builtin();
    let mut names: Vec<String> =
        catalogue.devices().iter().chain(&catalogue.nodes()).map(|n| (*n).to_owned()).collect();
    names.extend(catalogue.devices().iter().flat_map(|name| catalogue.device(name).unwrap().aliases));
    names.extend(catalogue.nodes().iter().flat_map(|name| catalogue.node(name).unwrap().aliases));
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "a name is used twice");
}

#[test]
fn the_emulated_node_survives_json_and_names_its_devices() {
    let node = EmulatedNode::new(&resolve("dgx-h100").unwrap().node);
    let again = EmulatedNode::from_json(&node.to_json()).unwrap();
    assert_eq!(node, again);
    let mut seen = std::collections::BTreeSet::new();
    for index in 0..16 {
        assert!(seen.insert(node.uuid_text(index)), "two devices share a UUID");
        assert!(seen.insert(format!("{:?}", node.pci(index))), "two devices share a PCI address");
    }
    let text = node.uuid_text(0);
    assert_eq!((text.len(), &text[..4]), (40, "GPU-"));
    let other = node.to_json().replace("\"format\": 1", "\"format\": 99");
    assert!(EmulatedNode::from_json(&other).unwrap_err().to_string().contains("format 99"));
}
