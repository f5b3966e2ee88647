//! Worker traces of a job → one job trace.
//!
//! What it does, in order, for each process: one pass in time order that finds events, operators and memory
//! (`walk`); interpretation of each event, where kernel launches become descriptors (`interpret`, `classify`)
//! and CUDA graphs are expanded (`capture`); steps (`steps`) and robust host times (`host_time`); memory
//! (`memory`); then all processes together (`ranks`).
//!
//! What it is not: it prices nothing, knows no cluster and does no I/O: files are read and written by
//! `trompe-trace`. Equal traces give equal job traces.
//!
//! Invariants: nothing of the trace is lost silently (what is not understood is named in a note); any trace that can
//! be read at all gives a result, damaged ones too.

mod capture;
mod classify;
mod direction;
mod host_time;
mod intern;
mod interpret;
mod kernel;
mod matching;
mod memory;
mod notes;
mod operator;
mod phases;
pub mod profiled;
mod ranks;
mod same;
mod samples;
mod short_name;
mod steps;
mod threads;
mod walk;

use std::collections::BTreeMap;

use trompe_trace::job::{Ending, JobTrace, Note, RankTemplate};
use trompe_trace::reader::{Names, WorkerTrace};

pub use steps::{StepBoundary, StepsOverride};

/// What the user may decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How steps are found.
    pub steps: StepsOverride,
}

/// Why there is no job trace.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollateError {
    /// Nothing in the traces ever used a device.
    #[error(
        "none of the {processes} recorded processes did any work on a GPU; the job has to use CUDA (for example `model.to(\"cuda\")`)"
    )]
    NoDeviceWork {
        /// Worker traces looked at.
        processes: usize,
    },
}

/// Facts that are structured data of their own and only needed here.
const INNER_FACTS: [&str; 2] = ["torch.memory_stats", "torch.memory_peaks"];

/// Makes the job trace of a job from the worker traces of its processes.
///
/// Processes without device work (launchers, data loaders) are left out.
///
/// # Errors
/// When no process did device work.
pub fn collate(traces: &[WorkerTrace], options: &Options) -> Result<JobTrace, CollateError> {
    let mut working: Vec<&WorkerTrace> = traces.iter().filter(|trace| walk::has_device_work(trace)).collect();
    working.sort_by_key(|trace| trace.pid());
    if working.is_empty() {
        return Err(CollateError::NoDeviceWork { processes: traces.len() });
    }
    let mut job = JobTrace::default();
    let mut processes = Vec::new();
    let mut told: BTreeMap<Note, Vec<u32>> = BTreeMap::new();
    for trace in working {
        let names = Names::collect(trace);
        let (process, notes) = process(trace, &names, options);
        if traces.len() > 1 && process.world > 1 {
            notes.into_iter().for_each(|note| told.entry(note).or_default().push(process.rank));
        } else {
            job.notes.extend(notes);
        }
        if job.facts.is_empty() || process.rank == 0 {
            job.facts = facts(trace, &names);
        }
        processes.push(process);
    }
    let ran = processes.len();
    job.notes.extend(told.into_iter().map(|(note, ranks)| prefixed(note, ranks, ran)));
    let folded = ranks::fold(processes);
    job.notes.extend(folded.notes);
    job.notes.extend(notes::unsupported(&folded.templates));
    job.notes.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.cmp(b)));
    job.notes.dedup();
    (job.templates, job.ranks, job.communicators) = (folded.templates, folded.ranks, folded.communicators);
    Ok(job)
}

/// A note with the ranks that it is about, of `ran` ones: said once for all of them.
fn prefixed(note: Note, mut ranks: Vec<u32>, ran: usize) -> Note {
    const LISTED: usize = 8;
    ranks.sort_unstable();
    let listed: Vec<String> = ranks.iter().take(LISTED).map(u32::to_string).collect();
    let about = match ranks.len() {
        1 => format!("rank {}", listed[0]),
        count if count == ran => format!("all {count} ranks that ran"),
        count if count > LISTED => format!("ranks {} and {} more", listed.join(", "), count - LISTED),
        _ => format!("ranks {}", listed.join(", ")),
    };
    Note { text: format!("{about}: {}", note.text), ..note }
}

