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
    let mut state = State::default();
    for (index, event) in walk.memory.iter().enumerate() {
        state.apply(index, event, walk, row(event.at));
    }
    state.finish(walk, names)
}

/// One device as the process uses it.
#[derive(Default)]
struct Device {
    blocks: Blocks,
    /// The framework's allocator works here.
    framework: bool,
    total: i128,
    peak_total: u64,
    /// Highest allocated bytes and the memory event that reached them.
    peak_allocated: (u64, usize),
    peak_reserved: u64,
    charges: BTreeMap<String, i128>,
    /// The charges when the most was in use, and whether they have changed since: a job that ends in order gives its
    /// communicators' buffers back.
    charges_at_peak: BTreeMap<String, i128>,
    charged_since: bool,
    timeline: Vec<MemorySample>,
}

impl Device {
    fn change(&mut self, bytes: i128) {
        self.total += bytes;
        let total = u64::try_from(self.total).unwrap_or(0);
        if total > self.peak_total {
            self.peak_total = total;
            if std::mem::take(&mut self.charged_since) {
                self.charges_at_peak.clone_from(&self.charges);
            }
        }
    }

    fn allocator(&mut self, index: usize, (action, address, bytes): (u8, u64, u64), row: u64) {
        self.framework = true;
        self.blocks.apply(action, address, bytes);
        self.peak_reserved = self.peak_reserved.max(self.blocks.reserved());
        if self.blocks.allocated() > self.peak_allocated.0 {
            self.peak_allocated = (self.blocks.allocated(), index);
        }
        self.sample(row);
    }

    fn sample(&mut self, event: u64) {
        let (allocated, reserved) = (Bytes(self.blocks.allocated()), Bytes(self.blocks.reserved()));
        match self.timeline.last_mut() {
            // Between two events only the highest state matters.
            Some(last) if last.event == event => {
                last.allocated = last.allocated.max(allocated);
                last.reserved = last.reserved.max(reserved);
            }
            _ => self.timeline.push(MemorySample { event, allocated, reserved }),
        }
    }
}

#[derive(Default)]
struct State {
    devices: BTreeMap<u32, Device>,
    /// Memory from the driver: begin → end and device.
    ranges: BTreeMap<u64, (u64, u32)>,
    out_of_memory: Vec<OutOfMemory>,
    /// The latest failure has not been followed by a success.
    failing: bool,
}

impl State {
    fn apply(&mut self, index: usize, event: &MemoryEvent<'_>, walk: &Walk<'_>, row: u64) {
        match &event.record {
            Record::Malloc { address: 0, bytes, device, .. } => {
                self.failed((*bytes, device.0), event, walk, row)
            }
            Record::Malloc { bytes, address, device, .. } => {
                self.failing = false;
                self.ranges.insert(*address, (address.saturating_add(*bytes), device.0));
                self.devices.entry(device.0).or_default().change(i128::from(*bytes));
            }
            Record::Free { bytes, address, device, .. } => {
                self.ranges.remove(address);
                self.devices.entry(device.0).or_default().change(-i128::from(*bytes));
            }
            Record::Charge { owner, bytes, device } => {
                let device = self.devices.entry(device.0).or_default();
                *device.charges.entry((*owner).to_owned()).or_default() += i128::from(*bytes);
                device.charged_since = true;
                device.change(i128::from(*bytes));
            }
            Record::Allocator { action: action::OUT_OF_MEMORY, bytes, .. } => {
                let device = self.devices.keys().next().copied().unwrap_or(0);
                self.failed((*bytes, device), event, walk, row);
            }
            Record::Allocator { action, address, bytes, .. } => {
                let device = self.device_of(*address);
                self.devices.entry(device).or_default().allocator(index, (*action, *address, *bytes), row);
            }
            _ => {}
        }
    }

    /// The device of an address; the first one where nobody told.
    fn device_of(&self, address: u64) -> u32 {
        let range = self.ranges.range(..=address).next_back().filter(|(_, (end, _))| address < *end);
        range.map(|(_, (_, device))| *device).or_else(|| self.devices.keys().next().copied()).unwrap_or(0)
    }

    fn failed(&mut self, (bytes, device): (u64, u32), event: &MemoryEvent<'_>, walk: &Walk<'_>, row: u64) {
        // The allocator tries several times, with cached memory given back in between: one failure.
        if !self.failing {
            let total = self.devices.get(&device).map_or(0, |device| device.total);
            let used = Bytes(u64::try_from(total).unwrap_or(0));
            let site = owners::owner(event, walk);
            self.out_of_memory.push(OutOfMemory { event: row, requested: Bytes(bytes), used, site });
        }
        self.failing = true;
    }

    fn finish(self, walk: &Walk<'_>, names: &Names<'_>) -> (Memory, Vec<Note>) {
        let mut notes = Vec::new();
        let used = self.devices.values().filter(|device| device.peak_total > 0).count();
        if used > 1 {
            let text = format!("one process uses {used} devices; the memory shown is that of the fullest");
            notes.push(Note { severity: Severity::Info, text, hint: None });
        }
        // The fullest; of equals the first.
        let fullest = self.devices.into_iter().max_by_key(|(index, device)| {
            (device.peak_total, device.peak_allocated.0, std::cmp::Reverse(*index))
        });
        let (index, device) = fullest.unwrap_or_default();
        let ours = device.framework.then_some((device.peak_allocated.0, device.peak_reserved));
        let theirs = statistics::peaks(names, index);
        let (allocated, reserved) = choose(ours, theirs, &mut notes);
        let owners =
            if device.framework { owners::at_peak(walk, device.peak_allocated.1) } else { Vec::new() };
        let charges = device.charges_at_peak.into_iter().filter(|(_, bytes)| *bytes > 0);
        let charges =
            charges.map(|(owner, bytes)| (owner, Bytes(u64::try_from(bytes).unwrap_or(0)))).collect();
        let memory = Memory {
            capacity: Bytes(statistics::capacity(names).unwrap_or(0)),
            peak_allocated: allocated.map(Bytes),
            peak_reserved: reserved.map(Bytes),
            peak_total: Bytes(device.peak_total),
            charges,
            timeline: thin(device.timeline),
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
