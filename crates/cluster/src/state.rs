//! The moving parts of a replay: hosts, streams, copy engines, collectives under way.
//!
//! Each rank has a clock of its own. Ranks touch each other only where a collective's members meet, so a rank may run
//! ahead of the engine until its next arrival, as long as it has no collective under way whose end is not known; then
//! it goes no further than the engine's next event. Arrivals happen in engine time, in order. A rank has one engine
//! event: its next arrival, or the moment at which it looks again.
//!
//! Inside a rank, the host runs ahead of the device: its own clock advances while it launches, and what it launches
//! carries the host time at which it may start. It stops where it needs to know something about the device: at a
//! synchronisation, or when a launch queue is full.

use std::collections::VecDeque;

use trompe_engine::{Event, Scheduler};
use trompe_results::Kind;
use trompe_trace::job::JobTrace;

use crate::account::Account;
use crate::collective::CollectiveModel;
use crate::contention::Guest;
use crate::error::SimulationError;
use crate::log::{Cause, Log, Tail};
use crate::options::Options;
use crate::plan::{Plan, RankPlan, TemplatePlan};
use crate::queue::Queue;
use crate::recorder::Recorder;
use crate::rendezvous::Rendezvous;
use crate::segment::Segments;
use crate::variation::{Chance, Chances};
use crate::wires::Wires;

/// "At no time."
pub(crate) const NEVER: u64 = u64::MAX;

/// The world of the engine's handlers.
pub(crate) struct State<'a> {
    pub(crate) shared: Shared<'a>,
    pub(crate) model: &'a dyn CollectiveModel,
    pub(crate) ranks: Vec<RankState<'a>>,
    /// By replayed rank.
    pub(crate) events: Vec<Event>,
    pub(crate) rendezvous: Rendezvous,
    pub(crate) wires: Wires,
    /// Ranks that may be able to go on at this moment.
    pub(crate) awake: Vec<u32>,
    /// What went wrong; ends the run.
    pub(crate) error: Option<SimulationError>,
}

/// What all ranks share.
pub(crate) struct Shared<'a> {
    pub(crate) trace: &'a JobTrace,
    pub(crate) plan: &'a Plan,
    pub(crate) options: &'a Options,
    pub(crate) recorder: Recorder,
    pub(crate) launch_latency: u64,
    pub(crate) wake_latency: u64,
    pub(crate) hand_over_latency: u64,
}

/// Something that may be able to go on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Actor {
    /// A dispatch queue.
    Host(u16),
    Stream(u16),
}

/// Why a rank does not go on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Its next step lies beyond what is certain.
    Until(u64),
    /// A stream comes to a collective at the rank's own time.
    Arrive(u16),
    /// It waits for other ranks, or is over.
    Idle,
}

/// One rank.
pub(crate) struct RankState<'a> {
    /// Its row among the replayed ranks.
    pub(crate) index: u32,
    pub(crate) plan: &'a RankPlan,
    pub(crate) template: &'a TemplatePlan,
    /// Its own time.
    pub(crate) now: u64,
    /// The first dispatch queue, or the one whose turn it is.
    pub(crate) host: HostState,
    /// The others.
    pub(crate) threads: Vec<HostState>,
    /// By hand-over: done.
    pub(crate) given: Vec<bool>,
    pub(crate) streams: Vec<StreamState>,
    /// By stream: when its operation ends or its next item is launched, or [`NEVER`].
    pub(crate) at: Vec<u64>,
    /// Who may be able to go on now.
    pub(crate) work: Vec<Actor>,
    /// Streams that have come to a collective now.
    pub(crate) arrivals: Vec<u16>,
    /// Collectives under way whose end is not known.
    pub(crate) unresolved: u32,
    /// For when the engine event is pending, or [`NEVER`].
    pub(crate) alarm: u64,
    /// Bit by recording: done.
    slots: Vec<u64>,
    /// Streams that wait for a recording.
    slot_waiters: Vec<(u32, u16)>,
    /// Streams that wait for another stream: (other, its operations, waiting stream).
    stream_waiters: Vec<(u16, u32, u16)>,
    /// By device and direction.
    pub(crate) engines: Vec<CopyEngine>,
    /// By device: the streams whose operations run, when contention is modelled.
    pub(crate) guests: Vec<Vec<u16>>,
    /// Scratch space for the speeds of those.
    pub(crate) scratch: (Vec<Guest>, Vec<f64>),
    pub(crate) account: Account,
    pub(crate) segments: Segments,
    /// By row of the template's groups.
    pub(crate) groups: Vec<GroupCount>,
    /// When its last operation ended.
    pub(crate) last_end: u64,
    pub(crate) chance: Chance,
    /// What made what wait, when that is asked for.
    pub(crate) log: Option<Box<Log>>,
    /// When the host came to each of its acts, when that is asked for.
    pub(crate) host_times: Option<Vec<u64>>,
}

