//! A run as plain data for whoever shows it.

use std::collections::BTreeMap;

use trompe_results::{CriticalInstruction, KernelRun, MatrixUse, MemoryUse, PathUse, PipeTotal, Wait};

use crate::compile::Lane;
use crate::cycles::{macs_per_cycle, path_rate};
use crate::program::Space;
use crate::run::record::{What, actor_name};
use crate::run::{Outcome, PipeUse};

/// Parts of the makespan in which the activity of a pipe is given.
const PARTS: usize = 240;

/// The summary of a run.
#[must_use]
pub fn of(outcome: &Outcome) -> KernelRun {
    let shared = &outcome.shared;
    let (device, profile) = (&shared.device, &shared.profile);
    let cycles = outcome.makespan.max(1) as f64;
    let cores = f64::from(outcome.cores);
    let matrix = outcome.macs.iter().map(|(dtype, multiply_adds)| {
        let per_cycle = *multiply_adds as f64 / cycles / cores;
        let peak_per_cycle = macs_per_cycle(*dtype, profile) as f64;
        MatrixUse {
            dtype: dtype.name().to_owned(),
            multiply_adds: *multiply_adds,
            per_cycle,
            peak_per_cycle,
            share: per_cycle / peak_per_cycle,
        }
    });
    let paths = outcome.moved.iter().map(|(path, bytes)| {
        let per_cycle = *bytes as f64 / cycles / cores;
        let (rate, per_lane) = path_rate(path, profile);
        let peak_per_cycle = if per_lane { rate * shared.vector_lanes.max(1) as f64 } else { rate };
        PathUse {
            path: (*path).to_owned(),
            bytes: *bytes,
            per_cycle,
            peak_per_cycle,
            share: per_cycle / peak_per_cycle,
        }
    });
    let memories =
        [Space::L1, Space::L0a, Space::L0b, Space::L0c, Space::Ub].into_iter().filter_map(|space| {
            Some(MemoryUse {
                memory: space.name().to_owned(),
                used_bytes: *shared.program.used.get(&space).filter(|used| **used > 0)?,
                capacity_bytes: device.capacity_kib.of(space) * 1024,
            })
        });
    KernelRun {
        trompe_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: outcome.program.clone(),
        device: device.name.clone(),
        profile: profile.name.clone(),
        profile_source: profile.source.clone(),
        timing_only: shared.options.timing_only,
        cores: outcome.cores,
        clock_mhz: device.clock_mhz,
        cycles: outcome.makespan,
        seconds: outcome.microseconds() * 1e-6,
        tasks: outcome.tasks,
        instructions: outcome.instructions,
        matrix: matrix.collect(),
        paths: paths.collect(),
        pipes: pipes(outcome, cycles * cores),
        memories: memories.collect(),
        critical_tasks: outcome.critical_path.len() as u64,
        critical_path: critical_path(outcome, cycles),
        prints: outcome.prints.clone(),
    }
}

/// Pipes of the same name added up over the cores.
fn pipes(outcome: &Outcome, available: f64) -> Vec<PipeTotal> {
    let per_core = (outcome.pipes.len() / outcome.cores.max(1) as usize).max(1);
    let of_pipe = |at: usize| -> Vec<&PipeUse> { outcome.pipes.iter().skip(at).step_by(per_core).collect() };
    let activity = activity(outcome);
    let total = |at: usize| {
        let uses = of_pipe(at);
        let name = format!("{}.{}", uses[0].lane, uses[0].pipe);
        let mut waits = BTreeMap::<&str, u64>::new();
        for (what, cycles) in uses.iter().flat_map(|pipe| &pipe.stalls) {
            *waits.entry(what).or_default() += cycles;
        }
        let busy_cycles = uses.iter().map(|pipe| pipe.busy).sum();
        let mut waits: Vec<Wait> =
            waits.into_iter().map(|(what, cycles)| Wait { what: what.to_owned(), cycles }).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.cycles));
        PipeTotal {
            tasks: uses.iter().map(|pipe| pipe.tasks).sum(),
            busy_cycles,
            busy_share: busy_cycles as f64 / available,
            waiting_cycles: waits.iter().map(|wait| wait.cycles).sum(),
            waits,
            activity: activity.get(&name).cloned().unwrap_or_default(),
            pipe: name,
        }
    };
    (0..per_core.min(outcome.pipes.len())).map(total).collect()
}

/// Share at work of each pipe in each part of the makespan, the mean over the cores.
fn activity(outcome: &Outcome) -> BTreeMap<String, Vec<f64>> {
    let parts = PARTS.min(outcome.makespan as usize);
    let width = outcome.makespan as f64 / parts.max(1) as f64;
    let mut all = BTreeMap::<String, Vec<f64>>::new();
    for record in outcome.timelines.iter().flat_map(|timeline| &timeline.records) {
        if record.what != What::Task || record.end == record.start {
            continue;
        }
        let (lane, pipe) = actor_name(record.actor.into());
        let shares = all.entry(format!("{}.{pipe}", lane.name())).or_insert_with(|| vec![0.0; parts]);
        let (start, end) = (record.start as f64 / width, record.end as f64 / width);
        let touched = shares.iter_mut().enumerate().take(end.ceil() as usize).skip(start as usize);
        for (part, share) in touched {
            let inside = end.min(part as f64 + 1.0) - start.max(part as f64);
            *share += inside / f64::from(outcome.cores);
        }
    }
    // Three digits are more than anybody sees.
    all.values_mut().flatten().for_each(|share| *share = (share.min(1.0) * 1e3).round() / 1e3);
    all
}

fn critical_path(outcome: &Outcome, cycles: f64) -> Vec<CriticalInstruction> {
    let mut by_instruction = BTreeMap::<(Lane, u32), (u64, u64)>::new();
    for step in &outcome.critical_path {
        let (lane, _) = actor_name(step.actor.into());
        let entry = by_instruction.entry((lane, step.instr)).or_default();
        entry.0 += 1;
        entry.1 += step.end - step.start;
    }
    let row = |((lane, instr), (tasks, busy))| CriticalInstruction {
        instruction: outcome.site(lane, instr).map(ToString::to_string).unwrap_or_default(),
        tasks,
        cycles: busy,
        share: busy as f64 / cycles,
    };
    let mut path: Vec<_> = by_instruction.into_iter().map(row).collect();
    path.sort_by(|a, b| b.cycles.cmp(&a.cycles).then_with(|| a.instruction.cmp(&b.instruction)));
    path
}
