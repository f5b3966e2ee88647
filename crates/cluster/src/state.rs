//! The moving parts of a replay: hosts, streams, copy engines, collectives under way.
//!
//! The host of a rank runs ahead of the engine: its own clock advances while it launches, and what it launches carries
//! the host time at which it may start. It stops where it needs to know something about the device: at a
//! synchronisation, or when a launch queue is full. Streams move in engine time; each has one engine event, which
//! fires when its running operation ends or its next one has been launched.

use std::collections::VecDeque;

use trompe_engine::{Event, Scheduler};
use trompe_results::Kind;
use trompe_trace::job::JobTrace;

use crate::account::Account;
use crate::collective::CollectiveModel;
use crate::error::SimulationError;
use crate::options::Options;
use crate::plan::{Plan, TemplatePlan};
use crate::recorder::Recorder;
use crate::rendezvous::Rendezvous;
use crate::segment::Segments;
use crate::wires::Wires;

/// The world of the engine's handlers.
pub(crate) struct State<'a> {
    pub(crate) trace: &'a JobTrace,
    pub(crate) plan: &'a Plan,
    pub(crate) options: &'a Options,
    pub(crate) model: &'a dyn CollectiveModel,
    pub(crate) ranks: Vec<RankState>,
    /// The streams of all ranks, rank by rank.
    pub(crate) streams: Vec<StreamState>,
    pub(crate) rendezvous: Rendezvous,
    pub(crate) wires: Wires,
    pub(crate) recorder: Recorder,
    /// Who may be able to go on at this moment.
    pub(crate) work: Vec<Actor>,
    /// What went wrong; ends the run.
    pub(crate) error: Option<SimulationError>,
}

/// Something that may be able to go on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Actor {
    Host(u32),
    Stream(u32),
}

/// One rank.
#[derive(Debug)]
pub(crate) struct RankState {
    pub(crate) host: HostState,
    /// Index of its first stream.
    pub(crate) first_stream: u32,
    /// Bit by recording: done.
    slots: Vec<u64>,
    /// Streams that wait for a recording.
    slot_waiters: Vec<(u32, u32)>,
    /// Streams that wait for another stream: (other, its operations, waiting stream).
    stream_waiters: Vec<(u32, u32, u32)>,
    /// By device and direction.
    pub(crate) engines: Vec<CopyEngine>,
    pub(crate) account: Account,
    pub(crate) segments: Segments,
    /// By row of the template's groups.
    pub(crate) groups: Vec<GroupCount>,
    /// When its last operation ended.
    pub(crate) last_end: u64,
}

/// Communication of one group and operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupCount {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    pub(crate) time: u64,
    pub(crate) exposed: u64,
}

/// The host program of one rank.
#[derive(Debug, Default)]
pub(crate) struct HostState {
    /// Next act.
    pub(crate) next: usize,
    /// The host's own time.
    pub(crate) time: u64,
    /// The delay of the next act has passed already.
    pub(crate) charged: bool,
    pub(crate) wait: HostWait,
    /// When the wait began.
    pub(crate) wait_since: u64,
    /// The streams and the operations on them that a synchronisation waits for.
    pub(crate) targets: Vec<(u32, u32)>,
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
    Room(u32),
    /// Nothing any more: its program is over.
    Finished,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) rank: u32,
    /// Its place in the template.
    pub(crate) local: u16,
    pub(crate) queue: VecDeque<Item>,
    pub(crate) enqueued: u32,
    pub(crate) completed: u32,
    pub(crate) running: Running,
    /// The head of the queue is registered as waiting for something.
    pub(crate) blocked: bool,
    /// The stream's engine event is pending.
    pub(crate) alarm: bool,
    /// How far this stream has been told to wait for the legacy default stream.
    pub(crate) after_legacy: u32,
    /// How far the legacy default stream has been told to wait for this stream.
    pub(crate) before_legacy: u32,
    pub(crate) event: Option<Event>,
}

/// Something enqueued on a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// The host time at which it was launched.
    pub(crate) ready: u64,
    /// Row of the template's events.
    pub(crate) row: u32,
    /// The segment it was launched in.
    pub(crate) segment: u32,
    pub(crate) what: Queued,
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
    /// Waits for operations of another stream (an index into all streams).
    WaitStream {
        stream: u32,
        target: u32,
    },
}

/// What a stream is doing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Running {
    Nothing,
    /// An operation that ends with the stream's engine event.
    Operation {
        item: Item,
        start: u64,
    },
    /// A copy that waits for its engine.
    CopyQueued {
        item: Item,
    },
    /// A collective; `missing` of its parts still wait for other ranks, `open` are on the wire.
    Collective {
        item: Item,
        arrived: u64,
        missing: u32,
        open: u32,
        transfer: u64,
        exposed_before: u64,
    },
}

/// One copy engine: one copy at a time, first come, first served.
#[derive(Debug, Default)]
pub(crate) struct CopyEngine {
    pub(crate) busy: bool,
    pub(crate) waiting: VecDeque<u32>,
}