/// Communication of one group and operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupCount {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    pub(crate) time: u64,
    pub(crate) exposed: u64,
    pub(crate) bubble: u64,
}

/// One dispatch queue of a rank's host.
#[derive(Debug)]
pub(crate) struct HostState {
    /// Its number.
    pub(crate) queue: u16,
    /// Next act, as a place in its program.
    pub(crate) next: usize,
    /// With several queues: when it makes its next call, or [`NEVER`].
    pub(crate) at: u64,
    /// The host's own time.
    pub(crate) time: u64,
    /// The delay of the next act has passed already.
    pub(crate) charged: bool,
    pub(crate) wait: HostWait,
    /// When the wait began.
    pub(crate) wait_since: u64,
    /// The streams and the operations on them that a synchronisation waits for.
    pub(crate) targets: Vec<(u16, u32)>,
}

impl HostState {
    fn new(queue: usize) -> Self {
        Self {
            queue: queue as u16,
            next: 0,
            at: NEVER,
            time: 0,
            charged: false,
            wait: HostWait::Nothing,
            wait_since: 0,
            targets: Vec::new(),
        }
    }
}

/// What the host waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HostWait {
    #[default]
    Nothing,
    /// The operations in [`HostState::targets`].
    Targets,
    /// A recording.
    Slot(u32),
    /// Room in a stream's launch queue.
    Room(u16),
    /// A hand-over.
    Token(u32),
    /// Nothing any more: its program is over.
    Finished,
}

/// One stream.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) queue: Queue<Item>,
    pub(crate) enqueued: u32,
    pub(crate) completed: u32,
    pub(crate) running: Running,
    /// The head of the queue is registered as waiting for something.
    pub(crate) blocked: bool,
    /// How far this stream has been told to wait for the legacy default stream.
    pub(crate) after_legacy: u32,
    /// How far the legacy default stream has been told to wait for this stream.
    pub(crate) before_legacy: u32,
    /// When and why its last item was done.
    pub(crate) tail: Tail,
    /// The log's entry of what runs.
    pub(crate) entry: u32,
}

/// Something enqueued on a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// The host time at which it was launched.
    pub(crate) ready: u64,
    /// Row of the template's events.
    pub(crate) row: u32,
    /// The segment it was launched in; with [`BACKGROUND`] when it does not end one.
    segment: u32,
    pub(crate) what: Queued,
}

/// Marks the segment of what another queue than the first one launched.
const BACKGROUND: u32 = 1 << 31;

impl Item {
    pub(crate) fn new((ready, row, what): (u64, u32, Queued), segment: usize, ends: bool) -> Self {
        let segment = segment as u32 | if ends { 0 } else { BACKGROUND };
        Self { ready, row, segment, what }
    }

    /// The segment in which it was launched.
    pub(crate) const fn segment(&self) -> u32 {
        self.segment & !BACKGROUND
    }

