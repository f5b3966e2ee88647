//! Constants of one's own from measured times: what `trompe network fit` does.
//!
//! Rows inside nodes refit the terms of the fabric that they were measured on, those choices with fewer than
//! [`LEAST`] sizes excepted, which keep the built-in ones. Rows across nodes refit the network's shares, its ramp and the
//! latency of its adapters. How good it is, is told by sizes that the fit did not see: every fourth power of two in turn.

use std::collections::{BTreeMap, BTreeSet};

use trompe_base::{Bytes, Duration};

use crate::constants::{Constants, FabricConstants, NetworkConstants, Term};
use crate::fabric::Fabric;
use crate::features::Features;
use crate::fit::{Sample, fit};
use crate::model::NetworkModel;
use crate::operation::Operation;
use crate::placement::Placement;
use crate::readers::Measured;
use crate::tuner::{self, Algorithm, Protocol};

/// Sizes below which nothing is said of a slope.
pub const LEAST: usize = 5;

/// Constants and what they are worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The constants, those that were not measured taken over.
    pub constants: Constants,
    /// By operation, nodes and ranks.
    pub scores: Vec<Score>,
}

/// Errors of one operation among the same ranks: medians and worst of |predicted / measured - 1|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Operation.
    pub operation: Operation,
    /// Nodes.
    pub nodes: u32,
    /// Ranks.
    pub ranks: u32,
    /// Measured times.
    pub rows: usize,
    /// With the constants as they were.
    pub before: f64,
    /// With the new ones.
    pub after: f64,
    /// With ones that were fitted without the size.
    pub unseen: f64,
    /// The worst with the new ones.
    pub worst: f64,
    /// The size of that.
    pub worst_bytes: u64,
}

/// Why nothing can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// More ranks in a node than it has devices.
    #[error(
        "the log has {ranks} ranks on {nodes} nodes, but a node of the cluster has {devices} devices; name the right cluster"
    )]
    Devices {
        /// Ranks.
        ranks: u32,
        /// Nodes.
        nodes: u32,
        /// Devices of a node.
        devices: u32,
    },
    /// Too few sizes.
    #[error("{sizes} sizes are too few to fit; measure at least {LEAST}, for example with `-b 8 -e 1G -f 2`")]
    Few {
        /// Different sizes.
        sizes: usize,
    },
}

/// Fits the constants of `fabric` to `rows`, starting from `base`.
///
/// # Errors
/// When the rows do not fit the fabric or are too few.
pub fn profile(rows: &[Measured], fabric: &Fabric, base: &Constants) -> Result<Profile, ProfileError> {
    let devices = fabric.devices_per_node;
    if let Some(row) = rows.iter().find(|row| row.ranks.div_ceil(row.nodes.max(1)) > devices) {
        return Err(ProfileError::Devices { ranks: row.ranks, nodes: row.nodes, devices });
    }
    let sizes = rows.iter().map(|row| row.bytes).collect::<BTreeSet<u64>>().len();
    if sizes < LEAST {
        return Err(ProfileError::Few { sizes });
    }
    let constants = refit(rows, fabric, base);
    let mut unseen: BTreeMap<usize, f64> = BTreeMap::new();
    for fold in 0..4 {
        let is_out = |row: &Measured| row.bytes.max(1).ilog2() % 4 == fold;
        let rest: Vec<Measured> = rows.iter().filter(|row| !is_out(row)).copied().collect();
        let model = NetworkModel::with_constants(fabric.clone(), refit(&rest, fabric, base));
        for (place, row) in rows.iter().enumerate().filter(|(_, row)| is_out(row)) {
            unseen.insert(place, error(row, &model));
        }
    }
    let [before, after] =
        [base, &constants].map(|constants| NetworkModel::with_constants(fabric.clone(), constants.clone()));
    let mut groups: BTreeMap<(Operation, u32, u32), Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        groups.entry((row.operation, row.nodes, row.ranks)).or_default().push(place);
    }
    let score = |((operation, nodes, ranks), places): ((Operation, u32, u32), Vec<usize>)| {
        let errors = |of: &dyn Fn(usize) -> f64| median(places.iter().map(|&place| of(place)).collect());
        let worst = places
            .iter()
            .copied()
            .max_by(|&a, &b| error(&rows[a], &after).total_cmp(&error(&rows[b], &after)));
        let worst = worst.expect("a group has a row");
        Score {
            operation,
            nodes,
            ranks,
            rows: places.len(),
            before: errors(&|place| error(&rows[place], &before)),
            after: errors(&|place| error(&rows[place], &after)),
            unseen: errors(&|place| unseen[&place]),
            worst: error(&rows[worst], &after),
            worst_bytes: rows[worst].bytes,
        }
    };
    let scores = groups.into_iter().map(score).collect();
    Ok(Profile { constants, scores })
}

fn placement(row: &Measured) -> Placement {
    Placement::regular(row.nodes, row.ranks / row.nodes.max(1))
}

fn predicted(row: &Measured, model: &NetworkModel) -> f64 {
    model.price(row.operation, Bytes(row.bytes), &placement(row)).time.as_micros_f64()
}

