//! Where the steps of a run are.
//!
//! In order of trust: what the user says; the end of each optimizer step; ranges that the program marks; the period
//! of the operation sequence. When none is found, the whole run is one step.
//!
//! The steady state is what comes last and lasts longest. Steps that run as CUDA graphs follow on some that ran without
//! (warm-up before the capture) and replace them (`replay`); likewise training that goes on behind the last optimizer
//! step that could be seen.
//!
//! Several optimizer steps may make one iteration (two networks trained in turn): when what the updates do repeats with
//! a period, that many steps are taken together. What else happens every few steps (logging, evaluation) is no reason. The first steps of a run do more than the later ones (optimizer states,
//! library tuning, allocator growth): they are warm-up, and are told by their different sequence of operations.

mod period;
mod replay;
mod warmup;

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use trompe_trace::descriptor::Descriptor;
use trompe_trace::job::{
    Action, CallClass, HostEvent, Note, Operation, Phase, Severity, Site, StepSource, Steps,
};

use crate::intern::without_numbers;
use crate::interpret::{OptimizerEnd, Replay};
use crate::walk::Mark;

/// How the user wants the steps to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepsOverride {
    /// Where steps begin and end.
    pub boundary: StepBoundary,
    /// Leading steps to leave out; `None` finds out.
    pub warmup: Option<usize>,
}

/// Where steps begin and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepBoundary {
    /// Found without help.
    #[default]
    Automatic,
    /// The run consists of this many equal steps, whatever comes before the first.
    Count(usize),
    /// Each range (or instant mark) whose text contains this is a step.
    Marker(String),
    /// The whole run is one step.
    WholeRun,
}

/// What steps are found from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'e, 'a> {
    /// Events of the job trace.
    pub events: &'e [HostEvent],
    /// What each event does; zero for polls.
    pub keys: &'e [u64],
    /// Operations that the events name.
    pub operations: &'e [Operation],
    /// Marked ranges, in events of the job trace.
    pub marks: &'e [Mark<'a>],
    /// Places that the events name.
    pub sites: &'e [Site],
    /// Launches of graphs, by their events.
    pub replays: &'e BTreeMap<usize, Replay>,
    /// Ends of optimizer steps, ascending.
    pub optimizer_ends: &'e [OptimizerEnd],
}

/// Finds the steps.
pub(crate) fn steps(evidence: Evidence<'_, '_>, wish: &StepsOverride) -> (Steps, Vec<Note>) {
    let mut notes = Vec::new();
    let found = match &wish.boundary {
        StepBoundary::WholeRun => None,
        StepBoundary::Count(count) => {
            let found = period::boundaries(evidence, 0, Some(*count));
            if found.is_none() {
                notes.push(not_found(
                    &format!("no {count} equal steps"),
                    "the steps were looked for without that",
                ));
            }
            found.map(|b| (b, StepSource::User)).or_else(|| automatic(evidence))
        }
        StepBoundary::Marker(text) => {
            let found = marked(evidence, |mark| mark.contains(text.as_str()), 1);
            if found.is_none() {
                notes.push(not_found(
                    &format!("no mark with `{text}`"),
                    "the steps were looked for without that",
                ));
            }
            found.map(|b| (b, StepSource::User)).or_else(|| automatic(evidence))
        }
        StepBoundary::Automatic => automatic(evidence),
    };
    let (boundaries, source) =
        found.unwrap_or_else(|| (vec![0, evidence.events.len()], StepSource::WholeRun));
    let count = boundaries.len().saturating_sub(1);
    let warmup = match wish.warmup {
        Some(skip) if skip < count => skip,
        Some(skip) => {
            let text = format!("{skip} steps were to be skipped, the run has {count}");
            let hint = Some("the last step is reported".to_owned());
            notes.push(Note { severity: Severity::Warning, text, hint });
            count.saturating_sub(1)
        }
        None => warmup::count(evidence, &boundaries),
    };
    if wish.boundary != StepBoundary::WholeRun {
        notes.extend(doubts(source, count));
    }
    (Steps { boundaries, warmup, source, ..Steps::default() }, notes)
}

fn not_found(what: &str, hint: &str) -> Note {
    let text = format!("{what} found in the trace");
    Note { severity: Severity::Warning, text, hint: Some(hint.to_owned()) }
}

/// What makes the steps less trustworthy.
fn doubts(source: StepSource, count: usize) -> Option<Note> {
    let (text, hint) = match (source, count) {
        (StepSource::WholeRun, _) => (
            "no steps were found: the whole run, initialisation included, is taken as one step",
            "run several training steps, or mark them with torch.cuda.nvtx.range_push(\"step\")",
        ),
        (_, 1) => (
            "the run has one step, which includes initialisation and warm-up",
            "run three steps or more for a dependable step time",
        ),
        (_, 2) => (
            "the run has two steps, and only the second counts: its host time cannot be checked against others",
            "run five steps or more for a dependable step time",
        ),
        _ => return None,
    };
    Some(Note { severity: Severity::Warning, text: text.to_owned(), hint: Some(hint.to_owned()) })
}

