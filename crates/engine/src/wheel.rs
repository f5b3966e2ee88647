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

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Wheel {
    time: u64,
    /// Bit `l`: level `l` has a node.
    levels: u32,
    /// Per level, bit `w`: word `w` of the level's occupancy is not zero.
    summary: [u32; LEVELS],
    occupied: Vec<[u64; WORDS]>,
    slots: Vec<List>,
}

impl Wheel {
    /// An empty wheel at `time`.
    pub(crate) fn new(time: u64) -> Self {
        Self {
            time,
            levels: 0,
            summary: [0; LEVELS],
            occupied: vec![[0; WORDS]; LEVELS],
            slots: vec![List::EMPTY; LEVELS * SLOTS],
        }
    }

    /// Forgets every node and goes to `time`; the memory is kept.
    pub(crate) fn reset(&mut self, time: u64) {
        self.time = time;
        self.levels = 0;
        self.summary = [0; LEVELS];
        self.occupied.fill([0; WORDS]);
        self.slots.fill(List::EMPTY);
    }

    /// Appends `index` to the list of its tick, which must not lie before the wheel's time.
    #[inline]
    pub(crate) fn insert(&mut self, slab: &mut Slab, index: u32) {
        let (level, slot) = self.place(slab.get(index).tick);
        slab.push_back(&mut self.slots[level * SLOTS + slot], index);
        self.occupied[level][slot >> 6] |= 1 << (slot & 63);
        self.summary[level] |= 1 << (slot >> 6);
        self.levels |= 1 << level;
    }

    /// Takes `index` out.
    pub(crate) fn remove(&mut self, slab: &mut Slab, index: u32) {
        let (level, slot) = self.place(slab.get(index).tick);
        let list = &mut self.slots[level * SLOTS + slot];
        slab.unlink(list, index);
        if list.head == NIL {
            self.mark_empty(level, slot);
        }
    }

    /// The tick of the earliest node. Costs a look at each node of one slot.
    pub(crate) fn next_tick(&self, slab: &Slab) -> Option<u64> {
        let (level, slot) = self.first_slot()?;
        if level == 0 {
            return Some(self.tick_at_level_zero(slot));
        }
        Some(earliest(slab, self.slots[level * SLOTS + slot]))
    }

    /// Goes to the earliest tick that has a node and takes that tick's list, unless it lies after `limit`.
    #[inline]
    pub(crate) fn advance(&mut self, slab: &mut Slab, limit: u64) -> Option<(u64, List)> {
        let (level, slot) = self.first_slot()?;
        if level == 0 {
            let tick = self.tick_at_level_zero(slot);
            if tick > limit {
                return None;
            }
            self.time = tick;
            let list = std::mem::replace(&mut self.slots[slot], List::EMPTY);
            self.mark_empty(0, slot);
            return Some((tick, list));
        }
        self.spread(slab, level * SLOTS + slot, limit)
    }

    /// Goes to the earliest tick of slot `at` of a higher level: that tick's nodes are returned, the slot's others go
    /// to lower levels.
    fn spread(&mut self, slab: &mut Slab, at: usize, limit: u64) -> Option<(u64, List)> {
        let list = self.slots[at];
        let tick = if list.head == list.tail { slab.get(list.head).tick } else { earliest(slab, list) };
        if tick > limit {
            return None;
        }
        self.slots[at] = List::EMPTY;
        self.mark_empty(at / SLOTS, at % SLOTS);
        self.time = tick;
        if list.head == list.tail {
            return Some((tick, list));
        }
        let mut due = List::EMPTY;
        let mut index = list.head;
        while index != NIL {
            let next = slab.get(index).next;
            if slab.get(index).tick == tick {
                slab.push_back(&mut due, index);
            } else {
                self.insert(slab, index);
            }
            index = next;
        }
        Some((tick, due))
    }

    /// Level and slot of a tick.
    #[inline]
    fn place(&self, tick: u64) -> (usize, usize) {
        debug_assert!(tick >= self.time, "tick {tick} lies before the wheel's time {}", self.time);
        let level = usize::from(LEVEL_OF[(tick ^ self.time).leading_zeros() as usize]);
        (level, (tick >> (level as u32 * DIGIT_BITS)) as usize & (SLOTS - 1))
    }

    /// The earliest occupied slot.
    #[inline]
    fn first_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let word = self.summary[level].trailing_zeros() as usize;
        Some((level, word << 6 | self.occupied[level][word].trailing_zeros() as usize))
    }

    #[inline]
    fn tick_at_level_zero(&self, slot: usize) -> u64 {
        self.time & !(SLOTS as u64 - 1) | slot as u64
    }

    #[inline]
    fn mark_empty(&mut self, level: usize, slot: usize) {
        let word = &mut self.occupied[level][slot >> 6];
        *word &= !(1 << (slot & 63));
        if *word == 0 {
            self.summary[level] &= !(1 << (slot >> 6));
            if self.summary[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
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
                        wheel.insert(&mut slab, index);
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
