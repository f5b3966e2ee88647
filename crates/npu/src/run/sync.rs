//! Flags, events and phases of a core.

use std::collections::{BTreeMap, VecDeque};

use crate::compile::Lane;
use crate::program::Pipe;
use crate::shadow::Clock;

use super::record::Cause;

/// Ids of cross-lane flags.
pub(super) const FLAGS: usize = 8;

/// Something set, with the cycle from which it counts, what its setter knew, and what led to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) ready: u64,
    pub(super) clock: Clock,
    pub(super) cause: Cause,
}

/// An event of one to four flags in rotation.
#[derive(Clone, Debug, Default)]
pub(super) struct EventState {
    pub(super) flags: Vec<Option<Token>>,
    pub(super) sets: usize,
    pub(super) waits: usize,
    pub(super) preset: usize,
}

impl EventState {
    /// Sets the next flag; false when it is set already.
    pub(super) fn set(&mut self, token: Token) -> bool {
        let at = self.sets % self.flags.len();
        let free = self.flags[at].is_none();
        if free {
            self.flags[at] = Some(token);
            self.sets += 1;
        }
        free
    }

    /// Takes the next flag.
    pub(super) fn take(&mut self) -> Option<Token> {
        let at = self.waits % self.flags.len();
        let token = self.flags[at].take();
        self.waits += usize::from(token.is_some());
        token
    }
}

/// A flag between two pipes of a lane.
pub(super) type FlagKey = (Lane, Pipe, Pipe, i64);

/// Which collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectiveKey {
    /// Of the vector lanes; otherwise of the cubes.
    pub(crate) vector: bool,
    pub(crate) flag: usize,
}

/// What a core knows of a collective.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collective {
    /// Per participant of the core: cycles at which it counted in.
    pub(super) arrived: [Vec<Token>; 2],
    /// Phases that each participant has taken.
    pub(super) taken: [usize; 2],
    /// Ready cycle and cause of each completed phase.
    pub(super) completed: Vec<(u64, Cause)>,
}

/// All of a core.
#[derive(Debug, Default)]
pub(super) struct Sync {
    pub(super) events: [Vec<EventState>; 3],
    pub(super) flags: BTreeMap<FlagKey, (Option<Token>, usize, usize)>,
    pub(super) to_vector: [[VecDeque<Token>; 2]; FLAGS],
    pub(super) to_cube: [[VecDeque<Token>; 2]; FLAGS],
    pub(super) collectives: BTreeMap<CollectiveKey, Collective>,
}

/// What an actor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Event(Lane, usize),
    Flag(FlagKey),
    /// The cube's phase, by a vector lane.
    Cube(usize, usize),
    /// A phase of every vector lane, by the cube.
    Vector(usize),
    Collective(CollectiveKey, usize),
    /// Until this pipe has nothing left.
    Drain(usize),
    /// Until the lane's pipes have caught up with its control actor.
    Backlog(Lane),
    /// Until no pipe of the lane has anything left.
    DrainLane(Lane),
}
