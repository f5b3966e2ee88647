//! How far the numbers can be trusted: methods, what was not understood, the host model, and the notes.

use trompe_results::{HostMode, Report, Severity};

use super::paper::{Ink, Paper};
use crate::clean::sentence;
use crate::quantity::{count, percent, seconds, significant};

/// Rows of a list that the terminal shows.
const SHOWN: usize = 5;

pub(super) fn write(paper: &mut Paper, report: &Report) {
    if report.step_time.is_some() || report.software.torch.is_some() {
        paper.section("What it rests on");
    }
    let methods: Vec<_> = report
        .coverage
        .methods
        .iter()
        .filter(|row| row.seconds > 0.0)
        .map(|row| format!("{} {}", row.method.name(), percent(row.share)))
        .collect();
    if !methods.is_empty() {
        paper.fact("kernel times", &format!("{} of the kernel time", methods.join(", ")));
    }
    if let Some(clock) = &report.coverage.sustained_clock {
        paper.fact(
            "clock",
            &format!(
                "down to {} of the highest under the load of kernels near the peak, {} of the kernel time",
                percent(clock.lowest_share),
                percent(clock.kernel_time_share)
            ),
        );
    }
    write_unknown(paper, report);
    let calls = &report.coverage.unsupported_calls;
    if !calls.is_empty() {
        let named: Vec<_> =
            calls.iter().take(SHOWN).map(|call| format!("{}: {}", call.symbol, call.effect)).collect();
        paper.fact("refused calls", &format!("{}{}", named.join("; "), and_more(calls.len())));
    }
    if report.step_time.is_some() {
        write_host(paper, report);
    }
    write_software(paper, report);
    write_notes(paper, report);
}

fn write_unknown(paper: &mut Paper, report: &Report) {
    let unknown = &report.coverage.unknown_kernels;
    for (index, kernel) in unknown.iter().take(SHOWN).enumerate() {
        let label = if index == 0 { "not understood" } else { "" };
        let (time, calls) = (seconds(kernel.seconds, 3), count(kernel.count));
        paper.fact(label, &format!("{} ({calls} calls, {time}): {}", kernel.name, kernel.rule));
    }
    if unknown.len() > SHOWN {
        paper.fact("", and_more(unknown.len()).trim_start_matches(", "));
    }
}

fn write_host(paper: &mut Paper, report: &Report) {
    let host = &report.host;
    let time = seconds(host.seconds_per_step, 3);
    let machine = host.recorded_on.as_deref().unwrap_or("an unnamed processor");
    let fact = match host.mode {
        HostMode::Off => "off: the host takes no time".to_owned(),
        HostMode::Fixed => {
            let gap = host.fixed_nanoseconds.unwrap_or(0.0) * 1e-9;
            format!("fixed at {} a call: {time} a step", seconds(gap, 3))
        }
        HostMode::Measured => format!("measured on {machine}: {time} a step"),
        HostMode::Named => format!(
            "as `{}` would take: measured on {machine}, times {}: {time} a step",
            host.simulated_on,
            significant(host.scale, 3)
        ),
        HostMode::Scale => {
            format!("measured on {machine}, times {}: {time} a step", significant(host.scale, 3))
        }
    };
    paper.fact("host time", &fact);
}

fn write_software(paper: &mut Paper, report: &Report) {
    let software = &report.software;
    let named = [("Python", &software.python), ("PyTorch", &software.torch), ("CUDA", &software.cuda)];
    let mut parts: Vec<_> =
        named.iter().filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?))).collect();
    parts.extend(software.packages.iter().map(|package| format!("{} {}", package.name, package.value)));
    if !parts.is_empty() {
        paper.fact("software", &parts.join(", "));
    }
}

fn write_notes(paper: &mut Paper, report: &Report) {
    if report.notes.is_empty() {
        return;
    }
    paper.section("Notes");
    for note in &report.notes {
        let (sign, ink) = match note.severity {
            Severity::Error => ("✗", Ink::Bad),
            Severity::Warning => ("!", Ink::Warning),
            Severity::Info => ("·", Ink::Faint),
        };
        let first = format!("  {} ", paper.paint(ink, sign));
        paper.wrapped(&first, "    ", &sentence(&note.text));
        if let Some(action) = &note.action {
            paper.wrapped("    → ", "      ", &sentence(action));
        }
    }
}

fn and_more(total: usize) -> String {
    if total > SHOWN { format!(", and {} more", total - SHOWN) } else { String::new() }
}
