//! The job trace of the same job with more data-parallel replicas.
//!
//! What a rank does often does not depend on how many replicas there are beside its own: only the groups that reach
//! over the replicas grow. [`with_replicas`] puts the ranks of further replicas in, each doing what the ranks of a
//! recorded replica do, so one trace serves clusters of many sizes.
//!
//! It is for jobs whose caller knows that: each replica takes as much of the batch as before, and nothing is divided
//! among replicas (no sharded parameters or optimizer states). What can be seen to be wrong is refused: groups that
//! reach over some replicas but not all, and operations in them that name a rank other than the first.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trompe_base::Rank;

use trompe_trace::job::{Action, Communicator, JobTrace, RankInstance};
use trompe_trace::record::CollectiveKind;

/// Where the replicas are among the ranks: rank = inner + stride × (replica + degree × outer), with inner < stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replicas {
    /// Ranks from one replica to the next.
    pub stride: u32,
    /// Replicas of the recorded job; at least two, as a group of one is not seen to be a group.
    pub recorded: u32,
    /// Replicas that are wanted.
    pub wanted: u32,
}

/// Why a trace does not say what the job with more replicas does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotReplicated {
    /// The numbers contradict each other or the trace.
    #[error(
        "{ranks} ranks cannot be {} replicas that are {} ranks apart, of which {} are wanted",
        .replicas.recorded, .replicas.stride, .replicas.wanted
    )]
    Shape {
        /// Ranks of the trace.
        ranks: usize,
        /// What was said of them.
        replicas: Replicas,
    },
    /// A group that is neither inside a replica nor over all of them.
    #[error("a group of {members} ranks is neither inside one replica nor the same in all of them")]
    Group {
        /// Its members.
        members: usize,
    },
    /// An operation over all replicas that names one of them.
    #[error("an operation over all replicas names member {peer}, which is another one when there are more")]
    Peer {
        /// The member.
        peer: u32,
    },
}

impl Replicas {
    /// Inner, replica and outer place of a rank among `degree` replicas.
    const fn places(self, rank: u32, degree: u32) -> (u32, u32, u32) {
        let rest = rank / self.stride;
        (rank % self.stride, rest % degree, rest / degree)
    }

    const fn rank(self, (inner, replica, outer): (u32, u32, u32)) -> u32 {
        inner + self.stride * (replica + self.wanted * outer)
    }

    /// The recorded replica that one of those wanted does as: the first and the last are often special.
    const fn like(self, replica: u32) -> u32 {
        if replica + 1 == self.wanted {
            self.recorded - 1
        } else if replica + 1 < self.recorded {
            replica
        } else {
            // In the middle there may be none recorded.
            if self.recorded > 2 { self.recorded - 2 } else { self.recorded - 1 }
        }
    }
}

/// How a group grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// It lies in this replica.
    Inside(u32),
    /// It is the same in all replicas.
    Over,
}

/// The trace of the job with `replicas.wanted` replicas.
///
/// # Errors
/// Why it does not say that.
pub(super) fn with_replicas(mut job: JobTrace, replicas: Replicas) -> Result<JobTrace, NotReplicated> {
    let Replicas { stride, recorded, wanted } = replicas;
    let ranks = job.ranks.len();
    let block = u64::from(stride) * u64::from(recorded);
    if block == 0 || recorded < 2 || wanted < recorded || !(ranks as u64).is_multiple_of(block) {
        return Err(NotReplicated::Shape { ranks, replicas });
    }
    if wanted == recorded {
        return Ok(job);
    }
    let reaches: Vec<Reach> =
        job.communicators.iter().map(|group| reach(group, replicas)).collect::<Result<_, _>>()?;
    check_peers(&job, &reaches)?;
    let mut groups: Vec<Communicator> = Vec::new();
    // By recorded row and (inside a replica) the replica it is moved to.
    let mut rows: BTreeMap<(usize, Option<u32>), usize> = BTreeMap::new();
    let mut instances: Vec<RankInstance> = Vec::new();
    for rank in 0..ranks as u32 / recorded * wanted {
        let (inner, replica, outer) = replicas.places(rank, wanted);
        let like = inner + stride * (replicas.like(replica) + recorded * outer);
        let example = &job.ranks[like as usize];
        let row = |row: &usize| {
            let to = match reaches[*row] {
                Reach::Over => None,
                Reach::Inside(_) => Some(replica),
            };
            *rows.entry((*row, to)).or_insert_with(|| {
                groups.push(moved(&job.communicators[*row], to, replicas));
                groups.len() - 1
            })
        };
        let communicators = example.communicators.iter().map(row).collect();
        let emulated = example.emulated && replicas.like(replica) == replica;
        instances.push(RankInstance { communicators, emulated, ..example.clone() });
    }
    job.communicators = groups;
    job.ranks = instances;
    Ok(job)
}

fn reach(group: &Communicator, replicas: Replicas) -> Result<Reach, NotReplicated> {
    let places = |rank: &Rank| replicas.places(rank.0, replicas.recorded);
    let seen: BTreeSet<u32> = group.members.iter().map(|rank| places(rank).1).collect();
    if seen.len() == 1 {
        return Ok(Reach::Inside(seen.into_iter().next().unwrap_or_default()));
    }
    let members = group.members.len();
    let elsewhere: BTreeSet<(u32, u32)> =
        group.members.iter().map(places).map(|(inner, _, outer)| (inner, outer)).collect();
    let whole = seen.len() == replicas.recorded as usize && elsewhere.len() * seen.len() == members;
    let ascending = group.members.is_sorted_by(|a, b| a < b);
    if whole && ascending { Ok(Reach::Over) } else { Err(NotReplicated::Group { members }) }
}