fn automatic(evidence: Evidence<'_, '_>) -> Option<(Vec<usize>, StepSource)> {
    if !evidence.optimizer_ends.is_empty() {
        let (first, source) = replay::first_end(evidence)
            .map_or((0, StepSource::Optimizer), |first| (first, StepSource::Replay));
        let found = optimizer(evidence, first);
        return Some(replay::behind(evidence, &found).unwrap_or((found, source)));
    }
    if let Some(boundaries) = marked(evidence, names_a_step, 2) {
        return Some((boundaries, StepSource::Marker));
    }
    replay::without_optimizer(evidence).or_else(|| {
        let boundaries = period::boundaries(evidence, 0, None)?;
        // Copying a model to the device, parameter by parameter, repeats too.
        let computes = boundaries.windows(2).all(|w| evidence.events[w[0]..w[1]].iter().any(computes));
        computes.then_some((boundaries, StepSource::Period))
    })
}

/// Steps end with the optimizer's, from the `first` of its steps on; several optimizers that take turns make one step
/// together.
fn optimizer(evidence: Evidence<'_, '_>, first: usize) -> Vec<usize> {
    let (before, ends) = evidence.optimizer_ends.split_at(first);
    let start = before.last().map_or(0, |end| end.at);
    let mut boundaries = vec![start];
    boundaries.extend(ends.iter().map(|end| end.at).filter(|at| *at > start));
    boundaries.dedup();
    let updates: Vec<u64> = boundaries.windows(2).map(|w| update_hash(evidence, w[0], w[1])).collect();
    let period = repetition(&updates);
    if period > 1 {
        // Count back from the last: what does not fill a step at the start is warm-up anyway.
        let keep: Vec<usize> = boundaries.iter().rev().step_by(period).copied().collect();
        boundaries = keep.into_iter().rev().collect();
        if boundaries[0] != start {
            boundaries.insert(0, start);
        }
    }
    boundaries
}

/// The smallest period (up to 8) with which the last half of the steps, at least two periods, repeats and of which
/// no smaller one explains the steps; 1 when there is none.
fn repetition(hashes: &[u64]) -> usize {
    let tail = &hashes[hashes.len() / 3..];
    (1..=8.min(tail.len() / 2))
        .find(|period| tail.iter().zip(&tail[*period..]).all(|(a, b)| a == b))
        .unwrap_or(1)
}

/// How a range of events updates parameters: operations of the optimizer, sizes included, and graphs.
fn update_hash(evidence: Evidence<'_, '_>, begin: usize, end: usize) -> u64 {
    let mut hasher = SipHasher13::new();
    for event in &evidence.events[begin..end] {
        let updates = evidence.sites[event.site as usize].phase == Phase::Optimizer;
        match &event.action {
            Action::Enqueue { operation, .. } if updates => hasher.write_u32(*operation),
            Action::Graph { operations, .. } => operations.iter().for_each(|row| hasher.write_u32(*row)),
            _ => {}
        }
    }
    hasher.finish()
}

/// What a range of events does.
fn sequence_hash(evidence: Evidence<'_, '_>, begin: usize, end: usize) -> u64 {
    let mut hasher = SipHasher13::new();
    for key in evidence.keys[begin..end].iter().filter(|key| **key != 0) {
        hasher.write_u64(*key);
    }
    hasher.finish()
}

/// Whether a mark's text names a training step.
fn names_a_step(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let word = |w: &str| text.split(|c: char| !c.is_ascii_alphabetic()).any(|part| part == w);
    (word("step") || word("iteration") || word("iter") || text.starts_with("profilerstep"))
        && !text.starts_with("optimizer.")
}

/// Steps from marks: the text (counters dropped) that occurs most often among those wanted, at least `least` times.
fn marked(evidence: Evidence<'_, '_>, wanted: impl Fn(&str) -> bool, least: usize) -> Option<Vec<usize>> {
    let mut texts: std::collections::BTreeMap<String, Vec<Mark<'_>>> = std::collections::BTreeMap::new();
    for mark in evidence.marks.iter().filter(|mark| wanted(mark.text)) {
        texts.entry(without_numbers(mark.text)).or_default().push(*mark);
    }
    let (_, marks) =
        texts.into_iter().max_by_key(|(text, marks)| (marks.len(), std::cmp::Reverse(text.clone())))?;
    if marks.len() < least {
        return None;
    }
    let mut boundaries: Vec<usize> = marks.iter().map(|mark| mark.begin).collect();
    // The last step ends with its range; an instant mark's with the next, or the run.
    let last = marks.last()?;
    boundaries.push(if last.end > last.begin { last.end } else { evidence.events.len() });
    boundaries.dedup();
    (boundaries.len() > 1).then_some(boundaries)
}

/// Whether an event makes the device compute: more than copies and fills.
fn computes(event: &HostEvent) -> bool {
    matches!(event.call, CallClass::Launch | CallClass::LibraryLaunch | CallClass::Graph)
}

/// Whether an event enqueues a parameter update.
fn updates_parameters(evidence: Evidence<'_, '_>, row: usize) -> bool {
    match &evidence.events[row].action {
        Action::Enqueue { operation, .. } => {
            matches!(evidence.operations[*operation as usize].descriptor, Descriptor::Optimizer(_))
        }
        _ => false,
    }
}
