//! Host threads: the dispatch queues of a rank beside its first one.
//!
//! The rule. A process's calls come from several threads. Most of them take turns: whoever calls `backward()` waits for
//! the autograd engine's thread, which waits for the next call; together they are *one* dispatch queue, whose order is
//! the recorded one, and nothing in it overlaps. A thread of the program's own (one that writes a checkpoint, or brings
//! the next batch to the device) is a queue of its own: while it waits for the device, nobody else does. What such
//! threads owe each other is recorded where it happens (a thread started or joined, a queue's item, an event, a future's
//! result): [`What::Give`] on one side, [`What::Take`] on the other, and the taker goes on no earlier than the giver gave.
//! A take counts whether or not the recorded run had to wait there; in the replay it may have to.
//!
//! Host times of a thread are as recorded, the interpreter's lock included: where Python's threads kept each other from
//! computing in the recorded run, that is in the times between their calls.
//!
//! How it is replayed. With one queue the host may run ahead of the device, since it alone decides what is put where in
//! which order (see [`crate::state`]). With several, the order in which their calls reach the streams is that of their
//! clocks, so each call is made when the rank's own time comes to it; of two calls at one time that of the lower queue
//! is first, and calls come before the ends of operations. A rank with one queue takes the short way, with the same result
//! as this one.
//!
//! Steps are those of queue 0. What other queues launch counts for the step in which it was launched, by kind, but a step
//! does not wait for its end: only for what queue 0 launched, and thereby for whatever that had to wait for.

use crate::log::Cause;
use crate::plan::What;
use crate::state::{HostState, HostWait, NEVER, RankState, Shared};

impl<'a> RankState<'a> {
    /// Does something with `queue` in the place of the first one.
    pub(crate) fn as_queue(&mut self, queue: u16, action: impl FnOnce(&mut Self)) {
        let Some(row) = usize::from(queue).checked_sub(1) else { return action(self) };
        std::mem::swap(&mut self.host, &mut self.threads[row]);
        action(self);
        std::mem::swap(&mut self.host, &mut self.threads[row]);
    }

    /// Does something with each queue in the place of the first one.
    pub(crate) fn each_queue(&mut self, mut action: impl FnMut(&mut Self)) {
        for queue in 0..=self.threads.len() {
            self.as_queue(queue as u16, &mut action);
        }
    }

    /// All queues.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &HostState> {
        std::iter::once(&self.host).chain(&self.threads)
    }

    /// The next call of a queue and its time, of those that need no more than time to pass; only with several queues.
    pub(crate) fn next_call(&self) -> Option<(u64, u16)> {
        let due = self.queues().filter(|host| host.at != NEVER);
        due.map(|host| (host.at, host.queue)).min()
    }

    /// Finds out when the queue makes its next call, if it waits for nothing.
    pub(crate) fn plan_call(&mut self, shared: &mut Shared<'a>) {
        if self.host.wait != HostWait::Nothing {
            return;
        }
        let row = self.template.row(self.host.queue, self.host.next);
        if self.host.queue == 0 {
            self.pass_boundaries(row.unwrap_or(self.template.acts.len()));
        }
        let Some(row) = row else {
            self.host.wait = HostWait::Finished;
            return;
        };
        self.charge(row, shared);
        self.host.at = self.host.time;
    }

    /// Makes the queue's next call, whose time it is.
    pub(crate) fn make_call(&mut self, shared: &mut Shared<'a>) {
        self.host.at = NEVER;
        let Some(row) = self.template.row(self.host.queue, self.host.next) else { return };
        let what = self.template.acts[row].what;
        if self.act(row as u32, what, shared) {
            self.host.charged = false;
            self.host.next += 1;
            self.plan_call(shared);
        }
    }

    /// Hands something over to whoever waits for it.
    pub(crate) fn give(&mut self, token: u32, row: u32, shared: &mut Shared<'a>) {
        self.given[token as usize] = true;
        self.each_queue(|rank| {
            if rank.host.wait == HostWait::Token(token) {
                rank.resume_host(shared.hand_over_latency, Cause::Given(row), shared);
            }
        });
    }

    /// Waits until something is handed over.
    pub(crate) fn take(&mut self, token: u32) {
        if !self.given[token as usize] {
            self.host.wait = HostWait::Token(token);
            self.host.wait_since = self.host.time;
        }
    }
}

/// The host program's queues of a template, and what they owe each other.
#[derive(Debug, Default, Clone)]
pub(crate) struct Queues {
    /// By queue the rows of its acts, ascending; empty when there is only one queue.
    programs: Vec<Vec<u32>>,
    /// By act its queue.
    of: Vec<u16>,
    /// Number of hand-overs.
    pub(crate) tokens: usize,
}

impl Queues {
    /// The queues of acts that belong to these.
    pub(crate) fn new(of: Vec<u16>, tokens: usize) -> Self {
        let mut programs = vec![Vec::new(); of.iter().max().map_or(0, |&last| usize::from(last) + 1)];
        for (row, &queue) in of.iter().enumerate() {
            programs[usize::from(queue)].push(row as u32);
        }
        Self { programs, of, tokens }
    }

    /// Their number.
    pub(crate) fn count(&self) -> usize {
        self.programs.len().max(1)
    }

    /// The queue of an act.
    pub(crate) fn of(&self, row: u32) -> u16 {
        self.of.get(row as usize).copied().unwrap_or(0)
    }

    /// The rows of a queue's acts; `None` when there is only one queue, whose acts are all there are.
    pub(crate) fn program(&self, queue: u16) -> Option<&[u32]> {
        self.programs.get(usize::from(queue)).map(Vec::as_slice)
    }

    /// How many acts of the queue of `row` come before it.
    pub(crate) fn position(&self, row: u32) -> usize {
        match self.program(self.of(row)) {
            Some(program) => program.partition_point(|&other| other < row),
            None => row as usize,
        }
    }
}

impl crate::plan::TemplatePlan {
    /// The act at a place in a queue's program.
    pub(crate) fn row(&self, queue: u16, position: usize) -> Option<usize> {
        match self.queues.program(queue) {
            Some(program) => program.get(position).map(|&row| row as usize),
            None => (position < self.acts.len()).then_some(position),
        }
    }
}

/// What a hand-over is when there is nobody to hand over to.
pub(crate) const fn alone(what: What) -> What {
    match what {
        What::Give { .. } | What::Take { .. } => What::Host,
        other => other,
    }
}
