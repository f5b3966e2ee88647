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
//! sizes, copies, collectives with their groups and counts) and the most memory that was allocated; not addresses, not
//! times.
//!
//! The same job runs the same ranks every time: what a decision looks at ends with a step, however far the ranks have
//! come when it is taken, and one check is decided after the other.

mod plan;
mod sequence;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trompe_base::{Mesh, Rank};

use crate::launch::{Watch, Wish};
pub use plan::{MOST, lottery};
use sequence::Sequence;
pub use sequence::Unlike;

/// Equal operations before this step make two ranks equal: two whole ones.
const STEPS: usize = 3;
/// Groups that are made before this step tell which ranks to run.
const FIRST: usize = 1;

/// A check that turned out to be no copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The rank.
    pub rank: Rank,
    /// What it was taken to equal.
    pub like: Rank,
    /// The first thing that is another.
    pub what: Unlike,
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
    /// Checks are being compared.
    compares: bool,
    /// Checks that have been compared.
    decided: BTreeSet<Rank>,
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
            compares: false,
            decided: BTreeSet::new(),
            matched: BTreeMap::new(),
            differences: Vec::new(),
        }
    }

    /// The ranks that the job has to begin again with: those that run to their ends, and those that check.
    pub fn plan(&self) -> Option<(Vec<Rank>, Vec<Rank>)> {
        let must = self.plan.as_ref()?;
        let checks = plan::ends(self.size, &self.groups(FIRST));
        let checks = self.checks.iter().copied().chain(checks).filter(|rank| !must.contains(rank));
        let checks: BTreeSet<Rank> = checks.collect();
        Some((must.clone(), checks.into_iter().collect()))
    }

    /// Looks again after all ranks have ended: short ones may all have done so between two looks, and then which ranks
    /// to run is decided now. Whether the job has to begin again.
    pub fn is_undecided(&mut self) -> bool {
        self.follow_to_the_end();
        self.settle() == Some(Wish::StopAll)
    }

    /// Decides which ranks to run, once all have made a step; what follows for those that run, when it was decided now.
    fn settle(&mut self) -> Option<Wish> {
        if self.settled || !self.have_reached(FIRST) {
            return None;
        }
        self.settled = true;
        self.plan = self.missing();
        Some(if self.plan.is_some() { Wish::StopAll } else { Wish::GoOn })
    }

    /// Looks a last time. Takes the traces of ranks that equal others away: what they recorded, or would have, is in those.
    pub fn conclude(&mut self) -> Findings {
        self.follow_to_the_end();
        for rank in self.checks.clone() {
            if !self.decided.contains(&rank) {
                self.decide(rank);
            }
        }
        for rank in self.matched.keys() {
            let Some(sequence) = self.sequences.get(rank) else { continue };
            if !sequence.ended || !self.others.is_needed(*rank) {
                let _ = std::fs::rename(&sequence.path, sequence.path.with_extension(crate::traces::CHECKED));
            }
        }
        Findings {
            checked: self.matched.iter().map(|(rank, like)| (*rank, *like)).collect(),
            differences: self.differences.clone(),
        }
    }

    fn groups(&self, step: usize) -> Vec<plan::Group> {
        self.sequences.values().flat_map(|sequence| sequence.groups(step)).collect()
    }

    fn pairs(&self, step: usize) -> BTreeSet<(u32, u32)> {
        self.sequences.values().flat_map(|sequence| sequence.pairs(step)).collect()
    }

    /// Whether all ranks that run have come to a step, or to their ends.
    fn have_reached(&self, step: usize) -> bool {
        let mut all = self.anchors.iter().chain(&self.checks);
        // A rank without a trace has not begun.
        all.all(|rank| self.sequences.get(rank).is_some_and(|sequence| sequence.has_reached(step)))
    }

    /// Reads all that the ranks have written, once they have ended: a step counts as complete one look after it was read.
    fn follow_to_the_end(&mut self) {
        self.follow();
        self.follow();
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

    /// Compares a check with its like, once both have come far enough. Whether that was done.
    fn decide(&mut self, rank: Rank) -> bool {
        let mesh_groups: Vec<Vec<u32>> = self.groups(STEPS).into_iter().map(|group| group.members).collect();
        let mesh = Mesh::of(self.size, mesh_groups.iter().map(Vec::as_slice));
        // Stages differ, so a check is compared with its own stage.
        let pairs = self.pairs(STEPS);
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
        if !own.has_reached(STEPS) || !other.has_reached(STEPS) {
            return false;
        }
        self.decided.insert(rank);
        match own.difference(other, STEPS) {
            None => {
                self.matched.insert(rank, like);
            }
            Some(what) => {
                self.differences.push(Difference { rank, like, what });
                self.checks.remove(&rank);
                self.anchors.insert(rank);
            }
        }
        true
    }

    /// The ranks that must run, when they are known and others than those that run.
    fn missing(&self) -> Option<Vec<Rank>> {
        let groups = self.groups(FIRST);
        let mut must = plan::must_run(self.size, &groups, &self.pairs(FIRST), &self.anchors);
        let ends = plan::ends(self.size, &groups);
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
        if self.settle() == Some(Wish::StopAll) {
            return Wish::StopAll;
        }
        if !self.settled {
            return Wish::GoOn;
        }
        // All have told their groups when the first is compared.
        if self.checks.is_empty() || !self.compares && !self.have_reached(STEPS) {
            return Wish::GoOn;
        }
        self.compares = true;
        let mut stop = Vec::new();
        // One after the other, so that which differs does not depend on which is looked at first.
        for rank in self.checks.clone() {
            if self.decided.contains(&rank) {
                continue;
            }
            if !self.decide(rank) {
                break;
            }
            if self.matched.contains_key(&rank) && running.contains(&rank) && !self.others.is_needed(rank) {
                stop.push(rank);
            }
        }
        if stop.is_empty() { Wish::GoOn } else { Wish::Stop(stop) }
    }

    fn gone(&mut self, rank: Rank) {
        self.others.gone(rank);
    }
}

