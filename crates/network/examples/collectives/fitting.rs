//! From rows to constants.

use std::collections::{BTreeMap, BTreeSet};

use trompe_hardware::Architecture;
use trompe_network::tuner::{self, Algorithm, Protocol};
use trompe_network::{
    Carrier, Constants, FabricConstants, Features, NetworkConstants, NetworkModel, Operation, Sample, Term,
    fit,
};

use crate::rows::Row;
use crate::systems::SYSTEMS;

/// Microseconds that a system's way of measuring adds, by the system's name.
pub(crate) type Offsets = BTreeMap<&'static str, f64>;

type Kind = (Architecture, Carrier);

/// The constants that fit all train rows.
pub(crate) fn constants(rows: &[Row]) -> Constants {
    let train: Vec<Row> = rows.iter().filter(|row| !row.dev).cloned().collect();
    of_rows(&train)
}

/// The constants that fit the train rows of sizes that are not held out.
pub(crate) fn scored_constants(rows: &[Row]) -> Constants {
    let train: Vec<Row> = rows.iter().filter(|row| !row.dev && !row.held_out).cloned().collect();
    of_rows(&train)
}

fn of_rows(rows: &[Row]) -> Constants {
    let mut kinds: BTreeMap<Kind, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.placement.nodes == 1) {
        let fabric = row.system.fabric();
        kinds
            .entry((fabric.architecture, fabric.layout(&row.placement.local).carrier))
            .or_default()
            .push(row);
    }
    let mut constants = Constants { fabrics: Vec::new(), network: unfitted_network() };
    for (kind, rows) in &kinds {
        // First those that measure the device alone, then all, less what their way of measuring adds.
        let pure: Vec<&Row> = rows.iter().copied().filter(|row| row.system.device_time).collect();
        let shares = shares(&pure);
        let first = if pure.is_empty() { rows.clone() } else { pure.clone() };
        let fabric = one_kind(*kind, &first, &shares, &Offsets::new());
        constants.fabrics.push(fabric);
        if !pure.is_empty() && pure.len() < rows.len() {
            let offsets = offsets(&rows.iter().map(|&row| row.clone()).collect::<Vec<_>>(), &constants);
            *constants.fabrics.last_mut().expect("just pushed") = one_kind(*kind, rows, &shares, &offsets);
        }
    }
    constants.network = network(rows, &constants);
    constants
}

/// What each system's way of measuring adds: the median over its small messages of what the model leaves.
pub(crate) fn offsets(rows: &[Row], constants: &Constants) -> Offsets {
    let mut offsets = Offsets::new();
    for system in SYSTEMS.iter().filter(|system| !system.device_time) {
        let model = NetworkModel::with_constants(system.fabric().clone(), constants.clone());
        let small = |row: &&Row| {
            row.system.name == system.name && !row.dev && row.placement.nodes == 1 && row.bytes.0 < 4 << 20
        };
        let mut left: Vec<f64> =
            rows.iter().filter(small).map(|row| row.micros - row.predicted(&model)).collect();
        left.sort_by(f64::total_cmp);
        if let Some(median) = left.get(left.len() / 2) {
            offsets.insert(system.name, median.max(0.0));
        }
    }
    offsets
}

fn one_kind(kind: Kind, rows: &[&Row], shares: &[(u32, f64)], offsets: &Offsets) -> FabricConstants {
    let nominal = rows
        .iter()
        .map(|row| row.system.fabric().layout(&row.placement.local).ring.0 / 1e9)
        .fold(0.0, f64::max);
    let mut fabric = FabricConstants {
        architecture: kind.0,
        carrier: kind.1,
        nominal,
        source: sources(rows),
        shares: shares.to_vec(),
        terms: Vec::new(),
    };
    // Every system counts alike for each number of ranks, however many rows it has, but those that time the device
    // alone count more: what is taken off the others is one number where their cost depends on the size.
    let mut sizes: BTreeMap<(&str, Operation, u32), f64> = BTreeMap::new();
    for row in rows {
        *sizes.entry((row.system.name, row.operation, row.placement.ranks)).or_default() += 1.0;
    }
    let mut sizes_of: BTreeMap<(Operation, Algorithm, Protocol), BTreeSet<u64>> = BTreeMap::new();
    let mut samples: BTreeMap<(Operation, Algorithm, Protocol), Vec<Sample>> = BTreeMap::new();
    for row in rows {
        let measured = row.system.fabric();
        let communicator = measured.communicator(&row.placement);
        let choice = tuner::choose(row.operation, row.bytes, &communicator);
        let counts = Features::of(row.operation, choice.algorithm, row.bytes.as_f64(), &row.placement);
        let ring = measured.layout(&row.placement.local).ring.0 / 1e9;
        let wire = counts.wire * 1e-9 * nominal / (ring * fabric.share(row.placement.ranks));
        let time = row.micros - offsets.get(row.system.name).copied().unwrap_or(0.0);
        if time <= 0.0 {
            continue;
        }
        sizes_of.entry((row.operation, choice.algorithm, choice.protocol)).or_default().insert(row.bytes.0);
        samples.entry((row.operation, choice.algorithm, choice.protocol)).or_default().push(Sample {
            features: [1.0, counts.steps, wire, counts.own * 1e-9 * nominal / ring, wire.sqrt()],
            time,
            weight: if row.system.device_time { 1.0 } else { 0.25 }
                / sizes[&(row.system.name, row.operation, row.placement.ranks)],
            share: 1.0 / sizes[&(row.system.name, row.operation, row.placement.ranks)],
            ranks: row.placement.ranks,
            bytes: row.bytes.as_f64(),
            system: SYSTEMS.iter().position(|system| system.name == row.system.name).unwrap_or(0) as u32,
            pure: row.system.device_time,
        });
    }
    for ((operation, algorithm, protocol), samples) in samples {
        // A few sizes say nothing of a slope; such a choice is paid like its neighbour.
        if sizes_of[&(operation, algorithm, protocol)].len() < 5 {
            continue;
        }
        let Some(found) = fit(&samples) else { continue };
        let round = |value: f64| (value * 1e3).round() / 1e3;
        let [base, step, wire, own, ramp] = found.constants.map(round);
        let rows = samples.len() as u32;
        let (low, high) = (round(found.low), round(found.high));
        fabric.terms.push(Term {
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
            bends: found.bends,
        });
    }
    fabric
}

