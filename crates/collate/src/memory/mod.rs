//! Device memory over a run, from the events of the framework's caching allocator and of the driver.
//!
//! The allocator's events carry what was asked for; what `torch.cuda.max_memory_allocated` counts is the block that
//! was given, which may be larger. [`blocks`] repeats the allocator's rule for splitting blocks, so that the sums are
//! the framework's own. Its statistics at exit, where there are any, are compared with ours.

mod blocks;
mod live;
mod owners;
mod statistics;

use std::collections::BTreeMap;

use trompe_base::Bytes;
use trompe_trace::job::{Memory, MemorySample, Note, OutOfMemory, Severity};
use trompe_trace::reader::Names;
use trompe_trace::record::Record;

pub(crate) use live::Live;

use crate::walk::{MemoryEvent, Walk};
use blocks::Blocks;

/// `CUDACachingAllocator::TraceEntry::Action` numbers (`c10/core/CachingDeviceAllocator.h`).
pub(crate) mod action {
    pub(crate) const ALLOC: u8 = 0;
    pub(crate) const FREE_REQUESTED: u8 = 1;
    pub(crate) const FREE_COMPLETED: u8 = 2;
    pub(crate) const SEGMENT_ALLOC: u8 = 3;
    pub(crate) const SEGMENT_FREE: u8 = 4;
    pub(crate) const SEGMENT_MAP: u8 = 5;
    pub(crate) const SEGMENT_UNMAP: u8 = 6;
    pub(crate) const OUT_OF_MEMORY: u8 = 8;
}

/// Points that a timeline keeps at most.
const TIMELINE_POINTS: usize = 4000;

/// Reads the memory of one process; `rows` maps events of the walk to events of the job trace.
pub(crate) fn memory(walk: &Walk<'_>, names: &Names<'_>, rows: &[usize]) -> (Memory, Vec<Note>) {
    let row = |at: usize| rows.get(at).or(rows.last()).copied().unwrap_or(0) as u64;
    let mut state = State::new(names);
    for (index, event) in walk.memory.iter().enumerate() {
        state.apply(index, event, walk, row(event.at));
    }
    state.finish(walk, names)
}

struct State {
    blocks: Blocks,
    framework: bool,
    total: i128,
    peak_total: u64,
    peak_allocated: (u64, usize),
    peak_reserved: u64,
    charges: BTreeMap<String, i128>,
    timeline: Vec<MemorySample>,
    out_of_memory: Vec<OutOfMemory>,
    /// The latest failure has not been followed by a success.
    failing: bool,
    capacity: u64,
}

impl State {
    fn new(names: &Names<'_>) -> Self {
        Self {
            blocks: Blocks::default(),
            framework: false,
            total: 0,
            peak_total: 0,
            peak_allocated: (0, 0),
            peak_reserved: 0,
            charges: BTreeMap::new(),
            timeline: Vec::new(),
            out_of_memory: Vec::new(),
            failing: false,
            capacity: statistics::capacity(names).unwrap_or(0),
        }
    }

    fn apply(&mut self, index: usize, event: &MemoryEvent<'_>, walk: &Walk<'_>, row: u64) {
        match &event.record {
            Record::Malloc { address: 0, bytes, .. } => self.failed(*bytes, event, walk, row),
            Record::Malloc { bytes, .. } => {
                self.failing = false;
                self.change(i128::from(*bytes));
            }
            Record::Free { bytes, .. } => self.change(-i128::from(*bytes)),
            Record::Charge { owner, bytes, .. } => {
                *self.charges.entry((*owner).to_owned()).or_default() += i128::from(*bytes);
                self.change(i128::from(*bytes));
            }
            Record::Allocator { action: action::OUT_OF_MEMORY, bytes, .. } => {
                self.failed(*bytes, event, walk, row)
            }
            Record::Allocator { action, address, bytes, .. } => {
                self.framework = true;
                self.blocks.apply(*action, *address, *bytes);
                self.peak_reserved = self.peak_reserved.max(self.blocks.reserved());
                if self.blocks.allocated() > self.peak_allocated.0 {
                    self.peak_allocated = (self.blocks.allocated(), index);
                }
                self.sample(row);
            }
            _ => {}
        }
    }

