//! What is pending, and when: the half of the engine that handlers may touch.
//!
//! A handler gets `&mut Scheduler` and may schedule, cancel and look; it cannot run the engine (that is
//! [`Engine`](crate::Engine)'s), so a nested run does not compile.
//!
//! Inside, events of the running tick stand in *buckets*, which fire in ascending order, each first in, first out.
//! With [`Ties::Keyed`] a bucket is one event, with [`Ties::Fifo`] it is a group; the loop does not know the
//! difference. Later ticks stand in the wheel, as nodes.
//!
//! An event without a value and with a bucket of its own needs no node, in the running tick and in those of a ring of near
//! ticks: its bucket is marked.

mod crowd;
mod due;
mod near;
mod nodes;
mod payload;
mod plain;
mod ticks;

use trompe_base::{Duration, SimTime};

use crate::event::{AnyEvent, EventName, Kind};
use crate::phase::Phase;
use crate::pool::AnyPool;
use crate::port::Route;
use crate::slab::{NIL, Slab};
use crate::wheel::Wheel;
use crowd::Crowd;
use due::Due;
use near::Near;

/// How events of one tick and one group are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ties {
    /// By name and index of the event; schedulings of one event in the order of their calls. Adding an event that is
    /// not ordered against others, or registering events in another order, never swaps two other events.
    #[default]
    Keyed,
    /// In the order of the schedule calls; every-tick events before all others.
    Fifo,
}

/// "Has never fired."
const NEVER: u64 = u64::MAX;

/// What the loop must know of an event: one line of the cache.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct EventState {
    pub(crate) bucket: u32,
    pub(crate) group: u32,
    /// First of the event's pending nodes.
    head: u32,
    /// Pending schedulings, nodes and marks.
    pending: u32,
    fired: u64,
    last_fired: u64,
    /// Ticks per cycle, for single-cycle events.
    cycle: u64,
    kind: Kind,
    continuing: bool,
    /// The tick of the latest mark in the ring of near ticks.
    last_near: u64,
    /// Its bucket can be marked.
    marks: bool,
    /// Nothing but the tick decides whether it can be marked.
    quick: bool,
    /// Its pending nodes are in the table of crowded events.
    crowded: bool,
}

impl EventState {
    pub(crate) fn new(place: Place, kind: Kind, continuing: bool, cycle: u64) -> Self {
        let Place { bucket, group, alone } = place;
        Self {
            bucket,
            group,
            head: NIL,
            pending: 0,
            fired: 0,
            last_fired: NEVER,
            cycle,
            kind,
            continuing,
            last_near: 0,
            marks: alone && kind != Kind::Payload,
            quick: alone && kind == Kind::Plain,
            crowded: false,
        }
    }
}

/// Where an event stands in the order of a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) bucket: u32,
    pub(crate) group: u32,
    /// No other event has this bucket.
    pub(crate) alone: bool,
}

/// Name and phase of an event; needed only for messages and observers.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) name: EventName,
    pub(crate) phase: Phase,
}

/// Everything that [`Setup::finalize`](crate::Setup::finalize) hands over.
pub(crate) struct Parts {
    pub(crate) engine: u32,
    pub(crate) events: Vec<EventState>,
    pub(crate) labels: Vec<Label>,
    pub(crate) pools: Vec<Option<Box<dyn AnyPool>>>,
    pub(crate) buckets: usize,
    pub(crate) groups: u32,
    pub(crate) start_up: Vec<u32>,
    pub(crate) every_tick: Vec<u32>,
    pub(crate) routes: Vec<Route>,
}

/// A request to end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    Now,
    AfterTick,
}

/// A firing that was taken off the queue.
pub(crate) struct Taken {
    pub(crate) event: u32,
    pub(crate) payload: u32,
}

/// See the module's documentation.
pub struct Scheduler {
    engine: u32,
    now: u64,
    /// The running group; 0 between ticks.
    group: u32,
    /// The event whose handler runs, or [`NIL`].
    running: u32,
    /// A tick is under way (also when a run was stopped inside it).
    in_tick: bool,
    pub(crate) stop: Stop,
    /// Pending schedulings that keep a run alive.
    continuing: u64,
    events: Vec<EventState>,
    /// The event of each bucket, where buckets have one event.
    event_of_bucket: Vec<u32>,
    slab: Slab,
    crowd: Crowd,
    /// The running tick; empty between ticks.
    due: Box<Due>,
    /// The only node of the running tick so far, which does without buckets, or [`NIL`].
    single: u32,
    /// The tick after the running one; between ticks, the one that runs next.
    soon: u64,
    /// What needs no node, of the ticks from `soon` on.
    near: Near,
    /// All other schedulings of ticks from `soon` on.
    wheel: Wheel,
    pools: Vec<Option<Box<dyn AnyPool>>>,
    /// By out-port.
    pub(crate) routes: Vec<Route>,
    labels: Vec<Label>,
    groups: u32,
    start_up: Vec<u32>,
    /// Every-tick events that are on, in the order of their buckets.
    every_tick: Vec<u32>,
    every_tick_continuing: u32,
    ticks: u64,
}

