//! A job trace as Chakra execution traces, one per rank.
//!
//! * Host time becomes compute nodes on the processor, each after the one before; work on the device becomes compute nodes on
//!   the device, after the host's launch and after what its stream holds it back for: the operation before it, the default
//!   stream, recorded events. A host that waits is a dependency of its next node; threads that go their own way are hosts
//!   of their own, which wait for what others hand them.
//! * Collectives carry their type, bytes and communicator; messages their two ends and a tag that both ends agree on. A
//!   communicator of one is computation.
//! * A rank that did not run itself does what its example did, its messages turned to its own place ([`Peers`]).
//! * Chakra counts whole microseconds. What rounding takes from one node of a stream is given to the next, so that sums
//!   are right to the microsecond, and host time below a microsecond is carried to the next node.
//!
//! ASTRA-sim reads these files (`NAME.RANK.et` with the communicators in `comm_group.json`; its group 0 is always the whole
//! job, so groups count from 1 here). It counts an all-gather by what one rank puts in, which is what is written; it
//! plays broadcasts as long as the file says, and refuses reduce, gather and scatter.

use std::collections::BTreeMap;
use std::io::{self, Write};

use prost::Message;
use trompe_base::{Duration, Rank};
use trompe_trace::job::{Action, Collective, HostEvent, JobTrace, Operation, RankTemplate};
use trompe_trace::peers::Peers;
use trompe_trace::queues::DispatchQueues;
use trompe_trace::record::{CollectiveKind, StreamKind};

use super::wire::{CommunicationType, GlobalMetadata, Node, NodeType, Value, attribute};

/// Version of the schema that is written.
const SCHEMA: &str = "0.0.4";

/// What things take on the machine that the traces are written for.
pub trait Costs {
    /// A device operation: row `operation` of template `template`.
    fn operation(&self, template: usize, operation: usize) -> Duration;
    /// A collective or message among `members`; `ends` are the two ends of a message as places among them.
    fn collective(&self, collective: &Collective, members: &[Rank], ends: (u32, u32)) -> Duration;
    /// The host's own time before an event, its call included.
    fn host(&self, event: &HostEvent) -> Duration;
}

/// The text of `comm_group.json`: members by number of the communicator, counted from 1.
#[must_use]
pub fn groups(job: &JobTrace) -> String {
    let row = |(index, communicator): (usize, &trompe_trace::job::Communicator)| {
        let members: Vec<String> = communicator.members.iter().map(|rank| rank.0.to_string()).collect();
        format!("  \"{}\": [{}]", index + 1, members.join(", "))
    };
    let rows: Vec<String> = job.communicators.iter().enumerate().map(row).collect();
    format!("{{\n{}\n}}\n", rows.join(",\n"))
}

/// Writes the trace of one rank.
///
/// # Errors
/// What `out` reports.
///
/// # Panics
/// When the trace names rows that it does not have, which its reader has checked.
pub fn write_rank<W: Write>(job: &JobTrace, rank: Rank, costs: &dyn Costs, out: W) -> io::Result<()> {
    write_rank_of(&Peers::new(job), job, rank, (costs, out))
}

/// As [`write_rank`], for many ranks of one job, whose [`Peers`] are looked up once.
///
/// # Errors
/// What `out` reports.
///
/// # Panics
/// When the trace names rows that it does not have, which its reader has checked.
pub fn write_rank_of<W: Write>(
    peers: &Peers<'_>,
    job: &JobTrace,
    rank: Rank,
    (costs, mut out): (&dyn Costs, W),
) -> io::Result<()> {
    let instance = &job.ranks[rank.index()];
    let version = SCHEMA.to_owned();
    put(&GlobalMetadata { version, attributes: Vec::new() }, &mut out)?;
    let template = &job.templates[instance.template];
    let queues = template.queues();
    let mut exporter = Exporter {
        peers,
        job,
        rank,
        template,
        number: instance.template,
        costs,
        next: 0,
        queue: 0,
        hosts: (0..queues.count()).map(|_| Lane::default()).collect(),
        queues,
        given: BTreeMap::new(),
        streams: BTreeMap::new(),
        events: BTreeMap::new(),
        messages: BTreeMap::new(),
        group: None,
        out: &mut out,
    };
    for event in &exporter.template.events {
        exporter.event(event)?;
    }
    for queue in 0..exporter.hosts.len() {
        exporter.queue = queue;
        exporter.flush(true)?;
    }
    out.flush()
}

