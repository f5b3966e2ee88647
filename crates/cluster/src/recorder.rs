//! What the timeline will show, as plain numbers; names come in when the replay is over.

use std::ops::Range;

use trompe_results::Kind;

use crate::options::Options;
use crate::state::{Item, Queued};

/// Picoseconds from and to.
pub(crate) type Interval = (u64, u64);

/// Something that took time on a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceSpan {
    pub(crate) rank: u32,
    pub(crate) stream: u16,
    /// Row of the template's events.
    pub(crate) row: u32,
    pub(crate) what: DeviceWork,
    pub(crate) time: Interval,
}

/// What a [`DeviceSpan`] was.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeviceWork {
    Operation {
        operation: u32,
        kind: Kind,
    },
    /// The collective that starts with this call, waiting for other ranks.
    Waiting {
        call: u32,
    },
    /// The same, transferring.
    Transfer {
        call: u32,
    },
}

/// Something that took time on the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostSpan {
    pub(crate) rank: u32,
    pub(crate) what: HostWork,
    pub(crate) time: Interval,
}

/// What a [`HostSpan`] was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostWork {
    /// What came before this row of the template's events, and its call.
    Event(u32),
    /// A queue waited for the device.
    Device(u16),
    /// A queue waited for another one.
    Thread(u16),
}

/// Keeps the spans of the ranks and steps that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    ranks: u32,
    segments: Range<usize>,
    pub(crate) device: Vec<DeviceSpan>,
    pub(crate) host: Vec<HostSpan>,
}

impl Recorder {
    pub(crate) fn new(options: &Options) -> Self {
        let segments = options.timeline.map_or(0..0, |(first, count)| first + 1..first + 1 + count);
        Self { ranks: options.timeline_ranks as u32, segments, ..Self::default() }
    }

    /// The host spent `time` before and in an event.
    pub(crate) fn host(&mut self, rank: u32, segment: usize, row: usize, time: Interval) {
        if self.wants(rank, segment) && time.0 < time.1 {
            self.host.push(HostSpan { rank, what: HostWork::Event(row as u32), time });
        }
    }

    /// The host waited.
    pub(crate) fn host_wait(&mut self, rank: u32, segment: usize, what: HostWork, time: Interval) {
        if self.wants(rank, segment) {
            self.host.push(HostSpan { rank, what, time });
        }
    }

    /// An operation ran.
    pub(crate) fn device(&mut self, rank: u32, stream: u16, item: Item, time: Interval) {
        if self.wants(rank, item.segment() as usize)
            && let Queued::Operation { operation, kind } = item.what
        {
            let what = DeviceWork::Operation { operation, kind };
            self.device.push(DeviceSpan { rank, stream, row: item.row, what, time });
        }
    }

    /// A collective arrived, began its transfer and ended.
    pub(crate) fn collective(&mut self, rank: u32, stream: u16, item: Item, times: (u64, u64, u64)) {
        let Queued::Collective { first: call, .. } = item.what else { return };
        if !self.wants(rank, item.segment() as usize) {
            return;
        }
        let (arrived, transfer, end) = times;
        let mut push = |what, time| self.device.push(DeviceSpan { rank, stream, row: item.row, what, time });
        if arrived < transfer {
            push(DeviceWork::Waiting { call }, (arrived, transfer));
        }
        push(DeviceWork::Transfer { call }, (transfer, end));
    }

    fn wants(&self, rank: u32, segment: usize) -> bool {
        rank < self.ranks && self.segments.contains(&segment)
    }
}
