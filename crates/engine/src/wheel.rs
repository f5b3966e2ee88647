//! The future: a hierarchical timing wheel over the whole `u64` range.
//!
//! Level `l` has 1,024 slots of `1024^l` ticks. A node stands at the level of the highest base-1,024 digit in which
//! its tick differs from the wheel's time, in the slot of that digit (Varghese and Lauck, "Hashed and hierarchical
//! timing wheels", SOSP 1987, with digits taken from the exclusive or of both times). Three facts follow, on which
//! the engine relies:
//!
//! * The lowest occupied level holds the earliest nodes, and its first occupied slot holds the earliest of them.
//! * A node's list can be computed from its tick at any time, so it can be taken out without a search.
//! * A slot is spread over lower levels before anything can be inserted there directly, so nodes of one tick always
//!   stand in the order in which they were scheduled.

use crate::slab::{List, NIL, Slab};

const DIGIT_BITS: u32 = 10;
const SLOTS: usize = 1 << DIGIT_BITS;
const WORDS: usize = SLOTS / 64;
const LEVELS: usize = 64usize.div_ceil(DIGIT_BITS as usize);

/// The level of the highest differing digit, by the number of leading zeros of the difference.
const LEVEL_OF: [u8; 65] = {
    let mut table = [0; 65];
    let mut zeros = 0;
    while zeros < 64 {
        table[zeros] = ((63 - zeros as u32) / DIGIT_BITS) as u8;
        zeros += 1;
    }
    table
};

/// One level: its slots and which of them are occupied.
#[derive(Debug, Clone)]
struct Level {
    /// Bit `w`: word `w` of `occupied` is not zero.
    summary: u32,
    occupied: [u64; WORDS],
    slots: Box<[List; SLOTS]>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Wheel {
    time: u64,
    /// Bit `l`: level `l` has a node.
    occupied: u32,
    levels: Box<[Level; LEVELS]>,
}

impl Level {
    fn new() -> Self {
        Self { summary: 0, occupied: [0; WORDS], slots: Box::new([List::EMPTY; SLOTS]) }
    }

    /// Marks a slot as empty; returns whether the level is empty then.
    #[inline]
    fn mark_empty(&mut self, slot: usize) -> bool {
        let word = &mut self.occupied[(slot >> 6) & (WORDS - 1)];
        *word &= !(1 << (slot & 63));
        if *word == 0 {
            self.summary &= !(1 << (slot >> 6));
        }
        self.summary == 0
    }

    /// The first occupied slot of a level that has one.
    #[inline]
    fn first(&self) -> usize {
        let word = self.summary.trailing_zeros() as usize & (WORDS - 1);
        word << 6 | self.occupied[word].trailing_zeros() as usize
    }
}

impl Wheel {
    /// An empty wheel at `time`.
    pub(crate) fn new(time: u64) -> Self {
        Self { time, occupied: 0, levels: Box::new(std::array::from_fn(|_| Level::new())) }
    }

    /// Forgets every node and goes to `time`; the memory is kept.
    pub(crate) fn reset(&mut self, time: u64) {
        self.time = time;
        self.occupied = 0;
        for level in self.levels.iter_mut().filter(|level| level.summary != 0) {
            level.summary = 0;
            level.occupied = [0; WORDS];
            *level.slots = [List::EMPTY; SLOTS];
        }
    }

    /// Whether there is no node.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Appends `index` to the list of its tick, which must not lie before the wheel's time.
    #[inline]
    pub(crate) fn insert(&mut self, slab: &mut Slab, index: u32, tick: u64) {
        let (level_index, slot) = self.place(tick);
        let level = &mut self.levels[level_index];
        let list = &mut level.slots[slot & (SLOTS - 1)];
        let was_empty = list.head == NIL;
        slab.push_back(list, index);
        if was_empty {
            level.occupied[(slot >> 6) & (WORDS - 1)] |= 1 << (slot & 63);
            level.summary |= 1 << (slot >> 6);
            self.occupied |= 1 << level_index;
        }
    }

    /// Takes `index` out.
    pub(crate) fn remove(&mut self, slab: &mut Slab, index: u32) {
        let (level, slot) = self.place(slab.get(index).tick);
        let list = &mut self.levels[level].slots[slot];
        slab.unlink(list, index);
        if list.head == NIL {
            self.mark_empty(level, slot);
        }
    }

    /// The tick of the earliest node. Costs a look at each node of one slot.
    pub(crate) fn next_tick(&self, slab: &Slab) -> Option<u64> {
        let level = self.first_level()?;
        let slot = self.levels[level].first();
        Some(if level == 0 {
            self.slot_start(0, slot)
        } else {
            earliest(slab, self.levels[level].slots[slot])
        })
    }

    /// The first tick of the slot that holds the earliest node.
    pub(crate) fn first_slot_start(&self) -> Option<u64> {
        let level = self.first_level()?;
        Some(self.slot_start(level, self.levels[level].first()).max(self.time))
    }

