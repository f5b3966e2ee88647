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
    let mut inside = (0, 0);
    for system in &SYSTEMS {
        let model = NetworkModel::with_constants(system.fabric().clone(), scored.clone());
        let offset = offsets.get(system.name).copied().unwrap_or(0.0);
        for row in rows.iter().filter(|row| {
            row.system.name == system.name && row.held_out && !row.dev && row.placement.nodes == 1
        }) {
            let estimate = model.price(row.operation, row.bytes, &row.placement);
            let micros = row.micros - offset;
            let (low, high) = (estimate.low.as_micros_f64(), estimate.high.as_micros_f64());
            inside.0 += u32::from(low <= micros && micros <= high);
            inside.1 += 1;
            let choice = estimate.choice;
            let name = format!("{:?} | {:?} | {:?}", row.operation, choice.algorithm, choice.protocol);
            groups.entry(name).or_default().push((estimate.time.as_micros_f64() + offset) / row.micros - 1.0);
        }
    }
    for (name, errors) in groups {
        let _ = writeln!(text, "| {name} | {} |", Errors::new(errors.into_iter()));
    }
    let share = 100.0 * f64::from(inside.0) / f64::from(inside.1.max(1));
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
    let _ = writeln!(
        text,
        "\nInterval holds {share:.0} % of {} held-out rows inside nodes (90 % wanted).",
        inside.1
    );
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
