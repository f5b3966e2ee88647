//! Streams: first in, first out; one operation at a time each.

use trompe_results::Kind;

use crate::contention::{Guest, speeds};
use crate::log::{Cause, NONE, Tail};
use crate::state::{Item, NEVER, Pace, Queued, RankState, Running, Shared, Underway};

impl<'a> RankState<'a> {
    /// Starts whatever the stream can start.
    pub(crate) fn start_next(&mut self, stream: u16, shared: &mut Shared<'a>) {
        let now = self.now;
        loop {
            let state = &mut self.streams[stream as usize];
            if state.blocked || !matches!(state.running, Running::Nothing) {
                return;
            }
            let Some(&item) = state.queue.front() else { return };
            if item.ready > now {
                self.at[stream as usize] = item.ready;
                return;
            }
            match item.what {
                Queued::WaitSlot { slot } if !self.slot_done(slot) => {
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
                Queued::Operation { operation, .. } => return self.start(stream, item, operation, shared),
                Queued::Collective { .. } => {
                    self.streams[stream as usize].running = Running::Arriving { item };
                    return self.arrivals.push(stream);
                }
                Queued::WaitSlot { .. } | Queued::WaitStream { .. } => {
                    if self.log.is_some() {
                        self.log_wait(stream, item);
                    }
                    self.completed(stream, item, shared);
                }
                Queued::Record { slot } => {
                    let why = self.why(stream, item);
                    self.streams[stream as usize].tail = Tail { at: now, why };
                    self.record(slot, why, shared);
                    self.completed(stream, item, shared);
                }
            }
        }
    }

    /// Why an item of `stream` gets its turn now.
    pub(crate) fn why(&self, stream: u16, item: Item) -> Cause {
        let tail = self.streams[stream as usize].tail;
        // Of two reasons at the same time the device's: it leads further back.
        if tail.at >= item.ready { tail.why } else { Cause::Host(item.row) }
    }

    /// A stream has waited for another one; from now on the other's reason is its own, if it came later.
    fn log_wait(&mut self, stream: u16, item: Item) {
        let other = match (item.what, &self.log) {
            (Queued::WaitSlot { slot }, Some(log)) => log.slot(slot),
            (Queued::WaitStream { stream, .. }, _) => self.streams[stream as usize].tail,
            _ => return,
        };
        let why = self.why(stream, item);
        let tail = &mut self.streams[stream as usize].tail;
        let at = tail.at.max(item.ready);
        *tail = if other.at > at { other } else { Tail { at, why } };
    }

    /// Starts an operation, or queues it at its copy engine.
    fn start(&mut self, stream: u16, item: Item, operation: u32, shared: &mut Shared<'a>) {
        let why = self.why(stream, item);
        if let Some(log) = &mut self.log {
            self.streams[stream as usize].entry = log.arrived(item, self.now, why);
        }
        if let Some(engine) = self.engine_of(stream, operation) {
            let engine = &mut self.engines[engine];
            if engine.busy {
                engine.waiting.push_back(stream);
                self.streams[stream as usize].running = Running::CopyQueued { item };
                return;
            }
            engine.busy = true;
        }
        self.run(stream, item, operation, shared);
    }

    fn run(&mut self, stream: u16, item: Item, operation: u32, shared: &mut Shared<'a>) {
        let now = self.now;
        let left = self.chance.operation(self.template.durations[operation as usize], item.row, operation);
        self.account.begin(kind(item), now);
        self.streams[stream as usize].running =
            Running::Operation { item, start: now, since: now, left, speed: 1.0 };
        self.at[stream as usize] = now + left;
        if !self.guests.is_empty() {
            self.enter(stream, shared);
        }
    }

    /// Ends the running operation, if one runs; its end is now.
    pub(crate) fn finish(&mut self, stream: u16, shared: &mut Shared<'a>) {
        let now = self.now;
        let state = &mut self.streams[stream as usize];
        match state.running {
            Running::Nothing | Running::CopyQueued { .. } | Running::Arriving { .. } => {}
            Running::Operation { item, start, .. } => {
                state.running = Running::Nothing;
                if let Some(log) = &mut self.log {
                    state.tail = Tail { at: now, why: log.ended(state.entry, now) };
                }
                let kind = kind(item);
                self.account.end(kind, now);
                self.segments.count(item.segment(), kind, now - start);
                shared.recorder.device(self.index, stream, item, (start, now));
                if !self.guests.is_empty() {
                    self.leave(stream, shared);
                }
                self.free_engine(stream, item, shared);
                self.completed(stream, item, shared);
            }
            Running::Collective(underway) => {
                state.running = Running::Nothing;
                if let Some(log) = &mut self.log {
                    state.tail = Tail { at: now, why: log.ended(state.entry, now) };
                }
                let Underway { item, arrived, transfer, exposed_before, bubble, .. } = underway;
                self.account.end(Kind::Communication, now);
                self.segments.count(item.segment(), Kind::Communication, now - transfer);
                let exposed = self.account.at(now).of(Kind::Communication).as_picos() - exposed_before;
                self.count_group(item, now - transfer, exposed, bubble);
                shared.recorder.collective(self.index, stream, item, (arrived, transfer, now));
                if !self.guests.is_empty() {
                    self.leave(stream, shared);
                }
                self.completed(stream, item, shared);
            }
        }
    }

    /// Gives the copy engine of an ended operation to the next copy.
    fn free_engine(&mut self, stream: u16, item: Item, shared: &mut Shared<'a>) {
        let Queued::Operation { operation, .. } = item.what else { return };
        let Some(engine) = self.engine_of(stream, operation) else { return };
        let last = self.streams[stream as usize].tail.why;
        let engine = &mut self.engines[engine];
        engine.last = last;
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
        let entry = self.streams[next as usize].entry;
        if let Some(found) = self.log.as_mut().and_then(|log| log.entries.get_mut(entry as usize)) {
            // It got its turn when the engine was free.
            (found.arrived, found.begun, found.why) = (self.now, self.now, last);
        }
        self.run(next, item, operation, shared);
    }

    /// The copy engine that an operation needs: an index into the rank's engines.
    fn engine_of(&self, stream: u16, operation: u32) -> Option<usize> {
        let direction = self.template.copies[operation as usize]?;
        Some(self.template.streams[stream as usize].device as usize * 3 + direction as usize)
    }

    /// The operation of `stream` begins to share its device.
    pub(crate) fn enter(&mut self, stream: u16, shared: &Shared<'a>) {
        let device = self.template.streams[stream as usize].device as usize;
        let guests = &mut self.guests[device];
        // By urgency, then by the order of starting.
        let priority = |stream: u16| self.template.streams[stream as usize].priority;
        let place = guests.partition_point(|&other| priority(other) <= priority(stream));
        guests.insert(place, stream);
        if guests.len() > 1 {
            self.share(device, shared);
        }
    }

    /// The operation of `stream` shares its device no longer.
    pub(crate) fn leave(&mut self, stream: u16, shared: &Shared<'a>) {
        let device = self.template.streams[stream as usize].device as usize;
        let guests = &mut self.guests[device];
        guests.retain(|&other| other != stream);
        if !guests.is_empty() {
            self.share(device, shared);
        }
    }

    /// Sets the speeds of everything that runs on a device.
    pub(crate) fn share(&mut self, device: usize, shared: &Shared<'a>) {
        let Some(contention) = &shared.options.contention else { return };
        let (mut guests, mut found) = std::mem::take(&mut self.scratch);
        guests.clear();
        for &stream in &self.guests[device] {
            guests.push(match self.streams[stream as usize].running {
                Running::Operation {
                    item: Item { what: Queued::Operation { operation, .. }, .. }, ..
                } => Guest::Operation(self.template.demands[operation as usize]),
                Running::Collective(Underway { channels, traffic, missing, item, .. }) => {
                    let Queued::Collective { count, .. } = item.what else { unreachable!("it is one") };
                    Guest::Collective { channels, traffic: if missing == count { 0.0 } else { traffic } }
                }
                _ => unreachable!("only what runs shares a device"),
            });
        }
        speeds(&guests, contention, &mut found);
        for (i, &new) in found.iter().enumerate() {
            let stream = self.guests[device][i] as usize;
            let (since, left, speed) = match &mut self.streams[stream].running {
                Running::Operation { since, left, speed, .. } => (since, left, speed),
                Running::Collective(underway) => {
                    underway.pace.change(new, self.now);
                    continue;
                }
                _ => continue,
            };
            if new.to_bits() == speed.to_bits() {
                continue;
            }
            *left -= (((self.now - *since) as f64 * *speed) as u64).min(*left);
            (*since, *speed) = (self.now, new);
            self.at[stream] = if *left == 0 {
                self.now
            } else if new > 0.0 {
                self.now + (*left as f64 / new).ceil() as u64
            } else {
                NEVER
            };
        }
        self.scratch = (guests, found);
    }

    /// A stream comes to a collective that holds `channels` multiprocessors; from now on it waits for other ranks.
    pub(crate) fn begin_collective(
        &mut self,
        stream: u16,
        (channels, traffic): (u32, f64),
        shared: &Shared<'a>,
    ) -> Item {
        let Running::Arriving { item } = self.streams[stream as usize].running else {
            unreachable!("a stream that arrives has come to a collective")
        };
        let Queued::Collective { count, .. } = item.what else { unreachable!("only collectives arrive") };
        let why = self.why(stream, item);
        let entry = self.log.as_mut().map_or(NONE, |log| log.arrived(item, self.now, why));
        self.account.begin_waiting(self.now);
        let bubble_before = self.account.at(self.now).of(Kind::Bubble).as_picos();
        let state = &mut self.streams[stream as usize];
        state.entry = entry;
        state.running = Running::Collective(Underway {
            item,
            arrived: self.now,
            missing: count,
            open: 0,
            end: self.now,
            transfer: self.now,
            exposed_before: 0,
            bubble_before,
            bubble: 0,
            channels,
            traffic,
            pace: Pace::new(self.now),
        });
        self.unresolved += 1;
        if !self.guests.is_empty() {
            self.enter(stream, shared);
        }
        item
    }

    /// One part of a stream's collective is on the wire from `now` until `part_end`, or until [`Self::part_is_over`]
    /// when that is not known; `last` is the member that came last.
    pub(crate) fn transfer(
        &mut self,
        stream: u16,
        (now, part_end): (u64, Option<u64>),
        last: (u32, u32),
        shared: &Shared<'a>,
    ) {
        self.now = now;
        let Running::Collective(underway) = &mut self.streams[stream as usize].running else {
            unreachable!("a stream that arrived runs its collective")
        };
        let Queued::Collective { count, .. } = underway.item.what else {
            unreachable!("only collectives meet")
        };
        // The transfer begins when the first part begins.
        let begins = underway.missing == count;
        if begins {
            self.account.end_waiting(now);
            self.account.begin(Kind::Communication, now);
            underway.transfer = now;
            underway.pace = Pace::new(now);
            let times = self.account.at(now);
            underway.exposed_before = times.of(Kind::Communication).as_picos();
            underway.bubble = times.of(Kind::Bubble).as_picos() - underway.bubble_before;
        }
        underway.missing -= 1;
        // Of parts with known ends the latest decides; of others, whichever began last.
        let decides = part_end.is_none_or(|end| end > underway.end) || begins;
        match part_end {
            Some(end) => underway.end = end.max(underway.end),
            None => underway.open += 1,
        }
        let entry = self.streams[stream as usize].entry;
        if let Some(log) = self.log.as_mut().filter(|_| decides) {
            log.begun(entry, now, last);
        }
        self.end_if_known(stream);
        if begins && !self.guests.is_empty() {
            self.share(self.template.streams[stream as usize].device as usize, shared);
        }
    }

    /// What the transfer that `stream` takes part in has lost on this rank's device until `now`, in picoseconds.
    pub(crate) fn lost(&self, stream: u16, now: u64) -> f64 {
        match &self.streams[stream as usize].running {
            Running::Collective(Underway { pace, .. }) => pace.lost(now),
            _ => 0.0,
        }
    }

    /// One part of a stream's collective is off the wire at `now`.
    pub(crate) fn part_is_over(&mut self, stream: u16, now: u64) {
        self.now = now;
        let Running::Collective(underway) = &mut self.streams[stream as usize].running else {
            unreachable!("a stream whose operation is on the wire runs its collective")
        };
        underway.open -= 1;
        underway.end = underway.end.max(now);
        self.end_if_known(stream);
    }

    fn end_if_known(&mut self, stream: u16) {
        if let Running::Collective(Underway { missing: 0, open: 0, end, .. }) =
            self.streams[stream as usize].running
        {
            self.at[stream as usize] = end;
            self.unresolved -= 1;
        }
    }

    /// Adds a finished collective to its communication row, when it belongs to a step.
    fn count_group(&mut self, item: Item, time: u64, exposed: u64, bubble: u64) {
        let Queued::Collective { first, count } = item.what else { return };
        if !self.template.used_segments().contains(&(item.segment() as usize)) {
            return;
        }
        let calls = &self.template.calls[first as usize..(first + count) as usize];
        for (i, call) in calls.iter().enumerate() {
            let row = &mut self.groups[call.group as usize];
            row.calls += 1;
            row.bytes += call.call.bytes.0;
            // The time of a group call is one time: it counts for its first member.
            if i == 0 {
                row.time += time;
                row.exposed += exposed;
                row.bubble += bubble;
            }
        }
    }
}

/// The kind of a queued operation.
fn kind(item: Item) -> Kind {
    match item.what {
        Queued::Operation { kind, .. } => kind,
        _ => Kind::Communication,
    }
}