fn put<W: Write>(message: &impl Message, out: &mut W) -> io::Result<()> {
    out.write_all(&message.encode_length_delimited_to_vec())
}

/// The host, or a stream.
#[derive(Default)]
struct Lane {
    /// What must be done before its next node.
    after: Vec<u64>,
    /// Picoseconds that are not yet in a node.
    owed: i64,
}

impl Lane {
    /// Whole microseconds of `time` and what is owed; the rest stays owed.
    fn micros(&mut self, time: Duration) -> u64 {
        const MICRO: i64 = 1_000_000;
        self.owed += i64::try_from(time.as_picos()).unwrap_or(i64::MAX / 4);
        let whole = (self.owed + MICRO / 2).div_euclid(MICRO).max(0);
        self.owed -= whole * MICRO;
        whole as u64
    }

    fn wait(&mut self, others: &[u64]) {
        for other in others {
            if !self.after.contains(other) {
                self.after.push(*other);
            }
        }
    }
}

struct Exporter<'a, W: Write> {
    job: &'a JobTrace,
    peers: &'a Peers<'a>,
    rank: Rank,
    template: &'a RankTemplate,
    number: usize,
    costs: &'a dyn Costs,
    next: u64,
    queues: DispatchQueues,
    /// The one of this event.
    queue: usize,
    /// By dispatch queue.
    hosts: Vec<Lane>,
    /// What a thread had done when it handed something over.
    given: BTreeMap<u32, Vec<u64>>,
    streams: BTreeMap<u32, Lane>,
    /// What recordings stand for.
    events: BTreeMap<(u32, u32), Vec<u64>>,
    /// Messages so far by communicator, peer and direction.
    messages: BTreeMap<(usize, u32, bool), u32>,
    /// The group call that is open, its stream, and what came before it there.
    group: Option<(u64, u32, Vec<u64>)>,
    out: &'a mut W,
}

