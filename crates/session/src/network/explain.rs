//! `trompe network explain`: what an operation costs, by which algorithm, and what it fills.

use serde::Serialize;
use trompe_base::Bytes;
use trompe_hardware::resolve;
use trompe_network::readers::operation_in;
use trompe_network::{Fabric, Method, NetworkModel, Operation};

use super::{NetworkSource, constants};
use crate::SessionError;

/// What to explain.
#[derive(Clone, Debug)]
pub struct Request {
    /// The operation, by name.
    pub operation: String,
    /// The cluster.
    pub cluster: String,
    /// Global numbers of the devices; all of the cluster when empty.
    pub devices: Vec<u32>,
    /// Sizes in bytes; a sweep over powers of two when empty.
    pub sizes: Vec<u64>,
    /// Constants of the user's own.
    pub network: Option<NetworkSource>,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Bytes, as nccl-tests counts them.
    pub bytes: u64,
    /// `ring`, `tree` and so on.
    pub algorithm: String,
    /// `ll`, `ll128` or `simple`.
    pub protocol: String,
    /// Channels: blocks, each on a multiprocessor.
    pub channels: u32,
    /// Expected microseconds.
    pub micros: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Bytes over time in GB/s.
    pub algorithm_rate: f64,
    /// nccl-tests' bus bandwidth in GB/s.
    pub bus_rate: f64,
    /// The link that it fills most, and the share of it.
    pub busiest: Option<(String, f64)>,
    /// What the time rests on.
    pub method: &'static str,
}

/// An explanation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// The operation.
    pub operation: Operation,
    /// Ranks.
    pub ranks: usize,
    /// Nodes.
    pub nodes: u32,
    /// By size.
    pub rows: Vec<Row>,
}

/// Explains an operation.
///
/// # Errors
/// When the cluster, the operation or a device is not known.
pub fn explain(request: &Request) -> Result<Explained, SessionError> {
    let bad = SessionError::Network;
    let cluster = resolve(&request.cluster)?;
    let operation = operation_in(&request.operation).ok_or_else(|| {
        bad(format!(
            "`{}` is no operation; write all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_receive",
            request.operation
        ))
    })?;
    let fabric = Fabric::from_cluster(&cluster);
    let per_node = fabric.devices_per_node.max(1);
    let all = cluster.device_count();
    let mut devices = request.devices.clone();
    if devices.is_empty() {
        devices = match operation {
            // A message has two ends: the first and the last device.
            Operation::SendReceive => vec![0, all.saturating_sub(1)],
            _ => (0..all).collect(),
        };
    }
    if let Some(device) = devices.iter().find(|device| **device >= all) {
        return Err(bad(format!(
            "there is no device {device}: `{}` has {all}, numbered from 0",
            request.cluster
        )));
    }
    if devices.len() < 2 || operation == Operation::SendReceive && devices.len() != 2 {
        let wanted =
            if operation == Operation::SendReceive { "exactly two devices" } else { "two devices or more" };
        return Err(bad(format!("{} needs {wanted}, not {}", request.operation, devices.len())));
    }
    let model = match &request.network {
        None => NetworkModel::new(fabric),
        Some(NetworkSource::Constants(path)) => NetworkModel::with_constants(fabric, constants(path)?),
        Some(NetworkSource::AstraSim(_)) => {
            return Err(bad("ASTRA-sim explains nothing; leave `--network` out or give a file".to_owned()));
        }
    };
    let sweep = || (3..=33).map(|power| 1_u64 << power).collect();
    let sizes: Vec<u64> = if request.sizes.is_empty() { sweep() } else { request.sizes.clone() };
    let row = |bytes: u64| {
        let (estimate, load) = model.estimate_with_load(operation, Bytes(bytes), &devices, |_| true);
        let micros = estimate.time.as_micros_f64();
        let rate = bytes as f64 / micros / 1e3;
        Row {
            bytes,
            algorithm: estimate.choice.algorithm.name().to_owned(),
            protocol: estimate.choice.protocol.name().to_owned(),
            channels: estimate.channels,
            micros,
            low: estimate.low.as_micros_f64(),
            high: estimate.high.as_micros_f64(),
            algorithm_rate: rate,
            bus_rate: rate * operation.bus_factor(devices.len() as u32),
            busiest: load.busiest().map(|(wire, share)| (wire.to_string(), share)),
            method: match estimate.method {
                Method::Fitted => "measured on such a fabric",
                Method::Scaled => "scaled from another fabric",
                Method::Tuner => "NCCL's own estimate",
            },
        }
    };
    let mut nodes: Vec<u32> = devices.iter().map(|device| device / per_node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    Ok(Explained {
        operation,
        ranks: devices.len(),
        nodes: nodes.len() as u32,
        rows: sizes.into_iter().map(row).collect(),
    })
}