    /// Goes to the earliest tick that has a node and takes that tick's list, unless it lies after `limit`.
    #[inline]
    pub(crate) fn advance(&mut self, slab: &mut Slab, limit: u64) -> Option<(u64, List)> {
        let level = self.first_level()?;
        let slot = self.levels[level].first();
        let start = self.slot_start(level, slot);
        if start > limit {
            return None;
        }
        if level > 0 {
            return self.spread(slab, (level, slot), limit);
        }
        self.time = start;
        Some((start, self.take(0, slot)))
    }

    /// Goes to the earliest tick of a slot of a higher level: that tick's nodes are returned, the slot's others go to
    /// lower levels. When all of them lie after `limit`, all go to lower levels, so that no list is looked at twice.
    fn spread(&mut self, slab: &mut Slab, (level, slot): (usize, usize), limit: u64) -> Option<(u64, List)> {
        let list = self.levels[level].slots[slot];
        if list.head == list.tail {
            let tick = slab.get(list.head).tick;
            if tick > limit {
                return None;
            }
            self.time = tick;
            return Some((tick, self.take(level, slot)));
        }
        let tick = earliest(slab, list);
        self.time = tick.min(limit);
        self.take(level, slot);
        let mut due = List::EMPTY;
        let mut index = list.head;
        while index != NIL {
            let node = slab.get(index);
            let (next, node_tick) = (node.next, node.tick);
            if node_tick == self.time {
                slab.push_back(&mut due, index);
            } else {
                self.insert(slab, index, node_tick);
            }
            index = next;
        }
        (due.head != NIL).then_some((tick, due))
    }

    /// Empties a slot.
    #[inline]
    fn take(&mut self, level: usize, slot: usize) -> List {
        let list = std::mem::replace(&mut self.levels[level].slots[slot & (SLOTS - 1)], List::EMPTY);
        self.mark_empty(level, slot);
        list
    }

    #[inline]
    fn mark_empty(&mut self, level: usize, slot: usize) {
        if self.levels[level].mark_empty(slot) {
            self.occupied &= !(1 << level);
        }
    }

    /// Level and slot of a tick.
    #[inline]
    fn place(&self, tick: u64) -> (usize, usize) {
        debug_assert!(tick >= self.time, "tick {tick} lies before the wheel's time {}", self.time);
        let level = usize::from(LEVEL_OF[(tick ^ self.time).leading_zeros() as usize]);
        (level, (tick >> (level as u32 * DIGIT_BITS)) as usize & (SLOTS - 1))
    }

    #[inline]
    fn first_level(&self) -> Option<usize> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as usize)
    }

    /// The first tick of a slot that lies ahead.
    #[inline]
    fn slot_start(&self, level: usize, slot: usize) -> u64 {
        let below = level as u32 * DIGIT_BITS;
        // Digits above this one are those of the wheel's time, digits below are zero.
        let above = self.time >> below >> DIGIT_BITS << DIGIT_BITS;
        (above | slot as u64) << below
    }
}

/// The least tick on a list that is not empty.
fn earliest(slab: &Slab, list: List) -> u64 {
    let mut least = u64::MAX;
    let mut index = list.head;
    while index != NIL {
        let node = slab.get(index);
        least = least.min(node.tick);
        index = node.next;
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    fn delay() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..4, 0u64..3_000, 0u64..5_000_000, 0u64..(1 << 55)]
    }

    proptest! {
        #[test]
        fn ticks_come_in_order_and_keep_the_order_of_insertion(steps in proptest::collection::vec((delay(), 0u8..4), 1..200)) {
            let (mut slab, mut wheel) = (Slab::default(), Wheel::new(0));
            let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for (delay, action) in steps {
                match action {
                    0 | 1 => {
                        let tick = wheel.time + delay;
                        let index = slab.allocate(0, tick, NIL);
                        wheel.insert(&mut slab, index, tick);
                        model.entry(tick).or_default().push(index);
                    }
                    2 => {
                        let Some((&tick, nodes)) = model.range_mut(..=wheel.time + delay).next_back() else { continue };
                        let index = nodes.remove(nodes.len() / 2);
                        if nodes.is_empty() { model.remove(&tick); }
                        wheel.remove(&mut slab, index);
                        slab.release(index);
                    }
                    _ => {
                        prop_assert_eq!(wheel.next_tick(&slab), model.keys().next().copied());
                        prop_assert!(wheel.first_slot_start() <= wheel.next_tick(&slab));
                        let limit = wheel.time + delay;
                        let expect = model.first_entry().filter(|entry| *entry.key() <= limit).map(|entry| entry.remove_entry());
                        let got = wheel.advance(&mut slab, limit).map(|(tick, list)| {
                            let (mut nodes, mut index) = (Vec::new(), list.head);
                            while index != NIL { nodes.push(index); index = slab.get(index).next; }
                            (tick, nodes)
                        });
                        prop_assert_eq!(&got, &expect);
                        for index in got.into_iter().flat_map(|(_, nodes)| nodes) { slab.release(index); }
                    }
                }
            }
        }
    }
}
