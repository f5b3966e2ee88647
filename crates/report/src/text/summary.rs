//! The head of the text: what ran where, the verdict, and the numbers that answer it.

use trompe_results::{Repeats, Report, StepRule, VerdictStatus};

use super::paper::{Ink, Paper};
use crate::clean::sentence;
use crate::quantity::{bytes, count, metric, percent, rate as rate_of, seconds};

pub(super) fn write(paper: &mut Paper, report: &Report) {
    paper.wrapped("", "  ", &report.job.command.join(" "));
    if !report.cluster.device.is_empty() {
        paper.wrapped("", "  ", &format!("on {}", place(report)));
    }
    paper.blank();

    let verdict = &report.verdict;
    let ink = match verdict.status {
        VerdictStatus::Fits => Ink::Good,
        VerdictStatus::Interrupted => Ink::Warning,
        VerdictStatus::OutOfMemory | VerdictStatus::Failed => Ink::Bad,
    };
    let word = paper.paint(ink, &verdict.status.label().to_uppercase());
    paper.line(&word);
    paper.wrapped("  ", "  ", &sentence(&verdict.text));
    if let Some(hint) = &verdict.hint {
        paper.wrapped("  → ", "    ", &sentence(hint));
    }
    paper.blank();
    write_time(paper, report);
    write_memory(paper, report);
}

/// The simulated machines in one phrase.
pub(crate) fn place(report: &Report) -> String {
    let cluster = &report.cluster;
    let devices = u64::from(cluster.nodes) * u64::from(cluster.devices_per_node);
    let nodes = if cluster.nodes > 1 { format!(" in {} nodes", cluster.nodes) } else { String::new() };
    let ranks = match (report.world_size, report.ranks_emulated, report.ranks_checked) {
        (0 | 1, ..) => String::new(),
        (world, emulated, 0) => format!(", {world} ranks of which {emulated} ran"),
        (world, emulated, checked) => {
            format!(", {world} ranks of which {emulated} ran and {checked} were compared")
        }
    };
    format!("{devices} × {}{nodes} ({}){ranks}", cluster.device, cluster.name)
}

fn write_time(paper: &mut Paper, report: &Report) {
    let Some(step) = &report.step_time else {
        paper.fact("step time", "not known: no complete step was seen");
        return;
    };
    let (low, high) = (seconds(step.low, 3), seconds(step.high, 3));
    let level = step.level * 100.0;
    let time = seconds(step.seconds, 4);
    paper.fact("step time", &format!("{time}   ({low} to {high}, {level:.0} % interval; {})", step.basis));

    let rates = [(&report.throughput.tokens, "tokens/s"), (&report.throughput.samples, "samples/s")];
    let rates: Vec<_> =
        rates.into_iter().filter_map(|(rate, unit)| Some(rate_of(rate.as_ref()?.per_second, unit))).collect();
    if !rates.is_empty() {
        paper.fact("throughput", &rates.join("   "));
    }
    if let Some(flops) = &report.flops {
        let peak = metric(flops.peak_flops_per_second, "FLOP/s");
        let dtype = flops.peak_dtype.map_or(String::new(), |dtype| format!(" {dtype}"));
        let (mfu, hfu) = (percent(flops.mfu), percent(flops.hfu));
        let hardware = if hfu == mfu { String::new() } else { format!("with recomputation {hfu}; ") };
        paper.fact("MFU", &format!("{mfu}   ({hardware}of {peak}{dtype})"));
    }
    if let Some(usage) = &report.device_use {
        let (busy, host) = (percent(usage.busy_share), percent(usage.host_bound_share));
        paper.fact("device busy", &format!("{busy}   (waiting for the host {host})"));
    }
    if let Some(communication) = report.communication.as_ref().filter(|_| report.world_size > 1) {
        let (all, exposed) = (seconds(communication.seconds, 3), seconds(communication.exposed_seconds, 3));
        paper.fact("communication", &format!("{all} a step, {exposed} of it exposed"));
    }
    write_varied(paper, report);
    let steps = &report.steps;
    let fact = if steps.rule == StepRule::WholeRun {
        "none found: the whole run counts as one".to_owned()
    } else {
        let (seen, warm_up, used) = (steps.seen, steps.warm_up, steps.used);
        format!("{seen} seen, {warm_up} left out as warm-up, {used} used; found by {}", steps.found_by)
    };
    paper.fact("steps", &fact);
}

