//! Whether the ranks that ran agree about what they do together.
//!
//! Under emulation every rank goes on by itself, so ranks that disagree are not stopped by it. On a cluster they would
//! wait for each other for ever, or take each other's data for something else. Here the calls of every communicator are
//! laid side by side: collectives by their number, point-to-point calls by pair and order. What differs first is said
//! with rank, call number and place in the program on both sides; what follows from it is not.
//!
//! Only traces with an end mark are expected to be whole. Absent ranks are taken to agree.

use std::collections::{BTreeMap, BTreeSet};

use trompe_base::{Bytes, DType};
use trompe_trace::job::{Action, HostEvent, Note, Severity, Site};
use trompe_trace::record::CollectiveKind;

use crate::ranks::Process;
use crate::walk::RawCommunicator;

/// Most disagreements that are told.
const TOLD: usize = 8;

/// What a process calls on one communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    kind: CollectiveKind,
    bytes: Bytes,
    dtype: DType,
    peer: u32,
    place: String,
}

/// One process's side of a communicator.
#[derive(Debug, Default)]
struct Side {
    rank: u32,
    collectives: Vec<Call>,
    /// By direction and peer.
    messages: BTreeMap<(CollectiveKind, u32), Vec<Call>>,
    /// Its trace is whole.
    whole: bool,
}

/// Notes about calls that do not fit together.
pub(crate) fn notes(processes: &[Process]) -> Vec<Note> {
    let mut found = Vec::new();
    let mut communicators: BTreeMap<u64, (&RawCommunicator, Vec<Side>)> = BTreeMap::new();
    for process in processes {
        let sides = sides(process);
        for (slot, side) in process.slots.iter().zip(sides) {
            let (first, present) = communicators.entry(slot.identity).or_insert((slot, Vec::new()));
            if (first.size, &first.members) != (slot.size, &slot.members) {
                found.push(disagreement(present.first().map_or(0, |side| side.rank), first, side.rank, slot));
            }
            present.push(side);
        }
    }
    let runs: BTreeMap<u32, &Process> = processes.iter().map(|process| (process.rank, process)).collect();
    for (communicator, sides) in communicators.values_mut() {
        // A member that never called has never made the communicator either.
        let seen: BTreeSet<u32> = sides.iter().map(|side| side.rank).collect();
        let silent = communicator.members.iter().filter(|member| !seen.contains(member));
        sides.extend(silent.filter_map(|member| runs.get(member)).map(|process| Side {
            rank: process.rank,
            whole: process.whole,
            ..Side::default()
        }));
        sides.sort_by_key(|side| side.rank);
        found.extend(collectives(communicator, sides));
        found.extend(messages(communicator, sides));
    }
    let more = found.len().saturating_sub(TOLD);
    found.truncate(TOLD);
    if more > 0 {
        let text = format!("ranks disagree about {more} more calls or communicators");
        found.push(Note { severity: Severity::Error, text, hint: None });
    }
    found
}

/// The calls of a process by communicator slot.
fn sides(process: &Process) -> Vec<Side> {
    let whole = process.whole;
    let new = || Side { rank: process.rank, whole, ..Side::default() };
    let mut sides: Vec<Side> = process.slots.iter().map(|_| new()).collect();
    for (row, event) in process.template.events.iter().enumerate() {
        let Action::Collective { collective, .. } = &event.action else { continue };
        let Some(side) = sides.get_mut(collective.communicator as usize) else { continue };
        let call = Call {
            kind: collective.kind,
            bytes: collective.bytes,
            dtype: collective.dtype,
            peer: collective.peer,
            place: place(process, row, event),
        };
        match collective.kind {
            kind @ (CollectiveKind::Send | CollectiveKind::Recv) => {
                side.messages.entry((kind, collective.peer)).or_default().push(call);
            }
            _ => side.collectives.push(call),
        }
    }
    sides
}

/// Where in the program a call is made: the script's line, or else the operator around it.
fn place(process: &Process, row: usize, event: &HostEvent) -> String {
    if let Some(place) = process.places.get(&row) {
        return format!("at {place}");
    }
    match process.template.sites.get(event.site as usize) {
        Some(Site { scope, .. }) if !scope.is_empty() => format!("in {scope}"),
        Some(Site { operator, .. }) if !operator.is_empty() => format!("in {operator}"),
        Some(Site { phase, .. }) => format!("in the {phase:?} phase").to_lowercase(),
        None => "at an unknown place".to_owned(),
    }
}

fn disagreement(rank: u32, first: &RawCommunicator, other: u32, second: &RawCommunicator) -> Note {
    error(
        format!(
            "ranks {rank} and {other} disagree about a communicator: for rank {rank} it has {}, for rank {other} {}",
            people(first),
            people(second)
        ),
        "every member must make its groups with the same ranks in the same order; on the cluster the job hangs",
    )
}

