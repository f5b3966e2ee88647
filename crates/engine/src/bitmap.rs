//! A set of small integers with a fast "least member".
//!
//! Three levels of 64-way words: a member's bit, a summary bit per word, a summary bit per summary word. The least
//! member of 262,144 is three trailing-zero counts away; beyond that, the top level is scanned word by word.

/// A set over `0..len`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bitmap {
    low: Vec<u64>,
    middle: Vec<u64>,
    top: Vec<u64>,
}

impl Bitmap {
    /// An empty set that can hold `0..len`.
    pub(crate) fn new(len: usize) -> Self {
        let low = len.div_ceil(64).max(1);
        let middle = low.div_ceil(64);
        let top = middle.div_ceil(64);
        Self { low: vec![0; low], middle: vec![0; middle], top: vec![0; top] }
    }

    /// Adds `index`.
    #[inline]
    pub(crate) fn insert(&mut self, index: u32) {
        let index = index as usize;
        let word = &mut self.low[index >> 6];
        let was_empty = *word == 0;
        *word |= 1 << (index & 63);
        if was_empty {
            self.middle[index >> 12] |= 1 << ((index >> 6) & 63);
            self.top[index >> 18] |= 1 << ((index >> 12) & 63);
        }
    }

    /// Takes `index` out.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        let index = index as usize;
        let word = &mut self.low[index >> 6];
        *word &= !(1 << (index & 63));
        if *word == 0 {
            let word = &mut self.middle[index >> 12];
            *word &= !(1 << ((index >> 6) & 63));
            if *word == 0 {
                self.top[index >> 18] &= !(1 << ((index >> 12) & 63));
            }
        }
    }

    /// The least member.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        for (i, &top) in self.top.iter().enumerate() {
            if top != 0 {
                let middle = (i << 6) | top.trailing_zeros() as usize;
                let low = (middle << 6) | self.middle[middle].trailing_zeros() as usize;
                return Some(((low << 6) | self.low[low].trailing_zeros() as usize) as u32);
            }
        }
        None
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
                if insert { bitmap.insert(value); model.insert(value); } else { bitmap.remove(value); model.remove(&value); }
                prop_assert_eq!(bitmap.first(), model.first().copied());
            }
        }
    }
}
