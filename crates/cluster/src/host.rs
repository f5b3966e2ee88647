//! The host of a rank: runs its program ahead of the device until it has to wait.

use trompe_results::Kind;

use crate::log::{Cause, HostPause};
use crate::plan::{StreamOrder, What};
use crate::recorder::HostWork;
use crate::state::{Actor, HostWait, Item, Queued, RankState, Running, Shared};

impl<'a> RankState<'a> {
    /// Runs the program up to its next wait.
    pub(crate) fn run_host(&mut self, shared: &mut Shared<'a>) {
        let template = self.template;
        while self.host.wait == HostWait::Nothing {
            let row = self.host.next;
            self.pass_boundaries(row);
            let Some(&act) = template.acts.get(row) else {
                self.host.wait = HostWait::Finished;
                return;
            };
            self.charge(row, shared);
            if !self.act(row as u32, act.what, shared) {
                return;
            }
            self.host.charged = false;
            self.host.next += 1;
        }
    }

    /// Lets the time before the act in `row` pass, once.
    pub(crate) fn charge(&mut self, row: usize, shared: &mut Shared<'a>) {
        if std::mem::replace(&mut self.host.charged, true) {
            return;
        }
        let delay = self.chance.host(self.template.acts[row].delay, row as u32);
        let segment = self.segments.current();
        if self.host.queue == 0 {
            self.segments.work[segment].host += delay;
        }
        let start = self.host.time;
        self.host.time += delay;
        shared.recorder.host(self.index, segment, row, (start, start + delay));
        if let Some(times) = &mut self.host_times {
            times[row] = start + delay;
        }
    }

    pub(crate) fn pass_boundaries(&mut self, row: usize) {
        let boundaries = &self.template.boundaries;
        while boundaries.get(self.segments.current()).is_some_and(|&boundary| boundary as usize <= row) {
            self.segments.pass(self.host.time);
            self.segments.close(self.now, &mut self.account);
        }
    }

    /// Does one thing; false when the host must wait before it.
    pub(crate) fn act(&mut self, row: u32, what: What, shared: &mut Shared<'a>) -> bool {
        match what {
            What::Host => {}
            What::Give { token } => self.give(token, row, shared),
            What::Take { token } => self.take(token),
            What::Enqueue { stream, operation, kind, blocking } => {
                if !self.has_room(stream, shared) {
                    return false;
                }
                self.enqueue(stream, row, Queued::Operation { operation, kind }, shared);
                if blocking {
                    self.synchronize(stream);
                }
            }
            What::Collective { stream, first, count } => {
                if !self.has_room(stream, shared) {
                    return false;
                }
                self.enqueue(stream, row, Queued::Collective { first, count }, shared);
            }
            What::Record { stream, slot } => self.enqueue(stream, row, Queued::Record { slot }, shared),
            // Also when the recording is done already: what is put on a stream must not depend on how far ahead of
            // the device the host happens to be.
            What::Wait { stream, slot } => self.enqueue(stream, row, Queued::WaitSlot { slot }, shared),
            What::SynchronizeSlot { slot } => {
                if !self.slot_done(slot) {
                    self.host.wait = HostWait::Slot(slot);
                    self.host.wait_since = self.host.time;
                }
            }
            What::SynchronizeStream { stream } => {
                self.synchronize(stream);
                if let StreamOrder::Legacy(others) = &self.template.streams[stream as usize].order {
                    for &other in others {
                        self.synchronize(other);
                    }
                }
            }
            What::SynchronizeDevice { device } => {
                for (local, stream) in self.template.streams.iter().enumerate() {
                    if stream.device == device {
                        self.synchronize(local as u16);
                    }
                }
            }
            What::Graph { stream, first, count } => {
                if !self.has_room(stream, shared) {
                    return false;
                }
                for i in first..first + count {
                    let (operation, kind): (u32, Kind) = self.template.graph_operations[i as usize];
                    self.enqueue(stream, row, Queued::Operation { operation, kind }, shared);
                }
            }
        }
        true
    }

