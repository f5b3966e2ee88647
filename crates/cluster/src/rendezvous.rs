//! Collectives: they begin when every member's stream has come to them.

use std::collections::BTreeMap;
use std::ops::Range;

use trompe_base::Rank;
use trompe_engine::Scheduler;
use trompe_results::Kind;
use trompe_trace::record::CollectiveKind;

use crate::collective::CollectiveCall;
use crate::error::SimulationError;
use crate::plan::CallPlan;
use crate::state::{Item, Queued, Running, State};

/// What makes calls of several ranks one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    communicator: usize,
    /// The two ends of a point-to-point operation, as places in the communicator.
    ends: Option<(u32, u32)>,
    number: u64,
}

/// An operation that some members have come to.
#[derive(Debug)]
struct Meeting {
    call: CallPlan,
    /// Streams that have arrived.
    streams: Vec<u32>,
}

/// All operations that wait for members.
#[derive(Debug, Default)]
pub(crate) struct Rendezvous {
    meetings: BTreeMap<Key, Meeting>,
}

impl State<'_> {
    /// A stream comes to `calls`, which run as one operation.
    pub(crate) fn arrive(&mut self, stream: u32, item: Item, calls: Range<u32>, scheduler: &mut Scheduler) {
        let now = scheduler.now().as_picos();
        let rank = self.streams[stream as usize].rank;
        self.ranks[rank as usize].account.begin_waiting(now);
        self.streams[stream as usize].running = Running::Collective {
            item,
            arrived: now,
            missing: calls.len() as u32,
            open: 0,
            transfer: now,
            exposed_before: 0,
        };
        let template = self.template(rank);
        for call in &template.calls[calls.start as usize..calls.end as usize] {
            if let Err(error) = self.meet(stream, rank, call, scheduler) {
                self.error = Some(error);
                return;
            }
        }
    }

    fn meet(
        &mut self,
        stream: u32,
        rank: u32,
        call: &CallPlan,
        scheduler: &mut Scheduler,
    ) -> Result<(), SimulationError> {
        let instance = &self.plan.ranks[rank as usize];
        let slot = call.call.communicator as usize;
        let (communicator, place) = (instance.communicators[slot], instance.places[slot]);
        let ends = match call.call.kind {
            CollectiveKind::Send => Some((place, call.call.peer)),
            CollectiveKind::Recv => Some((call.call.peer, place)),
            _ => None,
        };
        let key = Key { communicator, ends, number: call.number };
        let meeting = self.rendezvous.meetings.entry(key);
        let meeting = meeting.or_insert_with(|| Meeting { call: call.clone(), streams: Vec::new() });
        if let Some(&other) = meeting.streams.first() {
            let first = self.plan.ranks[self.streams[other as usize].rank as usize].rank;
            check_match(key, (first, &meeting.call), (instance.rank, call))?;
        }
        meeting.streams.push(stream);
        let members = &self.trace.communicators[communicator].members;
        let present = |member: &&Rank| self.plan.replays(**member);
        let needed = match ends {
            Some((source, destination)) if source != destination => [source, destination]
                .iter()
                .filter_map(|&end| members.get(end as usize))
                .filter(present)
                .count(),
            // A rank that sends to itself makes both calls.
            Some(_) => 2,
            None => members.iter().filter(present).count(),
        };
        if meeting.streams.len() < needed {
            return Ok(());
        }
        let meeting = self.rendezvous.meetings.remove(&key).expect("it was just entered");
        let wire = CollectiveCall {
            kind: call.call.kind,
            bytes: call.call.bytes,
            dtype: call.call.dtype,
            members,
            ends: ends.unwrap_or((call.call.peer, call.call.peer)),
        };
        for &stream in &meeting.streams {
            self.transfer(stream, scheduler);
        }
        self.put_on_wire(&wire, communicator, meeting.streams, scheduler)
    }

    /// One part of a stream's operation is on the wire from now on.
    fn transfer(&mut self, stream: u32, scheduler: &Scheduler) {
        let now = scheduler.now().as_picos();
        let state = &mut self.streams[stream as usize];
        let Running::Collective { item, missing, open, transfer, exposed_before, .. } = &mut state.running
        else {
            unreachable!("a stream that arrived runs its collective")
        };
        let account = &mut self.ranks[state.rank as usize].account;
        // The transfer begins when the first part begins.
        let Queued::Collective { count, .. } = item.what else { unreachable!("only collectives meet") };
        if *missing == count {
            account.end_waiting(now);
            account.begin(Kind::Communication, now);
            *transfer = now;
            *exposed_before = account.at(now).of(Kind::Communication).as_picos();
        }
        *missing -= 1;
        *open += 1;
    }

    /// One part of a stream's operation is off the wire; returns whether that was the last one.
    pub(crate) fn part_is_over(&mut self, stream: u32) -> bool {
        let Running::Collective { missing, open, .. } = &mut self.streams[stream as usize].running else {
            unreachable!("a stream whose operation is on the wire runs its collective")
        };
        *open -= 1;
        *missing == 0 && *open == 0
    }

    /// Adds a finished operation to its communication row, when it belongs to a step.
    pub(crate) fn count_group(&mut self, rank: u32, item: Item, time: u64, exposed: u64) {
        let Queued::Collective { first, count } = item.what else { return };
        let template = self.template(rank);
        let used = template.used_segments();
        if !used.contains(&(item.segment as usize)) {
            return;
        }
        let calls = &template.calls[first as usize..(first + count) as usize];
        for (i, call) in calls.iter().enumerate() {
            let row = &mut self.ranks[rank as usize].groups[call.group as usize];
            row.calls += 1;
            row.bytes += call.call.bytes.0;
            // The time of a group call is one time: it counts for its first member.
            if i == 0 {
                row.time += time;
                row.exposed += exposed;
            }
        }
    }

    /// Who waits for what, when nothing can happen any more.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let meeting = |(key, meeting): (&Key, &Meeting)| {
            let rank = |stream: u32| self.plan.ranks[self.streams[stream as usize].rank as usize].rank.0;
            let ranks = |streams: &[u32]| {
                let ranks: Vec<u32> = streams.iter().map(|&stream| rank(stream)).collect();
                shorten(&ranks)
            };
            let members = &self.trace.communicators[key.communicator].members;
            let arrived: Vec<u32> = meeting.streams.iter().map(|&stream| rank(stream)).collect();
            let missing: Vec<u32> = match key.ends {
                Some((a, b)) => {
                    let ends = [a, b].into_iter().filter_map(|end| members.get(end as usize));
                    ends.filter(|rank| self.plan.replays(**rank)).map(|rank| rank.0).collect()
                }
                None => members.iter().filter(|rank| self.plan.replays(**rank)).map(|rank| rank.0).collect(),
            };
            let missing: Vec<u32> = missing.into_iter().filter(|rank| !arrived.contains(rank)).collect();
            format!(
                "{} #{} on communicator {}: rank {} waits for rank {}",
                describe(&meeting.call),
                key.number,
                key.communicator,
                ranks(&meeting.streams),
                shorten(&missing)
            )
        };
        self.rendezvous.meetings.iter().take(8).map(meeting).collect()
    }
}

