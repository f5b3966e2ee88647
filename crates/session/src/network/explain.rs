//! `trompe network explain`: what an operation costs, by which algorithm, and what it fills.

use serde::Serialize;
use trompe_base::Bytes;
use trompe_hardware::resolve;
use trompe_network::readers::operation_in;
use trompe_network::{Method, Operation, Pairs};

use super::{NetworkSource, Times};
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
    /// For all-to-all: bytes from each device (a row) to each other one.
    pub pairs: Option<Vec<Vec<u64>>>,
    /// Links and constants of the user's own.
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
    if request.network.as_ref().is_some_and(|source| matches!(source.times, Times::AstraSim(_))) {
        return Err(bad("ASTRA-sim explains nothing; leave it out or give a file".to_owned()));
    }
    let model = super::model(&cluster, request.network.as_ref())?;
    let per_node = model.fabric().devices_per_node.max(1);
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
    let pairs = request.pairs.clone().map(Pairs::new).transpose().map_err(|error| bad(error.to_string()))?;
    if let Some(pairs) = &pairs {
        if operation != Operation::AllToAll {
            return Err(bad(format!("only all_to_all has bytes by pair, not {}", request.operation)));
        }
        if pairs.devices() != devices.len() {
            return Err(bad(format!(
                "the table has {} rows for {} devices; give a row for each, or choose devices with `--devices`",
                pairs.devices(),
                devices.len()
            )));
        }
    }
    let sweep = || (3..=33).map(|power| 1_u64 << power).collect();
    let sizes: Vec<u64> = match &pairs {
        Some(pairs) => vec![pairs.mean().round() as u64],
        None if request.sizes.is_empty() => sweep(),
        None => request.sizes.clone(),
    };
    let row = |bytes: u64| {
        let (mut estimate, load) = model.estimate_with_load(operation, Bytes(bytes), &devices, |_| true);
        let mut busiest = load.busiest().map(|(wire, share)| (wire.to_string(), share));
        if let Some(pairs) = &pairs {
            let (priced, wire) = model.estimate_pairs(&devices, pairs);
            estimate = priced;
            busiest = wire.map(|(wire, share)| (wire.to_string(), share));
        }
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
            busiest,
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