fn facts(trace: &WorkerTrace, names: &Names<'_>) -> BTreeMap<String, String> {
    let kept = names.meta.iter().filter(|(key, _)| !INNER_FACTS.contains(key));
    let mut facts: BTreeMap<_, _> =
        kept.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    if let Some(nanoseconds) = emulation_cost(trace, names) {
        facts.insert("emulator.nanoseconds_per_call".to_owned(), format!("{nanoseconds:.1}"));
    }
    facts
}

/// What the emulator itself takes for a recorded call: the median time between a call's entry and its exit, in
/// nanoseconds. It is in no event's host time, which ends at the entry.
fn emulation_cost(trace: &WorkerTrace, names: &Names<'_>) -> Option<f64> {
    let calls = trace.entries().filter(|entry| entry.record.api().is_some());
    let mut ticks: Vec<u32> = calls.map(|entry| entry.stamp.ticks).collect();
    let middle = ticks.len() / 2;
    if ticks.is_empty() {
        return None;
    }
    let (_, median, _) = ticks.select_nth_unstable(middle);
    Some(names.clock.length_nanos(u64::from(*median)))
}

/// Interprets one process.
fn process<'a>(
    trace: &'a WorkerTrace,
    names: &'a Names<'a>,
    options: &Options,
) -> (ranks::Process, Vec<Note>) {
    let walk = walk::walk(trace, names);
    let mut found = interpret::interpret(&walk, names);
    let mut notes = notes::about(&walk, names, &found);

    let marks: Vec<_> = walk.marks.iter().map(|mark| mark.moved(&found.rows)).collect();
    let own = threads::of_program(&found.events);
    let keys = own.as_ref().map(|own| {
        let own_keys = found.keys.iter().zip(own).map(|(key, own)| if *own { *key } else { 0 });
        own_keys.collect::<Vec<u64>>()
    });
    let evidence = steps::Evidence {
        events: &found.events,
        keys: keys.as_ref().unwrap_or(&found.keys),
        operations: &found.operations.list,
        marks: &marks,
        sites: &found.sites.list,
        replays: &found.replays,
        optimizer_ends: &found.optimizer_ends,
    };
    let (mut steps, about_steps) = steps::steps(evidence, &options.steps);
    samples::fill(&mut steps, &walk.frames, &found.rows, &found.replays);
    phases::settle(&mut found.events, &mut found.sites, &steps, own.as_deref());
    host_time::settle(&mut found.events, &found.keys, &steps);
    let (memory, about_memory) = memory::memory(&walk, names, &found.rows);
    notes.extend(about_steps);
    notes.extend(about_memory);

    let mut calls: Vec<(String, u64)> = walk
        .calls
        .iter()
        .map(|(api, calls)| (api_name(names, *api), *calls))
        .filter(|(_, n)| *n > 0)
        .collect();
    calls.sort();
    let slots = found
        .slots
        .iter()
        .map(|(id, peer)| {
            let communicator = walk.communicator(*id, trace.pid());
            peer.map_or(communicator.clone(), |peer| communicator.pair(peer))
        })
        .collect();
    let template = RankTemplate {
        operations: found.operations.list,
        sites: found.sites.list,
        streams: walk.streams.into_values().collect(),
        events: found.events,
        steps,
        memory,
        calls,
        ending: if names.ended { Ending::Orderly } else { Ending::Cut },
    };
    let rank = ranks::place(names, "job.rank", "TROMPE_RANK", "RANK").unwrap_or(0);
    let world = ranks::place(names, "job.world", "TROMPE_WORLD_SIZE", "WORLD_SIZE").unwrap_or(1);
    (ranks::Process { rank, world, template, slots, places: found.places, whole: names.ended }, notes)
}

fn api_name(names: &Names<'_>, api: u16) -> String {
    names
        .apis
        .get(&u32::from(api))
        .map_or_else(|| format!("unknown/{api}/unknown"), |name| (*name).to_owned())
}
