//! The block bookkeeping of PyTorch's caching allocator, repeated from its events.
//!
//! An allocation takes a free block and gives back what is left of it only when that is worth it: at least 512 bytes
//! in the small pool and under expandable segments, more than 1 MiB otherwise (`should_split` in
//! `c10/cuda/CUDACachingAllocator.cpp`). The block that remains is what the statistics count. Free neighbours in the
//! same segment become one block.

use std::collections::{BTreeMap, BTreeSet};

use super::action;

/// Sizes are rounded up to this (`kMinBlockSize`).
const MIN_BLOCK: u64 = 512;
/// Allocations up to this come from the small pool (`kSmallSize`).
const SMALL: u64 = 1 << 20;

/// Addresses and sizes beyond are damage.
const LAST: u64 = 1 << 56;

/// All blocks of one process.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Free blocks: begin and end.
    free: BTreeMap<u64, u64>,
    /// Blocks in use: begin and size.
    used: BTreeMap<u64, u64>,
    /// Freed by the program, still waiting for a stream: begin and size.
    pending: BTreeMap<u64, u64>,
    /// Begin of each segment that came in one piece: blocks do not grow together across it.
    borders: BTreeSet<u64>,
    /// Begins of mapped ranges: expandable segments.
    expandable: bool,
    allocated: u64,
    reserved: u64,
}

impl Blocks {
    /// Bytes in blocks in use.
    pub(super) const fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Bytes in segments.
    pub(super) const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Follows one event.
    pub(super) fn apply(&mut self, action: u8, address: u64, bytes: u64) {
        // No real address is near the end of the range: a damaged one must not overflow.
        if address > LAST || bytes > LAST {
            return;
        }
        match action {
            action::ALLOC => self.allocate(address, bytes),
            action::FREE_REQUESTED => {
                if let Some(size) = self.used.remove(&address) {
                    self.allocated = self.allocated.saturating_sub(size);
                    self.pending.insert(address, size);
                }
            }
            action::FREE_COMPLETED => {
                if let Some(size) = self.pending.remove(&address) {
                    self.give_back(address, address + size);
                }
            }
            action::SEGMENT_ALLOC => {
                self.reserved = self.reserved.saturating_add(bytes);
                self.borders.extend([address, address + bytes]);
                self.give_back(address, address + bytes);
            }
            action::SEGMENT_MAP => {
                self.expandable = true;
                self.reserved = self.reserved.saturating_add(bytes);
                self.give_back(address, address + bytes);
            }
            action::SEGMENT_FREE | action::SEGMENT_UNMAP => {
                self.reserved = self.reserved.saturating_sub(bytes);
                self.take(address, address + bytes);
            }
            _ => {}
        }
    }

    fn allocate(&mut self, address: u64, requested: u64) {
        let rounded = requested.max(1).next_multiple_of(MIN_BLOCK);
        // Where the free block is not known (events missed), the rounded size stands.
        let end = self
            .free
            .range(..=address)
            .next_back()
            .filter(|(_, end)| **end >= address + rounded)
            .map(|(_, end)| *end);
        let size = end.map_or(rounded, |end| {
            let rest = end - address - rounded;
            let split = if rounded <= SMALL || self.expandable { rest >= MIN_BLOCK } else { rest > SMALL };
            if split { rounded } else { rounded + rest }
        });
        self.take(address, address + size);
        self.used.insert(address, size);
        self.allocated = self.allocated.saturating_add(size);
    }

    /// Removes a range from the free blocks.
    fn take(&mut self, begin: u64, end: u64) {
        let overlapping: Vec<_> =
            self.free.range(..end).rev().take_while(|(_, e)| **e > begin).map(|(b, e)| (*b, *e)).collect();
        for (b, e) in overlapping {
            self.free.remove(&b);
            if b < begin {
                self.free.insert(b, begin);
            }
            if e > end {
                self.free.insert(end, e);
            }
        }
    }

    /// Adds a range to the free blocks, grown together with its neighbours.
    fn give_back(&mut self, mut begin: u64, mut end: u64) {
        if let Some(e) = (!self.borders.contains(&end)).then(|| self.free.remove(&end)).flatten() {
            end = e;
        }
        if !self.borders.contains(&begin)
            && let Some((b, e)) = self.free.range(..begin).next_back().map(|(b, e)| (*b, *e))
            && e == begin
        {
            self.free.remove(&b);
            begin = b;
        }
        self.free.insert(begin, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn run(events: &[(u8, u64, u64)]) -> (u64, u64) {
        let mut blocks = Blocks::default();
        for (action, address, bytes) in events {
            blocks.apply(*action, *address, *bytes);
        }
        (blocks.allocated(), blocks.reserved())
    }

    #[test]
    fn small_blocks_are_rounded_and_split() {
        use action::*;
        assert_eq!(run(&[(SEGMENT_ALLOC, 0, 2 * MIB), (ALLOC, 0, 1000), (ALLOC, 1024, 4)]), (1536, 2 * MIB));
    }

    #[test]
    fn a_large_block_keeps_a_rest_of_up_to_a_mebibyte() {
        use action::*;
        let segment = (SEGMENT_ALLOC, 0, 20 * MIB);
        assert_eq!(run(&[segment, (ALLOC, 0, 19 * MIB)]).0, 20 * MIB);
        assert_eq!(run(&[segment, (ALLOC, 0, 18 * MIB)]).0, 18 * MIB);
        // Expandable segments always split.
        assert_eq!(run(&[(SEGMENT_MAP, 0, 20 * MIB), (ALLOC, 0, 19 * MIB)]).0, 19 * MIB);
    }

    #[test]
    fn freed_neighbours_grow_together_but_not_across_segments() {
        use action::*;
        let events = [
            (SEGMENT_ALLOC, 0, 20 * MIB),
            (SEGMENT_ALLOC, 20 * MIB, 20 * MIB),
            (ALLOC, 0, 10 * MIB),
            (ALLOC, 10 * MIB, 10 * MIB),
            (FREE_REQUESTED, 0, 10 * MIB),
            (FREE_REQUESTED, 10 * MIB, 10 * MIB),
            (FREE_COMPLETED, 0, 10 * MIB),
            (FREE_COMPLETED, 10 * MIB, 10 * MIB),
            (ALLOC, 0, 20 * MIB - 600),
        ];
        assert_eq!(run(&events), (20 * MIB, 40 * MIB));
    }

    #[test]
    fn memory_counts_as_free_when_the_program_gives_it_back() {
        use action::*;
        let (allocated, _) = run(&[(SEGMENT_ALLOC, 0, 2 * MIB), (ALLOC, 0, 512), (FREE_REQUESTED, 0, 512)]);
        assert_eq!(allocated, 0);
        assert_eq!(run(&[(SEGMENT_ALLOC, 0, 2 * MIB), (SEGMENT_FREE, 0, 2 * MIB)]), (0, 0));
    }
}
