//! The hardware that can be simulated, for a list.

use serde::Serialize;
use trompe_hardware::{Catalogue, DeviceSheet, NetworkKind};
use trompe_npu::Device;

use crate::SessionError;

/// A device's main numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceRow {
    /// Name of its sheet.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Product name.
    pub product: String,
    /// Memory that a program sees, in bytes.
    pub memory_bytes: u64,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Dense bf16 tensor peak in floating-point operations per second (fp16 where there is no bf16).
    pub tensor_peak: f64,
    /// Compute capability.
    pub capability: String,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// NVLink bandwidth in bytes per second, one direction; 0 without NVLink.
    pub nvlink: f64,
}

/// An NPU's main numbers. Those of the board are known only of NPUs that jobs can be simulated on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NpuRow {
    /// Name that `trompe npu --device` takes.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Generation of its cores: `c220` or `c310`.
    pub family: String,
    /// Cores, with one cube lane each.
    pub cores: u32,
    /// Vector lanes of a core.
    pub vector_lanes: u32,
    /// Clock of the cores in MHz.
    pub clock_mhz: f64,
    /// Name that `--cluster` takes, for NPUs that jobs can be simulated on.
    pub cluster: Option<String>,
    /// Memory that a program sees, in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: Option<f64>,
    /// Dense fp16 matrix peak in floating-point operations per second.
    pub matrix_peak: Option<f64>,
    /// Bandwidth of the links to other devices of the node in bytes per second, one direction.
    pub links: Option<f64>,
}

/// A node's main numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeRow {
    /// Name of its sheet.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Its devices.
    pub device: String,
    /// How many.
    pub devices: u32,
    /// Its processor.
    pub processor: String,
}

/// A cluster with its cabling.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterRow {
    /// Name of its sheet.
    pub name: String,
    /// Its nodes.
    pub node: String,
    /// How many.
    pub nodes: u32,
    /// How its network is cabled, for people.
    pub network: String,
}

/// All clusters that have a name, in order.
///
/// # Errors
/// When a built-in sheet is not complete.
pub fn clusters() -> Result<Vec<ClusterRow>, SessionError> {
    let catalogue = Catalogue::builtin();
    let row = |name: &str| {
        let cluster = catalogue.cluster_named(name)?;
        let kind = match cluster.network {
            NetworkKind::FatTree => "fat tree",
            NetworkKind::RailOptimised => "rails",
        };
        let leaf = cluster.nodes_per_leaf.map_or(String::new(), |nodes| format!(", {nodes} nodes to a leaf"));
        let over = match cluster.oversubscription {
            ..=1.0 => String::new(),
            factor => format!(", {factor}:1 above"),
        };
        let sharp = if cluster.sharp { ", reducing switches" } else { "" };
        Ok(ClusterRow {
            name: name.to_owned(),
            node: cluster.node.name,
            nodes: cluster.node_count,
            network: format!("{kind}{leaf}{over}{sharp}"),
        })
    };
    catalogue.clusters().into_iter().map(row).collect()
}

/// All devices and nodes, in order of name.
///
/// # Errors
/// When a built-in sheet is not complete.
pub fn list() -> Result<(Vec<DeviceRow>, Vec<NodeRow>), SessionError> {
    let catalogue = Catalogue::builtin();
    let mut devices = Vec::new();
    for name in catalogue.devices() {
        devices.push(row(catalogue.device(name)?));
    }
    let mut nodes = Vec::new();
    for name in catalogue.nodes() {
        let node = catalogue.node(name)?;
        nodes.push(NodeRow {
            name: node.name,
            aliases: node.aliases,
            device: node.device.name,
            devices: node.device_count,
            processor: node.host.processor,
        });
    }
    Ok((devices, nodes))
}

/// All NPUs, in order of name.
///
/// # Errors
/// When a built-in sheet is not complete.
pub fn npus() -> Result<Vec<NpuRow>, SessionError> {
    let catalogue = Catalogue::builtin();
    let boards: Result<Vec<DeviceSheet>, _> =
        catalogue.npus().into_iter().map(|name| catalogue.device(name)).collect();
    let boards = boards?;
    let is =
        |device: &Device, name: &str| device.name == name || device.aliases.iter().any(|alias| alias == name);
    let row = |device: Device| {
        let board = boards.iter().find(|board| board.npu.as_deref().is_some_and(|name| is(&device, name)));
        NpuRow {
            cluster: board.map(|board| board.name.clone()),
            memory_bytes: board.map(|board| board.memory.total.0),
            bandwidth: board.map(|board| board.memory.bandwidth.0),
            matrix_peak: board.and_then(|board| board.peaks.tensor.fp16).map(|rate| rate.0),
            links: board.map(|board| board.interconnect.nvlink_bandwidth.0),
            name: device.name,
            aliases: device.aliases,
            family: device.family,
            cores: device.cores,
            vector_lanes: device.vector_lanes,
            clock_mhz: device.clock_mhz,
        }
    };
    let mut rows: Vec<NpuRow> = Device::all().into_iter().map(row).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

fn row(sheet: DeviceSheet) -> DeviceRow {
    let tensor = &sheet.peaks.tensor;
    DeviceRow {
        memory_bytes: sheet.memory.total.0,
        bandwidth: sheet.memory.bandwidth.0,
        tensor_peak: tensor.bf16.or(tensor.fp16).map_or(0.0, |rate| rate.0),
        capability: format!("{}.{}", sheet.compute.capability_major, sheet.compute.capability_minor),
        multiprocessors: sheet.compute.sm_count,
        nvlink: sheet.interconnect.nvlink_bandwidth.0,
        name: sheet.name,
        aliases: sheet.aliases,
        product: sheet.marketing_name,
    }
}
