//! One pass over a worker trace in time order.
//!
//! Records of all threads are merged by their begin. Host time is taken from the threads that enqueue device work
//! (the program and the autograd engine, which take turns): the time that no record covers between two events is the
//! framework's and the program's own. Threads that go their own way ([`crate::threads`]) have clocks of their own, and
//! the time that one waited for another to hand something over is nobody's. Threads that only poll or pin memory (watchdogs, data loaders, profilers) are
//! not part of that timeline; what they do to the allocator still counts for memory.

use std::collections::BTreeMap;

use trompe_base::{DeviceIndex, StreamId, ThreadIndex};
use trompe_trace::job::{Phase, Stream};
use trompe_trace::reader::{Entry, Names, WorkerTrace};
use trompe_trace::record::{MarkerKind, Record};

use crate::operator::{Begin, Frame, FrameKind, Stack, is_optimizer_step, tell_double_backward};
use crate::threads::Threads;

/// Something that the host did, not yet interpreted.
#[derive(Clone, Debug)]
pub(crate) struct RawEvent<'a> {
    /// Who.
    pub thread: ThreadIndex,
    /// Ticks of uncovered host time before it.
    pub gap: u64,
    /// What.
    pub record: Record<'a>,
    /// Innermost open frame.
    pub frame: Option<usize>,
    /// Outermost mark of the program that is open on the thread.
    pub mark: Option<&'a str>,
    /// Part of the step.
    pub phase: Phase,
    /// Place in the program on whose behalf the thread communicates.
    pub place: Option<&'a str>,
}

/// A record about memory and the number of events before it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryEvent<'a> {
    /// Events before it.
    pub at: usize,
    /// The record.
    pub record: Record<'a>,
    /// Innermost open frame.
    pub frame: Option<usize>,
    /// Part of the step.
    pub phase: Phase,
}

/// A range that the program marks, in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark<'a> {
    /// Text.
    pub text: &'a str,
    /// Events before its begin.
    pub begin: usize,
    /// Events before its end.
    pub end: usize,
}

impl Mark<'_> {
    /// The same range in other events: `rows[i]` is the new number of event `i`, with one more entry for the end.
    pub(crate) fn moved(self, rows: &[usize]) -> Self {
        Self { begin: rows[self.begin], end: rows[self.end], ..self }
    }
}

/// A communicator as one process announced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawCommunicator {
    /// Equal on all members.
    pub identity: u64,
    /// Members.
    pub size: u32,
    /// This process's place.
    pub rank: u32,
    /// Global ranks; empty when not known.
    pub members: Vec<u32>,
}

impl RawCommunicator {
    /// Whether the place of a member is its global rank: all ranks in order, or members that are not told.
    pub(crate) fn is_of_all(&self) -> bool {
        let last = self.members.len().wrapping_sub(1) as u32;
        self.members.is_empty() || self.members.first() == Some(&0) && self.members.last() == Some(&last)
    }

    /// This process and the member at `peer` of a communicator of all ranks.
    pub(crate) fn pair(&self, peer: u32) -> Self {
        use std::hash::Hasher as _;
        let members = vec![self.rank.min(peer), self.rank.max(peer)];
        let mut hasher = siphasher::sip::SipHasher13::new();
        hasher.write_u64(self.identity);
        members.iter().for_each(|rank| hasher.write_u32(*rank));
        Self { identity: hasher.finish(), size: 2, rank: u32::from(self.rank > peer), members }
    }
}

/// What one pass finds.
#[derive(Debug, Default)]
pub(crate) struct Walk<'a> {
    /// Events of the host timeline.
    pub events: Vec<RawEvent<'a>>,
    /// Operators.
    pub frames: Vec<Frame<'a>>,
    /// Allocator events, driver allocations and charges, of all threads.
    pub memory: Vec<MemoryEvent<'a>>,
    /// Ranges of the program.
    pub marks: Vec<Mark<'a>>,
    /// Events before the end of each optimizer step.
    pub optimizer_ends: Vec<usize>,
    /// Streams.
    pub streams: BTreeMap<StreamId, Stream>,
    /// Communicators by the process's own id.
    pub communicators: BTreeMap<u32, RawCommunicator>,
    /// Calls per API id.
    pub calls: BTreeMap<u16, u64>,
    /// Records lost: reason and number.
    pub dropped: BTreeMap<&'a str, u64>,
}

