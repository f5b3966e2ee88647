//! Whom a rank that did not run sends to and receives from.
//!
//! Peers are named by their place in the communicator. A rank that ran names its own. One that did not follows the template
//! of its *example* (the nearest rank of the template below it that ran, else the first), whose peers were told from the
//! example's place, so they are turned to the rank's own:
//!
//! * in the same place of its communicator, nothing changes (the copies of a pipeline stage);
//! * in a ring each member's peers are as far from it as the example's are from the example ([`Turn::Shift`]);
//! * where members swap with a partner, a shift would make two ranks send to one: then the partner is found by exclusive
//!   or ([`Turn::Swap`]), which always pairs members.
//!
//! A swap is taken when the shift is not consistent, that is, when not everything that is sent would be received, and all
//! members of the communicator follow the template; and when its partners exist.

use std::collections::BTreeMap;

use trompe_base::Rank;

use crate::job::{Action, JobTrace};
use crate::record::CollectiveKind;

/// How the places of an example's peers become those of another rank's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// They are the same.
    #[default]
    Same,
    /// `by` places further in a communicator of so many members.
    Shift {
        /// Places.
        by: u32,
        /// Members.
        members: u32,
    },
    /// The exclusive or with this number.
    Swap(u32),
}

impl Turn {
    /// The place of the peer.
    #[must_use]
    pub const fn apply(self, peer: u32) -> u32 {
        match self {
            Self::Same => peer,
            Self::Shift { by, members } => (peer + by) % members,
            Self::Swap(mask) => peer ^ mask,
        }
    }
}

/// Messages on one slot of a template: how many by peer.
#[derive(Debug, Default)]
struct Messages {
    sent: BTreeMap<u32, u64>,
    received: BTreeMap<u32, u64>,
}

/// The examples and messages of a job.
#[derive(Debug)]
pub struct Peers<'a> {
    job: &'a JobTrace,
    /// By template and slot.
    messages: Vec<BTreeMap<u32, Messages>>,
    /// By template: the ranks that ran, ascending.
    ran: Vec<Vec<u32>>,
}

impl<'a> Peers<'a> {
    /// Looks through a job.
    #[must_use]
    pub fn new(job: &'a JobTrace) -> Self {
        let of_template = |template: &crate::job::RankTemplate| {
            let mut messages: BTreeMap<u32, Messages> = BTreeMap::new();
            for event in &template.events {
                let Action::Collective { collective, .. } = &event.action else { continue };
                let slot = || collective.communicator;
                match collective.kind {
                    CollectiveKind::Send => {
                        let sent = &mut messages.entry(slot()).or_default().sent;
                        *sent.entry(collective.peer).or_default() += 1;
                    }
                    CollectiveKind::Recv => {
                        let received = &mut messages.entry(slot()).or_default().received;
                        *received.entry(collective.peer).or_default() += 1;
                    }
                    _ => {}
                }
            }
            messages
        };
        let mut ran = vec![Vec::new(); job.templates.len()];
        for (rank, instance) in job.ranks.iter().enumerate().filter(|(_, instance)| instance.emulated) {
            if let Some(list) = ran.get_mut(instance.template) {
                list.push(rank as u32);
            }
        }
        Self { job, messages: job.templates.iter().map(of_template).collect(), ran }
    }

    /// The rank whose doings those of `rank` are, when it did not run itself.
    #[must_use]
    pub fn example(&self, rank: usize) -> Option<usize> {
        let instance = self.job.ranks.get(rank)?;
        let ran = self.ran.get(instance.template).filter(|_| !instance.emulated)?;
        let below = ran.partition_point(|&other| (other as usize) < rank);
        ran.get(below.saturating_sub(1)).map(|&other| other as usize)
    }

    /// How the peers of `rank`'s template on a communicator slot become the rank's own.
    #[must_use]
    pub fn turn(&self, rank: usize, slot: u32) -> Turn {
        self.turned(rank, slot).unwrap_or_default()
    }

