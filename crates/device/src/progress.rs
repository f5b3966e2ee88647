//! How far streams have come, as the program can see it.
//!
//! Nothing runs, so nothing takes time; but a program that asks right after it enqueued something whether that is over
//! must be told "not yet", as on a real device, or it leaves out the waiting that makes a later kernel depend on it.
//! Work is over when the host has waited for it, directly or through a stream that waits for it, or when the program
//! has asked for it a few times ([`PATIENCE`]), so that a loop that asks until it is over ends. Only counting decides,
//! never a clock: the same program is told the same.
//!
//! Beside that, each stream sums up what its work is thought to take, for programs that choose by measuring. It also
//! knows where such a measuring loop began: nothing but launches of a kernel or two and fills since then. Kernels of the
//! program's own are measured by their autotuner; those of the framework and its libraries are part of programs too, so
//! they are only taken for measured where fills, which empty the caches, stand between them.

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
    /// Operations before the last one that is part of no measuring loop: equal to [`Position::work`] outside of such a
    /// loop.
    pub loop_since: u64,
    /// The same if only kernels that the program made itself are measured.
    pub made_since: u64,
    /// Fills before it.
    pub fills: u64,
}

/// What was enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A kernel that the program made itself.
    Made {
        /// Its number.
        kernel: u32,
    },
    /// A kernel of the framework, or a call of a library.
    Given {
        /// Its number.
        kernel: u32,
    },
    /// A fill, as measuring loops use to empty caches.
    Fill,
    /// Anything else.
    Other,
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
    /// The kernels of the measuring loop that may be under way.
    looping: Vec<u32>,
}

/// Different kernels in a measuring loop.
const LOOPING: usize = 2;
/// Operations between two points of a measuring loop from which on it is taken for one.
const LOOP: u64 = 4;
/// Of so many operations of a loop that measures the framework's kernels, one at least is a fill.
const PER_FILL: u64 = 3;
/// A loop that measures how often to repeat itself is told that it takes this many times as long.
const STRETCH: u64 = 64;

/// Progress of all streams of the process.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    streams: BTreeMap<StreamId, Stream>,
}

impl Progress {
    /// Something was enqueued on a stream.
    pub fn enqueue(&mut self, stream: StreamId, device: DeviceIndex) {
        self.enqueue_work(stream, device, Work::Other, 0);
    }

    /// Something was enqueued on a stream, thought to take so long.
    pub fn enqueue_work(&mut self, stream: StreamId, device: DeviceIndex, work: Work, ns: u64) {
        let stream = self.streams.entry(stream).or_default();
        stream.device = device;
        let before = stream.enqueued.work;
        stream.enqueued.work += 1;
        stream.enqueued.busy_ns = stream.enqueued.busy_ns.saturating_add(ns);
        stream.asked = 0;
        match work {
            Work::Fill => stream.enqueued.fills += 1,
            Work::Made { kernel } | Work::Given { kernel } => {
                if !stream.looping.contains(&kernel) {
                    if stream.looping.len() == LOOPING {
                        stream.looping.clear();
                    }
                    if stream.looping.is_empty() {
                        stream.enqueued.loop_since = before;
                    }
                    stream.looping.push(kernel);
                }
                if matches!(work, Work::Given { .. }) {
                    stream.enqueued.made_since = stream.enqueued.work;
                }
            }
            Work::Other => {
                stream.looping.clear();
                stream.enqueued.loop_since = stream.enqueued.work;
            }
        }
    }

    /// Nanoseconds that the work between two points of a stream is thought to take; `None` when there is none. Programs
    /// measure a few repetitions to choose how many follow: those are told to be long, so that few follow.
    #[must_use]
    pub fn busy_between(from: Position, to: Position) -> Option<u64> {
        let busy = to.busy_ns.checked_sub(from.busy_ns).filter(|busy| *busy > 0)?;
        let (count, fills) = (to.work - from.work, to.fills - from.fills);
        let measured = from.work >= to.made_since || fills * PER_FILL >= count;
        let repeats = from.work >= to.loop_since && count >= LOOP && measured;
        Some(if repeats { busy.saturating_mul(STRETCH) } else { busy })
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
            self.enqueue(waiting, device);
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
        progress.enqueue_work(ONE, DEVICE, Work::Other, 5);
        progress.finish_stream(ONE);
        assert!(progress.ask(ONE, progress.position(ONE).work));
        assert_eq!(
            progress.position(ONE),
            Position { work: 1, busy_ns: 5, loop_since: 1, ..Position::default() }
        );
    }

    #[test]
    fn a_loop_that_asks_ends() {
        let mut progress = Progress::default();
        progress.enqueue(ONE, DEVICE);
        let answers = (0..).map(|_| progress.ask(ONE, 1)).take_while(|over| !over).count();
        assert_eq!(answers, PATIENCE as usize);
        progress.enqueue(ONE, DEVICE);
        assert!(progress.ask(ONE, 1), "what was over stays over");
        assert!(!progress.ask(ONE, 2));
    }

    #[test]
    fn waiting_for_a_stream_is_waiting_for_what_it_waits_for() {
        let mut progress = Progress::default();
        progress.enqueue(TWO, DEVICE);
        progress.wait((ONE, DEVICE), TWO, 1);
        assert!(!progress.is_over(ONE, 1), "the wait is work");
        progress.enqueue(TWO, DEVICE);
        progress.finish_stream(ONE);
        assert!(progress.is_over(TWO, 1));
        assert!(!progress.is_over(TWO, 2), "but not for what came later");
        progress.finish_device(DEVICE);
        assert!(progress.is_over(TWO, 2));
    }

    #[test]
    fn loops_that_measure_are_told_to_be_long() {
        let mut progress = Progress::default();
        let launch = |progress: &mut Progress, work| {
            progress.enqueue_work(ONE, DEVICE, work, 10);
            progress.position(ONE)
        };
        let start = launch(&mut progress, Work::Other);
        assert_eq!(Progress::busy_between(start, start), None);
        let one = launch(&mut progress, Work::Made { kernel: 1 });
        assert_eq!(Progress::busy_between(start, one), Some(10), "a single repetition is as long as it is");
        for _ in 0..4 {
            launch(&mut progress, Work::Fill);
            launch(&mut progress, Work::Made { kernel: 1 });
        }
        let end = progress.position(ONE);
        assert_eq!(Progress::busy_between(start, end), Some(90 * STRETCH));
        let start = end;
        for _ in 0..4 {
            launch(&mut progress, Work::Given { kernel: 1 });
        }
        let end = progress.position(ONE);
        assert_eq!(Progress::busy_between(start, end), Some(40), "a program may do the same again and again");
        for _ in 0..4 {
            launch(&mut progress, Work::Given { kernel: 1 });
            launch(&mut progress, Work::Fill);
        }
        let fills = progress.position(ONE);
        assert_eq!(Progress::busy_between(end, fills), Some(80 * STRETCH), "caches are emptied to measure");
        let start = fills;
        launch(&mut progress, Work::Other);
        let later = progress.position(ONE);
        assert_eq!(Progress::busy_between(start, later), Some(10), "a step of a program is no such loop");
    }
}
