//! From groups to the ranks that must run.

use std::collections::BTreeSet;

use trompe_base::{Mesh, Rank, Rng};

/// The most ranks that are run without being asked for by number.
pub const MOST: usize = 64;

/// A group as one of its members sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Global ranks.
    pub(super) members: Vec<u32>,
    /// Places to which that member sent, and from which it received.
    pub(super) peers: BTreeSet<u32>,
}

impl Group {
    /// Whether members send to each other what differs from member to member: some of them do, and not each to all.
    pub(super) fn is_pipeline(&self) -> bool {
        !self.peers.is_empty() && (self.members.len() == 2 || self.peers.len() + 1 < self.members.len())
    }
}

/// The ranks that must run to their ends: `anchors`, and the other members of their pipelines. Where the ranks of a pair
/// `(own, other)` send to each other in a group too large to be one, the pipeline is the smallest group that holds both,
/// or else the ranks at that distance from each other.
pub(super) fn must_run(
    size: u32,
    groups: &[Group],
    pairs: &BTreeSet<(u32, u32)>,
    anchors: &BTreeSet<Rank>,
) -> Vec<Rank> {
    let mut must = anchors.clone();
    for (own, other) in pairs.iter().filter(|(own, _)| anchors.contains(&Rank(*own))) {
        let both = |group: &&Group| group.members.contains(own) && group.members.contains(other);
        // A pair's own communicator says nothing about the others, nor does that of all ranks.
        let told = |group: &&Group| (3..MOST.min(size as usize)).contains(&group.members.len());
        let group = groups.iter().filter(both).filter(told).min_by_key(|group| group.members.len());
        let distance = own.abs_diff(*other).max(1);
        let pipeline: Vec<u32> = match group {
            Some(group) => group.members.clone(),
            None if size.is_multiple_of(distance) && (size / distance) as usize <= MOST => {
                (own % distance..size).step_by(distance as usize).collect()
            }
            None => vec![*other],
        };
        let more: BTreeSet<Rank> = pipeline.into_iter().filter(|rank| *rank < size).map(Rank).collect();
        if must.union(&more).count() <= MOST {
            must.extend(more);
        }
    }
    for group in groups.iter().filter(|group| group.is_pipeline() && group.members.len() < size as usize) {
        let anchored = group.members.iter().any(|member| anchors.contains(&Rank(*member)));
        if anchored && must.len() + group.members.len() <= MOST {
            must.extend(group.members.iter().filter(|member| **member < size).copied().map(Rank));
        }
    }
    must.into_iter().collect()
}

/// The ends of the axes that the groups show, at the first and at the last rank, and on each axis one rank between them
/// that a seeded generator draws.
pub(super) fn ends(size: u32, groups: &[Group]) -> BTreeSet<Rank> {
    let mesh = Mesh::of(size, groups.iter().map(|group| group.members.as_slice()));
    let mut rng = Rng::new(u64::from(size));
    let mut found = BTreeSet::new();
    for corner in [Rank(0), Rank(size.saturating_sub(1))] {
        for members in
            mesh.axes().iter().filter_map(|axis| axis.containing(corner)).map(|axis| axis.members())
        {
            let between = match members.len() {
                0..=2 => 0,
                count => 1 + rng.below(count as u64 - 2) as usize,
            };
            found.extend([0, between, members.len() - 1].map(|place| members[place]));
        }
    }
    found.into_iter().filter(|rank| rank.0 < size).take(MOST).collect()
}

/// `count` ranks of `size`, none of `without`, drawn by a generator that is seeded with the size.
#[must_use]
pub fn lottery(size: u32, count: u32, without: &[Rank]) -> Vec<Rank> {
    let mut rng = Rng::new(u64::from(size));
    let mut drawn = BTreeSet::new();
    let wanted = (count as usize).min((size as usize).saturating_sub(without.len()));
    while drawn.len() < wanted {
        let rank = Rank(rng.below(u64::from(size)) as u32);
        if !without.contains(&rank) {
            drawn.insert(rank);
        }
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: impl IntoIterator<Item = u32>, peers: &[u32]) -> Group {
        Group { members: members.into_iter().collect(), peers: peers.iter().copied().collect() }
    }

    #[track_caller]
    fn check(size: u32, groups: &[Group], must: &[u32], at_ends: &[u32]) {
        let anchors = [Rank(0), Rank(size - 1)].into();
        let plain = |ranks: Vec<Rank>| ranks.into_iter().map(|rank| rank.0).collect::<Vec<_>>();
        assert_eq!(plain(must_run(size, groups, &BTreeSet::new(), &anchors)), must);
        assert_eq!(plain(ends(size, groups).into_iter().collect()), at_ends);
    }

    #[test]
    fn data_parallelism_needs_the_two_that_run() {
        check(32, &[group(0..32, &[])], &[0, 31], &[]);
    }

    #[test]
    fn a_mesh_needs_the_ends_of_its_axes() {
        let groups = [group(0..8, &[]), group((0..32).step_by(8), &[]), group(0..32, &[])];
        check(32, &groups, &[0, 31], &[0, 6, 7, 16, 23, 24, 26, 31]);
    }

    #[test]
    fn all_stages_of_the_pipelines_of_both_ends_run() {
        let groups = [
            group((0..32).step_by(8), &[1]),
            group((7..32).step_by(8), &[2]),
            group(0..8, &[]),
            group([0, 24], &[]),
        ];
        check(32, &groups, &[0, 7, 8, 15, 16, 23, 24, 31], &[0, 6, 7, 16, 23, 24, 26, 31]);
        // Everybody sends to everybody: no stages.
        check(32, &[group(0..8, &[1, 2, 3, 4, 5, 6, 7])], &[0, 31], &[0, 6, 7, 24, 28, 31]);
    }

    #[test]
    fn pairs_in_a_group_of_all_ranks_show_the_pipeline() {
        let anchors = [Rank(0), Rank(31)].into();
        let check = |groups: &[Group], expect: &[u32]| {
            let pairs = [(0, 8), (31, 23)].into();
            let found: Vec<u32> = must_run(32, groups, &pairs, &anchors).iter().map(|rank| rank.0).collect();
            assert_eq!(found, expect);
        };
        check(&[group([0, 8], &[1]), group(0..32, &[8])], &[0, 7, 8, 15, 16, 23, 24, 31]);
        check(&[group([0, 8, 16], &[])], &[0, 7, 8, 15, 16, 23, 31]);
    }

    #[test]
    fn the_lottery_is_the_same_every_time() {
        let drawn = lottery(64, 2, &[Rank(0), Rank(63)]);
        assert_eq!(drawn.len(), 2);
        assert_eq!(drawn, lottery(64, 2, &[Rank(0), Rank(63)]));
        assert_eq!(lottery(3, 9, &[Rank(0), Rank(2)]), [Rank(1)]);
        assert_eq!(lottery(2, 9, &[Rank(0), Rank(1)]), []);
    }
}