impl<'a> State<'a> {
    pub(crate) fn new(
        trace: &'a JobTrace,
        plan: &'a Plan,
        model: &'a dyn CollectiveModel,
        options: &'a Options,
    ) -> Self {
        let mut state = Self {
            trace,
            plan,
            options,
            model,
            ranks: Vec::with_capacity(plan.ranks.len()),
            streams: Vec::new(),
            rendezvous: Rendezvous::default(),
            wires: Wires::new(trace, plan),
            recorder: Recorder::new(options),
            work: Vec::new(),
            error: None,
        };
        for rank in 0..plan.ranks.len() {
            state.add_rank(rank as u32);
        }
        state
    }

    fn add_rank(&mut self, rank: u32) {
        let template = self.plan.template_of(rank as usize);
        self.ranks.push(RankState {
            host: HostState::default(),
            first_stream: self.streams.len() as u32,
            slots: vec![0; (template.slots as usize).div_ceil(64)],
            slot_waiters: Vec::new(),
            stream_waiters: Vec::new(),
            engines: (0..template.devices * 2).map(|_| CopyEngine::default()).collect(),
            account: Account::default(),
            segments: Segments::new(template.boundaries.len()),
            groups: vec![GroupCount::default(); template.groups.len()],
            last_end: 0,
        });
        for local in 0..template.streams.len() {
            self.streams.push(StreamState {
                rank,
                local: local as u16,
                queue: VecDeque::new(),
                enqueued: 0,
                completed: 0,
                running: Running::Nothing,
                blocked: false,
                alarm: false,
                after_legacy: 0,
                before_legacy: 0,
                event: None,
            });
        }
        self.work.push(Actor::Host(rank));
    }

    /// The template that a rank follows.
    pub(crate) fn template(&self, rank: u32) -> &'a TemplatePlan {
        self.plan.template_of(rank as usize)
    }

    /// Lets everyone go on who can.
    pub(crate) fn work(&mut self, scheduler: &mut Scheduler) {
        while let Some(actor) = self.work.pop() {
            match actor {
                Actor::Host(rank) => self.run_host(rank, scheduler),
                Actor::Stream(stream) => self.advance(stream, scheduler),
            }
            if self.error.is_some() {
                scheduler.stop();
                return;
            }
        }
    }

    /// An item of `stream` is done at `now`: tells whoever waits for it.
    pub(crate) fn completed(&mut self, stream: u32, segment: u32, now: u64) {
        let state = &mut self.streams[stream as usize];
        state.completed += 1;
        let (completed, rank_id) = (state.completed, state.rank);
        let rank = &mut self.ranks[rank_id as usize];
        rank.last_end = now;
        if rank.segments.done(segment) {
            rank.segments.close(now, &mut rank.account);
        }
        if !rank.stream_waiters.is_empty() {
            let (work, streams) = (&mut self.work, &mut self.streams);
            rank.stream_waiters.retain(|&(other, target, waiter)| {
                let waits = other != stream || completed < target;
                if !waits {
                    streams[waiter as usize].blocked = false;
                    work.push(Actor::Stream(waiter));
                }
                waits
            });
        }
        match rank.host.wait {
            HostWait::Targets => self.targets_reached(rank_id, now),
            HostWait::Room(full) if full == stream => self.resume_host(rank_id, now, 0),
            _ => {}
        }
    }

    /// Whether a recording is done.
    pub(crate) fn slot_done(&self, rank: u32, slot: u32) -> bool {
        self.ranks[rank as usize].slots[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    /// Lets `stream` wait for a recording that is not done.
    pub(crate) fn wait_for_slot(&mut self, stream: u32, slot: u32) {
        let state = &mut self.streams[stream as usize];
        state.blocked = true;
        self.ranks[state.rank as usize].slot_waiters.push((slot, stream));
    }

    /// Lets `stream` wait for operations of `other` that are not done.
    pub(crate) fn wait_for_stream(&mut self, stream: u32, other: u32, target: u32) {
        let state = &mut self.streams[stream as usize];
        state.blocked = true;
        self.ranks[state.rank as usize].stream_waiters.push((other, target, stream));
    }

    /// A recording is done at `now`.
    pub(crate) fn record(&mut self, rank_id: u32, slot: u32, now: u64) {
        let rank = &mut self.ranks[rank_id as usize];
        rank.slots[slot as usize / 64] |= 1 << (slot % 64);
        let (work, streams) = (&mut self.work, &mut self.streams);
        rank.slot_waiters.retain(|&(awaited, waiter)| {
            if awaited == slot {
                streams[waiter as usize].blocked = false;
                work.push(Actor::Stream(waiter));
            }
            awaited != slot
        });
        if rank.host.wait == HostWait::Slot(slot) {
            self.resume_host(rank_id, now, self.options.wake_latency.as_picos());
        }
    }
}
