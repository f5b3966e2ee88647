//! From tick to tick: what the run loop needs.

use super::crowd::unchain;
use super::{Label, Scheduler, Taken};
use crate::slab::{List, NIL};

impl Scheduler {
    pub(crate) fn in_tick(&self) -> bool {
        self.in_tick
    }

    pub(crate) fn running_group(&self) -> u32 {
        self.group
    }

    pub(crate) fn label(&self, event: u32) -> &Label {
        &self.labels[event as usize]
    }

    pub(crate) fn schedule_start_up(&mut self) {
        for event in std::mem::take(&mut self.start_up) {
            self.put(event, self.now, NIL);
        }
    }

    /// Begins the earliest tick that has something to do and does not lie after `limit`.
    #[inline]
    pub(crate) fn begin_tick(&mut self, limit: u64) -> bool {
        if self.every_tick.is_empty() && (!self.open || self.next.is_empty()) {
            let Some((tick, list)) = self.wheel.advance(&mut self.slab, limit) else { return false };
            self.soon = tick;
            if list.head == list.tail {
                self.single = list.head;
            } else {
                self.fill_next(list);
                std::mem::swap(&mut self.due, &mut self.next);
            }
        } else {
            if self.soon > limit {
                return false;
            }
            self.open_next();
            std::mem::swap(&mut self.due, &mut self.next);
        }
        self.now = self.soon;
        self.soon += 1;
        self.open = false;
        self.in_tick = true;
        self.ticks += 1;
        if !self.every_tick.is_empty() {
            self.put_every_tick();
        }
        true
    }

    /// Moves what is pending for the tick `soon` from the wheel to `next`.
    pub(super) fn open_next(&mut self) {
        if !std::mem::replace(&mut self.open, true)
            && let Some((_, list)) = self.wheel.advance(&mut self.slab, self.soon)
        {
            self.fill_next(list);
        }
    }

    /// Moves a list of nodes of the tick `soon` to its buckets.
    #[inline]
    pub(super) fn fill_next(&mut self, list: List) {
        let mut index = list.head;
        while index != NIL {
            let node = self.slab.get(index);
            let (following, event) = (node.next, node.event);
            let state = &mut self.events[event as usize];
            if state.marks && self.next.mark(state.bucket) {
                unchain(state, &mut self.slab, &mut self.crowd, index);
            } else {
                self.next.push(&mut self.slab, state.bucket, index);
            }
            index = following;
        }
    }

    pub(super) fn put_every_tick(&mut self) {
        if let Some(&first) = self.every_tick.first()
            && self.events[first as usize].marks
        {
            for i in 0..self.every_tick.len() {
                self.put(self.every_tick[i], self.now, NIL);
            }
            return;
        }
        // Without buckets of their own they come before everything that was scheduled.
        for i in (0..self.every_tick.len()).rev() {
            self.put_first(self.every_tick[i]);
        }
    }

    /// Takes the next firing of the running tick.
    #[inline(always)]
    pub(crate) fn take_due(&mut self) -> Option<Taken> {
        if self.single != NIL {
            let index = std::mem::replace(&mut self.single, NIL);
            let node = self.slab.get(index);
            let (event, payload) = (node.event, node.payload);
            let state = &mut self.events[event as usize];
            unchain(state, &mut self.slab, &mut self.crowd, index);
            return Some(self.fired(event, payload));
        }
        let bucket = self.due.first()?;
        let (event, payload) = match self.due.pop(&mut self.slab, bucket) {
            Some(index) => {
                let node = self.slab.get(index);
                let (event, payload) = (node.event, node.payload);
                let state = &mut self.events[event as usize];
                unchain(state, &mut self.slab, &mut self.crowd, index);
                if !state.marks {
                    self.due.settle(bucket);
                }
                (event, payload)
            }
            None => {
                self.due.take_mark(bucket);
                (self.event_of_bucket[bucket as usize], NIL)
            }
        };
        Some(self.fired(event, payload))
    }

    /// Counts a firing that was taken off.
    #[inline(always)]
    pub(super) fn fired(&mut self, event: u32, payload: u32) -> Taken {
        let state = &mut self.events[event as usize];
        state.pending -= 1;
        state.fired += 1;
        state.last_fired = self.now;
        self.continuing -= u64::from(state.continuing);
        self.group = state.group;
        self.running = event;
        Taken { event, payload }
    }

    /// No handler is running any more.
    #[inline]
    pub(crate) fn handlers_returned(&mut self) {
        self.running = NIL;
    }

    pub(crate) fn end_tick(&mut self) {
        self.in_tick = false;
        self.group = 0;
        self.now = self.soon;
    }

    pub(crate) fn skip_to(&mut self, tick: u64) {
        debug_assert!(!self.in_tick && tick >= self.now && self.next.is_empty());
        self.now = tick;
        self.soon = tick;
        self.open = false;
    }
}
