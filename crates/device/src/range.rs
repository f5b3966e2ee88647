//! Sets of half-open ranges of `u64`, kept disjoint and joined.

use std::collections::BTreeMap;

/// A set of integers as joined ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// End by start.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: BTreeMap::new() }
    }

    /// Adds `start..end`.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        if let Some((&before, &before_end)) = self.ranges.range(..=start).next_back()
            && before_end >= start
        {
            if before_end >= end {
                return;
            }
            start = before;
        }
        while let Some((&next, &next_end)) = self.ranges.range(start..=end).next() {
            end = end.max(next_end);
            self.ranges.remove(&next);
        }
        self.ranges.insert(start, end);
    }

    /// Takes `start..end` out.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        if let Some((&before, &before_end)) = self.ranges.range(..start).next_back()
            && before_end > start
        {
            self.ranges.insert(before, start);
            if before_end > end {
                self.ranges.insert(end, before_end);
                return;
            }
        }
        while let Some((&next, &next_end)) = self.ranges.range(start..end).next() {
            self.ranges.remove(&next);
            if next_end > end {
                self.ranges.insert(end, next_end);
            }
        }
    }

    /// The parts of `start..end` that are in the set.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let first = self.ranges.range(..start).next_back().map_or(start, |(&before, _)| before);
        self.ranges
            .range(first..end.max(first))
            .map(move |(&from, &to)| (from.max(start), to.min(end)))
            .filter(|(from, to)| from < to)
    }

    /// The first joined range of at least `length` that starts at a multiple of `alignment`, as an aligned start.
    #[must_use]
    pub fn first_fit(&self, length: u64, alignment: u64) -> Option<u64> {
        self.ranges.iter().find_map(|(&from, &to)| {
            let start = from.checked_next_multiple_of(alignment)?;
            (start.checked_add(length)? <= to).then_some(start)
        })
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(steps in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..16), 0..60)) {
            let mut ranges = RangeSet::new();
            let mut naive = BTreeSet::new();
            for (add, start, length) in steps {
                if add {
                    ranges.insert(start, start + length);
                    naive.extend(start..start + length);
                } else {
                    ranges.remove(start, start + length);
                    naive.retain(|n| !(start..start + length).contains(n));
                }
                let all: BTreeSet<u64> = ranges.within(0, 100).flat_map(|(from, to)| from..to).collect();
                prop_assert_eq!(&all, &naive);
                let part: BTreeSet<u64> = ranges.within(10, 30).flat_map(|(from, to)| from..to).collect();
                prop_assert_eq!(part, naive.range(10..30).copied().collect::<BTreeSet<_>>());
            }
        }
    }

    #[test]
    fn first_fit_is_aligned() {
        let mut free = RangeSet::new();
        free.insert(100, 200);
        free.insert(300, 1000);
        assert_eq!(free.first_fit(64, 64), Some(128));
        assert_eq!(free.first_fit(100, 64), Some(320));
        assert_eq!(free.first_fit(800, 1), None);
    }
}
