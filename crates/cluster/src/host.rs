//! The host of a rank: runs its program ahead of the device until it has to wait.

use trompe_engine::Scheduler;
use trompe_results::Kind;

use crate::plan::{StreamOrder, What};
use crate::state::{Actor, HostWait, Item, Queued, Running, State};

impl State<'_> {
    /// Runs the program of `rank` up to its next wait.
    pub(crate) fn run_host(&mut self, rank: u32, scheduler: &mut Scheduler) {
        let template = self.template(rank);
        let now = scheduler.now().as_picos();
        loop {
            let host = &mut self.ranks[rank as usize].host;
            if host.wait != HostWait::Nothing {
                return;
            }
            let row = host.next;
            self.pass_boundaries(rank, row, now);
            let Some(act) = template.acts.get(row).copied() else {
                self.ranks[rank as usize].host.wait = HostWait::Finished;
                return;
            };
            let state = &mut self.ranks[rank as usize];
            if !std::mem::replace(&mut state.host.charged, true) {
                let segment = state.segments.current();
                state.segments.work[segment].host += act.delay;
                let start = state.host.time;
                state.host.time += act.delay;
                self.recorder.host(rank, segment, row, (start, start + act.delay));
            }
            if !self.act(rank, row as u32, act.what, scheduler) {
                return;
            }
            let host = &mut self.ranks[rank as usize].host;
            host.charged = false;
            host.next += 1;
        }
    }

    fn pass_boundaries(&mut self, rank: u32, row: usize, now: u64) {
        let boundaries = &self.template(rank).boundaries;
        let state = &mut self.ranks[rank as usize];
        while boundaries.get(state.segments.current()).is_some_and(|&boundary| boundary as usize <= row) {
            state.segments.pass(state.host.time);
            state.segments.close(now, &mut state.account);
        }
    }

    /// Does one thing; false when the host must wait before it.
    fn act(&mut self, rank: u32, row: u32, what: What, scheduler: &mut Scheduler) -> bool {
        let first_stream = self.ranks[rank as usize].first_stream;
        let global = |local: u16| first_stream + u32::from(local);
        match what {
            What::Host => {}
            What::Enqueue { stream, operation, kind, blocking } => {
                let stream = global(stream);
                if !self.has_room(rank, stream) {
                    return false;
                }
                self.enqueue(stream, row, Queued::Operation { operation, kind }, scheduler);
                if blocking {
                    self.synchronize(rank, stream..stream + 1);
                }
            }
            What::Collective { stream, first, count } => {
                let stream = global(stream);
                if !self.has_room(rank, stream) {
                    return false;
                }
                self.enqueue(stream, row, Queued::Collective { first, count }, scheduler);
            }
            What::Record { stream, slot } => {
                self.enqueue(global(stream), row, Queued::Record { slot }, scheduler);
            }
            What::Wait { stream, slot } => {
                // Also when the recording is done already: what is put on a stream must not depend on how far ahead
                // of the device the host happens to be.
                self.enqueue(global(stream), row, Queued::WaitSlot { slot }, scheduler);
            }
            What::SynchronizeSlot { slot } => {
                if !self.slot_done(rank, slot) {
                    let host = &mut self.ranks[rank as usize].host;
                    host.wait = HostWait::Slot(slot);
                    host.wait_since = host.time;
                }
            }
            What::SynchronizeStream { stream } => {
                self.synchronize(rank, global(stream)..global(stream) + 1);
                if let StreamOrder::Legacy(others) = &self.template(rank).streams[stream as usize].order {
                    for &other in others {
                        self.synchronize(rank, global(other)..global(other) + 1);
                    }
                }
            }
            What::SynchronizeDevice { device } => {
                for (local, stream) in self.template(rank).streams.iter().enumerate() {
                    if stream.device == device {
                        self.synchronize(rank, global(local as u16)..global(local as u16) + 1);
                    }
                }
            }
            What::Graph { stream, first, count } => {
                let stream = global(stream);
                if !self.has_room(rank, stream) {
                    return false;
                }
                for i in first..first + count {
                    let (operation, kind): (u32, Kind) = self.template(rank).graph_operations[i as usize];
                    self.enqueue(stream, row, Queued::Operation { operation, kind }, scheduler);
                }
            }
        }
        true
    }

    /// Whether a stream's launch queue has room; otherwise the host waits for it.
    fn has_room(&mut self, rank: u32, stream: u32) -> bool {
        let state = &self.streams[stream as usize];
        if state.enqueued - state.completed < self.options.queue_depth {
            return true;
        }
        let host = &mut self.ranks[rank as usize].host;
        host.wait = HostWait::Room(stream);
        host.wait_since = host.time;
        false
    }

    /// Lets the host wait for everything on these streams.
    fn synchronize(&mut self, rank: u32, streams: std::ops::Range<u32>) {
        for stream in streams {
            let state = &self.streams[stream as usize];
            if state.completed < state.enqueued {
                let host = &mut self.ranks[rank as usize].host;
                host.targets.push((stream, state.enqueued));
                host.wait = HostWait::Targets;
                host.wait_since = host.time;
            }
        }
    }

    /// Lets the host go on at `now` if all that it waits for is done.
    pub(crate) fn targets_reached(&mut self, rank: u32, now: u64) {
        let streams = &self.streams;
        let host = &mut self.ranks[rank as usize].host;
        host.targets.retain(|&(stream, target)| streams[stream as usize].completed < target);
        if host.targets.is_empty() {
            self.resume_host(rank, now, self.options.wake_latency.as_picos());
        }
    }

    /// Ends the host's wait for something that happened at `now` and that it learns `latency` later.
    pub(crate) fn resume_host(&mut self, rank: u32, now: u64, latency: u64) {
        let state = &mut self.ranks[rank as usize];
        let host = &mut state.host;
        host.wait = HostWait::Nothing;
        if now > host.time {
            host.time = now + latency;
            let segment = state.segments.current();
            self.recorder.host_wait(rank, segment, (host.wait_since, host.time));
        }
        self.work.push(Actor::Host(rank));
    }

    /// Puts something on a stream, behind what the default-stream rules put before it.
    fn enqueue(&mut self, stream: u32, row: u32, what: Queued, scheduler: &mut Scheduler) {
        let (rank, local) = {
            let state = &self.streams[stream as usize];
            (state.rank, state.local)
        };
        let first_stream = self.ranks[rank as usize].first_stream;
        match &self.template(rank).streams[local as usize].order {
            StreamOrder::Free => {}
            StreamOrder::Blocking(legacy) => {
                let legacy = first_stream + u32::from(*legacy);
                let target = self.streams[legacy as usize].enqueued;
                let done = self.streams[legacy as usize].completed;
                let told = std::mem::replace(&mut self.streams[stream as usize].after_legacy, target);
                if target > done && target > told {
                    self.push(stream, row, Queued::WaitStream { stream: legacy, target }, scheduler);
                }
            }
            StreamOrder::Legacy(others) => {
                for &other in others {
                    let other = first_stream + u32::from(other);
                    let blocking = &mut self.streams[other as usize];
                    let (target, done) = (blocking.enqueued, blocking.completed);
                    let told = std::mem::replace(&mut blocking.before_legacy, target);
                    if target > done && target > told {
                        self.push(stream, row, Queued::WaitStream { stream: other, target }, scheduler);
                    }
                }
            }
        }
        self.push(stream, row, what, scheduler);
    }

    fn push(&mut self, stream: u32, row: u32, what: Queued, scheduler: &mut Scheduler) {
        let state = &mut self.streams[stream as usize];
        let rank = &mut self.ranks[state.rank as usize];
        let ready = rank.host.time + self.options.launch_latency.as_picos();
        rank.segments.launched();
        let segment = rank.segments.current() as u32;
        state.queue.push_back(Item { ready, row, segment, what });
        state.enqueued += 1;
        if state.queue.len() == 1 && matches!(state.running, Running::Nothing) {
            if ready > scheduler.now().as_picos() {
                self.set_alarm(stream, ready, scheduler);
            } else {
                self.work.push(Actor::Stream(stream));
            }
        }
    }
}