#[cfg(test)]
mod tests {
    use trompe_base::{DType, DeviceIndex, StreamId};
    use trompe_testkit::TraceBuilder;
    use trompe_trace::record::{Collective, CollectiveKind, Record};

    use super::*;

    struct Nobody;

    impl Others for Nobody {
        fn gone(&self, _: Rank) {}
        fn is_needed(&self, _: Rank) -> bool {
            false
        }
    }

    /// The whole trace of a rank that sends to another of its own pair.
    fn write(folder: &Path, rank: u32, pair: [u32; 2]) {
        let mut t = TraceBuilder::new(100 + rank);
        t.meta("environment", &format!(r#"{{"TROMPE_RANK": "{rank}"}}"#));
        let members: Vec<u8> = pair.iter().flat_map(|member| member.to_le_bytes()).collect();
        let place = u32::from(pair[1] == rank);
        let device = DeviceIndex(0);
        let identity = u64::from(pair[0]);
        t.record(&Record::Communicator { id: 1, identity, size: 2, rank: place, device, members: &members });
        let api = t.api("nccl/ncclSend/emulated");
        let collective = Collective {
            kind: CollectiveKind::Send,
            communicator: 1,
            sequence: 0,
            count: 1000,
            dtype: DType::F32,
            operator: 0,
            peer: 1 - place,
            group: 0,
        };
        t.record(&Record::Collective { api, stream: StreamId(0), collective });
        t.finish_to(&folder.join(format!("{rank}.trompe"))).unwrap();
    }

    #[test]
    fn ranks_that_have_all_ended_between_two_looks_still_tell_whom_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let cast = [Rank(0), Rank(3)];
        let new = |settled| Scout::new(4, folder.path(), Nobody, (&cast, &[]), settled);
        assert!(!new(false).is_undecided(), "nobody has begun");
        write(folder.path(), 0, [0, 2]);
        write(folder.path(), 3, [1, 3]);
        let mut scout = new(false);
        assert!(scout.is_undecided());
        let (must, _) = scout.plan().unwrap();
        assert!(must.len() > 2 && cast.iter().all(|rank| must.contains(rank)), "{must:?}");
        assert!(!scout.is_undecided(), "it is decided once");
        assert!(!new(true).is_undecided(), "the ranks are given");
    }
}