    /// That segment, if it lasts until this is done.
    pub(crate) const fn ends(&self) -> Option<u32> {
        if self.segment & BACKGROUND == 0 { Some(self.segment) } else { None }
    }
}

/// What an [`Item`] does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Queued {
    Operation {
        operation: u32,
        kind: Kind,
    },
    Collective {
        first: u32,
        count: u32,
    },
    Record {
        slot: u32,
    },
    WaitSlot {
        slot: u32,
    },
    /// Waits for operations of another stream.
    WaitStream {
        stream: u16,
        target: u32,
    },
}

/// What a stream is doing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Running {
    #[default]
    Nothing,
    /// An operation; `left` picoseconds of it at full speed remained at `since`, it goes at `speed`.
    Operation { item: Item, start: u64, since: u64, left: u64, speed: f64 },
    /// A copy that waits for its engine.
    CopyQueued { item: Item },
    /// It has come to a collective, which the engine has not seen yet.
    Arriving { item: Item },
    /// A collective.
    Collective(Underway),
}

/// A collective that a stream has come to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Underway {
    pub(crate) item: Item,
    pub(crate) arrived: u64,
    /// Its parts that still wait for other ranks.
    pub(crate) missing: u32,
    /// Its parts on the wire whose end is not known.
    pub(crate) open: u32,
    /// The end of the others.
    pub(crate) end: u64,
    /// When the first part began.
    pub(crate) transfer: u64,
    pub(crate) exposed_before: u64,
    pub(crate) bubble_before: u64,
    pub(crate) bubble: u64,
    /// Multiprocessors that it holds.
    pub(crate) channels: u32,
    /// Bytes per second of device memory that it uses while it transfers.
    pub(crate) traffic: f64,
    pub(crate) pace: Pace,
}

/// How fast a member's device lets a collective go, and what it lost by that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Against a device on which nothing else runs.
    speed: f64,
    /// Since when.
    since: u64,
    /// Picoseconds lost before that.
    lost: f64,
}

impl Pace {
    pub(crate) const fn new(now: u64) -> Self {
        Self { speed: 1.0, since: now, lost: 0.0 }
    }

    /// Picoseconds lost until now.
    pub(crate) fn lost(&self, now: u64) -> f64 {
        self.lost + now.saturating_sub(self.since) as f64 * (1.0 - self.speed)
    }

    pub(crate) fn change(&mut self, speed: f64, now: u64) {
        *self = Self { speed, since: now, lost: self.lost(now) };
    }
}

/// One copy engine: one copy at a time, first come, first served.
#[derive(Debug, Default)]
pub(crate) struct CopyEngine {
    pub(crate) busy: bool,
    pub(crate) waiting: VecDeque<u16>,
    /// The log's entry of its last copy.
    pub(crate) last: Cause,
}

impl<'a> State<'a> {
    pub(crate) fn new(
        trace: &'a JobTrace,
        plan: &'a Plan,
        model: &'a dyn CollectiveModel,
        options: &'a Options,
    ) -> Self {
        let shared = Shared {
            trace,
            plan,
            options,
            recorder: Recorder::new(options),
            launch_latency: options.launch_latency.as_picos(),
            wake_latency: options.wake_latency.as_picos(),
            hand_over_latency: options.hand_over_latency.as_picos(),
        };
        let chances = Chances::new(&options.variation);
        let ranks =
            (0..plan.ranks.len()).map(|rank| RankState::new(rank as u32, &shared, &chances)).collect();
        Self {
            shared,
            model,
            ranks,
            events: Vec::with_capacity(plan.ranks.len()),
            rendezvous: Rendezvous::default(),
            wires: Wires::default(),
            awake: Vec::new(),
            error: None,
        }
    }

    /// The engine event of a rank.
    pub(crate) fn on_alarm(&mut self, rank: u32, scheduler: &mut Scheduler) {
        self.ranks[rank as usize].alarm = NEVER;
        self.go_on(rank, scheduler);
        self.wake_all(scheduler);
    }

