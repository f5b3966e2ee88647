//! Putting single schedulings where they belong, and taking them out again. No checks are made here.

use super::crowd::{chain, unchain};
use super::{Due, Scheduler};
use crate::error::ScheduleError;
use crate::event::Id;
use crate::slab::NIL;

impl Scheduler {
    #[inline(always)]
    pub(super) fn index(&self, id: Id) -> usize {
        assert!(id.engine == self.engine, "an event handle belongs to another engine");
        id.vertex as usize
    }

    /// Lets an event fire at `tick`; all checks have been made. Returns the node, if there is one.
    #[inline(always)]
    pub(super) fn put(&mut self, event: u32, tick: u64, payload: u32) -> u32 {
        if tick == self.soon {
            if !self.open {
                self.open_next();
            }
            let state = &mut self.events[event as usize];
            if state.marks && self.next.mark(state.bucket) {
                state.pending += 1;
                self.continuing += u64::from(state.continuing);
                return NIL;
            }
        } else if tick == self.now {
            let state = &mut self.events[event as usize];
            if state.marks && self.due.mark(state.bucket) {
                state.pending += 1;
                self.continuing += u64::from(state.continuing);
                return NIL;
            }
        }
        self.put_node(event, tick, payload)
    }

    /// As [`Self::put`], always with a node. `next` is open if the tick is `soon`.
    pub(super) fn put_node(&mut self, event: u32, tick: u64, payload: u32) -> u32 {
        let index = self.slab.allocate(event, tick, payload);
        let state = &mut self.events[event as usize];
        chain(state, &mut self.slab, &mut self.crowd, index);
        self.continuing += u64::from(state.continuing);
        if tick == self.soon {
            self.next.push(&mut self.slab, state.bucket, index);
        } else if tick == self.now {
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

    fn ticks_with_buckets(&self) -> TicksWithBuckets {
        TicksWithBuckets { running: self.in_tick.then_some(self.now), next: self.open.then_some(self.soon) }
    }

    /// Takes a pending node out and drops its value.
    pub(super) fn cancel_node(&mut self, index: u32) {
        let node = self.slab.get(index);
        let (event, payload, tick) = (node.event, node.payload, node.tick);
        let ticks = self.ticks_with_buckets();
        let state = &mut self.events[event as usize];
        if let Some(due) = buckets_of(tick, &ticks, &mut self.due, &mut self.next) {
            due.remove(&mut self.slab, state.bucket, index);
            if !state.marks {
                due.settle(state.bucket);
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
        let ticks = self.ticks_with_buckets();
        let state = &mut self.events[event];
        let due = buckets_of(tick, &ticks, &mut self.due, &mut self.next);
        let marked = state.marks && due.is_some_and(|due| due.unmark(state.bucket));
        if marked {
            state.pending -= 1;
            self.continuing -= u64::from(state.continuing);
        }
        marked
    }

    /// Whether an event is pending at `tick`.
    pub(super) fn is_pending_at(&self, event: usize, tick: u64) -> bool {
        let state = &self.events[event];
        let marked = |due: &Due| state.marks && due.contains(state.bucket);
        tick == self.soon && self.open && marked(&self.next)
            || tick == self.now && self.in_tick && marked(&self.due)
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
        self.now.checked_add(delay).filter(|&tick| tick != u64::MAX).ok_or_else(|| ScheduleError::TooFar {
            event: self.labels[event].name.clone(),
            delay,
            now: self.now,
        })
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

/// Which ticks have buckets.
struct TicksWithBuckets {
    running: Option<u64>,
    next: Option<u64>,
}

/// The buckets that stand for `tick`, if there are any.
fn buckets_of<'a>(
    tick: u64,
    ticks: &TicksWithBuckets,
    due: &'a mut Due,
    next: &'a mut Due,
) -> Option<&'a mut Due> {
    if ticks.next == Some(tick) {
        Some(next)
    } else if ticks.running == Some(tick) {
        Some(due)
    } else {
        None
    }
}