    fn turned(&self, rank: usize, slot: u32) -> Option<Turn> {
        let example = self.example(rank)?;
        let instance = &self.job.ranks[rank];
        let messages = self.messages[instance.template].get(&slot)?;
        let members = |rank: usize| {
            let row = *self.job.ranks[rank].communicators.get(slot as usize)?;
            Some(self.job.communicators.get(row)?.members.as_slice())
        };
        let place = |rank: usize, members: &[Rank]| members.iter().position(|member| member.index() == rank);
        let (own, theirs) = (members(rank)?, members(example)?);
        let (place, from) = (place(rank, own)? as u32, place(example, theirs)? as u32);
        let count = own.len() as u32;
        if place == from || count == 0 {
            return None;
        }
        let by = (place + count - from % count) % count;
        let alike = own.iter().all(|member| {
            self.job.ranks.get(member.index()).is_some_and(|other| other.template == instance.template)
        });
        let mask = place ^ from;
        // What each sends `offset` ahead must be received from `offset` behind.
        let ahead = |peer: u32| (peer + count - from % count) % count;
        let sent: BTreeMap<u32, u64> = messages.sent.iter().map(|(&peer, &n)| (ahead(peer), n)).collect();
        let received: BTreeMap<u32, u64> =
            messages.received.iter().map(|(&peer, &n)| ((count - ahead(peer)) % count, n)).collect();
        let swaps =
            messages.sent == messages.received && messages.sent.keys().all(|&peer| peer ^ mask < count);
        Some(if alike && sent != received && swaps {
            Turn::Swap(mask)
        } else {
            Turn::Shift { by, members: count }
        })
    }
}

#[cfg(test)]
mod tests {
    use trompe_base::{Bytes, DType, Duration, StreamId, ThreadIndex};

    use super::*;
    use crate::job::{CallClass, Collective, Communicator, HostEvent, RankInstance, RankTemplate};

    /// Four ranks of which the first ran, with these messages, all in one communicator.
    fn job(messages: &[(CollectiveKind, u32)]) -> JobTrace {
        let event = |&(kind, peer): &(CollectiveKind, u32)| {
            let collective = Collective {
                kind,
                communicator: 0,
                sequence: 0,
                bytes: Bytes(1),
                dtype: DType::U8,
                peer,
                group: 0,
            };
            let action = Action::Collective { stream: StreamId(0), collective };
            HostEvent {
                thread: ThreadIndex(0),
                gap: Duration::ZERO,
                call: CallClass::Collective,
                site: 0,
                action,
            }
        };
        let template =
            RankTemplate { events: messages.iter().map(event).collect(), ..RankTemplate::default() };
        let instance = |rank| RankInstance { template: 0, communicators: vec![0], emulated: rank == 0 };
        JobTrace {
            templates: vec![template],
            ranks: (0..4).map(instance).collect(),
            communicators: vec![Communicator { members: (0..4).map(Rank).collect(), purpose: None }],
            ..JobTrace::default()
        }
    }

    #[track_caller]
    fn check(messages: &[(CollectiveKind, u32)], expect: [[u32; 2]; 4]) {
        let job = job(messages);
        let peers = Peers::new(&job);
        for (rank, expect) in expect.into_iter().enumerate() {
            let turn = peers.turn(rank, 0);
            assert_eq!([messages[0].1, messages[1].1].map(|peer| turn.apply(peer)), expect, "rank {rank}");
        }
    }

    #[test]
    fn rings_turn_and_partners_swap() {
        use CollectiveKind::{Recv, Send};
        check(&[(Send, 1), (Recv, 3)], [[1, 3], [2, 0], [3, 1], [0, 2]]);
        check(&[(Send, 1), (Recv, 1)], [[1, 1], [0, 0], [3, 3], [2, 2]]);
        check(&[(Send, 2), (Recv, 2)], [[2, 2], [3, 3], [0, 0], [1, 1]]);
        check(&[(Send, 3), (Recv, 3)], [[3, 3], [2, 2], [1, 1], [0, 0]]);
    }

    #[test]
    fn only_ranks_that_did_not_run_have_an_example() {
        let mut job = job(&[(CollectiveKind::Send, 1), (CollectiveKind::Recv, 3)]);
        job.ranks[2].emulated = true;
        let peers = Peers::new(&job);
        assert_eq!([0, 1, 2, 3].map(|rank| peers.example(rank)), [None, Some(0), None, Some(2)]);
        assert_eq!(peers.turn(2, 0), Turn::Same);
        assert_eq!(peers.turn(3, 0), Turn::Shift { by: 1, members: 4 });
        assert_eq!(peers.turn(3, 9), Turn::Same, "no messages, no turn");
    }
}