/// Whether a record puts work on a device.
pub(crate) const fn enqueues(record: &Record<'_>) -> bool {
    matches!(
        record,
        Record::Launch { .. }
            | Record::Gemm { .. }
            | Record::Convolution { .. }
            | Record::Attention { .. }
            | Record::Rnn { .. }
            | Record::Library { .. }
            | Record::Collective { .. }
            | Record::Copy { .. }
            | Record::Set { .. }
            | Record::HostFunction { .. }
            | Record::GraphLaunch { .. }
    )
}

/// Whether a record becomes an event of the host timeline.
const fn is_event(record: &Record<'_>) -> bool {
    enqueues(record)
        || matches!(
            record,
            Record::EventRecord { .. }
                | Record::StreamWaitEvent { .. }
                | Record::EventSynchronize { .. }
                | Record::EventQuery { .. }
                | Record::StreamSynchronize { .. }
                | Record::DeviceSynchronize { .. }
                | Record::Malloc { .. }
                | Record::Free { .. }
                | Record::CaptureBegin { .. }
                | Record::CaptureEnd { .. }
                | Record::GraphInstantiate { .. }
                | Record::Give { .. }
                | Record::Take { .. }
        )
}

/// Whether the trace has any device work.
pub(crate) fn has_device_work(trace: &WorkerTrace) -> bool {
    trace.entries().any(|entry| enqueues(&entry.record))
}

/// Walks over a trace.
pub(crate) fn walk<'a>(trace: &'a WorkerTrace, names: &Names<'a>) -> Walk<'a> {
    let entries = trace.sorted();
    let observed = entries.iter().any(|entry| matches!(entry.record, Record::OperatorBegin { .. }));
    let queues = Threads::of(&entries);
    // A record without a time (zero) is no begin: the clock counts from the machine's start.
    let begin = |queue: usize| {
        let of = |e: &&Entry<'_>| {
            e.stamp.begin > 0
                && queues.works(e.thread)
                && queues.queue(e.thread) == queue
                && !queues.passes_over(e)
        };
        entries.iter().find(of).map_or(0, |e| e.stamp.begin)
    };
    let lanes = (0..queues.count()).map(|queue| Lane { cursor: begin(queue), gap: 0 }).collect();
    let main = queues.first.unwrap_or(trace.pid());
    let mut walker = Walker { lanes, observed, main, queues, ..Walker::new(names) };
    // The program's own thread is the first one when there are several queues.
    if let Some(first) = walker.queues.first {
        walker.threads.insert(first, (ThreadIndex(0), Thread::default()));
    }
    for entry in entries {
        walker.take(entry);
    }
    walker.finish()
}

#[derive(Default)]
struct Thread<'a> {
    stack: Stack,
    marks: Vec<(&'a str, usize)>,
    place: Option<&'a str>,
}

/// The clock of one dispatch queue.
struct Lane {
    /// End of the latest record of its threads, in ticks.
    cursor: u64,
    /// Uncovered ticks since its latest event.
    gap: u64,
}

struct Walker<'n, 'a> {
    names: &'n Names<'a>,
    found: Walk<'a>,
    threads: BTreeMap<u32, (ThreadIndex, Thread<'a>)>,
    /// Which threads are queues of their own.
    queues: Threads,
    /// The clocks of the queues.
    lanes: Vec<Lane>,
    /// Operators were recorded.
    observed: bool,
    /// The process's first thread.
    main: u32,
    /// Ticks that observing adds to the operator of [`MEASURED_BYTES`].
    operator_cost: f64,
}

/// Packed inputs and outputs of the operator whose observation is measured (`hook.nanoseconds_per_operator`): four
/// tensors of one dimension and a number. Half of the cost is taken to be the operator's, most of it at its begin, half
/// to grow with what there is to describe.
const MEASURED_BYTES: f64 = 4.0 * 28.0 + 9.0;

impl<'n, 'a> Walker<'n, 'a> {
    fn new(names: &'n Names<'a>) -> Self {
        let nanoseconds = names.meta.get("hook.nanoseconds_per_operator").and_then(|text| text.parse().ok());
        let operator_cost = nanoseconds.unwrap_or(0.0f64).max(0.0) / names.clock.length_nanos(1);
        Self {
            names,
            found: Walk::default(),
            threads: BTreeMap::new(),
            queues: Threads::default(),
            lanes: Vec::new(),
            observed: true,
            main: 0,
            operator_cost,
        }
    }