    /// Lets the ranks that may be able to go on do so.
    pub(crate) fn wake_all(&mut self, scheduler: &mut Scheduler) {
        while self.error.is_none()
            && let Some(rank) = self.awake.pop()
        {
            self.go_on(rank, scheduler);
        }
        if self.error.is_some() {
            scheduler.stop();
        }
    }

    /// Lets a rank go as far as is certain.
    fn go_on(&mut self, rank: u32, scheduler: &mut Scheduler) {
        let now = scheduler.now().as_picos();
        loop {
            let state = &mut self.ranks[rank as usize];
            let horizon = match state.unresolved {
                0 => NEVER,
                _ if !self.awake.is_empty() => now,
                _ => scheduler.no_event_before().map_or(NEVER, trompe_base::SimTime::as_picos),
            };
            let at = match state.advance(&mut self.shared, now, horizon) {
                Pause::Idle => return self.set_alarm(rank, NEVER, scheduler),
                Pause::Until(at) => at,
                Pause::Arrive(stream) if state.now <= now => {
                    self.arrive(rank, stream, scheduler);
                    if self.error.is_some() {
                        return;
                    }
                    continue;
                }
                Pause::Arrive(stream) => {
                    state.arrivals.push(stream);
                    state.now
                }
            };
            return self.set_alarm(rank, at, scheduler);
        }
    }

    /// Lets the engine event of a rank fire at `at`, and at no other time.
    fn set_alarm(&mut self, rank: u32, at: u64, scheduler: &mut Scheduler) {
        let state = &mut self.ranks[rank as usize];
        if state.alarm == at {
            return;
        }
        let event = self.events[rank as usize];
        if state.alarm != NEVER {
            scheduler.cancel(event);
        }
        state.alarm = at;
        if at != NEVER {
            scheduler
                .schedule_at(event, trompe_base::SimTime::from_picos(at))
                .expect("all events of a replay are of one group, and ranks do not look back");
        }
    }
}

impl<'a> RankState<'a> {
    fn new(index: u32, shared: &Shared<'a>, chances: &Chances<'_>) -> Self {
        let plan: &'a Plan = shared.plan;
        let (rank, template) = (&plan.ranks[index as usize], plan.template_of(index as usize));
        let streams = template.streams.len();
        let contends = shared.options.contention.is_some();
        Self {
            index,
            plan: rank,
            template,
            now: 0,
            host: HostState::new(0),
            threads: (1..template.queues.count()).map(HostState::new).collect(),
            given: vec![false; template.queues.tokens],
            streams: (0..streams).map(|_| StreamState::default()).collect(),
            at: vec![NEVER; streams],
            work: (0..template.queues.count()).rev().map(|queue| Actor::Host(queue as u16)).collect(),
            arrivals: Vec::new(),
            unresolved: 0,
            alarm: NEVER,
            slots: vec![0; (template.slots as usize).div_ceil(64)],
            slot_waiters: Vec::new(),
            stream_waiters: Vec::new(),
            engines: (0..template.devices * 3).map(|_| CopyEngine::default()).collect(),
            guests: if contends { vec![Vec::new(); template.devices] } else { Vec::new() },
            scratch: Default::default(),
            account: Account::default(),
            segments: Segments::new(template.boundaries.len()),
            groups: vec![GroupCount::default(); template.groups.len()],
            last_end: 0,
            chance: chances.of_rank(rank.rank),
            log: shared.options.path.map(|step| Box::new(Log::new(step, template))),
            host_times: shared.options.host_times.then(|| vec![0; template.acts.len()]),
        }
    }

