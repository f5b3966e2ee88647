//! The next few hundred ticks: a ring of bitmaps, one bit per tick and bucket.
//!
//! Most schedulings are of an event without a value, alone in its bucket, for a tick soon. All that has to be kept of them is
//! one bit: no node, no list. A ring slot has a bit per bucket, a summary of its words, and a bit among the occupied slots;
//! what a mark costs does not depend on how many there are. A tick's slot is emptied into the buckets when the tick begins.
//!
//! Whoever marks promises that the tick is less than [`Near::span`] ahead of the tick that runs next; then no two ticks ever
//! share a slot, as time only goes on.

use crate::bitmap::Bitmap;

/// Most ticks of a ring.
const MOST: usize = 1_024;
/// Words of all slots together: a quarter of a megabyte, which stays in the second cache.
const WORDS: usize = 1 << 15;
/// A shorter ring than this is not worth asking.
const LEAST: usize = 8;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Near {
    /// Ticks of the ring, a power of two; 0 for none.
    span: u64,
    /// Words of a slot.
    width: usize,
    /// A summary bit stands for `1 << coarse` words.
    coarse: u32,
    words: Vec<u64>,
    /// By slot: which words may have a bit.
    summaries: Vec<u64>,
    /// Slots with a bit.
    occupied: Vec<u64>,
    /// Words of `occupied` with a bit.
    top: u64,
}

impl Near {
    pub(super) fn new(buckets: usize) -> Self {
        let width = buckets.div_ceil(64).max(1);
        let slots = (WORDS / width).min(MOST);
        let slots = if slots < LEAST { 0 } else { 1 << slots.ilog2() };
        Self {
            span: slots as u64,
            width,
            coarse: width.div_ceil(64).next_power_of_two().ilog2(),
            words: vec![0; slots * width],
            summaries: vec![0; slots],
            occupied: vec![0; slots.div_ceil(64)],
            top: 0,
        }
    }

    /// How far ahead of the tick that runs next a mark may lie.
    #[inline]
    pub(super) const fn span(&self) -> u64 {
        self.span
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.top == 0
    }

    #[inline]
    const fn slot(&self, tick: u64) -> usize {
        (tick & (self.span - 1)) as usize
    }

    /// Marks a bucket at a tick; false when it was marked before.
    #[inline]
    pub(super) fn mark(&mut self, tick: u64, bucket: u32) -> bool {
        let slot = self.slot(tick);
        let index = bucket as usize >> 6;
        let word = &mut self.words[slot * self.width + index];
        let (before, bit) = (*word, 1 << (bucket & 63));
        *word = before | bit;
        self.summaries[slot] |= 1 << (index >> self.coarse);
        self.occupied[slot >> 6] |= 1 << (slot & 63);
        self.top |= 1 << (slot >> 6);
        before & bit == 0
    }

    /// Whether a bucket is marked at a tick that is not out of reach.
    #[inline]
    pub(super) fn contains(&self, tick: u64, bucket: u32) -> bool {
        let word = self.words[self.slot(tick) * self.width + (bucket as usize >> 6)];
        word >> (bucket & 63) & 1 == 1
    }

    /// Takes a mark back; returns whether there was one.
    pub(super) fn unmark(&mut self, tick: u64, bucket: u32) -> bool {
        if !self.contains(tick, bucket) {
            return false;
        }
        let (slot, index) = (self.slot(tick), bucket as usize >> 6);
        self.words[slot * self.width + index] &= !(1 << (bucket & 63));
        let part = index >> self.coarse;
        let first = part << self.coarse;
        let last = (first + (1 << self.coarse)).min(self.width);
        if self.words[slot * self.width + first..slot * self.width + last].iter().all(|&word| word == 0) {
            self.summaries[slot] &= !(1 << part);
            if self.summaries[slot] == 0 {
                self.emptied(slot);
            }
        }
        true
    }

    #[inline]
    fn emptied(&mut self, slot: usize) {
        let word = &mut self.occupied[slot >> 6];
        *word &= !(1 << (slot & 63));
        if *word == 0 {
            self.top &= !(1 << (slot >> 6));
        }
    }

