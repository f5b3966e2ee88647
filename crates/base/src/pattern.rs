//! Sets of ranks with a regular shape, as the axes of a device mesh make them.
//!
//! The members of almost every communicator are `first + Σ dᵢ · strideᵢ` with digits `dᵢ < countᵢ`: a row, a column
//! or a block of the mesh. Such a set is told in a few numbers however many members it has, and it says what the sets
//! of the *other* ranks look like: the same shape moved to where they are.

use crate::Rank;

/// A regular set of ranks in ascending order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankPattern {
    first: u32,
    /// `(stride, count)`, smallest stride first; counts are at least 2.
    axes: Vec<(u32, u32)>,
}

impl RankPattern {
    /// Most axes of a pattern; every one at least doubles the number of members.
    pub const MOST_AXES: usize = 12;

    /// The pattern of `members`; `None` when they are not ascending or not regular.
    #[must_use]
    pub fn of(members: &[u32]) -> Option<Self> {
        let first = *members.first()?;
        let mut axes = Vec::new();
        let mut firsts = members.to_vec();
        while firsts.len() > 1 {
            let stride = firsts[1].checked_sub(firsts[0]).filter(|stride| *stride > 0)?;
            let steps =
                firsts.windows(2).take_while(|pair| pair[0].checked_add(stride) == Some(pair[1])).count();
            let count = steps + 1;
            if !firsts.len().is_multiple_of(count) || axes.len() == Self::MOST_AXES {
                return None;
            }
            let regular =
                |block: &[u32]| block.windows(2).all(|pair| pair[0].checked_add(stride) == Some(pair[1]));
            if !firsts.chunks(count).all(regular) {
                return None;
            }
            firsts = firsts.chunks(count).map(|block| block[0]).collect();
            axes.push((stride, count as u32));
        }
        let pattern = Self { first, axes };
        (pattern.ranks() == members).then_some(pattern)
    }

    /// The pattern of a smallest member and axes; `None` unless [`Self::members`] would be ascending.
    #[must_use]
    pub fn new(first: u32, axes: Vec<(u32, u32)>) -> Option<Self> {
        let mut reach = u64::from(first);
        let mut span = 0;
        let mut total = 1_u64;
        for &(stride, count) in &axes {
            if count < 2 || u64::from(stride) <= span {
                return None;
            }
            span += u64::from(stride) * u64::from(count - 1);
            reach += u64::from(stride) * u64::from(count - 1);
            total *= u64::from(count);
            if total > 1 << 24 {
                return None;
            }
        }
        (axes.len() <= Self::MOST_AXES && reach <= u64::from(u32::MAX)).then_some(Self { first, axes })
    }

    /// Smallest member.
    #[must_use]
    pub const fn first(&self) -> u32 {
        self.first
    }

    /// `(stride, count)` of each axis, smallest stride first.
    #[must_use]
    pub fn axes(&self) -> &[(u32, u32)] {
        &self.axes
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.axes.iter().map(|(_, count)| *count as usize).product()
    }

    /// Never: a pattern has at least its first member.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![self.first];
        for &(stride, count) in self.axes.iter().rev() {
            ranks =
                ranks.iter().flat_map(|rank| (0..count).map(move |digit| rank + digit * stride)).collect();
        }
        ranks
    }

    /// The members, ascending.
    #[must_use]
    pub fn members(&self) -> Vec<Rank> {
        self.ranks().into_iter().map(Rank).collect()
    }

    /// The place that `rank` has in the set of the same shape that holds it.
    #[must_use]
    pub fn place(&self, rank: Rank) -> u32 {
        let digits = self.axes.iter().scan(1, |weight, (stride, count)| {
            let digit = rank.0 / stride % count * *weight;
            *weight *= count;
            Some(digit)
        });
        digits.sum()
    }

    /// The set of the same shape that holds `rank`, when the sets of this shape tile the ranks: every rank is then in
    /// exactly one of them. `None` when they do not (a block that does not begin at a multiple of its size).
    #[must_use]
    pub fn containing(&self, rank: Rank) -> Option<Self> {
        let tiles = self.axes.windows(2).all(|pair| {
            let ((stride, count), (next, _)) = (pair[0], pair[1]);
            next % (stride * count) == 0
        });
        let begin = |rank: u32| {
            rank - self.axes.iter().map(|(stride, count)| rank / stride % count * stride).sum::<u32>()
        };
        (tiles && begin(self.first) == self.first)
            .then(|| Self { first: begin(rank.0), axes: self.axes.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(members: &[u32], axes: Option<&[(u32, u32)]>) {
        let pattern = RankPattern::of(members);
        assert_eq!(pattern.as_ref().map(RankPattern::axes), axes, "{members:?}");
        if let Some(pattern) = pattern {
            assert_eq!(pattern.ranks(), members);
            assert_eq!(RankPattern::new(pattern.first, pattern.axes.clone()), Some(pattern));
        }
    }

    #[test]
    fn regular_sets_are_recognised() {
        check(&[5], Some(&[]));
        check(&[0, 1, 2, 3], Some(&[(1, 4)]));
        check(&[3, 11, 19, 27], Some(&[(8, 4)]));
        check(&[0, 1, 8, 9, 64, 65, 72, 73], Some(&[(1, 2), (8, 2), (64, 2)]));
        check(&[0, 1, 3], None);
        check(&[0, 1, 2, 8, 9, 11], None);
        check(&[3, 2], None);
        check(&[4, 4], None);
        check(&[], None);
    }

    #[track_caller]
    fn moved(members: &[u32], rank: u32, expect: Option<&[u32]>) {
        let found = RankPattern::of(members).unwrap().containing(Rank(rank)).map(|pattern| pattern.ranks());
        assert_eq!(found.as_deref(), expect, "{members:?} at {rank}");
    }

    #[test]
    fn other_ranks_have_sets_of_the_same_shape() {
        moved(&[0, 1, 2, 3], 6, Some(&[4, 5, 6, 7]));
        moved(&[0, 8, 16, 24], 11, Some(&[3, 11, 19, 27]));
        moved(&[0, 8, 16, 24], 35, Some(&[35, 43, 51, 59]));
        moved(&[0, 1, 8, 9], 14, Some(&[6, 7, 14, 15]));
        moved(&[2, 3, 4, 5], 6, None);
        moved(&[9], 2, Some(&[2]));
        moved(&[0, 3, 4, 7], 2, None);
    }

    #[test]
    fn axes_that_overlap_are_refused() {
        assert_eq!(RankPattern::new(0, vec![(2, 4), (6, 2)]), None);
        assert_eq!(RankPattern::new(0, vec![(1, 1)]), None);
        assert_eq!(RankPattern::new(u32::MAX, vec![(1, 2)]), None);
    }
}