    fn failed(&mut self, bytes: u64, event: &MemoryEvent<'_>, walk: &Walk<'_>, row: u64) {
        // The allocator tries several times, with cached memory given back in between: one failure.
        if !self.failing {
            let site = owners::owner(event, walk);
            let used = Bytes(u64::try_from(self.total).unwrap_or(0));
            self.out_of_memory.push(OutOfMemory { event: row, requested: Bytes(bytes), used, site });
        }
        self.failing = true;
    }

    fn change(&mut self, bytes: i128) {
        self.total += bytes;
        self.peak_total = self.peak_total.max(u64::try_from(self.total).unwrap_or(0));
    }

    fn sample(&mut self, event: u64) {
        let (allocated, reserved) = (Bytes(self.blocks.allocated()), Bytes(self.blocks.reserved()));
        match self.timeline.last_mut() {
            // Between two events only the highest state matters.
            Some(last) if last.event == event => {
                last.allocated = Bytes(last.allocated.0.max(allocated.0));
                last.reserved = Bytes(last.reserved.0.max(reserved.0));
            }
            _ => self.timeline.push(MemorySample { event, allocated, reserved }),
        }
    }

    fn finish(self, walk: &Walk<'_>, names: &Names<'_>) -> (Memory, Vec<Note>) {
        let mut notes = Vec::new();
        let ours = self.framework.then_some((self.peak_allocated.0, self.peak_reserved));
        let theirs = statistics::peaks(names);
        let (allocated, reserved) = choose(ours, theirs, &mut notes);
        let owners = if self.framework { owners::at_peak(walk, self.peak_allocated.1) } else { Vec::new() };
        let charges = self.charges.into_iter().filter(|(_, bytes)| *bytes > 0);
        let charges =
            charges.map(|(owner, bytes)| (owner, Bytes(u64::try_from(bytes).unwrap_or(0)))).collect();
        let memory = Memory {
            capacity: Bytes(self.capacity),
            peak_allocated: allocated.map(Bytes),
            peak_reserved: reserved.map(Bytes),
            peak_total: Bytes(self.peak_total),
            charges,
            timeline: thin(self.timeline),
            owners_at_peak: owners,
            out_of_memory: self.out_of_memory,
        };
        (memory, notes)
    }
}

/// The framework's own numbers where they agree with ours or stand alone. They are lower than ours when the program
/// has reset its statistics; then ours, which cover the whole run, are taken.
fn choose(
    ours: Option<(u64, u64)>,
    theirs: Option<(u64, u64)>,
    notes: &mut Vec<Note>,
) -> (Option<u64>, Option<u64>) {
    let (Some((allocated, reserved)), Some((their_allocated, their_reserved))) = (ours, theirs) else {
        let either = ours.or(theirs);
        return (either.map(|e| e.0), either.map(|e| e.1));
    };
    if (allocated, reserved) == (their_allocated, their_reserved) {
        return (Some(allocated), Some(reserved));
    }
    let text = format!(
        "peak memory from the allocator's events is {} allocated and {} reserved, PyTorch's statistics say {} and {}",
        Bytes(allocated),
        Bytes(reserved),
        Bytes(their_allocated),
        Bytes(their_reserved)
    );
    // A thousandth covers allocator settings that round sizes in other ways.
    let close = |a: u64, b: u64| a.abs_diff(b) <= b / 1000;
    if close(allocated, their_allocated) && close(reserved, their_reserved) || their_allocated > allocated {
        let hint = "PyTorch's numbers are reported".to_owned();
        notes.push(Note { severity: Severity::Info, text, hint: Some(hint) });
        return (Some(their_allocated), Some(their_reserved.max(reserved)));
    }
    let hint =
        "the program has reset its peak statistics: the peaks of the whole run are reported".to_owned();
    notes.push(Note { severity: Severity::Info, text, hint: Some(hint) });
    (Some(allocated), Some(reserved))
}

/// Keeps the highest sample of each of [`TIMELINE_POINTS`] equal parts.
fn thin(samples: Vec<MemorySample>) -> Vec<MemorySample> {
    if samples.len() <= TIMELINE_POINTS {
        return samples;
    }
    let part = samples.len().div_ceil(TIMELINE_POINTS);
    samples
        .chunks(part)
        .filter_map(|chunk| chunk.iter().max_by_key(|s| (s.allocated, s.reserved)).copied())
        .collect()
}
