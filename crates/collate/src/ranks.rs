//! Which process is which rank, which communicators they share, and which ranks are equal.

use std::collections::BTreeMap;

use serde_json::Value;
use trompe_base::Rank;
use trompe_trace::job::{Communicator, HostEvent, Note, RankInstance, RankTemplate, Severity};
use trompe_trace::reader::Names;

use crate::walk::RawCommunicator;

/// One process that did device work.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its rank.
    pub rank: u32,
    /// Ranks of the whole job, as the process was told.
    pub world: u32,
    /// What it did.
    pub template: RankTemplate,
    /// For each communicator slot of the template the communicator as the process announced it.
    pub slots: Vec<RawCommunicator>,
}

/// A number among the environment variables that the Python side recorded.
pub(crate) fn environment(names: &Names<'_>, variable: &str) -> Option<u32> {
    let value: Value = serde_json::from_str(names.meta.get("environment")?).ok()?;
    value.get(variable)?.as_str()?.parse().ok()
}

/// The parts of a job trace that ranks make up.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub templates: Vec<RankTemplate>,
    pub ranks: Vec<RankInstance>,
    pub communicators: Vec<Communicator>,
    pub notes: Vec<Note>,
}

/// Puts the processes together.
pub(crate) fn fold(mut processes: Vec<Process>) -> Folded {
    let mut folded = Folded::default();
    processes.sort_by_key(|process| process.rank);
    let distinct = processes.windows(2).all(|pair| pair[0].rank < pair[1].rank);
    if !distinct {
        let text = format!("{} processes did device work without different ranks", processes.len());
        let hint = "they are taken as ranks in the order of their process ids".to_owned();
        folded.notes.push(Note { severity: Severity::Info, text, hint: Some(hint) });
        for (index, process) in processes.iter_mut().enumerate() {
            process.rank = index as u32;
        }
    }
    let world = processes.iter().map(|p| p.world.max(p.rank + 1)).max().unwrap_or(1);
    let rows = communicators(&processes, world, &mut folded);
    let mut present: BTreeMap<u32, usize> = BTreeMap::new();
    for process in processes {
        let communicators = process.slots.iter().map(|slot| rows[&slot.identity]).collect();
        let equal = folded.templates.iter().position(|template| same(template, &process.template));
        let template = equal.unwrap_or(folded.templates.len());
        if equal.is_none() {
            folded.templates.push(process.template);
        }
        present.insert(process.rank, folded.ranks.len());
        folded.ranks.push(RankInstance { template, communicators, emulated: true });
    }
    fill_absent(world, &present, &mut folded);
    folded
}

/// All communicators, by identity; members that nobody announced are taken from who is in it.
fn communicators(processes: &[Process], world: u32, folded: &mut Folded) -> BTreeMap<u64, usize> {
    let mut rows: BTreeMap<u64, usize> = BTreeMap::new();
    for slot in processes.iter().flat_map(|process| &process.slots) {
        let next = folded.communicators.len();
        rows.entry(slot.identity).or_insert_with(|| {
            let members = if !slot.members.is_empty() {
                slot.members.iter().map(|rank| Rank(*rank)).collect()
            } else if slot.size == world {
                (0..world).map(Rank).collect()
            } else {
                seen_members(processes, slot, folded)
            };
            folded.communicators.push(Communicator { members, purpose: None });
            next
        });
    }
    rows
}

/// Members of a communicator from the processes that announced it.
fn seen_members(processes: &[Process], wanted: &RawCommunicator, folded: &mut Folded) -> Vec<Rank> {
    let mut members: Vec<(u32, u32)> = processes
        .iter()
        .filter_map(|p| p.slots.iter().find(|s| s.identity == wanted.identity).map(|s| (s.rank, p.rank)))
        .collect();
    members.sort_unstable();
    if members.len() < wanted.size as usize {
        let text = format!(
            "of a communicator with {} members only {} were recorded; the others are not known",
            wanted.size,
            members.len()
        );
        folded.notes.push(Note { severity: Severity::Warning, text, hint: None });
    }
    members.into_iter().map(|(_, rank)| Rank(rank)).collect()
}

/// Ranks that did not run are taken to be equal to the nearest one below that did, as long as all communicators span
/// the whole job; otherwise they are left out and named.
fn fill_absent(world: u32, present: &BTreeMap<u32, usize>, folded: &mut Folded) {
    let absent = world as usize - present.len();
    if absent == 0 {
        return;
    }
    let whole = folded.communicators.iter().all(|c| c.members.len() == world as usize);
    let text = format!("{absent} of {world} ranks were not emulated");
    let severity = if whole { Severity::Info } else { Severity::Warning };
    let hint = if whole { "they are assumed to be equal to ranks that were" } else { "they are left out" };
    folded.notes.push(Note { severity, text, hint: Some(hint.to_owned()) });
    if !whole {
        return;
    }
    let ran = std::mem::take(&mut folded.ranks);
    let first = present.keys().next().copied().unwrap_or(0);
    folded.ranks = (0..world)
        .map(|rank| {
            let nearest = present.range(..=rank).next_back().map_or(present[&first], |(_, row)| *row);
            let emulated = present.contains_key(&rank);
            RankInstance { emulated, ..ran[nearest].clone() }
        })
        .collect();
}

/// Whether two ranks do the same; host times, which never repeat exactly, do not count.
fn same(a: &RankTemplate, b: &RankTemplate) -> bool {
    let equal = |x: &HostEvent, y: &HostEvent| {
        (x.call, x.site, &x.action, x.thread) == (y.call, y.site, &y.action, y.thread)
    };
    a.operations == b.operations
        && a.sites == b.sites
        && a.streams == b.streams
        && a.steps == b.steps
        && a.memory.peak_total == b.memory.peak_total
        && a.memory.peak_allocated == b.memory.peak_allocated
        && a.events.len() == b.events.len()
        && a.events.iter().zip(&b.events).all(|(x, y)| equal(x, y))
}
