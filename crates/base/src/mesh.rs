//! Where ranks stand on the axes of a device mesh, as far as their groups tell.
//!
//! Nobody says what the mesh of a job is, but its groups do: each shape of group is an axis (or several at once). The
//! place of a rank on an axis is its place in the group of that shape that holds it.

use std::collections::BTreeSet;

use crate::{Rank, RankPattern};

/// The axes of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    axes: Vec<RankPattern>,
}

impl Mesh {
    /// The axes that groups show. Groups of one, groups of all `size` ranks and irregular groups are no axes, nor are
    /// shapes that do not tile the ranks.
    #[must_use]
    pub fn of<'g>(size: u32, groups: impl IntoIterator<Item = &'g [u32]>) -> Self {
        let groups = groups.into_iter().filter(|group| group.len() > 1 && group.len() < size as usize);
        let patterns = groups.filter_map(RankPattern::of);
        // The same shape wherever it lies is one axis.
        let shapes: BTreeSet<_> = patterns.filter_map(|pattern| pattern.containing(Rank(0))).collect();
        Self { axes: shapes.into_iter().collect() }
    }

    /// The groups that hold rank 0, one for each axis.
    #[must_use]
    pub fn axes(&self) -> &[RankPattern] {
        &self.axes
    }

    /// The place of a rank on each axis.
    #[must_use]
    pub fn places(&self, rank: Rank) -> Vec<u32> {
        self.axes.iter().map(|axis| axis.place(rank)).collect()
    }

    /// Of `candidates`, the one that stands most like `rank`: on the heaviest axes it is in the same place, or where no
    /// candidate is, in the nearest place below (what is left over when work is dealt out falls to the last places). Of
    /// several the nearest one below `rank`, or else the first. `weights` has one number for each axis. `None` without
    /// candidates.
    #[must_use]
    pub fn most_like(&self, rank: Rank, candidates: &[Rank], weights: &[u64]) -> Option<Rank> {
        let wanted: Vec<u32> = self
            .axes
            .iter()
            .map(|axis| {
                let own = axis.place(rank);
                let places = || candidates.iter().map(|other| axis.place(*other));
                places().filter(|place| *place <= own).max().or_else(|| places().min()).unwrap_or(own)
            })
            .collect();
        let likeness = |other: Rank| -> u64 {
            let alike = self.axes.iter().zip(&wanted).map(|(axis, place)| axis.place(other) == *place);
            alike.zip(weights).filter(|(alike, _)| *alike).map(|(_, weight)| *weight).sum()
        };
        let near = |other: Rank| match other <= rank {
            true => (1, i64::from(other.0)),
            false => (0, -i64::from(other.0)),
        };
        candidates.iter().copied().max_by_key(|other| (likeness(*other), near(*other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(groups: &[&[u32]], rank: u32, candidates: &[u32], expect: u32) {
        let mesh = Mesh::of(32, groups.iter().copied());
        let candidates: Vec<Rank> = candidates.iter().copied().map(Rank).collect();
        let weights = vec![1; mesh.axes().len()];
        assert_eq!(mesh.most_like(Rank(rank), &candidates, &weights), Some(Rank(expect)));
    }

    #[test]
    fn ranks_are_like_those_in_the_same_place() {
        // Without groups: the nearest below, or else the first.
        check(&[], 5, &[0, 4, 9], 4);
        check(&[], 5, &[8, 9], 8);
        // A pipeline over nodes: the stage is the node.
        check(&[&[1, 9, 17, 25]], 13, &[0, 8, 16, 24], 8);
        // A pipeline inside a node: the stage is the place in the node.
        check(&[&[4, 5, 6, 7]], 13, &[0, 1, 2, 3], 1);
        // Between the ends of an axis: as the nearest place below.
        check(&[&(0..16).collect::<Vec<_>>(), &[0, 16]], 19, &[0, 15, 31], 0);
        // The same axis told twice, and a group of all, count once and not at all.
        check(&[&[0, 1], &[2, 3], &(0..32).collect::<Vec<_>>()], 7, &[0, 1, 6], 1);
    }

    #[test]
    fn places_are_digits() {
        let mesh = Mesh::of(32, [&[0, 8, 16, 24][..], &[4, 5, 6, 7][..]]);
        let places: Vec<u32> = mesh.places(Rank(13));
        assert_eq!((mesh.axes().len(), places), (2, vec![1, 1]));
        assert_eq!(mesh.axes()[0].members(), [0, 1, 2, 3].map(Rank));
    }
}
