//! What made what wait: kept for the steps around the one whose critical path is asked for.
//!
//! Each operation gets an [`Entry`] with the [`Cause`] of its start: the launch by the host, the end of another
//! operation of the rank, or, for collectives, the arrival of the last member. The host's waits are kept likewise.
//! Following causes backwards from the end of a step gives an unbroken chain: see [`crate::path`].

use crate::plan::TemplatePlan;
use crate::state::{Item, Queued};

/// "No entry."
pub(crate) const NONE: u32 = u32::MAX;

/// Why something happened when it did, and not earlier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Not recorded.
    #[default]
    Unknown,
    /// The host came to this row of the template's events then.
    Host(u32),
    /// Another thread of the host came to this row then, and handed over.
    Given(u32),
    /// The operation of this entry ended then.
    After(u32),
}

/// The end of the last item of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tail {
    pub(crate) at: u64,
    pub(crate) why: Cause,
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) what: Queued,
    /// When it came to its stream's front, and why then.
    pub(crate) arrived: u64,
    pub(crate) why: Cause,
    /// When it began: later than `arrived` for a collective that waited.
    pub(crate) begun: u64,
    pub(crate) end: u64,
    /// For a collective: rank and entry of the member that arrived last.
    pub(crate) last: (u32, u32),
}

/// A wait of a queue of the host: its acts from place `next` on follow it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostPause {
    pub(crate) next: u32,
    /// The time before act `next` passed before the wait.
    pub(crate) charged: bool,
    /// When what it waited for happened, and why then.
    pub(crate) at: u64,
    pub(crate) why: Cause,
}

/// The log of one rank.
#[derive(Debug)]
pub(crate) struct Log {
    segments: std::ops::Range<u32>,
    pub(crate) entries: Vec<Entry>,
    /// By queue.
    pub(crate) pauses: Vec<Vec<HostPause>>,
    /// By recording.
    slots: Vec<Tail>,
}

impl Log {
    /// A log of the steps around step `step` (counted from the first one).
    pub(crate) fn new(step: usize, template: &TemplatePlan) -> Self {
        let segment = step as u32 + 1;
        Self {
            segments: segment.saturating_sub(1)..segment + 2,
            entries: Vec::new(),
            pauses: vec![Vec::new(); template.queues.count()],
            slots: vec![Tail::default(); template.slots as usize],
        }
    }

    /// An item comes to the front of its stream at `now`, because of `why`; returns its entry.
    pub(crate) fn arrived(&mut self, item: Item, now: u64, why: Cause) -> u32 {
        if !self.segments.contains(&item.segment()) {
            return NONE;
        }
        let entry = Entry { what: item.what, arrived: now, why, begun: now, end: now, last: (NONE, NONE) };
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    /// The operation of `entry` begins at `now`.
    pub(crate) fn begun(&mut self, entry: u32, now: u64, last: (u32, u32)) {
        if let Some(entry) = self.entries.get_mut(entry as usize) {
            (entry.begun, entry.last) = (now, last);
        }
    }

    /// The operation of `entry` ends at `now`.
    pub(crate) fn ended(&mut self, entry: u32, now: u64) -> Cause {
        match self.entries.get_mut(entry as usize) {
            Some(found) => {
                found.end = now;
                Cause::After(entry)
            }
            None => Cause::Unknown,
        }
    }

    pub(crate) fn recorded(&mut self, slot: u32, tail: Tail) {
        self.slots[slot as usize] = tail;
    }

    /// When and why a recording was done.
    pub(crate) fn slot(&self, slot: u32) -> Tail {
        self.slots[slot as usize]
    }
}
