//! Which process is which rank, which communicators they share, and which ranks are equal.

use std::collections::BTreeMap;

use serde_json::Value;
use trompe_base::{Rank, RankPattern};
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

/// A number that the launcher of the run told under its own name, or else under the usual one.
pub(crate) fn place(names: &Names<'_>, own: &str, usual: &str) -> Option<u32> {
    environment(names, own).or_else(|| environment(names, usual))
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
            } else if slot.size == 1 {
                processes.iter().filter(|p| p.slots.contains(slot)).take(1).map(|p| Rank(p.rank)).collect()
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

/// Ranks that did not run are taken to be equal to the nearest one below that did (or else the first). Their
/// communicators are those of that one, moved to where they are.
fn fill_absent(world: u32, present: &BTreeMap<u32, usize>, folded: &mut Folded) {
    let absent = world as usize - present.len();
    if absent == 0 {
        return;
    }
    let ran = std::mem::take(&mut folded.ranks);
    let mut moved = Moved::new(&ran, folded);
    let mut unplaced = 0;
    let first = present.keys().next().copied().unwrap_or(0);
    let mut ranks = Vec::with_capacity(world as usize);
    for rank in 0..world {
        if let Some(row) = present.get(&rank) {
            ranks.push(ran[*row].clone());
            continue;
        }
        let row = present.range(..=rank).next_back().map_or(present[&first], |(_, row)| *row);
        let mut instance = RankInstance { emulated: false, ..ran[row].clone() };
        match moved.place(Rank(rank), &ran[row], folded) {
            Some(communicators) => instance.communicators = communicators,
            None => unplaced += 1,
        }
        ranks.push(instance);
    }
    folded.ranks = ranks;
    let text = format!("{absent} of {world} ranks did not run");
    let hint = "they are assumed to do the same as the nearest one below that ran".to_owned();
    folded.notes.push(Note { severity: Severity::Info, text, hint: Some(hint) });
    if unplaced > 0 {
        let text = format!("the groups of {unplaced} ranks that did not run are not known");
        let hint = "let ranks of every kind run, with `--ranks`".to_owned();
        folded.notes.push(Note { severity: Severity::Warning, text, hint: Some(hint) });
    }
}

/// Communicators by what they are: who is in them, and which of several with these members it is.
struct Moved {
    rows: BTreeMap<(Vec<Rank>, usize), usize>,
    /// By row: the shape of the members.
    patterns: BTreeMap<usize, Option<RankPattern>>,
}

impl Moved {
    fn new(ran: &[RankInstance], folded: &Folded) -> Self {
        let mut found = Self { rows: BTreeMap::new(), patterns: BTreeMap::new() };
        for instance in ran {
            let mut seen: BTreeMap<&[Rank], usize> = BTreeMap::new();
            for row in &instance.communicators {
                let members = &folded.communicators[*row].members;
                let nth = seen.entry(members).or_default();
                found.rows.entry((members.clone(), *nth)).or_insert(*row);
                *nth += 1;
                found.patterns.entry(*row).or_insert_with(|| {
                    let ranks: Vec<u32> = members.iter().map(|rank| rank.0).collect();
                    RankPattern::of(&ranks)
                });
            }
        }
        found
    }

    /// The communicators of an absent rank that does what `example` does.
    fn place(&mut self, rank: Rank, example: &RankInstance, folded: &mut Folded) -> Option<Vec<usize>> {
        let mut seen: BTreeMap<Vec<Rank>, usize> = BTreeMap::new();
        let mut found = Vec::with_capacity(example.communicators.len());
        for row in &example.communicators {
            let known = &folded.communicators[*row].members;
            let members = if known.binary_search(&rank).is_ok() {
                known.clone()
            } else {
                self.patterns.get(row)?.as_ref()?.containing(rank)?.members()
            };
            let nth = seen.entry(members.clone()).or_default();
            let next = folded.communicators.len();
            let row = *self.rows.entry((members.clone(), *nth)).or_insert(next);
            if row == next {
                folded.communicators.push(Communicator { members, purpose: None });
            }
            *nth += 1;
            found.push(row);
        }
        Some(found)
    }
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