    /// Ticks that the observer took to describe an operator before it handed it over.
    fn observing(&self, record: &Record<'_>) -> u64 {
        let share = match record {
            Record::OperatorBegin { values, .. } => 0.375 + values.len() as f64 / (2.0 * MEASURED_BYTES),
            Record::OperatorEnd { values } => 0.125 + values.len() as f64 / (2.0 * MEASURED_BYTES),
            _ => return 0,
        };
        (share * self.operator_cost) as u64
    }

    fn take(&mut self, entry: Entry<'a>) {
        if self.queues.passes_over(&entry) {
            return;
        }
        let (working, queue) = (self.queues.works(entry.thread), self.queues.queue(entry.thread));
        if let Some(api) = entry.record.api() {
            *self.found.calls.entry(api).or_default() += 1;
        }
        if working {
            let observing = self.observing(&entry.record);
            let lane = &mut self.lanes[queue];
            let uncovered = entry.stamp.begin.saturating_sub(lane.cursor);
            lane.gap += uncovered.saturating_sub(observing);
            lane.cursor = lane.cursor.max(entry.stamp.begin + u64::from(entry.stamp.ticks));
        }
        let next = ThreadIndex(self.threads.len() as u32);
        let (index, thread) = self.threads.entry(entry.thread).or_insert_with(|| (next, Thread::default()));
        let at = self.found.events.len();
        let frame = thread.stack.top();
        let phase = if self.observed {
            thread.stack.phase(&self.found.frames)
        } else {
            unobserved_phase(&entry, queue > 0 || entry.thread == self.main, self.names)
        };
        match entry.record {
            Record::OperatorBegin { name, scope, sequence, values, .. } => {
                let name = self.names.operators.get(&name).copied().unwrap_or("unnamed operator");
                thread
                    .stack
                    .push(Begin { name, scope, sequence, inputs: values, at }, &mut self.found.frames);
            }
            Record::OperatorEnd { values } => {
                if let Some(row) = thread.stack.pop(values, &mut self.found.frames) {
                    self.found.close(row, at);
                }
            }
            Record::Place { place } => thread.place = self.names.places.get(&place).copied(),
            Record::Marker { kind, text } => match kind {
                MarkerKind::Push => thread.marks.push((text, at)),
                MarkerKind::Pop => {
                    if let Some((text, begin)) = thread.marks.pop() {
                        self.found.marks.push(Mark { text, begin, end: at });
                    }
                }
                MarkerKind::Instant => self.found.marks.push(Mark { text, begin: at, end: at }),
            },
            record => {
                if matches!(
                    record,
                    Record::Allocator { .. }
                        | Record::Malloc { .. }
                        | Record::Free { .. }
                        | Record::Charge { .. }
                ) {
                    self.found.memory.push(MemoryEvent { at, record: record.clone(), frame, phase });
                }
                if working && (is_event(&record) || pins_memory(&record, self.names)) {
                    let mark = thread.marks.first().map(|(text, _)| *text);
                    let gap = std::mem::take(&mut self.lanes[queue].gap);
                    let place = thread.place;
                    let thread = *index;
                    let event = RawEvent { thread, gap, record, frame, mark, phase, place };
                    let Record::Take { token } = event.record else {
                        self.found.events.push(event);
                        return;
                    };
                    // What passed through another thread has several givers; the time is the first one's.
                    for (at, token) in self.queues.sources(token, entry.thread).iter().enumerate() {
                        let record = Record::Take { token: *token };
                        let gap = if at == 0 { event.gap } else { 0 };
                        self.found.events.push(RawEvent { gap, record, ..event.clone() });
                    }
                } else {
                    self.found.announce(record);
                }
            }
        }
    }

