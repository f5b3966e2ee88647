//! Scheduling and cancelling events without a value.

use trompe_base::{Duration, SimTime};

use super::Scheduler;
use crate::clock::Clock;
use crate::error::ScheduleError;
use crate::event::{AnyEvent, Kind, Schedulable};
use crate::slab::NIL;

impl Scheduler {
    /// Lets `event` fire `delay` after now. A unique event that is already scheduled for that tick stays as it is.
    ///
    /// # Errors
    /// Zero delay into a group that has already run in this tick; a tick beyond a `u64`; a unique event that has
    /// already fired in this tick (a single-cycle event ignores that); a single-cycle event more than a cycle ahead.
    #[inline(always)]
    pub fn schedule(&mut self, event: impl Schedulable, delay: Duration) -> Result<(), ScheduleError> {
        let (event, delay) = (self.index(event.id()), delay.as_picos());
        if self.mark_quickly(event, delay) { Ok(()) } else { self.schedule_after(event, delay) }
    }

    /// Lets `event` fire at `tick`.
    ///
    /// # Errors
    /// As [`Self::schedule`], and when `tick` lies in the past.
    #[inline]
    pub fn schedule_at(&mut self, event: impl Schedulable, tick: SimTime) -> Result<(), ScheduleError> {
        let event = self.index(event.id());
        let tick = tick.as_picos();
        self.check_past(event, tick)?;
        if self.mark_quickly(event, tick - self.now) { Ok(()) } else { self.schedule_vertex(event, tick) }
    }

    /// Lets `event` fire at the edge of `clock` that is `cycles` cycles ahead; 0 is the next edge from now on, which
    /// is now when an edge falls on the present tick.
    ///
    /// # Errors
    /// As [`Self::schedule`].
    pub fn schedule_cycles(
        &mut self,
        event: impl Schedulable,
        clock: Clock,
        cycles: u64,
    ) -> Result<(), ScheduleError> {
        self.schedule(event, clock.until_edge(self.now(), cycles))
    }

    /// Whether `event` is pending for the tick `delay` after now.
    #[must_use]
    pub fn is_scheduled(&self, event: impl AnyEvent, delay: Duration) -> bool {
        let event = self.index(event.id());
        self.now.checked_add(delay.as_picos()).is_some_and(|tick| self.is_pending_at(event, tick))
    }

    /// How many schedulings of `event` are pending.
    #[must_use]
    pub fn outstanding(&self, event: impl AnyEvent) -> u32 {
        self.events[self.index(event.id())].pending
    }

    /// Cancels every pending scheduling of `event`; returns how many there were.
    pub fn cancel(&mut self, event: impl AnyEvent) -> u32 {
        let event = self.index(event.id());
        let nodes = self.cancel_nodes(event, |_| true);
        let running = self.in_tick && self.cancel_mark(event, self.now);
        nodes + u32::from(running) + self.cancel_near(event)
    }

    /// Cancels the schedulings of `event` for the tick `delay` after now; returns how many there were.
    pub fn cancel_after(&mut self, event: impl AnyEvent, delay: Duration) -> u32 {
        let event = self.index(event.id());
        match self.now.checked_add(delay.as_picos()) {
            Some(tick) => {
                self.cancel_nodes(event, |at| at == tick) + u32::from(self.cancel_mark(event, tick))
            }
            None => 0,
        }
    }

    fn cancel_nodes(&mut self, event: usize, matches: impl Fn(u64) -> bool) -> u32 {
        let mut cancelled = 0;
        let mut index = self.events[event].head;
        while index != NIL {
            let node = self.slab.get(index);
            let next = node.event_next;
            if matches(node.tick) {
                self.cancel_node(index);
                cancelled += 1;
            }
            index = next;
        }
        cancelled
    }

    #[inline(never)]
    fn schedule_after(&mut self, event: usize, delay: u64) -> Result<(), ScheduleError> {
        let tick = self.after(event, delay)?;
        self.schedule_vertex(event, tick)
    }

    #[inline]
    fn schedule_vertex(&mut self, event: usize, tick: u64) -> Result<(), ScheduleError> {
        let state = &self.events[event];
        if tick == self.now && state.group < self.group {
            return Err(self.earlier_group(event));
        }
        if state.kind != Kind::Plain {
            if state.kind == Kind::SingleCycle && tick - self.now > state.cycle {
                return Err(self.not_this_or_next_cycle(event, tick));
            }
            if state.last_fired == tick {
                return self.fired_already(event);
            }
            if state.pending > 0 && self.is_pending_at(event, tick) {
                return Ok(());
            }
        }
        self.put(event as u32, tick, NIL);
        Ok(())
    }

    #[inline]
    pub(super) fn check_past(&self, event: usize, tick: u64) -> Result<(), ScheduleError> {
        if tick < self.now { Err(self.in_the_past(event, tick)) } else { Ok(()) }
    }

    #[cold]
    fn in_the_past(&self, event: usize, tick: u64) -> ScheduleError {
        ScheduleError::InThePast { event: self.labels[event].name.clone(), tick, now: self.now }
    }

    #[cold]
    fn fired_already(&self, event: usize) -> Result<(), ScheduleError> {
        if self.events[event].kind == Kind::SingleCycle {
            return Ok(());
        }
        Err(ScheduleError::AlreadyFired { event: self.labels[event].name.clone(), tick: self.now })
    }

    #[cold]
    fn not_this_or_next_cycle(&self, event: usize, tick: u64) -> ScheduleError {
        let cycles = (tick - self.now).div_ceil(self.events[event].cycle);
        ScheduleError::NotThisOrNextCycle { event: self.labels[event].name.clone(), cycles }
    }
}
