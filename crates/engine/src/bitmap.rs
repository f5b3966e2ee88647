//! A set of small integers with a fast "least member".
//!
//! Words of 64 members and one summary word above them. Up to 4,096 members each bit of the summary stands for one word;
//! beyond, for as many as it takes, which are looked through one by one: 4 for 16,384 members, 64 for a quarter of a million.

/// A set over `0..len`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    /// Bit `i`: one of the words `i << coarse..` has members.
    summary: u64,
    /// Binary logarithm of the words that a summary bit stands for.
    coarse: u32,
}

impl Bitmap {
    /// An empty set that can hold `0..len`.
    pub(crate) fn new(len: usize) -> Self {
        let words = len.div_ceil(64).max(1);
        let coarse = words.div_ceil(64).next_power_of_two().ilog2();
        Self { words: vec![0; words.next_multiple_of(1 << coarse)], summary: 0, coarse }
    }

    /// Adds `index`; returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, index: u32) -> bool {
        let at = index as usize >> 6;
        let word = &mut self.words[at];
        let (before, bit) = (*word, 1 << (index & 63));
        *word = before | bit;
        self.summary |= 1 << (at >> self.coarse & 63);
        before & bit == 0
    }

    /// Adds the members `64 * word..` whose bits are set; at least one is.
    #[inline]
    pub(crate) fn insert_word(&mut self, at: usize, bits: u64) {
        self.words[at] |= bits;
        self.summary |= 1 << (at >> self.coarse & 63);
    }

    /// Takes `index` out.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        let at = index as usize >> 6;
        let word = &mut self.words[at];
        *word &= !(1 << (index & 63));
        if *word == 0 && (self.coarse == 0 || self.is_part_empty(at >> self.coarse)) {
            self.summary &= !(1 << (at >> self.coarse & 63));
        }
    }

    #[cold]
    fn is_part_empty(&self, part: usize) -> bool {
        self.words[part << self.coarse..(part + 1) << self.coarse].iter().all(|&word| word == 0)
    }

    /// Whether `index` is a member.
    #[inline]
    pub(crate) fn contains(&self, index: u32) -> bool {
        self.words[index as usize >> 6] >> (index & 63) & 1 == 1
    }

    /// The least member.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        if self.summary == 0 {
            return None;
        }
        let part = self.summary.trailing_zeros() as usize;
        let at = if self.coarse == 0 { part } else { self.first_word(part) };
        Some((at as u32) << 6 | self.words[at].trailing_zeros())
    }

    /// The first word of a part that has members.
    fn first_word(&self, part: usize) -> usize {
        let first = part << self.coarse;
        let ahead = self.words[first..first + (1 << self.coarse)].iter().position(|&word| word != 0);
        first + ahead.expect("a bit of the summary has a member")
    }

    /// Whether there is no member.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.summary == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set(len in 1usize..600_000, steps in proptest::collection::vec((any::<u32>(), any::<bool>()), 0..80)) {
            let (mut bitmap, mut model) = (Bitmap::new(len), BTreeSet::new());
            for (value, insert) in steps {
                let value = value % len as u32;
                if insert {
                    prop_assert_eq!(bitmap.insert(value), model.insert(value));
                } else {
                    bitmap.remove(value);
                    model.remove(&value);
                }
                prop_assert_eq!(bitmap.contains(value), insert);
                prop_assert_eq!(bitmap.is_empty(), model.is_empty());
                prop_assert_eq!(bitmap.first(), model.first().copied());
            }
        }
    }
}
