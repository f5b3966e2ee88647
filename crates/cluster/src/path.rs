//! The critical path of a step: the unbroken chain of work that ends when the step ends.
//!
//! From the end of the slowest rank's step the causes are followed backwards (see [`crate::log`]), over streams, hosts,
//! copy engines and other ranks, to the beginning of the step. Every moment of the step belongs to exactly one link of
//! the chain, so the links' times add up to the step, to the picosecond.

use std::collections::BTreeMap;

use trompe_base::{Duration, Rank};
use trompe_results::Kind;

use crate::log::{Cause, Entry, Log, NONE};
use crate::plan::LONGEST;
use crate::state::{Queued, RankState, State};

/// What a moment of the critical path was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathOwner {
    /// An operation of a template.
    Operation {
        /// Row of the job's templates.
        template: usize,
        /// Row of the template's operations.
        operation: u32,
        /// What it counts for.
        kind: Kind,
    },
    /// A collective on the wire, by the communicator slot of the template through which it was called.
    Collective {
        /// Row of the job's templates.
        template: usize,
        /// Communicator slot of the template.
        slot: u32,
        /// The operation.
        kind: trompe_trace::record::CollectiveKind,
    },
    /// The host, on its way to an event of this site.
    Host {
        /// Row of the job's templates.
        template: usize,
        /// Row of the template's sites.
        site: u32,
    },
    /// From the end of a launch call to the start of what it launched.
    Launch,
    /// From the end of what the host waited for to its return.
    Wake,
    /// What preceded the part of the run that was watched.
    Earlier,
}

/// The time on the path of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathShare {
    /// Who.
    pub owner: PathOwner,
    /// How long, in the step.
    pub time: Duration,
    /// In how many pieces.
    pub pieces: u64,
}

/// The critical path of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// The rank whose step it is.
    pub rank: Rank,
    /// The step, counted from the first one of the run.
    pub step: usize,
    /// How long the step took.
    pub time: Duration,
    /// Who carries it, longest first; adds up to `time`.
    pub shares: Vec<PathShare>,
    /// The ranks over which it leads, with the time on each, longest first.
    pub ranks: Vec<(Rank, Duration)>,
}

/// Finds the critical path of the step that was watched, on the `rank`-th replayed rank.
pub(crate) fn find(state: &State<'_>, rank: usize) -> Option<CriticalPath> {
    let step = state.shared.options.path?;
    let found = &state.ranks[rank];
    let marks = &found.segments.marks;
    let (begin, end) = (marks.get(step)?.at, marks.get(step + 1)?.at);
    let log = found.log.as_ref()?;
    let mut walk = Walk { state, begin, at: end, rank, owners: BTreeMap::new(), ranks: BTreeMap::new() };
    // The last operation of the step, or else its host.
    let last = log.entries.iter().rposition(|entry| entry.end == end && end > begin && entry.begun <= end);
    match last {
        Some(entry) => walk.follow(Cause::After(entry as u32)),
        None => {
            let end = found.template.boundaries.get(step + 1).copied().unwrap_or(0);
            let last = (0..end).rev().find(|&row| found.template.queues.of(row) == 0);
            let before = walk.host(found, log, last.unwrap_or(0), 0);
            walk.follow(before);
        }
    }
    walk.spend(PathOwner::Earlier, begin);
    let mut shares: Vec<PathShare> = walk
        .owners
        .iter()
        .map(|(&owner, &(time, pieces))| PathShare { owner, time: Duration::from_picos(time), pieces })
        .collect();
    shares.sort_by_key(|share| (std::cmp::Reverse(share.time), share.owner));
    let name = |(&rank, &time): (&usize, &u64)| (state.ranks[rank].plan.rank, Duration::from_picos(time));
    let mut ranks: Vec<(Rank, Duration)> = walk.ranks.iter().map(name).collect();
    ranks.sort_by_key(|&(rank, time)| (std::cmp::Reverse(time), rank));
    let time = Duration::from_picos(end - begin);
    debug_assert_eq!(shares.iter().map(|share| share.time).sum::<Duration>(), time);
    Some(CriticalPath { rank: found.plan.rank, step, time, shares, ranks })
}

