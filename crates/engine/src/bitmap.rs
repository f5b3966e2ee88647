//! A set of small integers with a fast "least member".
//!
//! Three levels of 64-way words: a member's bit, a summary bit per word, a summary bit per summary word. A cursor
//! remembers the lowest word that may hold the least member, which is right nearly always when members are taken in
//! ascending order; otherwise the summaries lead to it.

/// A set over `0..len`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bitmap {
    low: Vec<u64>,
    middle: Vec<u64>,
    top: Vec<u64>,
    /// No word below this one has members.
    cursor: usize,
}

impl Bitmap {
    /// An empty set that can hold `0..len`.
    pub(crate) fn new(len: usize) -> Self {
        let low = len.div_ceil(64).max(1);
        let middle = low.div_ceil(64);
        let top = middle.div_ceil(64);
        Self { low: vec![0; low], middle: vec![0; middle], top: vec![0; top], cursor: 0 }
    }

    /// Adds `index`; returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, index: u32) -> bool {
        let index = index as usize;
        let word_index = index >> 6;
        let word = &mut self.low[word_index];
        let bit = 1 << (index & 63);
        let before = *word;
        *word |= bit;
        self.cursor = self.cursor.min(word_index);
        if before == 0 {
            self.middle[word_index >> 6] |= 1 << (word_index & 63);
            self.top[word_index >> 12] |= 1 << ((word_index >> 6) & 63);
        }
        before & bit == 0
    }

    /// Takes `index` out.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        let index = index as usize;
        let word_index = index >> 6;
        let word = &mut self.low[word_index];
        *word &= !(1 << (index & 63));
        if *word == 0 {
            self.word_emptied(word_index);
        }
    }

    fn word_emptied(&mut self, word_index: usize) {
        let word = &mut self.middle[word_index >> 6];
        *word &= !(1 << (word_index & 63));
        if *word == 0 {
            self.top[word_index >> 12] &= !(1 << ((word_index >> 6) & 63));
        }
    }

    /// Whether `index` is a member.
    #[inline]
    pub(crate) fn contains(&self, index: u32) -> bool {
        self.low[index as usize >> 6] >> (index & 63) & 1 == 1
    }

    /// The least member.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<u32> {
        let word = self.low[self.cursor];
        if word != 0 {
            return Some((self.cursor as u32) << 6 | word.trailing_zeros());
        }
        self.search().map(|word| {
            self.cursor = word;
            (word as u32) << 6 | self.low[word].trailing_zeros()
        })
    }

    /// Whether there is no member.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.low[self.cursor] == 0 && self.search().is_none()
    }

    /// The lowest word with members.
    fn search(&self) -> Option<usize> {
        let (i, top) = self.top.iter().enumerate().find(|&(_, &word)| word != 0)?;
        let middle = i << 6 | top.trailing_zeros() as usize;
        Some(middle << 6 | self.middle[middle].trailing_zeros() as usize)
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
