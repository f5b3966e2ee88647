//! Streams: first in, first out; one operation at a time each.

use trompe_base::SimTime;
use trompe_engine::Scheduler;
use trompe_results::Kind;

use crate::state::{Actor, Item, Queued, Running, State};

impl State<'_> {
    /// The stream's engine event: its operation has ended, or its next item is ready.
    pub(crate) fn on_alarm(&mut self, stream: u32, scheduler: &mut Scheduler) {
        self.streams[stream as usize].alarm = false;
        self.finish(stream, scheduler);
        self.work.push(Actor::Stream(stream));
        self.work(scheduler);
    }

    /// Starts whatever the stream can start.
    pub(crate) fn advance(&mut self, stream: u32, scheduler: &mut Scheduler) {
        let now = scheduler.now().as_picos();
        loop {
            let state = &mut self.streams[stream as usize];
            if state.blocked || !matches!(state.running, Running::Nothing) {
                return;
            }
            let Some(&item) = state.queue.front() else { return };
            if item.ready > now {
                self.set_alarm(stream, item.ready, scheduler);
                return;
            }
            let rank = state.rank;
            match item.what {
                Queued::WaitSlot { slot } if !self.slot_done(rank, slot) => {
                    return self.wait_for_slot(stream, slot);
                }
                Queued::WaitStream { stream: other, target }
                    if self.streams[other as usize].completed < target =>
                {
                    return self.wait_for_stream(stream, other, target);
                }
                _ => {}
            }
            self.streams[stream as usize].queue.pop_front();
            match item.what {
                Queued::WaitSlot { .. } | Queued::WaitStream { .. } => {
                    self.completed(stream, item.segment, now)
                }
                Queued::Record { slot } => {
                    self.record(rank, slot, now);
                    self.completed(stream, item.segment, now);
                }
                Queued::Operation { operation, .. } => self.start(stream, item, operation, scheduler),
                Queued::Collective { first, count } => {
                    self.arrive(stream, item, first..first + count, scheduler)
                }
            }
        }
    }

    /// Starts an operation, or queues it at its copy engine.
    fn start(&mut self, stream: u32, item: Item, operation: u32, scheduler: &mut Scheduler) {
        let rank = self.streams[stream as usize].rank;
        if let Some(engine) = self.engine_of(stream, operation) {
            let engine = &mut self.ranks[rank as usize].engines[engine];
            if engine.busy {
                engine.waiting.push_back(stream);
                self.streams[stream as usize].running = Running::CopyQueued { item };
                return;
            }
            engine.busy = true;
        }
        self.run(stream, item, operation, scheduler);
    }

    fn run(&mut self, stream: u32, item: Item, operation: u32, scheduler: &mut Scheduler) {
        let rank = self.streams[stream as usize].rank;
        let now = scheduler.now().as_picos();
        let duration = self.template(rank).durations[operation as usize];
        self.ranks[rank as usize].account.begin(kind(item), now);
        self.streams[stream as usize].running = Running::Operation { item, start: now };
        self.set_alarm(stream, now + duration, scheduler);
    }

    /// Ends the running operation, if one runs; its end is now.
    pub(crate) fn finish(&mut self, stream: u32, scheduler: &mut Scheduler) {
        let now = scheduler.now().as_picos();
        let state = &mut self.streams[stream as usize];
        let (rank_id, local) = (state.rank, state.local);
        let running = std::mem::replace(&mut state.running, Running::Nothing);
        let rank = &mut self.ranks[rank_id as usize];
        match running {
            Running::Nothing => {}
            Running::Operation { item, start } => {
                let kind = kind(item);
                rank.account.end(kind, now);
                rank.segments.count(item.segment, kind, now - start);
                self.recorder.device(rank_id, local, item, (start, now));
                self.free_engine(stream, item, scheduler);
                self.completed(stream, item.segment, now);
            }
            Running::Collective { item, arrived, transfer, exposed_before, .. } => {
                rank.account.end(Kind::Communication, now);
                rank.segments.count(item.segment, Kind::Communication, now - transfer);
                let exposed = rank.account.at(now).of(Kind::Communication).as_picos() - exposed_before;
                self.count_group(rank_id, item, now - transfer, exposed);
                self.recorder.collective(rank_id, local, item, (arrived, transfer, now));
                self.completed(stream, item.segment, now);
            }
            Running::CopyQueued { .. } => self.streams[stream as usize].running = running,
        }
    }

    /// Gives the copy engine of an ended operation to the next copy.
    fn free_engine(&mut self, stream: u32, item: Item, scheduler: &mut Scheduler) {
        let Queued::Operation { operation, .. } = item.what else { return };
        let Some(engine) = self.engine_of(stream, operation) else { return };
        let rank = self.streams[stream as usize].rank;
        let engine = &mut self.ranks[rank as usize].engines[engine];
        let Some(next) = engine.waiting.pop_front() else {
            engine.busy = false;
            return;
        };
        let Running::CopyQueued { item } = self.streams[next as usize].running else {
            unreachable!("only queued copies wait for an engine")
        };
        let Queued::Operation { operation, .. } = item.what else {
            unreachable!("only operations are copies")
        };
        self.run(next, item, operation, scheduler);
    }

    /// The copy engine that an operation needs: an index into the rank's engines.
    fn engine_of(&self, stream: u32, operation: u32) -> Option<usize> {
        let state = &self.streams[stream as usize];
        let template = self.template(state.rank);
        let direction = template.copies[operation as usize]?;
        Some(template.streams[state.local as usize].device as usize * 2 + direction as usize)
    }

    /// Lets the stream's engine event fire at `at`, unless it is pending already.
    pub(crate) fn set_alarm(&mut self, stream: u32, at: u64, scheduler: &mut Scheduler) {
        let state = &mut self.streams[stream as usize];
        if std::mem::replace(&mut state.alarm, true) {
            return;
        }
        let event = state.event.expect("every stream is registered before the run");
        scheduler
            .schedule_at(event, SimTime::from_picos(at))
            .expect("all events of a replay are of one group");
    }
}

/// The kind of a queued operation.
fn kind(item: Item) -> Kind {
    match item.what {
        Queued::Operation { kind, .. } => kind,
        _ => Kind::Communication,
    }
}
