//! Scheduling, finding and cancelling events that carry a value.

use std::any::Any;

use trompe_base::{Duration, SimTime};

use super::Scheduler;
use crate::error::ScheduleError;
use crate::event::{PayloadEvent, Ticket};
use crate::pool::Pool;

impl Scheduler {
    /// Lets `event` fire `delay` after now with `value`. The ticket cancels it; it may be dropped.
    ///
    /// # Errors
    /// Zero delay into a group that has already run in this tick; a tick beyond a `u64`. The value is dropped then.
    #[inline]
    pub fn send<P: Send + 'static>(
        &mut self,
        event: PayloadEvent<P>,
        delay: Duration,
        value: P,
    ) -> Result<Ticket<P>, ScheduleError> {
        let index = self.index(event.id);
        let tick = self.after(index, delay.as_picos())?;
        self.send_to_tick(event, tick, value)
    }

    /// Lets `event` fire at `tick` with `value`.
    ///
    /// # Errors
    /// As [`Self::send`], and when `tick` lies in the past.
    #[inline]
    pub fn send_at<P: Send + 'static>(
        &mut self,
        event: PayloadEvent<P>,
        tick: SimTime,
        value: P,
    ) -> Result<Ticket<P>, ScheduleError> {
        self.check_past(self.index(event.id), tick.as_picos())?;
        self.send_to_tick(event, tick.as_picos(), value)
    }

    /// Cancels one value; false when it was delivered or cancelled before.
    pub fn cancel_ticket<P: Send + 'static>(&mut self, ticket: Ticket<P>) -> bool {
        let event = self.index(ticket.event);
        match self.pool::<P>(event).node(ticket.slot, ticket.generation) {
            Some(node) => {
                self.cancel_node(node);
                true
            }
            None => false,
        }
    }

    /// Whether a ticket's value is still to be delivered.
    #[must_use]
    pub fn is_outstanding<P: Send + 'static>(&self, ticket: Ticket<P>) -> bool {
        self.pool::<P>(self.index(ticket.event)).node(ticket.slot, ticket.generation).is_some()
    }

    /// Cancels every pending value of `event` that `matches`; returns how many there were.
    pub fn cancel_if<P: Send + 'static>(
        &mut self,
        event: PayloadEvent<P>,
        matches: impl FnMut(&P) -> bool,
    ) -> u32 {
        let index = self.index(event.id);
        let nodes = self.matching(index, matches);
        for &node in &nodes {
            self.cancel_node(node);
        }
        nodes.len() as u32
    }

    /// Whether a pending value of `event` `matches`.
    #[must_use]
    pub fn any_outstanding<P: Send + 'static>(
        &self,
        event: PayloadEvent<P>,
        matches: impl FnMut(&P) -> bool,
    ) -> bool {
        !self.matching(self.index(event.id), matches).is_empty()
    }

    /// The tickets of the pending values of `event` that `matches` picks, oldest first.
    pub fn tickets_if<P: Send + 'static>(
        &self,
        event: PayloadEvent<P>,
        matches: impl FnMut(&P) -> bool,
    ) -> Vec<Ticket<P>> {
        let index = self.index(event.id);
        let ticket = |node: u32| {
            let slot = self.slab.get(node).payload;
            let (_, generation) = self.pool::<P>(index).peek(slot).expect("a pending node has a value");
            Ticket::new(event.id, slot, generation)
        };
        self.matching(index, matches).into_iter().map(ticket).collect()
    }

    #[inline]
    fn send_to_tick<P: Send + 'static>(
        &mut self,
        event: PayloadEvent<P>,
        tick: u64,
        value: P,
    ) -> Result<Ticket<P>, ScheduleError> {
        let index = self.index(event.id);
        self.check_group(index, tick)?;
        let (slot, generation) = self.pool_mut::<P>(index).store(value);
        let node = self.put(event.id.vertex, tick, slot);
        self.pool_mut::<P>(index).set_node(slot, node);
        Ok(Ticket::new(event.id, slot, generation))
    }

    /// Takes a value out for delivery.
    #[inline]
    pub(crate) fn take_payload<P: Send + 'static>(&mut self, event: u32, slot: u32) -> P {
        self.pool_mut::<P>(event as usize).take(slot)
    }

    /// The pending nodes whose value `matches`, oldest first.
    fn matching<P: Send + 'static>(&self, event: usize, mut matches: impl FnMut(&P) -> bool) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.nodes_of(event).collect();
        nodes.reverse();
        let pool = self.pool::<P>(event);
        nodes.retain(|&node| pool.peek(self.slab.get(node).payload).is_some_and(|(value, _)| matches(value)));
        nodes
    }

    #[inline]
    fn pool<P: Send + 'static>(&self, event: usize) -> &Pool<P> {
        let pool: &dyn Any = &**self.pools[event].as_ref().expect("a payload event has a pool");
        pool.downcast_ref().expect("the handle's type is the pool's")
    }

    #[inline]
    fn pool_mut<P: Send + 'static>(&mut self, event: usize) -> &mut Pool<P> {
        let pool: &mut dyn Any = &mut **self.pools[event].as_mut().expect("a payload event has a pool");
        pool.downcast_mut().expect("the handle's type is the pool's")
    }
}
