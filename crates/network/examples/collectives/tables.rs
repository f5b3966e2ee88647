//! How well constants predict, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use trompe_network::{Constants, NetworkModel};

use crate::fitting;
use crate::rows::Row;
use crate::systems::SYSTEMS;

/// Rows of 1 MiB and above are bound by bandwidth and tell less of how they were measured.
const LARGE: u64 = 1 << 20;

/// All tables.
pub(crate) fn write(rows: &[Row], constants: &Constants) -> String {
    let scored = fitting::scored_constants(rows);
    let offsets = fitting::offsets(rows, constants);
    let mut text = String::new();
    text.push_str(
        "| system | split | rows | median | p90 | bias | rows ≥ 1 MiB | median | p90 | bias | added µs |\n",
    );
    text.push_str("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for system in &SYSTEMS {
        let model = NetworkModel::with_constants(system.fabric().clone(), constants.clone());
        let scored = NetworkModel::with_constants(system.fabric().clone(), scored.clone());
        let own: Vec<&Row> = rows.iter().filter(|row| row.system.name == system.name).collect();
        // Nothing is added to dev rows: a user's cluster has no such correction either.
        let offset = offsets.get(system.name).copied().unwrap_or(0.0);
        type Part<'a> = (&'a str, fn(&Row) -> bool);
        let parts: [Part<'_>; 3] = [
            ("fitted", |row| !row.dev),
            ("held out", |row| row.held_out && !row.dev),
            ("**dev**", |row| row.dev),
        ];
        for (part, wanted) in parts {
            let model = if part == "held out" { &scored } else { &model };
            let errors = |least: u64| {
                let rows = own.iter().filter(|row| wanted(row) && row.bytes.0 >= least);
                Errors::new(rows.map(|row| {
                    let across = row.placement.nodes > 1;
                    (row.predicted(model) + if across { 0.0 } else { offset }) / row.micros - 1.0
                }))
            };
            let all = errors(0);
            if all.count > 0 {
                let _ =
                    writeln!(text, "| {} | {part} | {all} | {} | {offset:.0} |", system.name, errors(LARGE));
            }
        }
    }
    text.push_str("\nBy operation and algorithm, held-out sizes of the train systems:\n\n");
    text.push_str("| operation | algorithm | protocol | rows | median | p90 | bias |\n|---|---|---|---:|---:|---:|---:|\n");
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut covered: Vec<(&str, u32, u32)> = Vec::new();
    for system in &SYSTEMS {
        let model = NetworkModel::with_constants(system.fabric().clone(), scored.clone());
        let offset = offsets.get(system.name).copied().unwrap_or(0.0);
        let mut inside = (system.name, 0, 0);
        for row in rows.iter().filter(|row| {
            row.system.name == system.name && row.held_out && !row.dev && row.placement.nodes == 1
        }) {
            let estimate = model.price(row.operation, row.bytes, &row.placement);
            let micros = row.micros - offset;
            let (low, high) = (estimate.low.as_micros_f64(), estimate.high.as_micros_f64());
            inside.1 += u32::from(low <= micros && micros <= high);
            inside.2 += 1;
            let choice = estimate.choice;
            let name = format!("{:?} | {:?} | {:?}", row.operation, choice.algorithm, choice.protocol);
            groups.entry(name).or_default().push((estimate.time.as_micros_f64() + offset) / row.micros - 1.0);
        }
        if inside.2 > 0 {
            covered.push(inside);
        }
    }
    for (name, errors) in groups {
        let _ = writeln!(text, "| {name} | {} |", Errors::new(errors.into_iter()));
    }
    text.push_str("\nDev rows by size, predicted over measured (no correction):\n\n| system | nodes x ranks | bytes | measured us | predicted us |\n|---|---|---:|---:|---:|\n");
    for row in
        rows.iter().filter(|row| row.dev && row.bytes.0.is_power_of_two() && row.bytes.0.ilog2() % 6 == 3)
    {
        let model = NetworkModel::with_constants(row.system.fabric().clone(), constants.clone());
        let estimate = model.price(row.operation, row.bytes, &row.placement);
        let _ = writeln!(
            text,
            "| {} | {} x {} | {} | {:.1} | {:.1} ({:?} {:?}) |",
            row.system.name,
            row.placement.nodes,
            row.placement.per_node(),
            row.bytes.0,
            row.micros,
            estimate.time.as_micros_f64(),
            estimate.choice.algorithm,
            estimate.choice.protocol
        );
    }
    by_class(rows, (constants, &scored), &offsets, &mut text);
    let percent = |held: f64, of: f64| 100.0 * held / of.max(1.0);
    let mean = covered.iter().map(|&(_, held, of)| percent(held.into(), of.into())).sum::<f64>();
    let (held, of) = covered.iter().fold((0, 0), |sum, system| (sum.0 + system.1, sum.1 + system.2));
    let _ = writeln!(
        text,
        "\nIntervals (90 % wanted) hold {:.0} % of held-out rows inside nodes, the mean over {} systems; {:.0} % of all {of} \
         rows. By system: {}.",
        mean / covered.len().max(1) as f64,
        covered.len(),
        percent(held.into(), of.into()),
        covered
            .iter()
            .map(|&(name, held, of)| format!("{name} {:.0} %", percent(held.into(), of.into())))
            .collect::<Vec<_>>()
            .join(", ")
    );
    text
}

