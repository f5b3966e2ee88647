//! The fixed phases of a tick.

use std::fmt;

/// A part of a tick. All events of one phase fire before any event of the next one.
///
/// Phases are only names for ranges of groups: the run loop knows groups, not phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Phase {
    /// Once, before everything else of the first tick; used by start-up events only.
    StartUp,
    /// Observers that must see the state before anything moves.
    Trigger,
    /// State that is derived from the last tick.
    Update,
    /// Delivery of values that were sent to ports.
    PortUpdate,
    /// Flushes and other cancellations.
    Flush,
    /// Statistics that must see the state before the main work.
    Collection,
    /// The main work; the phase of an event that asks for no other one.
    #[default]
    Tick,
    /// Observers that must see the state after everything moved.
    PostTick,
}

impl Phase {
    /// Every phase, in the order in which they run.
    pub const ALL: [Self; 8] = [
        Self::StartUp,
        Self::Trigger,
        Self::Update,
        Self::PortUpdate,
        Self::Flush,
        Self::Collection,
        Self::Tick,
        Self::PostTick,
    ];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StartUp => "start-up",
            Self::Trigger => "trigger",
            Self::Update => "update",
            Self::PortUpdate => "port-update",
            Self::Flush => "flush",
            Self::Collection => "collection",
            Self::Tick => "tick",
            Self::PostTick => "post-tick",
        })
    }
}