/// The group with more replicas: in replica `to`, or over all.
fn moved(group: &Communicator, to: Option<u32>, replicas: Replicas) -> Communicator {
    let places = group.members.iter().map(|rank| replicas.places(rank.0, replicas.recorded));
    let members = match to {
        Some(to) => places.map(|(inner, _, outer)| Rank(replicas.rank((inner, to, outer)))).collect(),
        None => {
            let elsewhere: BTreeSet<(u32, u32)> = places.map(|(inner, _, outer)| (inner, outer)).collect();
            let all = elsewhere
                .iter()
                .flat_map(|(inner, outer)| (0..replicas.wanted).map(|replica| (*inner, replica, *outer)));
            let mut all: Vec<Rank> = all.map(|place| Rank(replicas.rank(place))).collect();
            all.sort_unstable();
            all
        }
    };
    Communicator { members, purpose: group.purpose.clone() }
}

/// That no operation over all replicas names a member that would be another one.
fn check_peers(job: &JobTrace, reaches: &[Reach]) -> Result<(), NotReplicated> {
    use CollectiveKind as Kind;
    let rooted = [Kind::Broadcast, Kind::Reduce, Kind::Gather, Kind::Scatter, Kind::Send, Kind::Recv];
    for instance in &job.ranks {
        let over: Vec<bool> = instance.communicators.iter().map(|row| reaches[*row] == Reach::Over).collect();
        if !over.contains(&true) {
            continue;
        }
        for event in &job.templates[instance.template].events {
            if let Action::Collective { collective, .. } = &event.action
                && collective.peer != 0
                && rooted.contains(&collective.kind)
                && over.get(collective.communicator as usize) == Some(&true)
            {
                return Err(NotReplicated::Peer { peer: collective.peer });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trompe_trace::job::RankTemplate;

    /// Two tensor-parallel ranks, two replicas, two stages: rank = tensor + 2 × (replica + 2 × stage).
    fn job() -> JobTrace {
        let group = |members: &[u32]| Communicator {
            members: members.iter().copied().map(Rank).collect(),
            purpose: None,
        };
        let mut communicators = vec![group(&[0, 1, 2, 3, 4, 5, 6, 7])];
        let mut ranks = Vec::new();
        for rank in 0..8_u32 {
            let (tensor, replica, stage) = (rank % 2, rank / 2 % 2, rank / 4);
            let own = [
                group(&[rank - tensor, rank - tensor + 1]),
                group(&[tensor + 4 * stage, tensor + 4 * stage + 2]),
                group(&[tensor + 2 * replica, tensor + 2 * replica + 4]),
            ];
            let mut rows = vec![0];
            for group in own {
                let row = communicators.iter().position(|other| *other == group);
                rows.push(row.unwrap_or(communicators.len()));
                if row.is_none() {
                    communicators.push(group);
                }
            }
            ranks.push(RankInstance {
                template: stage as usize,
                communicators: rows,
                emulated: rank % 4 == 0,
            });
        }
        let templates = vec![RankTemplate::default(); 2];
        JobTrace { templates, ranks, communicators, ..JobTrace::default() }
    }

    #[test]
    fn groups_grow_over_the_replicas_and_are_moved_inside_them() {
        let wide = with_replicas(job(), Replicas { stride: 2, recorded: 2, wanted: 4 }).unwrap();
        assert_eq!(wide.ranks.len(), 16);
        for (rank, instance) in (0..16_u32).zip(&wide.ranks) {
            let (tensor, replica, stage) = (rank % 2, rank / 2 % 4, rank / 8);
            assert_eq!(instance.template, stage as usize);
            let members: Vec<Vec<u32>> = instance
                .communicators
                .iter()
                .map(|row| wide.communicators[*row].members.iter().map(|rank| rank.0).collect())
                .collect();
            let expect = [
                (0..16).collect(),
                vec![rank - tensor, rank - tensor + 1],
                (0..4).map(|other| tensor + 2 * other + 8 * stage).collect(),
                vec![tensor + 2 * replica, tensor + 2 * replica + 8],
            ];
            assert_eq!(members, expect, "rank {rank}");
        }
        // Those that ran are still where they were.
        let ran: Vec<usize> =
            wide.ranks.iter().enumerate().filter(|(_, rank)| rank.emulated).map(|(at, _)| at).collect();
        assert_eq!(ran, [0, 8]);
        // All members of a group name the same row.
        for (row, group) in wide.communicators.iter().enumerate() {
            for rank in &group.members {
                assert!(wide.ranks[rank.index()].communicators.contains(&row), "{rank} in {group:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let check = |stride, recorded, wanted| with_replicas(job(), Replicas { stride, recorded, wanted });
        assert!(check(2, 2, 2).is_ok());
        assert!(matches!(check(2, 1, 2), Err(NotReplicated::Shape { .. })));
        assert!(matches!(check(2, 3, 6), Err(NotReplicated::Shape { .. })));
        assert!(matches!(check(2, 2, 1), Err(NotReplicated::Shape { .. })));
        // Ranks 0, 1 | 2, 3 taken for replicas of a job whose groups are 0, 4 and 0, 2.
        assert!(matches!(check(1, 4, 8), Err(NotReplicated::Group { .. })));
    }
}