    /// Whether a stream's launch queue has room; otherwise the host waits for it.
    fn has_room(&mut self, stream: u16, shared: &Shared<'a>) -> bool {
        let state = &self.streams[stream as usize];
        if state.enqueued - state.completed < shared.options.queue_depth {
            return true;
        }
        self.host.wait = HostWait::Room(stream);
        self.host.wait_since = self.host.time;
        false
    }

    /// Lets the host wait for everything on a stream.
    fn synchronize(&mut self, stream: u16) {
        let state = &self.streams[stream as usize];
        if state.completed < state.enqueued {
            self.host.targets.push((stream, state.enqueued));
            self.host.wait = HostWait::Targets;
            self.host.wait_since = self.host.time;
        }
    }

    /// Lets the host go on if all that it waits for is done now, the last of it because of `why`.
    pub(crate) fn targets_reached(&mut self, why: Cause, shared: &mut Shared<'a>) {
        let streams = &self.streams;
        self.host.targets.retain(|&(stream, target)| streams[stream as usize].completed < target);
        if self.host.targets.is_empty() {
            self.resume_host(shared.wake_latency, why, shared);
        }
    }

    /// Ends the host's wait for something that happened now, because of `why`, and that it learns `latency` later.
    pub(crate) fn resume_host(&mut self, latency: u64, why: Cause, shared: &mut Shared<'a>) {
        let now = self.now;
        let host = &mut self.host;
        let (queue, wait) = (host.queue, std::mem::take(&mut host.wait));
        if now > host.time {
            host.time = now + latency;
            if let Some(log) = &mut self.log {
                let (next, charged) = (host.next as u32, host.charged);
                log.pauses[usize::from(queue)].push(HostPause { next, charged, at: now, why });
            }
            let what = match wait {
                HostWait::Token(_) => HostWork::Thread(queue),
                _ => HostWork::Device(queue),
            };
            let time = (host.wait_since, host.time);
            shared.recorder.host_wait(self.index, self.segments.current(), what, time);
        }
        self.work.push(Actor::Host(queue));
    }

    /// Puts something on a stream, behind what the default-stream rules put before it.
    fn enqueue(&mut self, stream: u16, row: u32, what: Queued, shared: &mut Shared<'a>) {
        match &self.template.streams[stream as usize].order {
            StreamOrder::Free => {}
            StreamOrder::Blocking(legacy) => {
                let state = &self.streams[*legacy as usize];
                let (target, done) = (state.enqueued, state.completed);
                let told = std::mem::replace(&mut self.streams[stream as usize].after_legacy, target);
                if target > done && target > told {
                    self.push(stream, row, Queued::WaitStream { stream: *legacy, target }, shared);
                }
            }
            StreamOrder::Legacy(others) => {
                for &other in others {
                    let blocking = &mut self.streams[other as usize];
                    let (target, done) = (blocking.enqueued, blocking.completed);
                    let told = std::mem::replace(&mut blocking.before_legacy, target);
                    if target > done && target > told {
                        self.push(stream, row, Queued::WaitStream { stream: other, target }, shared);
                    }
                }
            }
        }
        self.push(stream, row, what, shared);
    }

    fn push(&mut self, stream: u16, row: u32, what: Queued, shared: &mut Shared<'a>) {
        let ready = self.host.time + shared.launch_latency;
        let ends = self.host.queue == 0;
        if ends {
            self.segments.launched();
        }
        let segment = self.segments.current();
        let state = &mut self.streams[stream as usize];
        let idle = state.queue.is_empty() && matches!(state.running, Running::Nothing);
        state.queue.push_back(Item::new((ready, row, what), segment, ends));
        state.enqueued += 1;
        if idle {
            if ready > self.now {
                self.at[stream as usize] = ready;
            } else {
                self.start_next(stream, shared);
            }
        }
    }
}
