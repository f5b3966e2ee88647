//! Which threads of a process are dispatch queues of their own.
//!
//! Threads that put work on a device are either those that take turns (the program and the autograd engine's threads,
//! which wait for each other inside `backward()`), or go their own way. The latter are threads that the program made:
//! what they hand to each other is recorded ([`Record::Give`], [`Record::Take`]), and a thread that hands anything to,
//! or takes anything from, another one that works is a queue. Where nothing of the kind was recorded (a program without
//! Python, a thread from before PyTorch was imported) all threads take turns in the recorded order.
//!
//! The first queue is the program's: of those that hand over the one that makes more than half of the launches, or else
//! the one that was there first. Threads that never use a device (data loaders, loggers, dispatchers of thread pools) have
//! no clock here. Waiting for them is part of the host's own time; but what they give counts as given by those from whom
//! they had taken something before.

use std::collections::{BTreeMap, BTreeSet};

use trompe_trace::job::{Action, HostEvent};
use trompe_trace::queues::DispatchQueues;
use trompe_trace::reader::Entry;
use trompe_trace::record::Record;

use crate::walk::enqueues;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// Threads that put work on a device.
    working: BTreeSet<u32>,
    /// What is handed over between them.
    tokens: BTreeSet<u64>,
    /// By token and taker: what that was given by.
    sources: BTreeMap<(u64, u32), Vec<u64>>,
    /// The queues of those that hand over.
    queues: BTreeMap<u32, usize>,
    /// The thread of the first queue, when there are several.
    pub first: Option<u32>,
}

impl Threads {
    /// Finds the threads of a process; `entries` are in order of time.
    pub(crate) fn of(entries: &[Entry<'_>]) -> Self {
        let mut launches: BTreeMap<u32, usize> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| enqueues(&entry.record)) {
            *launches.entry(entry.thread).or_default() += 1;
        }
        let mut found = Self { working: launches.keys().copied().collect(), ..Self::default() };
        // By token the threads that work from which it comes, each with the token that it gave.
        let mut given: BTreeMap<u64, Vec<(u32, u64)>> = BTreeMap::new();
        // The same for what other threads have taken, the latest of each.
        let mut held: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        let mut over: BTreeSet<u32> = BTreeSet::new();
        for entry in entries {
            let (thread, works) = (entry.thread, found.works(entry.thread));
            match entry.record {
                Record::Give { token } if works => {
                    given.insert(token, vec![(thread, token)]);
                }
                Record::Give { token } => {
                    let held = held.get(&thread).into_iter().flatten();
                    given.insert(token, held.map(|(giver, token)| (*giver, *token)).collect());
                }
                Record::Take { token } => {
                    let from = given.get(&token).into_iter().flatten().copied();
                    if !works {
                        held.entry(thread).or_default().extend(from);
                        continue;
                    }
                    for (giver, source) in from.filter(|(giver, _)| *giver != thread) {
                        found.tokens.insert(source);
                        found.sources.entry((token, thread)).or_default().push(source);
                        over.extend([giver, thread]);
                    }
                }
                _ => {}
            }
        }
        let all: usize = over.iter().map(|thread| launches[thread]).sum();
        let most = over.iter().copied().find(|thread| 2 * launches[thread] > all);
        let earliest = || entries.iter().map(|entry| entry.thread).find(|thread| over.contains(thread));
        found.first = most.or_else(earliest);
        let others = over.iter().filter(|thread| Some(**thread) != found.first);
        found.queues = others.enumerate().map(|(number, thread)| (*thread, number + 1)).collect();
        found
    }

    /// Whether the thread puts work on a device.
    pub(crate) fn works(&self, thread: u32) -> bool {
        self.working.contains(&thread)
    }

    /// The queue that a thread belongs to.
    pub(crate) fn queue(&self, thread: u32) -> usize {
        self.queues.get(&thread).copied().unwrap_or(0)
    }

    /// Number of queues.
    pub(crate) fn count(&self) -> usize {
        self.queues.len() + 1
    }

    /// Whether a record says that something is handed over that does not concern us.
    pub(crate) fn passes_over(&self, entry: &Entry<'_>) -> bool {
        match entry.record {
            Record::Give { token } => !self.works(entry.thread) || !self.tokens.contains(&token),
            Record::Take { token } => self.sources(token, entry.thread).is_empty(),
            _ => false,
        }
    }

    /// What a thread takes with a token.
    pub(crate) fn sources(&self, token: u64, thread: u32) -> &[u64] {
        self.sources.get(&(token, thread)).map_or(&[], Vec::as_slice)
    }
}

/// By event whether it is one of the program's own that do something: those of other queues come when they like, and
/// what is handed over is no work. `None` when that leaves nothing out.
pub(crate) fn of_program(events: &[HostEvent]) -> Option<Vec<bool>> {
    let queues = DispatchQueues::of(events);
    let own = |event: &HostEvent| {
        queues.queue(event.thread) == 0 && !matches!(event.action, Action::Give { .. } | Action::Take { .. })
    };
    (!queues.is_single()).then(|| events.iter().map(own).collect())
}
