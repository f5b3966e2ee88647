//! Collectives: they begin when every member's stream has come to them.

use std::collections::{BTreeMap, HashMap};

use trompe_base::Rank;
use trompe_engine::Scheduler;
use trompe_trace::record::CollectiveKind;

use crate::collective::{CollectiveCall, Traffic};
use crate::error::SimulationError;
use crate::log::NONE;
use crate::plan::{CallPlan, LONGEST};
use crate::state::{HostWait, Queued, State};

/// What makes calls of several ranks one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Row of the plan's points.
    point: u32,
    /// The two ends of a point-to-point operation, as places in the communicator.
    ends: Option<(u32, u32)>,
    number: u64,
}

/// An operation that some members have come to.
#[derive(Debug)]
struct Meeting {
    /// The first one's rank and row of its template's calls.
    first: (u32, u32),
    /// Ranks and streams that have arrived.
    members: Vec<(u32, u16)>,
}

/// What distinguishes prices: point, operation, bytes, ends, messages of the group call.
type Offer = (u32, CollectiveKind, u64, (u32, u32), u32);

/// What a collective takes.
#[derive(Debug, Clone, Copy)]
struct Quote {
    /// Picoseconds on the wire.
    time: u64,
    /// Those of them that pass before links are used.
    start: u64,
    /// Multiprocessors.
    channels: u32,
    /// Bytes per second of device memory.
    memory: f64,
    /// Its use of links.
    traffic: Option<Traffic>,
}

/// All operations that wait for members.
#[derive(Debug, Default)]
pub(crate) struct Rendezvous {
    meetings: BTreeMap<Key, Meeting>,
    /// Lists of members to be used again.
    pub(crate) spare: Vec<Vec<(u32, u16)>>,
    /// Prices asked for so far. Nothing ever walks through them.
    quotes: HashMap<Offer, Quote>,
}