/// Where the walk back has come to.
struct Walk<'a, 'b> {
    state: &'b State<'a>,
    begin: u64,
    at: u64,
    rank: usize,
    owners: BTreeMap<PathOwner, (u64, u64)>,
    ranks: BTreeMap<usize, u64>,
}

impl<'a> Walk<'a, '_> {
    /// The time from `from` to where the walk is belongs to `owner`.
    fn spend(&mut self, owner: PathOwner, from: u64) {
        let from = from.max(self.begin);
        if from < self.at {
            let time = self.at - from;
            let entry = self.owners.entry(owner).or_default();
            *entry = (entry.0 + time, entry.1 + 1);
            *self.ranks.entry(self.rank).or_default() += time;
            self.at = from;
        }
    }

    fn follow(&mut self, mut cause: Cause) {
        // Causes lie in the past, or at the same time on a finite chain; the bound is for a log that is damaged.
        let mut left = LONGEST;
        while self.at > self.begin && left > 0 {
            left -= 1;
            let state = self.state;
            let rank: &RankState<'a> = &state.ranks[self.rank];
            let Some(log) = &rank.log else { return };
            cause = match cause {
                Cause::Unknown => return,
                Cause::After(entry) => match log.entries.get(entry as usize) {
                    Some(found) => self.through(rank, *found),
                    None => return,
                },
                Cause::Host(row) => self.host(rank, log, row, state.shared.launch_latency),
                Cause::Given(row) => self.host(rank, log, row, 0),
            };
        }
    }

    /// Goes back over an operation; what made it begin.
    fn through(&mut self, rank: &RankState<'a>, entry: Entry) -> Cause {
        let template = rank.plan.template;
        let owner = match entry.what {
            Queued::Operation { operation, kind } => PathOwner::Operation { template, operation, kind },
            Queued::Collective { first, .. } => {
                let call = &rank.template.calls[first as usize].call;
                PathOwner::Collective { template, slot: call.communicator, kind: call.kind }
            }
            _ => PathOwner::Earlier,
        };
        self.spend(owner, entry.begun);
        if !matches!(entry.what, Queued::Collective { .. }) {
            return entry.why;
        }
        let (other, number) = entry.last;
        if other == NONE {
            return if entry.begun == entry.arrived { entry.why } else { Cause::Unknown };
        }
        self.rank = other as usize;
        let log = self.state.ranks[self.rank].log.as_ref();
        log.and_then(|log| log.entries.get(number as usize)).map_or(Cause::Unknown, |last| last.why)
    }

    /// Goes back over the host's way to an event that took effect `latency` later; what it had waited for.
    fn host(&mut self, rank: &RankState<'a>, log: &Log, row: u32, latency: u64) -> Cause {
        let shared = &self.state.shared;
        let queue = rank.template.queues.of(row);
        let last = rank.template.queues.position(row);
        let Some(pauses) = log.pauses.get(usize::from(queue)) else { return Cause::Unknown };
        let after = pauses.partition_point(|pause| pause.next as usize <= last);
        let pause = after.checked_sub(1).map(|i| pauses[i]);
        let launched = self.at.saturating_sub(latency);
        self.spend(PathOwner::Launch, launched);
        let first = pause.map_or(0, |pause| pause.next);
        for place in (first as usize..=last).rev() {
            if self.at <= self.begin {
                return Cause::Unknown;
            }
            let charged = pause.is_some_and(|pause| pause.charged && pause.next as usize == place);
            let Some(act) = rank.template.row(queue, place) else { continue };
            if !charged {
                let delay = rank.chance.host(rank.template.acts[act].delay, act as u32);
                let events = &shared.trace.templates[rank.plan.template].events;
                let owner = PathOwner::Host { template: rank.plan.template, site: events[act].site };
                self.spend(owner, self.at.saturating_sub(delay));
            }
        }
        let Some(pause) = pause else { return Cause::Unknown };
        self.spend(PathOwner::Wake, pause.at);
        pause.why
    }
}
