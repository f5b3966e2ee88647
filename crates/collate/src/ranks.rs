//! Which process is which rank, which communicators they share, and which ranks are equal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trompe_base::{Mesh, Rank, RankPattern};
use trompe_trace::job::{Communicator, Note, RankInstance, RankTemplate, Severity};
use trompe_trace::reader::Names;

use crate::matching;
use crate::same::same;
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
    /// Of collectives, by event, the place in the program.
    pub places: BTreeMap<usize, String>,
    /// Its trace has an end mark.
    pub whole: bool,
}

/// A number among the environment variables that the Python side recorded.
pub(crate) fn environment(names: &Names<'_>, variable: &str) -> Option<u32> {
    let value: Value = serde_json::from_str(names.meta.get("environment")?).ok()?;
    value.get(variable)?.as_str()?.parse().ok()
}

/// A number that the process told when it joined the job, or the launcher of the run under its own name, or else under the
/// usual one.
pub(crate) fn place(names: &Names<'_>, joined: &str, own: &str, usual: &str) -> Option<u32> {
    let told = names.meta.get(joined).and_then(|text| text.parse().ok());
    told.or_else(|| environment(names, own)).or_else(|| environment(names, usual))
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
    settle_ranks(&mut processes, &mut folded.notes);
    folded.notes.extend(matching::notes(&processes));
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

/// Leaves one process for each rank. Several processes that are no ranks of one job (a script that starts others) are
/// not taken for its ranks: the one that asked the device for most is the job.
fn settle_ranks(processes: &mut Vec<Process>, notes: &mut Vec<Note>) {
    if processes.iter().any(|process| process.world > 1) {
        let strangers = processes.len();
        processes.retain(|process| process.world > 1);
        let strangers = strangers - processes.len();
        if strangers > 0 {
            let text = format!("{strangers} processes beside the ranks of the job did work on a GPU");
            let hint = "they are left out".to_owned();
            notes.push(Note { severity: Severity::Info, text, hint: Some(hint) });
        }
    }
    // The busiest of each rank first; ties in the order of the process ids, in which they came.
    let work = |process: &Process| process.template.events.len();
    processes.sort_by(|a, b| (a.rank, work(b)).cmp(&(b.rank, work(a))));
    let all = processes.len();
    processes.dedup_by_key(|process| process.rank);
    if processes.len() < all {
        let text = format!("{all} processes did work on a GPU, and they are not ranks of one job");
        let hint = match processes.len() {
            1 => "the one that did most is reported, the others are left out; start ranks with a launcher such as \
                  `torchrun`, or give each its RANK and WORLD_SIZE"
                .to_owned(),
            _ => "of several with the same rank the one that did most is reported".to_owned(),
        };
        notes.push(Note { severity: Severity::Warning, text, hint: Some(hint) });
    }
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

/// Ranks that did not run are taken to be equal to the one in the most similar place of the mesh that did; of several to
/// the nearest one below (or else the first). Their communicators are those of that one, moved to where they are.
fn fill_absent(world: u32, present: &BTreeMap<u32, usize>, folded: &mut Folded) {
    let absent = world as usize - present.len();
    if absent == 0 {
        return;
    }
    let ran = std::mem::take(&mut folded.ranks);
    let mut moved = Moved::new(&ran, folded);
    let mut unplaced = 0;
    let likeness = Likeness::of(world, present, &ran, folded);
    let mut ranks = Vec::with_capacity(world as usize);
    for rank in 0..world {
        if let Some(row) = present.get(&rank) {
            ranks.push(ran[*row].clone());
            continue;
        }
        let row = present[&likeness.example(Rank(rank)).0];
        let example = likeness.example(Rank(rank));
        let mut instance = RankInstance { emulated: false, ..ran[row].clone() };
        match moved.place((Rank(rank), example), &ran[row], folded) {
            Some(communicators) => instance.communicators = communicators,
            None => unplaced += 1,
        }
        ranks.push(instance);
    }
    folded.ranks = ranks;
    let text = format!("{absent} of {world} ranks did not run");
    let hint = "they are assumed to do the same as the one in the most similar place that ran".to_owned();
    folded.notes.push(Note { severity: Severity::Info, text, hint: Some(hint) });
    folded.notes.extend(likeness.unseen());
    if unplaced > 0 {
        let text = format!("the groups of {unplaced} ranks that did not run are not known");
        let hint = "let ranks of every kind run, with `--ranks`".to_owned();
        folded.notes.push(Note { severity: Severity::Warning, text, hint: Some(hint) });
    }
}

/// Which of the ranks that ran an absent one is like.
struct Likeness {
    mesh: Mesh,
    weights: Vec<u64>,
    ran: Vec<Rank>,
}

/// What an axis weighs that says which template a rank follows (the stages of a pipeline), beside the others.
const TELLING: u64 = 1 << 16;

impl Likeness {
    fn of(world: u32, present: &BTreeMap<u32, usize>, ran: &[RankInstance], folded: &Folded) -> Self {
        let members = |instance: &RankInstance| -> Vec<Vec<u32>> {
            let rows = instance.communicators.iter().map(|row| &folded.communicators[*row].members);
            rows.map(|members| members.iter().map(|rank| rank.0).collect()).collect()
        };
        let groups: Vec<Vec<u32>> = ran.iter().flat_map(members).collect();
        let mesh = Mesh::of(world, groups.iter().map(Vec::as_slice));
        let tells = |axis: &RankPattern| {
            let mut by_place: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
            for (rank, row) in present {
                by_place.entry(axis.place(Rank(*rank))).or_default().insert(ran[*row].template);
            }
            let all: BTreeSet<usize> = by_place.values().flatten().copied().collect();
            all.len() > 1 && by_place.values().all(|templates| templates.len() == 1)
        };
        let weights = mesh.axes().iter().map(|axis| if tells(axis) { TELLING } else { 1 }).collect();
        Self { mesh, weights, ran: present.keys().copied().map(Rank).collect() }
    }

    fn example(&self, rank: Rank) -> Rank {
        self.mesh.most_like(rank, &self.ran, &self.weights).unwrap_or(rank)
    }

    /// That ranks differ along an axis of which not every place ran.
    fn unseen(&self) -> Option<Note> {
        let telling = self.mesh.axes().iter().zip(&self.weights).filter(|(_, weight)| **weight == TELLING);
        let (places, seen) = telling
            .map(|(axis, _)| {
                let seen: BTreeSet<u32> = self.ran.iter().map(|rank| axis.place(*rank)).collect();
                (axis.len(), seen.len())
            })
            .filter(|(places, seen)| seen < places)
            .min()?;
        let text = format!("ranks differ along an axis of {places} places, of which {seen} ran");
        let hint = "let one rank in each place run, with `--ranks`".to_owned();
        Some(Note { severity: Severity::Warning, text, hint: Some(hint) })
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

    /// Whether the groups of this shape are a division of the ranks.
    fn tiles(&self, row: usize) -> bool {
        let pattern = self.patterns.get(&row).and_then(Option::as_ref);
        pattern.is_some_and(|pattern| pattern.containing(Rank(pattern.first())).is_some())
    }

    /// The communicators of an absent rank that does what `example` does.
    fn place(
        &mut self,
        (rank, like): (Rank, Rank),
        example: &RankInstance,
        folded: &mut Folded,
    ) -> Option<Vec<usize>> {
        let mut seen: BTreeMap<Vec<Rank>, usize> = BTreeMap::new();
        let mut found = Vec::with_capacity(example.communicators.len());
        for row in &example.communicators {
            let known = &folded.communicators[*row].members;
            let members = match known.as_slice() {
                // Two that send to each other: others of their stages send as far. A pair inside a tile may be an axis.
                [first, second] if known.contains(&like) && !self.tiles(*row) => {
                    let shifted = |member: &Rank| (member.0 + rank.0).checked_sub(like.0).map(Rank);
                    vec![shifted(first)?, shifted(second)?]
                }
                _ if known.binary_search(&rank).is_ok() => known.clone(),
                _ => self.patterns.get(row)?.as_ref()?.containing(rank)?.members(),
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