impl State<'_> {
    /// A stream of `rank` comes to its collective now.
    pub(crate) fn arrive(&mut self, rank: u32, stream: u16, scheduler: &mut Scheduler) {
        let contends = self.shared.options.contention.is_some();
        let state = &self.ranks[rank as usize];
        let template = state.template;
        let crate::state::Running::Arriving { item } = state.streams[stream as usize].running else {
            unreachable!("a stream that arrives has come to a collective")
        };
        let Queued::Collective { first, count } = item.what else { unreachable!("only collectives arrive") };
        let mut takes = (0, 0.0);
        if contends {
            for call in first..first + count {
                let (point, ends) = self.place(rank, &template.calls[call as usize]);
                let call = &template.calls[call as usize];
                let quote = self.quote(point, call, ends, call.together);
                // A group call is one kernel.
                takes = (quote.channels.max(takes.0), takes.1 + quote.memory);
            }
        }
        self.ranks[rank as usize].begin_collective(stream, takes, &self.shared);
        for call in first..first + count {
            if let Err(error) = self.meet(rank, stream, call, scheduler) {
                self.error = Some(error);
                return;
            }
        }
    }

    /// Where a call meets the others': its point and, for point-to-point operations, the two ends.
    fn place(&self, rank: u32, call: &CallPlan) -> (u32, Option<(u32, u32)>) {
        let slot = self.shared.plan.ranks[rank as usize].slots[call.call.communicator as usize];
        let ends = match call.call.kind {
            CollectiveKind::Send => Some((slot.place, slot.turn.apply(call.call.peer))),
            CollectiveKind::Recv => Some((slot.turn.apply(call.call.peer), slot.place)),
            _ => None,
        };
        (slot.point, ends)
    }

    fn meet(
        &mut self,
        rank: u32,
        stream: u16,
        row: u32,
        scheduler: &mut Scheduler,
    ) -> Result<(), SimulationError> {
        let plan = self.shared.plan;
        let call = &self.ranks[rank as usize].template.calls[row as usize];
        let (point, ends) = self.place(rank, call);
        let key = Key { point, ends, number: call.number };
        let spare = &mut self.rendezvous.spare;
        let meeting = self
            .rendezvous
            .meetings
            .entry(key)
            .or_insert_with(|| Meeting { first: (rank, row), members: spare.pop().unwrap_or_default() });
        let (first, first_row) = meeting.first;
        let mut together = call.together;
        if !meeting.members.is_empty() {
            let first_call = &self.ranks[first as usize].template.calls[first_row as usize];
            // The end with more to do at once decides, whichever comes last.
            together = together.max(first_call.together);
            let place = (plan.points[point as usize].communicator, key.number, ends.is_some());
            check_match(
                place,
                (plan.ranks[first as usize].rank, first_call),
                (plan.ranks[rank as usize].rank, call),
            )?;
        }
        meeting.members.push((rank, stream));
        if meeting.members.len() < plan.points[point as usize].needed(ends) {
            return Ok(());
        }
        let mut meeting = self.rendezvous.meetings.remove(&key).expect("it was just entered");
        let quote = self.quote(point, call, ends, together);
        let now = scheduler.now().as_picos();
        let time = self.varied(quote.time, (point, ends), call);
        let start = self.varied(quote.start, (point, ends), call).min(time);
        let end = now.saturating_add(time);
        if end > LONGEST {
            return Err(SimulationError::TooLong);
        }
        // What is in nobody's way ends when its price says so.
        let end = quote.traffic.is_none().then_some(end);
        let entry = self.ranks[rank as usize].streams[stream as usize].entry;
        let last = if entry == NONE { (NONE, NONE) } else { (rank, entry) };
        for &(member, stream) in &meeting.members {
            self.ranks[member as usize].transfer(stream, (now, end), last, &self.shared);
            if member != rank {
                self.awake.push(member);
            }
        }
        if end.is_none() {
            self.put_on_wire(meeting.members, (start, time - start), quote.traffic, scheduler);
        } else {
            meeting.members.clear();
            self.rendezvous.spare.push(meeting.members);
        }
        Ok(())
    }

    /// What a call takes, asked of the model once.
    fn quote(&mut self, point: u32, call: &CallPlan, ends: Option<(u32, u32)>, together: u32) -> Quote {
        let call = &call.call;
        let ends = ends.unwrap_or((call.peer, call.peer));
        let (model, options, shared) = (self.model, self.shared.options, &self.shared);
        *self.rendezvous.quotes.entry((point, call.kind, call.bytes.0, ends, together)).or_insert_with(|| {
            let members =
                &shared.trace.communicators[shared.plan.points[point as usize].communicator].members;
            let wire = CollectiveCall {
                kind: call.kind,
                bytes: call.bytes,
                dtype: call.dtype,
                members,
                ends,
                together,
            };
            let time = model.price(&wire).at(options.bound);
            let start = model.start(&wire).min(time);
            let memory = if time.is_zero() { 0.0 } else { wire.device_traffic() / time.as_secs_f64() };
            let traffic = shared.plan.traffic(point, shared.trace, |others| model.traffic(&wire, others));
            Quote {
                time: time.as_picos(),
                start: start.as_picos(),
                channels: model.channels(&wire),
                memory,
                traffic,
            }
        })
    }

    /// The time of one operation: what it takes, with chance and slow adapters.
    fn varied(&self, time: u64, (point, ends): (u32, Option<(u32, u32)>), call: &CallPlan) -> u64 {
        let variation = &self.shared.options.variation;
        let mut factor = call.factor * variation.link_factor(point, call.number);
        if variation.has_slow_links() {
            let members = &self.shared.trace.communicators
                [self.shared.plan.points[point as usize].communicator]
                .members;
            let pair =
                ends.map(|(a, b)| [a, b].map(|end| members.get(end as usize).copied().unwrap_or_default()));
            let members = pair.as_ref().map_or(&members[..], |pair| &pair[..]);
            if self.model.crosses_nodes(members) {
                factor /= variation.slowest_link(members);
            }
        }
        if factor == 1.0 { time } else { (time as f64 * factor) as u64 }
    }

    /// What a rank that others wait for does instead.
    fn whereabouts(&self, rank: u32) -> String {
        let Some(state) = self.ranks.iter().find(|state| state.plan.rank.0 == rank) else {
            return String::new();
        };
        let waits = state.streams.iter().find_map(|stream| match stream.running {
            crate::state::Running::Collective(underway) => match underway.item.what {
                Queued::Collective { first, .. } => state.template.calls.get(first as usize),
                _ => None,
            },
            _ => None,
        });
        let running = state.queues().map(|host| host.wait).find(|wait| *wait != HostWait::Finished);
        match (waits, running.unwrap_or(HostWait::Finished)) {
            (Some(call), _) => {
                let slot = state.plan.slots[call.call.communicator as usize];
                let (number, communicator) = (call.number, slot.communicator);
                format!(", which is in {} #{number} on communicator {communicator}", describe(call))
            }
            (None, HostWait::Finished) => ", whose program is over".to_owned(),
            (None, _) => ", whose host waits for its own device".to_owned(),
        }
    }

    /// Who waits for what, when nothing can happen any more.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let plan = self.shared.plan;
        let meeting = |(key, meeting): (&Key, &Meeting)| {
            let arrived: Vec<u32> =
                meeting.members.iter().map(|&(rank, _)| plan.ranks[rank as usize].rank.0).collect();
            let point = &plan.points[key.point as usize];
            let members = &self.shared.trace.communicators[point.communicator].members;
            let all: Vec<Rank> = match key.ends {
                Some((a, b)) => {
                    [a, b].into_iter().filter_map(|end| members.get(end as usize)).copied().collect()
                }
                None => members.clone(),
            };
            let missing = all.iter().filter(|rank| plan.replays(**rank)).map(|rank| rank.0);
            let missing: Vec<u32> = missing.filter(|rank| !arrived.contains(rank)).collect();
            let (first, row) = meeting.first;
            let call = &self.ranks[first as usize].template.calls[row as usize];
            format!(
                "{} #{} on communicator {}: rank {} waits for rank {}{}",
                describe(call),
                key.number,
                point.communicator,
                shorten(&arrived),
                shorten(&missing),
                missing.first().map_or_else(String::new, |&rank| self.whereabouts(rank))
            )
        };
        self.rendezvous.meetings.iter().take(8).map(meeting).collect()
    }
}

/// Checks that two ranks call the same operation.
fn check_match(
    (communicator, sequence, pair): (usize, u64, bool),
    first: (Rank, &CallPlan),
    second: (Rank, &CallPlan),
) -> Result<(), SimulationError> {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Recv, Reduce, ReduceScatter, Send};
    let (a, b) = (&first.1.call, &second.1.call);
    let same_kind = match (a.kind, b.kind) {
        (Send, Recv) | (Recv, Send) => true,
        (x, y) => x == y && !pair,
    };
    let equal_bytes = matches!(a.kind, AllReduce | AllGather | ReduceScatter | Broadcast | Reduce);
    if same_kind && (!equal_bytes || a.bytes == b.bytes) {
        return Ok(());
    }
    Err(SimulationError::Mismatch {
        communicator,
        sequence,
        first: first.0,
        first_call: describe(first.1),
        second: second.0,
        second_call: describe(second.1),
    })
}

fn describe(call: &CallPlan) -> String {
    format!("{} of {}", call.call.kind.words(), call.call.bytes)
}

/// A few ranks for a message.
fn shorten(ranks: &[u32]) -> String {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    let shown: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    let rest = ranks.len().saturating_sub(8);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}