    /// Goes on to `horizon` (and in any case at `engine`, the engine's time), or to a collective.
    pub(crate) fn advance(&mut self, shared: &mut Shared<'a>, engine: u64, horizon: u64) -> Pause {
        loop {
            while let Some(actor) = self.work.pop() {
                match actor {
                    Actor::Host(_) if self.threads.is_empty() => self.run_host(shared),
                    Actor::Host(queue) => self.as_queue(queue, |rank| rank.plan_call(shared)),
                    Actor::Stream(stream) => self.start_next(stream, shared),
                }
            }
            if let Some(stream) = self.arrivals.pop() {
                return Pause::Arrive(stream);
            }
            let (mut next, mut stream) = (NEVER, 0);
            for (i, &at) in self.at.iter().enumerate() {
                if at < next {
                    (next, stream) = (at, i);
                }
            }
            let call = if self.threads.is_empty() { None } else { self.next_call() };
            let call = call.filter(|&(at, _)| at <= next);
            if let Some((at, _)) = call {
                next = at;
            }
            if next == NEVER {
                return Pause::Idle;
            }
            if next >= horizon && next > engine {
                return Pause::Until(next);
            }
            self.now = next;
            if let Some((_, queue)) = call {
                self.as_queue(queue, |rank| rank.make_call(shared));
                continue;
            }
            self.at[stream] = NEVER;
            self.finish(stream as u16, shared);
            self.start_next(stream as u16, shared);
        }
    }

    /// An item of `stream` is done now: tells whoever waits for it.
    pub(crate) fn completed(&mut self, stream: u16, item: Item, shared: &mut Shared<'a>) {
        let now = self.now;
        let state = &mut self.streams[stream as usize];
        state.completed += 1;
        let (completed, why) = (state.completed, state.tail.why);
        self.last_end = now;
        if item.ends().is_some_and(|segment| self.segments.done(segment)) {
            self.segments.close(now, &mut self.account);
        }
        if !self.stream_waiters.is_empty() {
            let (work, streams) = (&mut self.work, &mut self.streams);
            self.stream_waiters.retain(|&(other, target, waiter)| {
                let waits = other != stream || completed < target;
                if !waits {
                    streams[waiter as usize].blocked = false;
                    work.push(Actor::Stream(waiter));
                }
                waits
            });
        }
        if self.threads.is_empty() {
            return self.tell_host(stream, why, shared);
        }
        self.each_queue(|rank| rank.tell_host(stream, why, shared));
    }

    /// An operation of `stream` is done: the host may be waiting for that.
    fn tell_host(&mut self, stream: u16, why: Cause, shared: &mut Shared<'a>) {
        match self.host.wait {
            HostWait::Targets => self.targets_reached(why, shared),
            HostWait::Room(full) if full == stream => self.resume_host(0, why, shared),
            _ => {}
        }
    }

    /// Whether a recording is done.
    pub(crate) fn slot_done(&self, slot: u32) -> bool {
        self.slots[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    /// Lets `stream` wait for a recording that is not done.
    pub(crate) fn wait_for_slot(&mut self, stream: u16, slot: u32) {
        self.streams[stream as usize].blocked = true;
        self.slot_waiters.push((slot, stream));
    }

    /// Lets `stream` wait for operations of `other` that are not done.
    pub(crate) fn wait_for_stream(&mut self, stream: u16, other: u16, target: u32) {
        self.streams[stream as usize].blocked = true;
        self.stream_waiters.push((other, target, stream));
    }

    /// A recording is done now, because of `why`.
    pub(crate) fn record(&mut self, slot: u32, why: Cause, shared: &mut Shared<'a>) {
        self.slots[slot as usize / 64] |= 1 << (slot % 64);
        if let Some(log) = &mut self.log {
            log.recorded(slot, Tail { at: self.now, why });
        }
        if !self.slot_waiters.is_empty() {
            let (work, streams) = (&mut self.work, &mut self.streams);
            self.slot_waiters.retain(|&(awaited, waiter)| {
                if awaited == slot {
                    streams[waiter as usize].blocked = false;
                    work.push(Actor::Stream(waiter));
                }
                awaited != slot
            });
        }
        self.each_queue(|rank| {
            if rank.host.wait == HostWait::Slot(slot) {
                rank.resume_host(shared.wake_latency, why, shared);
            }
        });
    }
}
