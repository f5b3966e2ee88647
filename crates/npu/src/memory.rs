//! Global memory, and the memories of one core.

use std::sync::RwLock;

use crate::compile::{Compiled, View};
use crate::program::Space;

/// Bytes behind one lock of global memory.
const CHUNK: usize = 1 << 16;

/// Global memory: one storage per tensor, in chunks that cores lock while they copy.
///
/// What two cores do to the same bytes without a collective between them is a race of the program (reported as such);
/// without races the content does not depend on which core ran first.
#[derive(Debug, Default)]
pub(crate) struct GlobalMemory {
    tensors: Vec<Vec<RwLock<Vec<u8>>>>,
}

impl GlobalMemory {
    /// Zero-filled storage for every tensor of the program in global memory.
    pub(crate) fn new(program: &Compiled) -> Self {
        let tensors = program.tensors.iter().map(|tensor| {
            let bytes = if tensor.view.space == Space::Gm { tensor.bytes as usize } else { 0 };
            (0..bytes.div_ceil(CHUNK))
                .map(|chunk| RwLock::new(vec![0; CHUNK.min(bytes - chunk * CHUNK)]))
                .collect()
        });
        Self { tensors: tensors.collect() }
    }

    /// Calls `visit` with the pieces of `start..start + length` of a tensor and their distance from `start`.
    fn pieces(start: usize, length: usize, mut visit: impl FnMut(usize, std::ops::Range<usize>, usize)) {
        let mut done = 0;
        while done < length {
            let at = start + done;
            let (chunk, inside) = (at / CHUNK, at % CHUNK);
            let take = (CHUNK - inside).min(length - done);
            visit(chunk, inside..inside + take, done);
            done += take;
        }
    }

    pub(crate) fn read(&self, tensor: u32, start: u64, out: &mut [u8]) {
        let chunks = &self.tensors[tensor as usize];
        Self::pieces(start as usize, out.len(), |chunk, range, at| {
            let data = chunks[chunk].read().expect("no thread panics while it copies");
            out[at..at + range.len()].copy_from_slice(&data[range]);
        });
    }

    pub(crate) fn write(&self, tensor: u32, start: u64, bytes: &[u8]) {
        let chunks = &self.tensors[tensor as usize];
        Self::pieces(start as usize, bytes.len(), |chunk, range, at| {
            let mut data = chunks[chunk].write().expect("no thread panics while it copies");
            let length = range.len();
            data[range].copy_from_slice(&bytes[at..at + length]);
        });
    }

    /// The whole content of a tensor.
    pub(crate) fn content(&self, tensor: u32, bytes: u64) -> Vec<u8> {
        let mut out = vec![0; bytes as usize];
        self.read(tensor, 0, &mut out);
        out
    }
}

/// A memory of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub(crate) enum Bank {
    L1,
    L0a,
    L0b,
    L0c,
    Ub0,
    Ub1,
    Gm,
}

impl Bank {
    /// Where `space` is for a lane with this sub-block.
    pub(crate) const fn of(space: Space, sub_block: usize) -> Self {
        match space {
            Space::Gm => Self::Gm,
            Space::L1 => Self::L1,
            Space::L0a => Self::L0a,
            Space::L0b => Self::L0b,
            Space::L0c => Self::L0c,
            Space::Ub if sub_block == 0 => Self::Ub0,
            Space::Ub => Self::Ub1,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::L1 => "l1",
            Self::L0a => "l0a",
            Self::L0b => "l0b",
            Self::L0c => "l0c",
            Self::Ub0 => "ub of vec0",
            Self::Ub1 => "ub of vec1",
            Self::Gm => "gm",
        }
    }
}

/// The memories of one core.
#[derive(Debug, Default)]
pub(crate) struct LocalMemory {
    banks: [Vec<u8>; 6],
}

impl LocalMemory {
    /// As much of each memory as the program uses.
    pub(crate) fn new(program: &Compiled) -> Self {
        let size = |space| program.used.get(&space).copied().unwrap_or(0).next_multiple_of(256) as usize;
        let spaces = [Space::L1, Space::L0a, Space::L0b, Space::L0c, Space::Ub, Space::Ub];
        Self { banks: spaces.map(|space| vec![0; size(space)]) }
    }

    pub(crate) fn bank(&self, bank: Bank) -> &[u8] {
        &self.banks[bank as usize]
    }

    pub(crate) fn bank_mut(&mut self, bank: Bank) -> &mut [u8] {
        &mut self.banks[bank as usize]
    }

    /// Two different memories, one to read and one to write.
    pub(crate) fn pair(&mut self, from: Bank, to: Bank) -> (&[u8], &mut [u8]) {
        let [a, b] = self.banks.get_disjoint_mut([from as usize, to as usize]).expect("two memories");
        (a, b)
    }
}

/// The bytes that one operand touches: `outer x inner` runs of `length` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    /// Which operand, for messages.
    pub(crate) operand: &'static str,
    pub(crate) view: View,
    pub(crate) bank: Bank,
    pub(crate) write: bool,
    pub(crate) start: i64,
    pub(crate) length: u64,
    pub(crate) inner: u64,
    pub(crate) inner_step: i64,
    pub(crate) outer: u64,
    pub(crate) outer_step: i64,
    /// Runs are blocks of 32 bytes of which the vector mask picks lanes.
    pub(crate) masked: bool,
}

impl Region {
    /// One run.
    pub(crate) const fn run(operand: &'static str, view: View, bank: Bank, length: u64) -> Self {
        Self {
            operand,
            view,
            bank,
            write: false,
            start: view.offset as i64,
            length,
            inner: 1,
            inner_step: 0,
            outer: 1,
            outer_step: 0,
            masked: false,
        }
    }

    /// So many runs, `step` bytes apart.
    pub(crate) const fn times(mut self, count: u64, step: i64) -> Self {
        self.inner = count;
        self.inner_step = step;
        self
    }

    /// So many groups of runs, `step` bytes apart.
    pub(crate) const fn again(mut self, count: u64, step: i64) -> Self {
        self.outer = count;
        self.outer_step = step;
        self
    }

    /// Starting `bytes` later.
    pub(crate) const fn skip(mut self, bytes: u64) -> Self {
        self.start += bytes as i64;
        self
    }

    pub(crate) const fn writes(mut self) -> Self {
        self.write = true;
        self
    }

    /// Bytes touched.
    pub(crate) const fn bytes(&self) -> u64 {
        self.length * self.inner * self.outer
    }

    /// First byte and one past the last byte.
    pub(crate) fn span(&self) -> (i64, i64) {
        let reach = |count: u64, step: i64| (count.saturating_sub(1) as i64).saturating_mul(step);
        let (inner, outer) = (reach(self.inner, self.inner_step), reach(self.outer, self.outer_step));
        let low = self.start.saturating_add(inner.min(0)).saturating_add(outer.min(0));
        let high = self.start.saturating_add(inner.max(0)).saturating_add(outer.max(0));
        (low, high.saturating_add(self.length.min(i64::MAX as u64) as i64))
    }
}

/// Footprint of an instruction: at most six operands, no allocation.
#[derive(Debug, Default)]
pub(crate) struct Footprint {
    regions: [Option<Region>; 6],
    count: usize,
}

impl Footprint {
    pub(crate) fn add(&mut self, region: Region) {
        if region.bytes() > 0 {
            self.regions[self.count] = Some(region);
            self.count += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().flatten()
    }
}
