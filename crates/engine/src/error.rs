//! What can go wrong: while an engine is set up ([`SetupError`]), when an event is scheduled ([`ScheduleError`]), and
//! while it runs ([`RunError`]).

use thiserror::Error;

use crate::cycle::Cycle;
use crate::event::EventName;
use crate::phase::Phase;

/// The set of events or its order makes no sense.
#[derive(Debug, Error)]
pub enum SetupError {
    /// Two events bear one name and index, so ties between them would have no stable order.
    #[error("two events are called `{0}`; give one of them another name or an index (`Spec::index`)")]
    DuplicateName(EventName),
    /// An edge runs against the fixed order of the phases.
    #[error(
        "`{from}` ({from_phase} phase) cannot precede `{to}` ({to_phase} phase), because the {to_phase} phase always \
         runs first; reason given: {reason}. move one of them to another phase"
    )]
    AgainstPhases {
        /// The event that was to come first.
        from: EventName,
        /// Its phase.
        from_phase: Phase,
        /// The event that was to come second.
        to: EventName,
        /// Its phase.
        to_phase: Phase,
        /// Why the edge was asked for.
        reason: String,
    },
    /// The precedence edges contradict each other.
    #[error("{0}")]
    Cycle(Cycle),
    /// A handle belongs to another engine.
    #[error("an event handle belongs to another engine; use handles only with the `Setup` that made them")]
    ForeignEvent,
    /// Two ports are bound to each other twice.
    #[error("port `{from}` is already bound to `{to}`; bind each pair once")]
    BoundTwice {
        /// The out-port.
        from: String,
        /// The in-port.
        to: String,
    },
    /// A clock has no usable period.
    #[error("clock `{clock}`: {problem}")]
    Clock {
        /// The clock's name.
        clock: String,
        /// What is wrong with it and what to do.
        problem: &'static str,
    },
}

/// An event cannot be scheduled as asked. Nothing changed, and the run goes on if the handler lets it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// Zero delay into a group that has already run in this tick.
    #[error(
        "`{running}` (group {running_group}, {running_phase} phase) cannot schedule `{event}` (group {event_group}, \
         {event_phase} phase) in the running tick {tick}, because that group has already run; schedule it one tick \
         later, or let `{event}` succeed `{running}` with `Setup::precedes`"
    )]
    EarlierGroup {
        /// The event whose handler is running.
        running: EventName,
        /// Its group.
        running_group: u32,
        /// Its phase.
        running_phase: Phase,
        /// The event that was to be scheduled.
        event: EventName,
        /// Its group.
        event_group: u32,
        /// Its phase.
        event_phase: Phase,
        /// The running tick.
        tick: u64,
    },
    /// A tick that lies behind.
    #[error("`{event}` cannot be scheduled at tick {tick}, because the engine is already at tick {now}")]
    InThePast {
        /// The event that was to be scheduled.
        event: EventName,
        /// The tick asked for.
        tick: u64,
        /// The present tick.
        now: u64,
    },
    /// A tick beyond the range of a `u64` (213 days of picoseconds).
    #[error("`{event}` cannot be scheduled {delay} ticks after tick {now}, because a tick is a `u64`")]
    TooFar {
        /// The event that was to be scheduled.
        event: EventName,
        /// The delay asked for.
        delay: u64,
        /// The present tick.
        now: u64,
    },
    /// A unique event has already fired in this tick.
    #[error(
        "unique event `{event}` has already fired in tick {tick} and fires only once per tick; schedule it one tick \
         later, or register it as a plain event"
    )]
    AlreadyFired {
        /// The event that was to be scheduled.
        event: EventName,
        /// The running tick.
        tick: u64,
    },
    /// A port that leads nowhere.
    #[error("port `{port}` is bound to nothing; bind it with `Setup::bind` before sending from it")]
    Unbound {
        /// The out-port.
        port: String,
    },
    /// A single-cycle event further ahead than the next cycle.
    #[error(
        "single-cycle event `{event}` can be scheduled for this or the next cycle only, not {cycles} cycles ahead"
    )]
    NotThisOrNextCycle {
        /// The event that was to be scheduled.
        event: EventName,
        /// The number of cycles asked for.
        cycles: u64,
    },
}

/// A run ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// Zero-delay events keep a tick from ending.
    #[error(
        "tick {tick} does not end: {events} events have fired in it, the last of them `{event}`; look for a zero-delay \
         loop, or raise the limit with `Engine::set_tick_limit`"
    )]
    Livelock {
        /// The tick that does not end.
        tick: u64,
        /// How many events have fired in it.
        events: u64,
        /// The event that fired last.
        event: EventName,
    },
    /// An [`Interrupt`](crate::Interrupt) was raised.
    #[error("the run was interrupted before tick {tick}; run again to go on")]
    Interrupted {
        /// The next tick that would have run.
        tick: u64,
    },
}