/// The first collective about which two members disagree.
fn collectives(communicator: &RawCommunicator, sides: &[Side]) -> Option<Note> {
    let (first, others) = sides.split_first()?;
    let differs = |other: &Side| {
        let (a, b) = (&first.collectives, &other.collectives);
        let at = a.iter().zip(b).position(|(a, b)| !same(a, b));
        let short = a.len().min(b.len());
        at.or_else(|| (a.len() != b.len() && first.whole && other.whole).then_some(short))
    };
    let (at, other) = others
        .iter()
        .filter_map(|other| Some((differs(other)?, other)))
        .min_by_key(|(at, other)| (*at, other.rank))?;
    let group = people(communicator);
    let (note, hint) = match (first.collectives.get(at), other.collectives.get(at)) {
        (Some(own), Some(theirs)) => (
            format!(
                "call {at} of a communicator of {group} is {} on rank {} and {} on rank {}",
                told(own),
                first.rank,
                told(theirs),
                other.rank
            ),
            if own.kind == theirs.kind {
                "sizes, types and roots must be the same on all members; on the cluster this corrupts data or hangs"
            } else {
                "members must make the same calls in the same order; on the cluster this hangs or corrupts data"
            },
        ),
        (own, theirs) => {
            let (maker, call, lazy) = match (own, theirs) {
                (Some(call), _) => (first, call, other),
                (None, Some(call)) => (other, call, first),
                (None, None) => return None,
            };
            (
                format!(
                    "rank {} makes call {at} of a communicator of {group}, {}, and rank {} never does: it makes {} \
                     calls there",
                    maker.rank,
                    told(call),
                    lazy.rank,
                    lazy.collectives.len()
                ),
                "on the cluster the job hangs there: every member must take part in every call",
            )
        }
    };
    Some(error(note, hint))
}

/// The first message that one member sends and another does not receive as it is.
fn messages(communicator: &RawCommunicator, sides: &[Side]) -> Option<Note> {
    let rank_at = |place: u32| communicator.members.get(place as usize).copied();
    let place_of = |rank: u32| communicator.members.iter().position(|member| *member == rank);
    for sender in sides {
        for ((kind, peer), sent) in &sender.messages {
            let Some(partner) = rank_at(*peer).filter(|rank| *rank != sender.rank) else { continue };
            let Some(receiver) = sides.iter().find(|side| side.rank == partner) else { continue };
            let own = place_of(sender.rank)? as u32;
            let back = match kind {
                CollectiveKind::Send => CollectiveKind::Recv,
                _ => CollectiveKind::Send,
            };
            let none = Vec::new();
            let received = receiver.messages.get(&(back, own)).unwrap_or(&none);
            let at = sent.iter().zip(received).position(|(a, b)| a.bytes != b.bytes || a.dtype != b.dtype);
            let whole = sender.whole && receiver.whole;
            let at = at.or_else(|| (whole && received.len() < sent.len()).then_some(received.len()));
            let Some(at) = at else { continue };
            let text = match received.get(at) {
                Some(theirs) => format!(
                    "message {at} between ranks {} and {partner} is {} on rank {} and {} on rank {partner}",
                    sender.rank,
                    told(&sent[at]),
                    sender.rank,
                    told(theirs)
                ),
                None => format!(
                    "rank {} makes {}, its call {at} with rank {partner}, which makes only {} of the other kind",
                    sender.rank,
                    told(&sent[at]),
                    received.len()
                ),
            };
            return Some(error(
                text,
                "every send needs a receive of the same size; on the cluster the job hangs there",
            ));
        }
    }
    None
}

/// Whether two members make the same call. In a broadcast made of sizes that the root decides all must agree as well.
fn same(a: &Call, b: &Call) -> bool {
    (a.kind, a.bytes, a.dtype, a.peer) == (b.kind, b.bytes, b.dtype, b.peer)
}

fn told(call: &Call) -> String {
    let name = match call.kind {
        CollectiveKind::AllReduce => "an all-reduce",
        CollectiveKind::AllGather => "an all-gather",
        CollectiveKind::ReduceScatter => "a reduce-scatter",
        CollectiveKind::Broadcast => "a broadcast",
        CollectiveKind::Reduce => "a reduce",
        CollectiveKind::AllToAll => "an all-to-all",
        CollectiveKind::Gather => "a gather",
        CollectiveKind::Scatter => "a scatter",
        CollectiveKind::Send => "a send",
        CollectiveKind::Recv => "a receive",
    };
    let root = match call.kind {
        CollectiveKind::Broadcast
        | CollectiveKind::Reduce
        | CollectiveKind::Gather
        | CollectiveKind::Scatter => {
            format!(" with root {}", call.peer)
        }
        _ => String::new(),
    };
    format!("{name} of {} bytes ({:?}){root} {}", call.bytes.0, call.dtype, call.place)
}

/// The members in a few words.
fn people(communicator: &RawCommunicator) -> String {
    let members = &communicator.members;
    if members.is_empty() || members.len() > 8 {
        return format!("{} ranks", communicator.size);
    }
    let list: Vec<String> = members.iter().map(u32::to_string).collect();
    format!("ranks {}", list.join(", "))
}

fn error(text: String, hint: &str) -> Note {
    Note { severity: Severity::Error, text, hint: Some(hint.to_owned()) }
}
