//! A run in a screenful of text.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::run::Outcome;

/// Tasks, busy cycles, and cycles of waiting by what was waited for.
type Total<'a> = (u64, u64, BTreeMap<&'a str, u64>);

/// The summary of a run.
#[must_use]
pub fn text(outcome: &Outcome) -> String {
    let device = &outcome.shared.device;
    let profile = &outcome.shared.profile;
    let micros = outcome.microseconds();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} on {} ({} cores, {} MHz), profile {}",
        outcome.program, device.name, outcome.cores, device.clock_mhz, profile.name
    );
    let _ = writeln!(
        out,
        "makespan   {} cycles = {micros:.3} µs; {} tasks, {} control instructions",
        outcome.makespan, outcome.tasks, outcome.instructions
    );
    let cycles = outcome.makespan.max(1) as f64;
    if outcome.macs > 0 {
        let cores = f64::from(outcome.cores);
        let peak = profile.mmad.macs_per_cycle_16 as f64;
        let rate = outcome.macs as f64 / cycles / cores;
        let _ = writeln!(
            out,
            "matrix     {} multiply-adds, {rate:.1} per cycle and core: {:.1} % of {peak:.0} (16-bit)",
            outcome.macs,
            100.0 * rate / peak
        );
    }
    for (path, bytes) in &outcome.moved {
        let rate = *bytes as f64 / cycles / f64::from(outcome.cores);
        let _ = writeln!(out, "moved      {path:<10} {bytes:>14} bytes, {rate:.2} per cycle and core");
    }
    let _ = writeln!(
        out,
        "\n{:<12} {:>6} {:>14} {:>7} {:>14}  longest waits (cycles, all cores)",
        "pipe", "tasks", "busy cycles", "busy", "waiting"
    );
    let mut totals: BTreeMap<(u8, &str, &str), Total<'_>> = BTreeMap::new();
    for (at, pipe) in outcome.pipes.iter().enumerate() {
        let order = (at % (outcome.pipes.len() / outcome.cores.max(1) as usize).max(1)) as u8;
        let total = totals.entry((order, pipe.lane, pipe.pipe)).or_default();
        total.0 += pipe.tasks;
        total.1 += pipe.busy;
        for (name, cycles) in &pipe.stalls {
            *total.2.entry(name).or_insert(0) += cycles;
        }
    }
    for ((_, lane, pipe), (tasks, busy, stalls)) in &totals {
        let waiting: u64 = stalls.values().sum();
        let mut longest: Vec<(&&str, &u64)> = stalls.iter().collect();
        longest.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let names: Vec<String> =
            longest.iter().take(3).map(|(name, cycles)| format!("{name} {cycles}")).collect();
        let share = 100.0 * *busy as f64 / (cycles * f64::from(outcome.cores));
        let name = format!("{lane}.{pipe}");
        let _ = writeln!(
            out,
            "{name:<12} {tasks:>6} {busy:>14} {share:>5.1} % {waiting:>14}  {}",
            names.join(", ")
        );
    }
    let mut by_instruction: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for step in &outcome.critical_path {
        let entry = by_instruction.entry(&step.instruction).or_default();
        entry.0 += 1;
        entry.1 += step.end - step.start;
    }
    let mut path: Vec<(&str, (u64, u64))> = by_instruction.into_iter().collect();
    path.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| a.0.cmp(b.0)));
    let _ = writeln!(out, "\ncritical path: {} tasks", outcome.critical_path.len());
    for (instruction, (tasks, busy)) in path.iter().take(10) {
        let _ = writeln!(
            out,
            "  {busy:>12} cycles {:>5.1} %  {tasks:>6} x {instruction}",
            100.0 * *busy as f64 / cycles
        );
    }
    if path.len() > 10 {
        let _ = writeln!(out, "  and {} more instructions", path.len() - 10);
    }
    for line in &outcome.prints {
        let _ = writeln!(out, "printed: {line}");
    }
    out
}