impl<W: Write> Exporter<'_, W> {
    fn event(&mut self, event: &HostEvent) -> io::Result<()> {
        self.queue = self.queues.queue(event.thread).into();
        let time = i64::try_from(self.costs.host(event).as_picos()).unwrap_or(i64::MAX / 4);
        self.host().owed += time;
        match &event.action {
            Action::Enqueue { stream, operation, blocking } => {
                let node = self.operation(stream.0, *operation)?;
                if *blocking {
                    self.host().wait(&[node]);
                }
            }
            Action::Graph { stream, operations } => {
                for operation in operations {
                    self.operation(stream.0, *operation)?;
                }
            }
            Action::Collective { stream, collective } => self.collective(stream.0, collective)?,
            Action::RecordEvent { stream, event, version } => {
                let after = self.held_back_by(stream.0);
                self.events.insert((event.0, *version), after);
            }
            Action::WaitEvent { stream, event, version } => {
                if let Some(nodes) = self.events.get(&(event.0, *version)) {
                    self.streams.entry(stream.0).or_default().wait(nodes);
                }
            }
            Action::SynchronizeEvent { event, version } => {
                if let Some(nodes) = self.events.get(&(event.0, *version)) {
                    let nodes = nodes.clone();
                    self.wait(&nodes)?;
                }
            }
            Action::SynchronizeStream { stream } => {
                let nodes = self.streams.get(&stream.0).map(|lane| lane.after.clone()).unwrap_or_default();
                self.wait(&nodes)?;
            }
            Action::SynchronizeDevice { device } => {
                let on_device = self.template.streams.iter().filter(|stream| stream.device == *device);
                let lanes = on_device.filter_map(|stream| self.streams.get(&stream.id.0));
                let nodes: Vec<u64> = lanes.flat_map(|lane| lane.after.iter().copied()).collect();
                self.wait(&nodes)?;
            }
            Action::Give { token } => {
                self.flush(false)?;
                self.given.insert(*token, self.hosts[self.queue].after.clone());
            }
            Action::Take { token } => {
                let nodes = self.given.get(token).cloned().unwrap_or_default();
                self.wait(&nodes)?;
            }
            Action::Host => {}
        }
        Ok(())
    }

    /// The dispatch queue of this event.
    fn host(&mut self) -> &mut Lane {
        &mut self.hosts[self.queue]
    }

    /// The host waits for `nodes`: what it did until now comes before.
    fn wait(&mut self, nodes: &[u64]) -> io::Result<()> {
        self.flush(false)?;
        self.host().wait(nodes);
        Ok(())
    }

    /// Writes host time, when there is a microsecond of it (or any, at the end).
    fn flush(&mut self, all: bool) -> io::Result<()> {
        if self.host().owed < if all { 1 } else { 1_000_000 } {
            return Ok(());
        }
        let duration_micros = self.host().micros(Duration::ZERO);
        let data = std::mem::take(&mut self.host().after);
        let node = Node {
            name: "host".to_owned(),
            kind: NodeType::Compute.into(),
            data,
            duration_micros,
            attributes: vec![attribute("is_cpu_op", Value::Bool(true))],
            ..Node::default()
        };
        let id = self.write(node)?;
        self.host().after = vec![id];
        Ok(())
    }

    fn write(&mut self, mut node: Node) -> io::Result<u64> {
        node.id = self.next;
        self.next += 1;
        put(&node, self.out)?;
        Ok(self.next - 1)
    }

    /// What an operation on `stream` waits for on the device.
    fn held_back_by(&self, stream: u32) -> Vec<u64> {
        let own = |id: u32| self.streams.get(&id).map(|lane| lane.after.as_slice()).unwrap_or_default();
        let mut after = own(stream).to_vec();
        let blocks = |kind| matches!(kind, StreamKind::Blocking | StreamKind::PerThread);
        let Some(this) = self.template.streams.iter().find(|other| other.id.0 == stream) else {
            return after;
        };
        // The legacy default stream and the blocking ones of its device wait for each other.
        for other in self.template.streams.iter().filter(|other| other.device == this.device) {
            let waits = this.kind == StreamKind::Legacy && blocks(other.kind)
                || blocks(this.kind) && other.kind == StreamKind::Legacy;
            if waits {
                after.extend(
                    own(other.id.0).iter().filter(|node| !after.contains(node)).copied().collect::<Vec<_>>(),
                );
            }
        }
        after
    }

    fn operation(&mut self, stream: u32, operation: u32) -> io::Result<u64> {
        let time = self.costs.operation(self.number, operation as usize);
        let row: &Operation = &self.template.operations[operation as usize];
        let work = row.descriptor.work();
        let name = if row.short_name.is_empty() { &row.name } else { &row.short_name };
        let mut attributes = vec![attribute("is_cpu_op", Value::Bool(false))];
        if work.flops.0 > 0 {
            attributes.push(attribute("num_ops", Value::Int64(work.flops.0 as i64)));
        }
        if work.bytes().0 > 0 {
            attributes.push(attribute("tensor_size", Value::Uint64(work.bytes().0)));
        }
        let name = name.clone();
        let node = Node { name, kind: NodeType::Compute.into(), attributes, ..Node::default() };
        self.device((stream, 0), time, node)
    }

    /// Writes a node of the device after all that holds it back; those of one group call (0: none) run side by side.
    fn device(&mut self, (stream, group): (u32, u64), time: Duration, mut node: Node) -> io::Result<u64> {
        let beside =
            group != 0 && self.group.as_ref().is_some_and(|open| (open.0, open.1) == (group, stream));
        // A group call is launched at once: host time between its members comes after it.
        if !beside {
            self.flush(false)?;
            self.group = (group != 0).then(|| (group, stream, self.held_back_by(stream)));
        }
        node.data = match &self.group {
            Some((.., before)) => before.clone(),
            None => self.held_back_by(stream),
        };
        let launched: Vec<u64> =
            self.hosts[self.queue].after.iter().filter(|other| !node.data.contains(other)).copied().collect();
        node.data.extend(launched);
        let lane = self.streams.entry(stream).or_default();
        node.duration_micros = lane.micros(time);
        node.attributes.push(attribute("stream", Value::Int64(stream.into())));
        let id = self.write(node)?;
        let lane = self.streams.entry(stream).or_default();
        if !beside {
            lane.after.clear();
        }
        lane.after.push(id);
        Ok(id)
    }

    fn collective(&mut self, stream: u32, collective: &Collective) -> io::Result<()> {
        let instance = &self.job.ranks[self.rank.index()];
        let row = instance.communicators[collective.communicator as usize];
        let members = &self.job.communicators[row].members;
        let place = members.iter().position(|member| *member == self.rank).unwrap_or_default() as u32;
        let message = matches!(collective.kind, CollectiveKind::Send | CollectiveKind::Recv);
        let turn = || self.peers.turn(self.rank.index(), collective.communicator);
        let peer = if message { turn().apply(collective.peer) } else { collective.peer };
        let ends = match collective.kind {
            CollectiveKind::Send => (place, peer),
            CollectiveKind::Recv => (peer, place),
            _ => (peer, peer),
        };
        let time = self.costs.collective(collective, members, ends);
        let name = format!("{:?}", collective.kind).to_lowercase();
        let mut attributes = vec![attribute("is_cpu_op", Value::Bool(false))];
        let alone = members.len() < 2 || message && ends.0 == ends.1;
        if alone {
            let node = Node { name, kind: NodeType::Compute.into(), attributes, ..Node::default() };
            self.device((stream, collective.group), time, node)?;
            return Ok(());
        }
        let kind = if message {
            let sends = collective.kind == CollectiveKind::Send;
            let count = self.messages.entry((row, peer, sends)).or_insert(0);
            // Communicator and number tell messages of one pair apart.
            let tag = (row as u32) << 20 | *count & 0xf_ffff;
            *count += 1;
            let end = |place: u32| members.get(place as usize).map_or(0, |rank| rank.0);
            attributes.push(attribute("comm_src", Value::Uint32(end(ends.0))));
            attributes.push(attribute("comm_dst", Value::Uint32(end(ends.1))));
            attributes.push(attribute("comm_tag", Value::Uint32(tag)));
            attributes.push(attribute("comm_size", Value::Int64(collective.bytes.0 as i64)));
            if sends { NodeType::Send } else { NodeType::Receive }
        } else {
            let (kind, bytes) = match collective.kind {
                CollectiveKind::AllGather => {
                    (CommunicationType::AllGather, collective.bytes.0 / members.len() as u64)
                }
                CollectiveKind::ReduceScatter => (CommunicationType::ReduceScatter, collective.bytes.0),
                CollectiveKind::Broadcast => (CommunicationType::Broadcast, collective.bytes.0),
                CollectiveKind::Reduce => (CommunicationType::Reduce, collective.bytes.0),
                CollectiveKind::AllToAll => (CommunicationType::AllToAll, collective.bytes.0),
                CollectiveKind::Gather => (CommunicationType::Gather, collective.bytes.0),
                CollectiveKind::Scatter => (CommunicationType::Scatter, collective.bytes.0),
                _ => (CommunicationType::AllReduce, collective.bytes.0),
            };
            attributes.push(attribute("comm_type", Value::Int64(i64::from(i32::from(kind)))));
            attributes.push(attribute("comm_size", Value::Int64(bytes as i64)));
            NodeType::Collective
        };
        attributes.push(attribute("pg_name", Value::Text((row + 1).to_string())));
        let node = Node { name, kind: kind.into(), attributes, ..Node::default() };
        self.device((stream, collective.group), time, node)?;
        Ok(())
    }
}