/// Bus bandwidth of the largest all-reduce by ranks over that of two ranks, where links are shared; empty on NVLink.
fn shares(rows: &[&Row]) -> Vec<(u32, f64)> {
    let carrier = |row: &&&Row| row.system.fabric().layout(&row.placement.local).carrier == Carrier::Pcie;
    let large = |row: &&&Row| row.operation == Operation::AllReduce && row.bytes.0 >= 32 << 20;
    let mut rates: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(carrier).filter(large) {
        let n = row.placement.ranks;
        let rate = row.bytes.as_f64() * row.operation.bus_factor(n) / row.micros;
        rates.entry(n).or_default().push(rate);
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let Some(two) = rates.get_mut(&2).map(median) else { return Vec::new() };
    rates.iter_mut().map(|(&n, rates)| (n, (median(rates) / two * 1e4).round() / 1e4)).collect()
}

fn sources(rows: &[&Row]) -> String {
    let mut names: Vec<&str> = rows.iter().map(|row| row.system.name).collect();
    names.sort_unstable();
    names.dedup();
    format!("fitted to public NCCL measurements (see README.md): {}", names.join(", "))
}

fn unfitted_network() -> NetworkConstants {
    NetworkConstants {
        source: String::new(),
        ring: 1.0,
        tree: 1.0,
        all_to_all: 1.0,
        message: 1.0,
        ramp: 0.0,
        latency: None,
        own: false,
        overlap: 8.0,
        low: 1.0,
        high: 1.0,
    }
}

/// Shares of the adapters' rate: for each, the one with the least mean error.
fn network(rows: &[Row], constants: &Constants) -> NetworkConstants {
    let across: Vec<&Row> = rows.iter().filter(|row| row.placement.nodes > 1).collect();
    let mut constants = constants.clone();
    let ratios = |constants: &Constants, wanted: &dyn Fn(&Row) -> bool| {
        let mut ratios: Vec<f64> = Vec::new();
        for system in &SYSTEMS {
            let model = NetworkModel::with_constants(system.fabric().clone(), constants.clone());
            let own = across.iter().filter(|row| row.system.name == system.name && wanted(row));
            ratios.extend(own.map(|row| row.micros / row.predicted(&model)));
        }
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let algorithm = |row: &Row| {
        let communicator = row.system.fabric().communicator(&row.placement);
        tuner::choose(row.operation, row.bytes, &communicator).algorithm
    };
    let is_tree = |row: &Row| matches!(algorithm(row), Algorithm::Tree | Algorithm::NvlsTree);
    type Set = fn(&mut NetworkConstants, f64);
    type Wanted<'a> = &'a dyn Fn(&Row) -> bool;
    let parts: [(Set, Wanted<'_>); 5] = [
        (|n, share| n.ring = share, &|row| row.operation.is_tuned() && !is_tree(row)),
        (|n, share| n.tree = share, &|row| row.operation.is_tuned() && is_tree(row)),
        (|n, share| n.all_to_all = share, &|row| row.operation == Operation::AllToAll),
        (|n, share| n.message = share, &|row| row.operation == Operation::SendReceive),
        // Both tell what medium sizes cost beyond the bytes: every pair of 81 steps, packed into one number.
        (
            |n, code| {
                let step = (code * 100.0).round() - 20.0;
                n.ramp = 0.5 * (step % 9.0);
                n.overlap = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0][(step / 9.0) as usize % 9];
            },
            &|row| row.operation.is_tuned(),
        ),
    ];
    // One after the other, until they fit each other.
    for (set, wanted) in parts.into_iter().cycle().take(3 * parts.len()) {
        let mut best = (f64::INFINITY, 1.0);
        for percent in 20..=100 {
            let share = f64::from(percent) / 100.0;
            set(&mut constants.network, share);
            let errors: Vec<f64> =
                ratios(&constants, wanted).into_iter().map(|ratio| ratio.ln().abs()).collect();
            // The mean heeds the smaller messages, which are fewer than the large ones.
            let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
            if mean < best.0 {
                best = (mean, share);
            }
        }
        set(&mut constants.network, best.1);
    }
    let all = ratios(&constants, &|_| true);
    let at = |share: f64| {
        let ratio = all.get((all.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(1.0);
        (ratio * 1e3).round() / 1e3
    };
    NetworkConstants {
        source:
            "fitted to xxrjun 10 x 8 H100, InfiniBand, 32 MiB and above (see README.md); latencies are NCCL's"
                .to_owned(),
        low: at(0.05).min(1.0),
        high: at(0.95).max(1.0),
        ..constants.network
    }
}