/// Sizes that behave alike: start-up, medium, large.
const CLASSES: [(&str, u64); 3] = [("below 64 KiB", 1 << 16), ("to 16 MiB", 1 << 24), ("above", u64::MAX)];

/// By system, operation and class of sizes: held-out rows of train systems and all rows of dev ones; then the worst five
/// groups of equal rows.
fn by_class(
    rows: &[Row],
    (constants, scored): (&Constants, &Constants),
    offsets: &fitting::Offsets,
    text: &mut String,
) {
    text.push_str("\nBy system, operation and size (held-out sizes; all sizes of dev systems):\n\n");
    text.push_str(
        "| system | operation | size | rows | median | p90 | bias |\n|---|---|---|---:|---:|---:|---:|\n",
    );
    let mut groups: BTreeMap<(usize, String, usize), Vec<f64>> = BTreeMap::new();
    let mut cases: BTreeMap<String, (f64, f64, f64)> = BTreeMap::new();
    for (number, system) in SYSTEMS.iter().enumerate() {
        let models = [constants, scored]
            .map(|constants| NetworkModel::with_constants(system.fabric().clone(), constants.clone()));
        for row in rows.iter().filter(|row| row.system.name == system.name && (row.dev || row.held_out)) {
            let offset = if row.dev || row.placement.nodes > 1 {
                0.0
            } else {
                offsets.get(system.name).copied().unwrap_or(0.0)
            };
            let predicted = row.predicted(&models[usize::from(!row.dev)]) + offset;
            let class = CLASSES.iter().position(|&(_, end)| row.bytes.0 < end).unwrap_or(0);
            groups
                .entry((number, format!("{:?}", row.operation), class))
                .or_default()
                .push(predicted / row.micros - 1.0);
            let (nodes, local) = (row.placement.nodes, row.placement.per_node());
            let case = format!("{} | {:?} | {nodes} x {local} | {}", system.name, row.operation, row.bytes.0);
            let error = (predicted / row.micros).ln().abs();
            let worst = cases.entry(case).or_insert((error, row.micros, predicted));
            if error > worst.0 {
                *worst = (error, row.micros, predicted);
            }
        }
    }
    for ((number, operation, class), errors) in groups {
        let errors = Errors::new(errors.into_iter());
        let _ =
            writeln!(text, "| {} | {operation} | {} | {errors} |", SYSTEMS[number].name, CLASSES[class].0);
    }
    let mut worst: Vec<(String, (f64, f64, f64))> = cases.into_iter().collect();
    worst.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    text.push_str("\nThe worst five of each split:\n\n| system | operation | nodes x ranks | bytes | measured us | predicted us |\n|---|---|---|---:|---:|---:|\n");
    let is_dev = |case: &str| rows.iter().any(|row| row.dev && case.starts_with(row.system.name));
    for dev in [false, true] {
        for (case, (_, measured, predicted)) in worst.iter().filter(|(case, _)| is_dev(case) == dev).take(5) {
            let _ = writeln!(text, "| {case} | {measured:.1} | {predicted:.1} |");
        }
    }
}

/// Every row: system, split, operation, nodes, ranks per node, bytes, algorithm, protocol, measured and predicted µs,
/// tab-separated; held-out rows with constants fitted without them.
pub(crate) fn errors(rows: &[Row], constants: &Constants) -> String {
    let scored = fitting::scored_constants(rows);
    let offsets = fitting::offsets(rows, constants);
    let mut text = String::new();
    for row in rows {
        let constants = if row.held_out && !row.dev { &scored } else { constants };
        let model = NetworkModel::with_constants(row.system.fabric().clone(), constants.clone());
        let estimate = model.price(row.operation, row.bytes, &row.placement);
        let across = row.placement.nodes > 1;
        let offset =
            if across || row.dev { 0.0 } else { offsets.get(row.system.name).copied().unwrap_or(0.0) };
        let split = if row.dev {
            "dev"
        } else if row.held_out {
            "held out"
        } else {
            "fitted"
        };
        let _ = writeln!(
            text,
            "{}\t{split}\t{:?}\t{}\t{}\t{}\t{:?}\t{:?}\t{:.2}\t{:.2}",
            row.system.name,
            row.operation,
            row.placement.nodes,
            row.placement.per_node(),
            row.bytes.0,
            estimate.choice.algorithm,
            estimate.choice.protocol,
            row.micros,
            estimate.time.as_micros_f64() + offset
        );
    }
    text
}

/// Relative errors: predicted over measured, less one.
struct Errors {
    count: usize,
    median: f64,
    p90: f64,
    bias: f64,
}

impl Errors {
    fn new(errors: impl Iterator<Item = f64>) -> Self {
        let mut signed: Vec<f64> = errors.collect();
        signed.sort_by(f64::total_cmp);
        let mut absolute: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
        absolute.sort_by(f64::total_cmp);
        let at = |sorted: &[f64], share: f64| {
            sorted.get((sorted.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(0.0)
        };
        Self {
            count: signed.len(),
            median: at(&absolute, 0.5),
            p90: at(&absolute, 0.9),
            bias: at(&signed, 0.5),
        }
    }
}

impl std::fmt::Display for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, median, p90, bias } = self;
        write!(f, "{count} | {:.1} % | {:.1} % | {:+.1} %", median * 100.0, p90 * 100.0, bias * 100.0)
    }
}