impl Scheduler {
    pub(crate) fn new(parts: Parts) -> Self {
        let mut event_of_bucket = vec![NIL; parts.buckets];
        for (event, state) in parts.events.iter().enumerate() {
            event_of_bucket[state.bucket as usize] = event as u32;
        }
        let mut scheduler = Self {
            engine: parts.engine,
            now: 0,
            group: 0,
            running: NIL,
            in_tick: false,
            stop: Stop::No,
            continuing: 0,
            events: parts.events,
            event_of_bucket,
            slab: Slab::default(),
            crowd: Crowd::default(),
            due: Box::new(Due::new(parts.buckets)),
            single: NIL,
            soon: 0,
            near: Near::new(parts.buckets),
            wheel: Wheel::new(0),
            pools: parts.pools,
            routes: parts.routes,
            labels: parts.labels,
            groups: parts.groups,
            start_up: parts.start_up,
            every_tick: Vec::new(),
            every_tick_continuing: 0,
            ticks: 0,
        };
        for event in parts.every_tick {
            scheduler.switch_every_tick(event, true);
        }
        scheduler
    }

    /// The tick that is running or, between runs, the one that runs next.
    #[inline]
    #[must_use]
    pub fn now(&self) -> SimTime {
        SimTime::from_picos(self.now)
    }

