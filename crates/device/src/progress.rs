//! How far streams have come, as the program can see it.
//!
//! Nothing runs, so nothing takes time; but a program that asks right after it enqueued something whether that is over
//! must be told "not yet", as on a real device, or it leaves out the waiting that makes a later kernel depend on it.
//! Work is over when the host has waited for it, directly or through a stream that waits for it, or when the program
//! has asked for it a few times ([`PATIENCE`]), so that a loop that asks until it is over ends. Only counting decides,
//! never a clock: the same program is told the same.
//!
//! Beside that, each stream sums up what its work is thought to take, for programs that choose by measuring.

use std::collections::BTreeMap;

use trompe_base::{DeviceIndex, StreamId};

/// Questions about the same work that are answered with "not yet".
pub const PATIENCE: u32 = 8;

/// A point in a stream's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Operations before it.
    pub work: u64,
    /// What they are thought to take, in nanoseconds.
    pub busy_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    device: DeviceIndex,
    enqueued: Position,
    done: u64,
    /// Questions since something was enqueued or became over.
    asked: u32,
    /// What this stream waits for, by stream: operations there.
    waits: BTreeMap<StreamId, u64>,
}

/// Progress of all streams of the process.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    streams: BTreeMap<StreamId, Stream>,
}

impl Progress {
    /// Something was enqueued on a stream, thought to take so long.
    pub fn enqueue(&mut self, stream: StreamId, device: DeviceIndex, ns: u64) {
        let stream = self.streams.entry(stream).or_default();
        stream.device = device;
        stream.enqueued.work += 1;
        stream.enqueued.busy_ns += ns;
        stream.asked = 0;
    }

    /// The end of what is enqueued on a stream.
    #[must_use]
    pub fn position(&self, stream: StreamId) -> Position {
        self.streams.get(&stream).map_or(Position::default(), |stream| stream.enqueued)
    }

    /// A stream waits for work of another one. Waiting for what is not over is work.
    pub fn wait(&mut self, waiting: (StreamId, DeviceIndex), stream: StreamId, work: u64) {
        let (waiting, device) = waiting;
        if waiting != stream && !self.is_over(stream, work) {
            self.enqueue(waiting, device, 0);
            let place = self.streams.entry(waiting).or_default().waits.entry(stream).or_default();
            *place = (*place).max(work);
        }
    }

    /// Whether work is over.
    #[must_use]
    pub fn is_over(&self, stream: StreamId, work: u64) -> bool {
        self.streams.get(&stream).is_none_or(|stream| work <= stream.done)
    }

    /// The program asks whether work is over; it is the next time after [`PATIENCE`] times of "not yet".
    pub fn ask(&mut self, stream: StreamId, work: u64) -> bool {
        if self.is_over(stream, work) {
            return true;
        }
        let Some(state) = self.streams.get_mut(&stream) else { return true };
        state.asked += 1;
        if state.asked <= PATIENCE {
            return false;
        }
        self.finish(stream, work);
        true
    }

    /// The host has waited for work of a stream, and so for what that waited for.
    pub fn finish(&mut self, stream: StreamId, work: u64) {
        let mut pending = vec![(stream, work)];
        while let Some((stream, work)) = pending.pop() {
            let Some(state) = self.streams.get_mut(&stream).filter(|state| state.done < work) else {
                continue;
            };
            state.done = work.min(state.enqueued.work);
            state.asked = 0;
            pending.extend(std::mem::take(&mut state.waits));
        }
    }

    /// The host has waited for all work of a stream.
    pub fn finish_stream(&mut self, stream: StreamId) {
        let end = self.position(stream).work;
        self.finish(stream, end);
    }

    /// The host has waited for all work of a device.
    pub fn finish_device(&mut self, device: DeviceIndex) {
        for state in self.streams.values_mut().filter(|state| state.device == device) {
            state.done = state.enqueued.work;
            state.asked = 0;
            state.waits.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceIndex = DeviceIndex(0);
    const ONE: StreamId = StreamId(256);
    const TWO: StreamId = StreamId(257);

    #[test]
    fn an_idle_stream_is_over_at_once() {
        let mut progress = Progress::default();
        assert!(progress.ask(ONE, progress.position(ONE).work));
        progress.enqueue(ONE, DEVICE, 5);
        progress.finish_stream(ONE);
        assert!(progress.ask(ONE, progress.position(ONE).work));
        assert_eq!(progress.position(ONE), Position { work: 1, busy_ns: 5 });
    }

    #[test]
    fn a_loop_that_asks_ends() {
        let mut progress = Progress::default();
        progress.enqueue(ONE, DEVICE, 0);
        let answers = (0..).map(|_| progress.ask(ONE, 1)).take_while(|over| !over).count();
        assert_eq!(answers, PATIENCE as usize);
        progress.enqueue(ONE, DEVICE, 0);
        assert!(progress.ask(ONE, 1), "what was over stays over");
        assert!(!progress.ask(ONE, 2));
    }

    #[test]
    fn waiting_for_a_stream_is_waiting_for_what_it_waits_for() {
        let mut progress = Progress::default();
        progress.enqueue(TWO, DEVICE, 0);
        progress.wait((ONE, DEVICE), TWO, 1);
        assert!(!progress.is_over(ONE, 1), "the wait is work");
        progress.enqueue(TWO, DEVICE, 0);
        progress.finish_stream(ONE);
        assert!(progress.is_over(TWO, 1));
        assert!(!progress.is_over(TWO, 2), "but not for what came later");
        progress.finish_device(DEVICE);
        assert!(progress.is_over(TWO, 2));
    }
}