/// Checks that two ranks call the same operation.
fn check_match(key: Key, first: (Rank, &CallPlan), second: (Rank, &CallPlan)) -> Result<(), SimulationError> {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Recv, Reduce, ReduceScatter, Send};
    let (a, b) = (&first.1.call, &second.1.call);
    let same_kind = match (a.kind, b.kind) {
        (Send, Recv) | (Recv, Send) => true,
        (x, y) => x == y && key.ends.is_none(),
    };
    let equal_bytes = matches!(a.kind, AllReduce | AllGather | ReduceScatter | Broadcast | Reduce);
    if same_kind && (!equal_bytes || a.bytes == b.bytes) {
        return Ok(());
    }
    Err(SimulationError::Mismatch {
        communicator: key.communicator,
        sequence: key.number,
        first: first.0,
        first_call: describe(first.1),
        second: second.0,
        second_call: describe(second.1),
    })
}

fn describe(call: &CallPlan) -> String {
    format!("{} of {}", name(call.call.kind), call.call.bytes)
}

/// The operation's name for people.
pub(crate) const fn name(kind: CollectiveKind) -> &'static str {
    match kind {
        CollectiveKind::AllReduce => "all-reduce",
        CollectiveKind::AllGather => "all-gather",
        CollectiveKind::ReduceScatter => "reduce-scatter",
        CollectiveKind::Broadcast => "broadcast",
        CollectiveKind::Reduce => "reduce",
        CollectiveKind::AllToAll => "all-to-all",
        CollectiveKind::Gather => "gather",
        CollectiveKind::Scatter => "scatter",
        CollectiveKind::Send => "send",
        CollectiveKind::Recv => "receive",
    }
}

/// A few ranks for a message.
fn shorten(ranks: &[u32]) -> String {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    let shown: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    let rest = ranks.len().saturating_sub(8);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}