    fn finish(self) -> Walk<'a> {
        let mut found = self.found;
        let end = found.events.len();
        tell_double_backward(&mut found.frames);
        let frames = &found.frames;
        let settled = |frame: Option<usize>, phase: Phase| frame.map_or(phase, |row| frames[row].phase);
        found.events.iter_mut().for_each(|event| event.phase = settled(event.frame, event.phase));
        found.memory.iter_mut().for_each(|event| event.phase = settled(event.frame, event.phase));
        // Ranges that were never closed (a cut trace) end with the trace.
        for (_, thread) in self.threads.into_values() {
            found.marks.extend(thread.marks.into_iter().map(|(text, begin)| Mark { text, begin, end }));
        }
        found.marks.sort_by_key(|mark| (mark.begin, std::cmp::Reverse(mark.end)));
        found
    }
}

/// The phase when no operators were recorded: what other threads than the program's enqueue is the autograd engine's, and
/// fused optimizers are known by their kernels' names.
fn unobserved_phase(entry: &Entry<'_>, of_program: bool, names: &Names<'_>) -> Phase {
    if let Record::Launch { kernel, .. } = &entry.record
        && names
            .kernels
            .get(kernel)
            .is_some_and(|kernel| FUSED_OPTIMIZERS.iter().any(|n| kernel.name.contains(n)))
    {
        return Phase::Optimizer;
    }
    if enqueues(&entry.record) && !of_program { Phase::Backward } else { Phase::Forward }
}

/// Parts of the kernel names of PyTorch's fused optimizers.
const FUSED_OPTIMIZERS: [&str; 3] = ["FusedAdam", "FusedSgd", "FusedAdagrad"];

/// Whether a plain call reserves page-locked memory, which costs the host as much as device memory does.
fn pins_memory(record: &Record<'_>, names: &Names<'_>) -> bool {
    let Record::Call { api, .. } = record else { return false };
    let name = names.apis.get(&u32::from(*api)).copied().unwrap_or_default();
    ["/cudaHostAlloc/", "/cudaMallocHost/", "/cudaHostRegister/", "/cudaFreeHost/"]
        .iter()
        .any(|n| name.contains(n))
}

impl<'a> Walk<'a> {
    /// The communicator `id` of process `pid`; one that was never announced has this process alone.
    pub(crate) fn communicator(&self, id: u32, pid: u32) -> RawCommunicator {
        let identity = u64::from(pid) << 32 | u64::from(id);
        let alone = RawCommunicator { identity, size: 1, rank: 0, members: Vec::new() };
        self.communicators.get(&id).cloned().unwrap_or(alone)
    }

    /// A frame has ended; `at` events were before that.
    fn close(&mut self, row: usize, at: usize) {
        let frame = &self.frames[row];
        if frame.kind == FrameKind::Range {
            self.marks.push(Mark { text: frame.name, begin: frame.begin, end: at });
        }
        let nested = frame.parent.is_some_and(|p| self.frames[p].phase == Phase::Optimizer);
        if is_optimizer_step(frame.name) && !nested {
            self.optimizer_ends.push(at);
        }
    }

    fn announce(&mut self, record: Record<'a>) {
        match record {
            Record::Stream { id, device: DeviceIndex(device), priority, kind } => {
                self.streams.insert(id, Stream { id, device, priority, kind });
            }
            Record::Communicator { id, identity, size, rank, members, .. } => {
                let members = members.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                let members = members.collect();
                self.communicators.insert(id, RawCommunicator { identity, size, rank, members });
            }
            Record::ApiCount { api, calls } => *self.calls.entry(api).or_default() += calls,
            Record::Dropped { records, reason } => *self.dropped.entry(reason).or_default() += records,
            _ => {}
        }
    }
}