    /// The earliest marked tick; `soon` is the tick that runs next, which no mark precedes.
    #[inline]
    pub(super) fn first(&self, soon: u64) -> Option<u64> {
        if self.top == 0 {
            return None;
        }
        let start = self.slot(soon);
        let at = start >> 6;
        let here = self.occupied[at] & (!0 << (start & 63));
        let slot = if here != 0 {
            at << 6 | here.trailing_zeros() as usize
        } else {
            // Later words, else round the ring to the first one; there the bits before `start` are the latest.
            let later = self.top & (!1 << at);
            let word = if later == 0 { self.top } else { later }.trailing_zeros() as usize;
            word << 6 | self.occupied[word].trailing_zeros() as usize
        };
        Some(soon + (slot.wrapping_sub(start) as u64 & (self.span - 1)))
    }

    /// Moves the marks of a tick to its buckets.
    #[inline]
    pub(super) fn empty_into(&mut self, tick: u64, buckets: &mut Bitmap) {
        let slot = self.slot(tick);
        let base = slot * self.width;
        let mut summary = std::mem::take(&mut self.summaries[slot]);
        while summary != 0 {
            let part = summary.trailing_zeros() as usize;
            summary &= summary - 1;
            if self.coarse == 0 {
                buckets.insert_word(part, std::mem::take(&mut self.words[base + part]));
                continue;
            }
            let first = part << self.coarse;
            let last = (first + (1 << self.coarse)).min(self.width);
            for index in first..last {
                let word = std::mem::take(&mut self.words[base + index]);
                if word != 0 {
                    buckets.insert_word(index, word);
                }
            }
        }
        self.emptied(slot);
    }

    /// Takes all marks back.
    pub(super) fn clear(&mut self) {
        while self.top != 0 {
            let word = self.top.trailing_zeros() as usize;
            let slot = word << 6 | self.occupied[word].trailing_zeros() as usize;
            self.words[slot * self.width..][..self.width].fill(0);
            self.summaries[slot] = 0;
            self.emptied(slot);
        }
    }

    /// The marked ticks of a bucket; `soon` as in [`Self::first`].
    pub(super) fn ticks_of(&self, bucket: u32, soon: u64) -> impl Iterator<Item = u64> {
        (soon..soon + self.span).filter(move |&tick| self.contains(tick, bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set_of_ticks_and_buckets(
            buckets in prop_oneof![1usize..300, 4_000usize..9_000],
            steps in proptest::collection::vec((any::<u32>(), 0u64..2_000, 0u8..4), 1..200),
        ) {
            let mut near = Near::new(buckets);
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            let mut soon = 5;
            for (bucket, ahead, action) in steps {
                let bucket = bucket % buckets as u32;
                let tick = soon + ahead % near.span();
                match action {
                    0 | 1 => prop_assert_eq!(near.mark(tick, bucket), model.insert((tick, bucket))),
                    2 => prop_assert_eq!(near.unmark(tick, bucket), model.remove(&(tick, bucket))),
                    _ => {
                        let Some(first) = model.first().map(|first| first.0) else { continue };
                        let mut found = Bitmap::new(buckets);
                        near.empty_into(first, &mut found);
                        let expect: Vec<u32> = model.iter().filter(|one| one.0 == first).map(|one| one.1).collect();
                        let mut got = Vec::new();
                        while let Some(bucket) = found.first() {
                            found.remove(bucket);
                            got.push(bucket);
                        }
                        prop_assert_eq!(got, expect);
                        model.retain(|one| one.0 != first);
                        soon = first + 1;
                    }
                }
                prop_assert_eq!(near.first(soon), model.first().map(|first| first.0));
                prop_assert_eq!(near.is_empty(), model.is_empty());
                let ticks: Vec<u64> = model.iter().filter(|one| one.1 == bucket).map(|one| one.0).collect();
                prop_assert_eq!(near.ticks_of(bucket, soon).collect::<Vec<_>>(), ticks);
            }
            near.clear();
            prop_assert!(near.is_empty() && near.words.iter().all(|&word| word == 0));
        }
    }
}
