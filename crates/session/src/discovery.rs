//! Which ranks of a job must run, found while it runs.
//!
//! Ranks of a job are mostly copies of a few: every stage of a pipeline differs, the replicas of data parallelism do not.
//! Which ones differ is found without help:
//!
//! 1. The first and the last rank run, and a few more picked by a seeded lottery (`--verify`).
//! 2. As soon as they have made one step their groups are known, read from their traces while they write them
//!    (`sequence`). The ends of every axis of the mesh, and all members of groups that send to each other (the
//!    stages of a pipeline), are the ranks to run (`plan`); if others are needed than run, the job begins again with
//!    them.
//! 3. Ranks that *must* run go on to the end. The others are *checks*: each is compared, operation by operation, with
//!    the rank that it is taken to equal, and stopped when two steps were the same. One that differs goes on and stands
//!    for itself.
//!
//! What is compared is what the device and the network are asked to do (kernels with their geometry, library calls with their
//! sizes, copies, collectives with their groups and counts); not addresses, not times.

mod plan;
mod sequence;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trompe_base::{Mesh, Rank};

use crate::launch::{Watch, Wish};
pub use plan::{MOST, lottery};
use sequence::Sequence;

/// Equal operations over so many steps make two ranks equal.
const STEPS: usize = 2;

/// A check that turned out to be no copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The rank.
    pub rank: Rank,
    /// What it was taken to equal.
    pub like: Rank,
    /// Number of the first operation that is another, from 0.
    pub operation: usize,
    /// What it is, and what it is in the other rank.
    pub what: (String, String),
}

/// Whom the watcher tells that a rank does not run any more.
pub trait Others {
    /// Nobody has to wait for the rank.
    fn gone(&self, rank: Rank);
    /// Whether the rank has given others what only it could.
    fn is_needed(&self, rank: Rank) -> bool;
}

/// The watcher of a job with absent ranks.
#[derive(Debug)]
pub struct Scout<O> {
    size: u32,
    folder: PathBuf,
    others: O,
    /// Ranks that run to their ends.
    anchors: BTreeSet<Rank>,
    /// Ranks that are compared with one of those.
    checks: BTreeSet<Rank>,
    sequences: BTreeMap<Rank, Sequence>,
    /// Files that belong to a rank, or to nobody.
    known: BTreeSet<PathBuf>,
    /// Which ranks to run has been decided, or is not asked.
    settled: bool,
    plan: Option<Vec<Rank>>,
    matched: BTreeMap<Rank, Rank>,
    differences: Vec<Difference>,
}

impl<O: Others> Scout<O> {
    /// Watches the ranks that write their traces into `folder`. With `settled` the ranks are given.
    pub fn new(
        size: u32,
        folder: &Path,
        others: O,
        (anchors, checks): (&[Rank], &[Rank]),
        settled: bool,
    ) -> Self {
        Self {
            size,
            folder: folder.to_owned(),
            others,
            anchors: anchors.iter().copied().collect(),
            checks: checks.iter().copied().filter(|rank| !anchors.contains(rank)).collect(),
            sequences: BTreeMap::new(),
            known: BTreeSet::new(),
            settled,
            plan: None,
            matched: BTreeMap::new(),
            differences: Vec::new(),
        }
    }

    /// The ranks that the job has to begin again with: those that run to their ends, and those that check.
    pub fn plan(&self) -> Option<(Vec<Rank>, Vec<Rank>)> {
        let must = self.plan.as_ref()?;
        let checks = plan::ends(self.size, &self.groups());
        let checks = self.checks.iter().copied().chain(checks).filter(|rank| !must.contains(rank));
        let checks: BTreeSet<Rank> = checks.collect();
        Some((must.clone(), checks.into_iter().collect()))
    }

    /// Looks a last time. Takes the unfinished traces of stopped ranks away: what they would have recorded is in those
    /// that they equal.
    pub fn conclude(&mut self) -> Findings {
        self.follow();
        // Checks that ran to their ends are compared all the same.
        for rank in self.checks.clone() {
            if !self.matched.contains_key(&rank) {
                self.compare(rank, 0);
            }
        }
        for rank in self.matched.keys() {
            if let Some(sequence) = self.sequences.get(rank).filter(|sequence| !sequence.ended) {
                let _ = std::fs::rename(&sequence.path, sequence.path.with_extension(crate::traces::CHECKED));
            }
        }
        Findings {
            checked: self.matched.iter().map(|(rank, like)| (*rank, *like)).collect(),
            differences: self.differences.clone(),
        }
    }

