//! Putting single schedulings where they belong, and taking them out again. No checks are made here.

use super::Scheduler;
use super::crowd::{chain, unchain};
use crate::error::ScheduleError;
use crate::event::{Id, Kind};
use crate::slab::NIL;

impl Scheduler {
    #[inline(always)]
    pub(super) fn index(&self, id: Id) -> usize {
        assert!(id.engine == self.engine, "an event handle belongs to another engine");
        id.vertex as usize
    }

    /// Marks an event at the tick `delay` after now, if all that takes is to set a bit; false leaves everything as it is. For a
    /// unique event that is pending at that tick the answer is true, too.
    #[inline(always)]
    pub(super) fn mark_quickly(&mut self, event: usize, delay: u64) -> bool {
        let state = &mut self.events[event];
        let tick = self.now.wrapping_add(delay);
        if tick.wrapping_sub(self.soon) < self.near.span() {
            // A unique event with nodes may be pending there by one of them.
            if !(state.quick || state.kind == Kind::Unique && state.marks && state.head == NIL) {
                return false;
            }
            if !self.near.mark(tick, state.bucket) {
                return !state.quick;
            }
            state.last_near = tick;
        } else if !(delay == 0
            && state.quick
            && self.in_tick
            && state.group >= self.group
            && self.due.mark(state.bucket))
        {
            return false;
        }
        state.pending += 1;
        self.continuing += u64::from(state.continuing);
        true
    }

    /// Lets an event fire at `tick`; all checks have been made. Returns the node, if there is one.
    #[inline(always)]
    pub(super) fn put(&mut self, event: u32, tick: u64, payload: u32) -> u32 {
        if tick == self.now && self.in_tick {
            let state = &mut self.events[event as usize];
            if state.marks && self.due.mark(state.bucket) {
                state.pending += 1;
                self.continuing += u64::from(state.continuing);
                return NIL;
            }
        }
        self.put_node(event, tick, payload)
    }

    /// As [`Self::put`], always with a node.
    pub(super) fn put_node(&mut self, event: u32, tick: u64, payload: u32) -> u32 {
        let index = self.slab.allocate(event, tick, payload);
        let state = &mut self.events[event as usize];
        chain(state, &mut self.slab, &mut self.crowd, index);
        self.continuing += u64::from(state.continuing);
        if tick == self.now && self.in_tick {
            self.due.push(&mut self.slab, state.bucket, index);
        } else {
            self.wheel.insert(&mut self.slab, index, tick);
        }
        index
    }

    /// Lets an event fire before everything else of its bucket in the running tick.
    pub(super) fn put_first(&mut self, event: u32) {
        let index = self.slab.allocate(event, self.now, NIL);
        let state = &mut self.events[event as usize];
        chain(state, &mut self.slab, &mut self.crowd, index);
        self.continuing += u64::from(state.continuing);
        self.due.push_front(&mut self.slab, state.bucket, index);
    }

    /// Takes a pending node out and drops its value.
    pub(super) fn cancel_node(&mut self, index: u32) {
        let node = self.slab.get(index);
        let (event, payload, tick) = (node.event, node.payload, node.tick);
        let state = &mut self.events[event as usize];
        if tick == self.now && self.in_tick {
            self.due.remove(&mut self.slab, state.bucket, index);
            if !state.marks {
                self.due.settle(state.bucket);
            }
        } else {
            self.wheel.remove(&mut self.slab, index);
        }
        unchain(state, &mut self.slab, &mut self.crowd, index);
        state.pending -= 1;
        self.continuing -= u64::from(state.continuing);
        if payload != NIL {
            self.pools[event as usize].as_mut().expect("a payload event has a pool").discard(payload);
        }
    }

    /// Takes the mark of an event at `tick` back; returns whether there was one. Its nodes at that tick are gone.
    pub(super) fn cancel_mark(&mut self, event: usize, tick: u64) -> bool {
        let state = &mut self.events[event];
        let marked = if tick == self.now && self.in_tick {
            state.marks && self.due.unmark(state.bucket)
        } else {
            let reached = tick.wrapping_sub(self.soon) < self.near.span();
            state.marks && reached && self.near.unmark(tick, state.bucket)
        };
        if marked {
            state.pending -= 1;
            self.continuing -= u64::from(state.continuing);
        }
        marked
    }

    /// Takes all marks of an event in the ring of near ticks back, when nothing else of it is pending; returns how many there
    /// were.
    pub(super) fn cancel_near(&mut self, event: usize) -> u32 {
        let mut cancelled = 0;
        // Nearly always there is one, and it is the latest.
        let last = self.events[event].last_near;
        while self.events[event].pending > 0 {
            let (bucket, soon) = (self.events[event].bucket, self.soon);
            let tick = if cancelled == 0 && last >= soon && self.near.contains(last, bucket) {
                last
            } else {
                self.near.ticks_of(bucket, soon).next().expect("what is pending without a node is marked")
            };
            cancelled += u32::from(self.cancel_mark(event, tick));
        }
        cancelled
    }

    /// Whether an event is pending at `tick`.
    pub(super) fn is_pending_at(&self, event: usize, tick: u64) -> bool {
        let state = &self.events[event];
        let running = tick == self.now && self.in_tick;
        let reached = !running && tick.wrapping_sub(self.soon) < self.near.span();
        running && state.marks && self.due.contains(state.bucket)
            || state.marks && reached && self.near.contains(tick, state.bucket)
            || state.crowded && self.crowd.contains(event as u32, tick)
            || !state.crowded && self.nodes_of(event).any(|index| self.slab.get(index).tick == tick)
    }

    /// The pending nodes of an event.
    pub(super) fn nodes_of(&self, event: usize) -> impl Iterator<Item = u32> {
        let first = self.events[event].head;
        std::iter::successors((first != NIL).then_some(first), |&index| {
            let next = self.slab.get(index).event_next;
            (next != NIL).then_some(next)
        })
    }

    /// The tick `delay` after now.
    #[inline]
    pub(super) fn after(&self, event: usize, delay: u64) -> Result<u64, ScheduleError> {
        match self.now.checked_add(delay) {
            Some(tick) if tick != u64::MAX => Ok(tick),
            _ => Err(self.too_far(event, delay)),
        }
    }

    #[cold]
    fn too_far(&self, event: usize, delay: u64) -> ScheduleError {
        ScheduleError::TooFar { event: self.labels[event].name.clone(), delay, now: self.now }
    }

    /// Refuses the running tick for an event whose group has run.
    #[inline]
    pub(super) fn check_group(&self, event: usize, tick: u64) -> Result<(), ScheduleError> {
        if tick == self.now && self.events[event].group < self.group {
            return Err(self.earlier_group(event));
        }
        Ok(())
    }

    #[cold]
    pub(super) fn earlier_group(&self, event: usize) -> ScheduleError {
        // After a stop inside a tick no handler runs, so the last one that did is not known: name the event itself.
        let running = if self.running == NIL { event } else { self.running as usize };
        ScheduleError::EarlierGroup {
            running: self.labels[running].name.clone(),
            running_group: self.group,
            running_phase: self.labels[running].phase,
            event: self.labels[event].name.clone(),
            event_group: self.events[event].group,
            event_phase: self.labels[event].phase,
            tick: self.now,
        }
    }
}
