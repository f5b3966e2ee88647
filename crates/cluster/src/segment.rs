//! Where a rank's steps begin and end in simulated time.
//!
//! A step ends when the last device operation that was launched for it (or before it) is done. That is a point of the
//! device's time: the host may be several steps ahead, and says nothing about how long a step takes.

use trompe_results::Kind;

use crate::account::{Account, KINDS, Times};

/// Work that was launched in one segment, whenever it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    /// Picoseconds of host time, waiting excluded.
    pub(crate) host: u64,
    outstanding: u64,
    ever: bool,
    /// By kind: summed picoseconds of operations, overlapped or not, and their number.
    pub(crate) kinds: [(u64, u64); KINDS],
}

/// A point between two segments.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) times: Times,
}

/// The segments of one rank: what precedes the first step, the steps, what follows the last one.
#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) work: Vec<Work>,
    /// The ends of segments that are over; the last segment has none.
    pub(crate) marks: Vec<Mark>,
    /// The segment that the host is in.
    host: usize,
    /// When the host came to the end of each segment before that.
    passed: Vec<u64>,
}

impl Segments {
    pub(crate) fn new(boundaries: usize) -> Self {
        Self { work: vec![Work::default(); boundaries + 1], marks: Vec::new(), host: 0, passed: Vec::new() }
    }

    /// The segment that the host is in.
    pub(crate) fn current(&self) -> usize {
        self.host
    }

    /// The host launches an operation.
    pub(crate) fn launched(&mut self) {
        let work = &mut self.work[self.host];
        work.outstanding += 1;
        work.ever = true;
    }

    /// An operation that was launched in `segment` is done; returns whether segments may be over now.
    pub(crate) fn done(&mut self, segment: u32) -> bool {
        let work = &mut self.work[segment as usize];
        work.outstanding -= 1;
        work.outstanding == 0
    }

    /// Counts the time of an operation that was launched in `segment`.
    pub(crate) fn count(&mut self, segment: u32, kind: Kind, time: u64) {
        let work = &mut self.work[segment as usize];
        let (sum, count) = &mut work.kinds[kind as usize];
        *sum += time;
        *count += 1;
    }

    /// The host comes to the end of its segment at its own time `at`.
    pub(crate) fn pass(&mut self, at: u64) {
        self.passed.push(at);
        self.host += 1;
    }

    /// Ends every segment that is over at `now`.
    pub(crate) fn close(&mut self, now: u64, account: &mut Account) {
        while let Some(&passed) = self.passed.get(self.marks.len()) {
            let work = &self.work[self.marks.len()];
            if work.outstanding > 0 {
                return;
            }
            // Without device work a segment lasts as long as the host takes for it, provided that the device has
            // nothing else to do.
            let idle = self.work[..=self.host].iter().all(|work| work.outstanding == 0);
            let at = if !work.ever && idle { now.max(passed) } else { now };
            let at = at.max(self.marks.last().map_or(0, |mark| mark.at));
            self.marks.push(Mark { at, times: account.at(at).clone() });
        }
    }
}