/// The trace of one member of a job that is one collective of `bytes` (as nccl-tests counts them) among `ranks`; `None` for
/// what ASTRA-sim does not know.
#[must_use]
pub fn single_collective(kind: CollectiveKind, bytes: u64, ranks: u32) -> Option<Vec<u8>> {
    let (communication, bytes) = match kind {
        CollectiveKind::AllReduce => (CommunicationType::AllReduce, bytes),
        CollectiveKind::AllGather => (CommunicationType::AllGather, bytes / u64::from(ranks.max(1))),
        CollectiveKind::ReduceScatter => (CommunicationType::ReduceScatter, bytes),
        CollectiveKind::AllToAll => (CommunicationType::AllToAll, bytes),
        _ => return None,
    };
    let node = Node {
        name: format!("{kind:?}").to_lowercase(),
        kind: NodeType::Collective.into(),
        attributes: vec![
            attribute("is_cpu_op", Value::Bool(false)),
            attribute("comm_type", Value::Int64(i64::from(i32::from(communication)))),
            attribute("comm_size", Value::Int64(bytes as i64)),
        ],
        ..Node::default()
    };
    let head = GlobalMetadata { version: SCHEMA.to_owned(), attributes: Vec::new() };
    Some([head.encode_length_delimited_to_vec(), node.encode_length_delimited_to_vec()].concat())
}