    fn groups(&self) -> Vec<plan::Group> {
        self.sequences.values().flat_map(Sequence::groups).collect()
    }

    /// Reads what the ranks have written since the last look.
    fn follow(&mut self) {
        for path in crate::traces::worker_files(&self.folder).unwrap_or_default() {
            if self.known.contains(&path) {
                continue;
            }
            match Sequence::open(&path) {
                sequence::Opened::Rank(rank, sequence) => {
                    self.known.insert(path);
                    self.sequences.insert(rank, *sequence);
                }
                sequence::Opened::NoRank => {
                    self.known.insert(path);
                }
                sequence::Opened::NotYet => {}
            }
        }
        for sequence in self.sequences.values_mut() {
            sequence.follow();
        }
    }

    /// Compares a check with its like, once both have made `steps` steps. Whether it is the same.
    fn compare(&mut self, rank: Rank, steps: usize) -> bool {
        let mesh_groups: Vec<Vec<u32>> = self.groups().into_iter().map(|group| group.members).collect();
        let mesh = Mesh::of(self.size, mesh_groups.iter().map(Vec::as_slice));
        // Stages differ, so a check is compared with its own stage.
        let pairs: Vec<(u32, u32)> = self.sequences.values().flat_map(Sequence::pairs).collect();
        let splits = |axis: &trompe_base::RankPattern| {
            pairs.iter().any(|(own, other)| axis.place(Rank(*own)) != axis.place(Rank(*other)))
        };
        let weights: Vec<u64> =
            mesh.axes().iter().map(|axis| if splits(axis) { 1 << 16 } else { 1 }).collect();
        let anchors: Vec<Rank> = self.anchors.iter().copied().collect();
        let Some(like) = mesh.most_like(rank, &anchors, &weights) else { return false };
        let (Some(own), Some(other)) = (self.sequences.get(&rank), self.sequences.get(&like)) else {
            return false;
        };
        let ready = |sequence: &Sequence| sequence.steps >= steps || sequence.ended;
        if !ready(own) || !ready(other) {
            return false;
        }
        match own.first_difference(other) {
            None => {
                self.matched.insert(rank, like);
                true
            }
            Some((operation, what)) => {
                self.differences.push(Difference { rank, like, operation, what });
                self.checks.remove(&rank);
                self.anchors.insert(rank);
                false
            }
        }
    }

    /// The ranks that must run, when they are known and others than those that run.
    fn missing(&self) -> Option<Vec<Rank>> {
        let pairs: BTreeSet<(u32, u32)> = self.sequences.values().flat_map(Sequence::pairs).collect();
        let mut must = plan::must_run(self.size, &self.groups(), &pairs, &self.anchors);
        let ends = plan::ends(self.size, &self.groups());
        let runs = |rank: &Rank| self.anchors.contains(rank) || self.checks.contains(rank);
        if must.iter().all(runs) && ends.iter().all(runs) {
            return None;
        }
        must.sort_unstable();
        Some(must)
    }
}

/// What was found of the ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Ranks that were compared and are the same as another.
    pub checked: Vec<(Rank, Rank)>,
    /// Ranks that are not what they were taken to be.
    pub differences: Vec<Difference>,
}

impl<O: Others> Watch for Scout<O> {
    fn look(&mut self, running: &[Rank]) -> Wish {
        self.follow();
        if !self.settled {
            // A rank without a trace has not begun.
            let has_stepped = |rank: &Rank| {
                self.sequences.get(rank).is_some_and(|sequence| sequence.steps > 0 || sequence.ended)
            };
            if !self.anchors.iter().all(has_stepped) {
                return Wish::GoOn;
            }
            self.settled = true;
            if let Some(must) = self.missing() {
                self.plan = Some(must);
                return Wish::StopAll;
            }
        }
        let mut stop = Vec::new();
        for rank in self.checks.clone() {
            let done = self.matched.contains_key(&rank) || !running.contains(&rank);
            if !done && self.compare(rank, STEPS) && !self.others.is_needed(rank) {
                stop.push(rank);
            }
        }
        if stop.is_empty() { Wish::GoOn } else { Wish::Stop(stop) }
    }

    fn gone(&mut self, rank: Rank) {
        self.others.gone(rank);
    }
}
