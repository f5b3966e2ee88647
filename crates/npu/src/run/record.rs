//! What happened: one record per task and synchronisation, from which summary and timeline are made.

use serde::Serialize;

use crate::compile::Lane;
use crate::cycles::Model;
use crate::ops::Op;

/// The record that a start waited for: core and index, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause(u64);

impl Cause {
    pub(crate) const NONE: Self = Self(u64::MAX);

    pub(crate) const fn new(core: u32, record: usize) -> Self {
        Self((core as u64) << 32 | record as u64)
    }

    pub(crate) const fn get(self) -> Option<(usize, usize)> {
        if self.0 == u64::MAX {
            None
        } else {
            Some(((self.0 >> 32) as usize, (self.0 & 0xffff_ffff) as usize))
        }
    }
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Task,
    Set,
    Wait,
}

/// One task or synchronisation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) quantity: u64,
    pub(crate) cause: Cause,
    pub(crate) instr: u32,
    /// Cycle of dispatch.
    pub(crate) issued: u64,
    pub(crate) op: Op,
    pub(crate) actor: u8,
    pub(crate) what: What,
    pub(crate) model: Model,
    /// Flag, event or phase number of a synchronisation.
    pub(crate) detail: u32,
}

/// Names of the actors: lane and pipe, by number.
pub(crate) fn actor_name(actor: usize) -> (Lane, &'static str) {
    match actor {
        0..5 => (Lane::Cube, ["S", "MTE2", "MTE1", "M", "FIX"][actor]),
        5..9 => (Lane::Vec0, ["S", "MTE2", "V", "MTE3"][actor - 5]),
        _ => (Lane::Vec1, ["S", "MTE2", "V", "MTE3"][actor - 9]),
    }
}

/// How a pipe spent its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipeUse {
    /// Core.
    pub core: u32,
    /// Lane, for example `vec0`.
    pub lane: &'static str,
    /// Pipe.
    pub pipe: &'static str,
    /// Tasks done.
    pub tasks: u64,
    /// Cycles at work.
    pub busy: u64,
    /// Cycles in waits for events, flags and phases, by what it waited for, longest first.
    pub stalls: Vec<(String, u64)>,
    /// Cycle at which it ended.
    pub end: u64,
}

/// A task on the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Core.
    pub core: u32,
    pub(crate) actor: u8,
    pub(crate) instr: u32,
    /// First cycle.
    pub start: u64,
    /// One past the last cycle.
    pub end: u64,
}

impl Step {
    /// Lane and pipe, for example `cube.MTE2`.
    #[must_use]
    pub fn pipe(&self) -> String {
        let (lane, pipe) = actor_name(self.actor.into());
        format!("{}.{pipe}", lane.name())
    }
}

/// Everything of a core, for the timeline.
#[derive(Debug)]
pub struct CoreTimeline {
    pub(crate) core: u32,
    pub(crate) records: Vec<Record>,
}