    /// The last tick that has run or is running; 0 before the first one.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_picos(if self.in_tick { self.now } else { self.now.saturating_sub(1) })
    }

    /// Whether a handler is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running != NIL
    }

    /// Whether nothing is pending that keeps a run alive.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.continuing == 0 && self.every_tick_continuing == 0
    }

    /// The tick of the earliest pending event.
    #[must_use]
    pub fn next_event_tick(&self) -> Option<SimTime> {
        if !self.due.is_empty() {
            return Some(self.now());
        }
        if !self.every_tick.is_empty() {
            return Some(SimTime::from_picos(self.soon));
        }
        let (near, far) = (self.near.first(self.soon), self.wheel.next_tick(&self.slab));
        near.into_iter().chain(far).min().map(SimTime::from_picos)
    }

    /// A tick that no pending event precedes: at most [`Self::next_event_tick`], and found without a look at any event.
    #[must_use]
    pub fn no_event_before(&self) -> Option<SimTime> {
        if !self.due.is_empty() {
            return Some(self.now());
        }
        if !self.every_tick.is_empty() {
            return Some(SimTime::from_picos(self.soon));
        }
        let (near, far) = (self.near.first(self.soon), self.wheel.first_slot_start());
        near.into_iter().chain(far).min().map(SimTime::from_picos)
    }

    /// The number of pending schedulings, payloads included.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.events.iter().map(|event| u64::from(event.pending)).sum()
    }

    /// The number of events fired since the engine was made.
    #[must_use]
    pub fn events_fired(&self) -> u64 {
        self.events.iter().map(|event| event.fired).sum()
    }

    /// The number of ticks in which something fired.
    #[must_use]
    pub fn ticks_visited(&self) -> u64 {
        self.ticks
    }

    /// The number of groups of a tick.
    #[must_use]
    pub fn group_count(&self) -> u32 {
        self.groups
    }

    /// The group of an event: events of a lower group fire earlier in every tick.
    #[must_use]
    pub fn group_of(&self, event: impl AnyEvent) -> u32 {
        self.events[self.index(event.id())].group
    }

    /// How often an event has fired.
    #[must_use]
    pub fn times_fired(&self, event: impl AnyEvent) -> u64 {
        self.events[self.index(event.id())].fired
    }

    /// The event's name.
    #[must_use]
    pub fn name_of(&self, event: impl AnyEvent) -> &EventName {
        &self.labels[self.index(event.id())].name
    }

    /// Ends the run when the running handler returns. Events that are left in this tick stay pending; the next run
    /// goes on with them.
    pub fn stop(&mut self) {
        self.stop = Stop::Now;
    }

    /// Ends the run when the running tick is over.
    pub fn stop_after_tick(&mut self) {
        if self.stop == Stop::No {
            self.stop = Stop::AfterTick;
        }
    }

    /// Drops everything that is pending, values included. Every-tick events stay as they are.
    pub fn clear(&mut self) {
        for pool in self.pools.iter_mut().flatten() {
            pool.clear();
        }
        for event in &mut self.events {
            event.head = NIL;
            event.pending = 0;
            event.crowded = false;
            event.last_fired = NEVER;
        }
        if self.running == NIL {
            self.in_tick = false;
            self.group = 0;
            self.soon = self.now;
        }
        self.slab.clear();
        self.crowd.clear();
        self.due.clear();
        self.near.clear();
        self.wheel.reset(self.now);
        self.continuing = 0;
    }

    /// Drops everything that is pending and goes to `tick`, forwards or backwards.
    ///
    /// # Panics
    /// When a handler is running: a tick cannot change its own time.
    pub fn restart_at(&mut self, tick: SimTime) {
        assert!(self.running == NIL, "restart_at was called by a handler");
        self.now = tick.as_picos();
        self.clear();
    }

    /// Lets an every-tick event fire in each tick from the next one on (between runs: from the next tick that runs).
    pub fn start_every_tick(&mut self, event: crate::EveryTickEvent) {
        self.switch_every_tick(event.0.vertex, true);
    }

    /// Ends what [`Self::start_every_tick`] began; a firing left in the running tick still takes place.
    pub fn stop_every_tick(&mut self, event: crate::EveryTickEvent) {
        self.switch_every_tick(event.0.vertex, false);
    }

    fn switch_every_tick(&mut self, event: u32, on: bool) {
        let key = |index: u32| (self.events[index as usize].bucket, index);
        let continuing = u32::from(self.events[event as usize].continuing);
        match (self.every_tick.binary_search_by_key(&key(event), |&other| key(other)), on) {
            (Err(place), true) => {
                self.every_tick.insert(place, event);
                self.every_tick_continuing += continuing;
            }
            (Ok(place), false) => {
                self.every_tick.remove(place);
                self.every_tick_continuing -= continuing;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PayloadEvent, Setup, UniqueEvent};

    struct World {
        unique: Option<UniqueEvent>,
        payload: Option<PayloadEvent<u64>>,
        rng: trompe_base::Rng,
    }

    #[test]
    fn a_crowd_that_has_thinned_out_is_still_asked() {
        let mut setup = Setup::<u64>::new();
        let unique = setup.unique_event("unique", |fired: &mut u64, _| *fired += 1);
        let mut engine = setup.finalize().unwrap();
        let (mut fired, far) = (0, 1 << 40);
        let put = |engine: &mut crate::Engine<u64>, ticks: std::ops::Range<u64>| {
            for tick in ticks {
                engine.scheduler_mut().schedule_at(unique, SimTime::from_picos(far + tick)).unwrap();
            }
        };
        put(&mut engine, 0..40);
        engine.run_for(&mut fired, Duration::from_picos(far + 36)).unwrap();
        // Four are left; these are new, once each.
        put(&mut engine, 50..52);
        put(&mut engine, 50..52);
        assert_eq!((fired, engine.scheduler().outstanding(unique)), (36, 6));
        engine.run(&mut fired).unwrap();
        assert_eq!(fired, 42);
    }

    #[test]
    fn a_steady_state_allocates_nothing() {
        let mut setup = Setup::<World>::new();
        let unique = setup.unique_event("unique", |world: &mut World, s| {
            let delay = Duration::from_picos(1 + world.rng.below(1 << 20));
            s.schedule(world.unique.unwrap(), delay).unwrap();
        });
        let payload = setup.payload_event("payload", |world: &mut World, s, value: u64| {
            let delay = Duration::from_picos(1 + world.rng.below(1 << 20));
            s.send(world.payload.unwrap(), delay, value).unwrap();
        });
        let mut engine = setup.finalize().unwrap();
        let mut world = World { unique: Some(unique), payload: Some(payload), rng: trompe_base::Rng::new(5) };
        for i in 0..64 {
            engine.scheduler_mut().schedule(unique, Duration::from_picos(i)).unwrap();
            engine.scheduler_mut().send(payload, Duration::from_picos(i), i).unwrap();
        }
        engine.run_for(&mut world, Duration::from_picos(1 << 24)).unwrap();
        let nodes = engine.scheduler().slab.capacity();
        engine.run_for(&mut world, Duration::from_picos(1 << 30)).unwrap();
        assert!(engine.scheduler().events_fired() > 100_000);
        assert_eq!(engine.scheduler().slab.capacity(), nodes);
        assert_eq!(engine.scheduler().outstanding(payload), 64);
    }
}