/// How the step time is spread over runs with other choices.
fn write_family(paper: &mut Paper, report: &Report) {
    let Some(family) = &report.family else { return };
    let spread = |steps: &Repeats| {
        let [median, low, high] = [steps.median, steps.low, steps.high].map(|value| seconds(value, 4));
        format!("median {median}, {low} to {high} in eight of ten")
    };
    let count = family.samples.len();
    paper.fact("samples", &format!("{} of {count} runs, from {}", spread(&family.steps), family.routing));
    paper.fact("", &format!("without host time: {}", spread(&family.steps_without_host)));
}

/// What contention, chance and slow machines make of the step.
fn write_varied(paper: &mut Paper, report: &Report) {
    write_family(paper, report);
    if let Some(effect) = &report.contention {
        let (with, without) = (seconds(effect.with_seconds, 4), seconds(effect.without_seconds, 4));
        let change = effect.with_seconds / effect.without_seconds.max(f64::MIN_POSITIVE) - 1.0;
        if !effect.on {
            paper.fact("contention", &format!("off; with it a step takes {with}"));
        } else if change.abs() >= 5e-4 {
            paper
                .fact("contention", &format!("costs {} of the step ({without} without it)", percent(change)));
        }
    }
    let Some(variation) = &report.variation else { return };
    let repeats = &variation.repeats;
    let plain = seconds(variation.plain_seconds, 4);
    let fact = if repeats.count > 1 {
        format!(
            "median {} of {} repetitions, {} to {} in eight of ten; {plain} without chance and stragglers",
            seconds(repeats.median, 4),
            repeats.count,
            seconds(repeats.low, 4),
            seconds(repeats.high, 4)
        )
    } else {
        format!("{plain} without chance and stragglers")
    };
    paper.fact("variation", &fact);
    for slow in variation.stragglers.iter().take(4) {
        let parts = [("device", slow.gpu), ("host", slow.host), ("adapter", slow.nic)];
        let parts = parts.iter().filter(|(_, speed)| *speed != 1.0);
        let parts: Vec<_> = parts.map(|(part, speed)| format!("{part} at {}", percent(*speed))).collect();
        paper.fact("", &format!("rank {}: {}", slow.rank, parts.join(", ")));
    }
    if variation.stragglers.len() > 4 {
        paper.fact("", &format!("and {} more slow ranks", variation.stragglers.len() - 4));
    }
}

fn write_memory(paper: &mut Paper, report: &Report) {
    let memory = &report.memory;
    let (allocated, reserved) = (bytes(memory.peak_allocated_bytes), bytes(memory.peak_reserved_bytes));
    let total = bytes(memory.total_bytes);
    let capacity = if memory.capacity_bytes == 0 {
        String::new()
    } else {
        let share = percent(memory.total_bytes as f64 / memory.capacity_bytes as f64);
        format!(" of {} ({share})", bytes(memory.capacity_bytes))
    };
    let rank = if memory.ranks.len() > 1 {
        format!(", fullest on rank {}", memory.fullest_rank)
    } else {
        String::new()
    };
    paper.fact("memory", &format!("{total}{capacity}{rank}"));
    let charges: Vec<_> = memory
        .ranks
        .iter()
        .filter(|rank| rank.rank == memory.fullest_rank)
        .flat_map(|rank| &rank.charges)
        .map(|charge| format!("{} {}", charge.what, bytes(charge.bytes)))
        .collect();
    let outside =
        if charges.is_empty() { String::new() } else { format!("; outside of it {}", charges.join(", ")) };
    paper.fact("", &format!("peak allocated {allocated}, peak reserved {reserved}{outside}"));
    if let Some(failure) = report.verdict.out_of_memory.as_ref().filter(|failure| failure.requested_bytes > 0)
    {
        let (asked, free) = (bytes(failure.requested_bytes), bytes(failure.free_bytes));
        let step = failure.step.map_or(String::new(), |step| format!(" in step {step}"));
        let owner = failure.owner.as_ref().map_or(String::new(), |owner| format!(" for {owner}"));
        let fact = format!("rank {} asked for {asked}{owner}{step} when {free} were free", failure.rank);
        paper.fact("did not fit", &fact);
    }
    let owners = memory
        .ranks
        .iter()
        .find(|rank| rank.rank == memory.fullest_rank)
        .map_or(&[][..], |rank| &rank.owners);
    if !owners.is_empty() {
        let shown: Vec<_> = owners
            .iter()
            .take(4)
            .map(|owner| format!("{} {} ({})", owner.owner, bytes(owner.bytes), owner.kind.label()))
            .collect();
        let more = owners.len().saturating_sub(4);
        let more = if more > 0 { format!(", and {} more", count(more as u64)) } else { String::new() };
        paper.fact("owners of peak", &format!("{}{more}", shown.join(", ")));
    }
}
