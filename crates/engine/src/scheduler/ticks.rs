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
        if !self.every_tick.is_empty() || !self.near.is_empty() && !self.wheel.is_empty() {
            return self.begin_any_tick(limit);
        }
        if let Some(tick) = self.near.first(self.soon) {
            if tick > limit {
                return false;
            }
            self.start_tick(tick);
            self.due.take_near(&mut self.near, tick);
            return true;
        }
        let Some((tick, list)) = self.wheel.advance(&mut self.slab, limit) else { return false };
        self.start_tick(tick);
        if list.head == list.tail {
            self.single = list.head;
        } else {
            self.fill(list);
        }
        true
    }

    #[inline]
    fn start_tick(&mut self, tick: u64) {
        self.now = tick;
        self.soon = tick + 1;
        self.in_tick = true;
        self.ticks += 1;
    }

    /// As [`Self::begin_tick`], wherever schedulings may be.
    fn begin_any_tick(&mut self, limit: u64) -> bool {
        let near = self.near.first(self.soon);
        let known = if self.every_tick.is_empty() { near } else { Some(self.soon) };
        let far = self.wheel.advance(&mut self.slab, known.map_or(limit, |tick| tick.min(limit)));
        let tick = match (&far, known) {
            (Some((tick, _)), _) => *tick,
            (None, Some(tick)) if tick <= limit => tick,
            (None, _) => return false,
        };
        self.start_tick(tick);
        if near == Some(tick) {
            self.due.take_near(&mut self.near, tick);
        }
        if let Some((_, list)) = far {
            if list.head == list.tail && known != Some(tick) {
                self.single = list.head;
            } else {
                self.fill(list);
            }
        }
        if !self.every_tick.is_empty() {
            self.put_every_tick();
        }
        true
    }

    /// Moves a list of nodes of the running tick to its buckets.
    #[inline]
    fn fill(&mut self, list: List) {
        let mut index = list.head;
        while index != NIL {
            let node = self.slab.get(index);
            let (following, event) = (node.next, node.event);
            let state = &mut self.events[event as usize];
            if state.marks && self.due.mark(state.bucket) {
                unchain(state, &mut self.slab, &mut self.crowd, index);
            } else {
                self.due.push(&mut self.slab, state.bucket, index);
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
        debug_assert!(
            !self.in_tick && tick >= self.now && self.near.first(self.soon).is_none_or(|near| near >= tick)
        );
        self.now = tick;
        self.soon = tick;
    }
}