fn error(row: &Measured, model: &NetworkModel) -> f64 {
    (predicted(row, model) / row.micros - 1.0).abs()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn refit(rows: &[Measured], fabric: &Fabric, base: &Constants) -> Constants {
    let mut constants = base.clone();
    let inside: Vec<&Measured> = rows.iter().filter(|row| row.nodes == 1 && row.ranks > 1).collect();
    let widest = inside.iter().map(|row| row.ranks).max();
    if let Some(ranks) = widest {
        let carrier = fabric.layout(&(0..ranks).collect::<Vec<_>>()).carrier;
        let old = base.find(fabric.architecture, carrier);
        let new = terms(&inside, fabric, (carrier, old));
        constants
            .fabrics
            .retain(|known| (known.architecture, known.carrier) != (fabric.architecture, carrier));
        constants.fabrics.push(new);
    }
    let across: Vec<&Measured> = rows.iter().filter(|row| row.nodes > 1).collect();
    if !across.is_empty() {
        network(&across, fabric, &mut constants);
    }
    constants
}

fn terms(
    rows: &[&Measured],
    fabric: &Fabric,
    (carrier, old): (crate::constants::Carrier, Option<&FabricConstants>),
) -> FabricConstants {
    let rate = |row: &Measured| fabric.layout(&placement(row).local).ring.0 / 1e9;
    let nominal = old.map_or_else(|| rows.iter().map(|row| rate(row)).fold(0.0, f64::max), |old| old.nominal);
    let mut found = FabricConstants {
        architecture: fabric.architecture,
        carrier,
        nominal,
        source: "fitted to nccl-tests logs of the user's own by `trompe network fit`".to_owned(),
        shares: old.map(|old| old.shares.clone()).unwrap_or_default(),
        terms: old.map(|old| old.terms.clone()).unwrap_or_default(),
    };
    type Key = (Operation, Algorithm, Protocol);
    let mut groups: BTreeMap<Key, (BTreeSet<u64>, Vec<Sample>)> = BTreeMap::new();
    for row in rows {
        let placement = placement(row);
        let choice = tuner::choose(row.operation, Bytes(row.bytes), &fabric.communicator(&placement));
        let counts = Features::of(row.operation, choice.algorithm, row.bytes as f64, &placement);
        let wire = counts.wire * 1e-9 * nominal / (rate(row) * found.share(row.ranks));
        let group = groups.entry((row.operation, choice.algorithm, choice.protocol)).or_default();
        group.0.insert(row.bytes);
        group.1.push(Sample {
            features: [1.0, counts.steps, wire, counts.own * 1e-9 * nominal / rate(row), wire.sqrt()],
            time: row.micros,
            weight: 1.0,
            share: 1.0,
            ranks: row.ranks,
            bytes: row.bytes as f64,
            system: 0,
            pure: true,
        });
    }
    for ((operation, algorithm, protocol), (sizes, samples)) in groups {
        if sizes.len() < LEAST {
            continue;
        }
        let Some(fitted) = fit(&samples) else { continue };
        let key = (operation, algorithm, protocol);
        found.terms.retain(|term| (term.operation, term.algorithm, term.protocol) != key);
        let [base, step, wire, own, ramp] = fitted.constants;
        let rows = samples.len() as u32;
        let (low, high, bends) = (fitted.low, fitted.high, fitted.bends);
        found.terms.push(Term {
            operation,
            algorithm,
            protocol,
            base,
            step,
            wire,
            own,
            ramp,
            low,
            high,
            rows,
            bends,
        });
    }
    found.terms.sort_by_key(|term| (term.operation, term.algorithm, term.protocol));
    found
}

/// The network's numbers, one after the other until they fit each other: for each the one with the least mean error.
fn network(rows: &[&Measured], fabric: &Fabric, constants: &mut Constants) {
    type Set = fn(&mut NetworkConstants, f64);
    let shares: Vec<f64> = (4..=50).map(|step| f64::from(step) / 50.0).collect();
    let ramps: Vec<f64> = (0..=24).map(|step| f64::from(step) / 4.0).collect();
    let overlaps = vec![1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
    let latencies: Vec<f64> = (0..=40).map(|step| 0.25 * 1.2_f64.powi(step)).collect();
    let numbers: [(Set, &[f64]); 7] = [
        (|network, value| network.latency = Some(value), &latencies),
        (|network, value| network.ring = value, &shares),
        (|network, value| network.tree = value, &shares),
        (|network, value| network.all_to_all = value, &shares),
        (|network, value| network.message = value, &shares),
        (|network, value| network.ramp = value, &ramps),
        (|network, value| network.overlap = value, &overlaps),
    ];
    let ratios = |network: &NetworkConstants| -> Vec<f64> {
        let constants = Constants { network: network.clone(), ..constants.clone() };
        let model = NetworkModel::with_constants(fabric.clone(), constants);
        rows.iter().map(|row| row.micros / predicted(row, &model)).collect()
    };
    let mean = |network: &NetworkConstants| ratios(network).iter().map(|ratio| ratio.ln().abs()).sum::<f64>();
    let mut best = constants.network.clone();
    let mut least = mean(&best);
    for _ in 0..3 {
        for (set, values) in &numbers {
            for &value in *values {
                let mut tried = best.clone();
                set(&mut tried, value);
                let error = mean(&tried);
                if error < least - 1e-9 {
                    (best, least) = (tried, error);
                }
            }
        }
    }
    let mut ends = ratios(&best);
    ends.sort_by(f64::total_cmp);
    let at = |share: f64| ends[((ends.len() - 1) as f64 * share).round() as usize];
    best.low = at(0.05).min(1.0);
    best.high = at(0.95).max(1.0);
    best.own = true;
    best.source = "fitted to nccl-tests logs of the user's own by `trompe network fit`".to_owned();
    constants.network = best;
}

/// The adapters' latency that constants state, else the fabric's.
pub(crate) fn latency(network: &NetworkConstants, fabric: &Fabric) -> Duration {
    network.latency.map_or(fabric.adapter_latency, |micros| Duration::from_secs_f64(micros * 1e-6))
}
