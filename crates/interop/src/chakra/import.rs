//! Execution traces as a job trace.
//!
//! Nodes are taken in an order in which every node comes after what it depends on (the lowest number first). A node of the
//! processor becomes host time; one of the device an operation of its stream (`stream`, else one for computation and one for
//! communication), with the time that the trace states; a collective or message a collective of its group. Where a node
//! depends on one of another stream, its stream waits for an event; where the host depends on the device, the host waits. A trace is one step.
//!
//! Every file is one rank, in the order given; equal ranks share a template. Device operations keep their recorded time
//! whatever they are simulated on, but for those of PyTorch's own traces ([`super::read_json`]), which have shapes instead of times.

use std::collections::{BTreeMap, BTreeSet};

use trompe_base::{Bytes, DType, Duration, EventId, Flops, Rank, StreamId, ThreadIndex};
use trompe_trace::descriptor::{Descriptor, Direction, Recorded, Work};
use trompe_trace::job::{
    Action, CallClass, Collective, Communicator, HostEvent, JobTrace, Note, Operation, Phase, RankInstance,
    RankTemplate, Severity, Site, StepSource, Steps, Stream,
};
use trompe_trace::record::{CollectiveKind, StreamKind};

use super::wire::{CommunicationType, Node, NodeType};

/// Streams for nodes that state none.
const COMPUTE: u32 = 7;
const COMMUNICATION: u32 = 20;

/// Why traces make no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// Nodes that wait for each other.
    #[error("rank {rank}: node {node} waits for itself through others; a trace must have no cycle")]
    Cycle {
        /// Which rank.
        rank: usize,
        /// One of the nodes.
        node: u64,
    },
    /// A number that two nodes have.
    #[error("rank {rank}: two nodes have the number {node}")]
    Twice {
        /// Which rank.
        rank: usize,
        /// The number.
        node: u64,
    },
    /// A group that nothing describes.
    #[error(
        "rank {rank}: node {node} is of group `{group}`, of which no member is known; give `comm_group.json` as well (`--groups`)"
    )]
    Group {
        /// Which rank.
        rank: usize,
        /// Which node.
        node: u64,
        /// Its group.
        group: String,
    },
    /// A peer that is not in the group.
    #[error("rank {rank}: node {node} has rank {peer} as its peer, which is not one of the {world} ranks")]
    Peer {
        /// Which rank.
        rank: usize,
        /// Which node.
        node: u64,
        /// The peer.
        peer: i64,
        /// Ranks of the job.
        world: usize,
    },
    /// Nothing to simulate.
    #[error("there is no work of a device in {ranks} traces")]
    Empty {
        /// Traces.
        ranks: usize,
    },
}

/// What an imported operation is, where its node does not just state a time.
pub type Described = BTreeMap<u64, Descriptor>;

/// One rank's trace.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// What nodes compute, by number, where that is known.
    pub described: Described,
}

/// The job whose ranks these graphs are; `groups` are members by name.
///
/// # Errors
/// When a graph contradicts itself or the others.
pub fn import(graphs: &[Graph], groups: &BTreeMap<String, Vec<u32>>) -> Result<JobTrace, ImportError> {
    let world = graphs.len();
    let all: Vec<Rank> = (0..world as u32).map(Rank).collect();
    let mut job = JobTrace::default();
    job.communicators.push(Communicator { members: all, purpose: None });
    let mut rows: BTreeMap<Vec<u32>, usize> = BTreeMap::from([((0..world as u32).collect(), 0)]);
    for (rank, graph) in graphs.iter().enumerate() {
        let mut importer = Importer::new(rank, world, groups);
        importer.graph(graph)?;
        let mut communicators = Vec::new();
        for members in &importer.slots {
            let next = job.communicators.len();
            let row = *rows.entry(members.clone()).or_insert(next);
            if row == next {
                let members = members.iter().copied().map(Rank).collect();
                job.communicators.push(Communicator { members, purpose: None });
            }
            communicators.push(row);
        }
        let known = job.templates.iter().position(|template| *template == importer.template);
        let template = known.unwrap_or(job.templates.len());
        if known.is_none() {
            job.templates.push(importer.template);
        }
        job.ranks.push(RankInstance { template, communicators, emulated: true });
    }
    job.notes.push(Note {
        severity: Severity::Info,
        text: "the job was imported: the whole trace is taken as one step".to_owned(),
        hint: None,
    });
    let works = |template: &RankTemplate| {
        template
            .events
            .iter()
            .any(|event| matches!(event.action, Action::Enqueue { .. } | Action::Collective { .. }))
    };
    if !job.templates.iter().any(works) {
        return Err(ImportError::Empty { ranks: world });
    }
    Ok(job)
}

struct Importer<'a> {
    rank: usize,
    world: usize,
    groups: &'a BTreeMap<String, Vec<u32>>,
    template: RankTemplate,
    /// Members by slot.
    slots: Vec<Vec<u32>>,
    sequences: BTreeMap<u32, u64>,
    streams: BTreeSet<u32>,
    /// Host time not yet in an event.
    gap: Duration,
    /// The group call that the last message was of, its stream and what it depended on.
    group: (u64, StreamId, BTreeSet<u64>),
}

impl<'a> Importer<'a> {
    fn new(rank: usize, world: usize, groups: &'a BTreeMap<String, Vec<u32>>) -> Self {
        let site = Site { operator: String::new(), scope: String::new(), phase: Phase::Forward };
        let template = RankTemplate { sites: vec![site], ..RankTemplate::default() };
        Self {
            rank,
            world,
            groups,
            template,
            slots: Vec::new(),
            sequences: BTreeMap::new(),
            streams: BTreeSet::new(),
            gap: Duration::ZERO,
            group: (0, StreamId(u32::MAX), BTreeSet::new()),
        }
    }

    fn graph(&mut self, graph: &Graph) -> Result<(), ImportError> {
        let order = self.order(&graph.nodes)?;
        let by_number: BTreeMap<u64, &Node> = graph.nodes.iter().map(|node| (node.id, node)).collect();
        let lane = |node: &Node| lane_of(node);
        // Whose end somebody of another lane waits for.
        let mut awaited = BTreeSet::new();
        for node in &graph.nodes {
            for dep in deps(node) {
                if let Some(other) = by_number.get(&dep)
                    && lane(other).is_some()
                    && lane(other) != lane(node)
                {
                    awaited.insert(dep);
                }
            }
        }
        for number in order {
            let node = by_number[&number];
            // Events are numbered like the nodes that they stand for.
            let event = |node: u64| EventId((node & 0xffff_ffff) as u32);
            let waits: Vec<u64> = deps(node)
                .filter(|dep| awaited.contains(dep))
                .filter(|dep| by_number.get(dep).is_some_and(|other| lane(other) != lane(node)))
                .collect();
            let Some(stream) = lane(node) else {
                for other in waits {
                    self.push(Action::SynchronizeEvent { event: event(other), version: 1 });
                }
                if node.kind != i32::from(NodeType::Metadata) {
                    self.gap += Duration::from_micros(node.duration_micros);
                }
                continue;
            };
            self.streams.insert(stream);
            let stream = StreamId(stream);
            for other in waits {
                self.push(Action::WaitEvent { stream, event: event(other), version: 1 });
            }
            self.work(node, stream, &graph.described)?;
            if awaited.contains(&node.id) {
                self.push(Action::RecordEvent { stream, event: event(node.id), version: 1 });
            }
        }
        self.push(Action::Host);
        let stream =
            |id: &u32| Stream { id: StreamId(*id), device: 0, priority: 0, kind: StreamKind::NonBlocking };
        self.template.streams = self.streams.iter().map(stream).collect();
        let boundaries = vec![0, self.template.events.len()];
        self.template.steps = Steps { boundaries, source: StepSource::User, ..Steps::default() };
        Ok(())
    }

    /// Every node after what it depends on, else by number.
    fn order(&self, nodes: &[Node]) -> Result<Vec<u64>, ImportError> {
        let mut missing: BTreeMap<u64, usize> = BTreeMap::new();
        let mut followers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for node in nodes {
            if missing.insert(node.id, 0).is_some() {
                return Err(ImportError::Twice { rank: self.rank, node: node.id });
            }
        }
        for node in nodes {
            // What is not in the trace is taken to be done.
            for dep in deps(node).filter(|dep| missing.contains_key(dep)).collect::<BTreeSet<_>>() {
                *missing.get_mut(&node.id).expect("every node was entered") += 1;
                followers.entry(dep).or_default().push(node.id);
            }
        }
        let mut ready: BTreeSet<u64> =
            missing.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        let mut order = Vec::with_capacity(nodes.len());
        while let Some(next) = ready.pop_first() {
            order.push(next);
            missing.remove(&next);
            for follower in followers.remove(&next).unwrap_or_default() {
                let count = missing.get_mut(&follower).expect("a follower has not been taken");
                *count -= 1;
                if *count == 0 {
                    ready.insert(follower);
                }
            }
        }
        match missing.keys().next() {
            Some(&node) => Err(ImportError::Cycle { rank: self.rank, node }),
            None => Ok(order),
        }
    }

    fn push(&mut self, action: Action) {
        let call = match action {
            Action::Enqueue { .. } => CallClass::Launch,
            Action::Collective { .. } => CallClass::Collective,
            Action::RecordEvent { .. } | Action::WaitEvent { .. } => CallClass::Event,
            Action::SynchronizeEvent { .. } => CallClass::Synchronize,
            _ => CallClass::None,
        };
        let gap = std::mem::replace(&mut self.gap, Duration::ZERO);
        self.template.events.push(HostEvent { thread: ThreadIndex(0), gap, call, site: 0, action });
    }

    fn work(&mut self, node: &Node, stream: StreamId, described: &Described) -> Result<(), ImportError> {
        if let Some(mut collective) = self.collective(node)? {
            if matches!(collective.kind, CollectiveKind::Send | CollectiveKind::Recv) {
                collective.group = self.group_of(node, stream);
            }
            self.push(Action::Collective { stream, collective });
            return Ok(());
        }
        let number = |name: &str| node.integer(name).and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
        let descriptor = described.get(&node.id).cloned().unwrap_or_else(|| {
            // Of a tensor's bytes it is not told which are read.
            let work = Work {
                read: Bytes(number("tensor_size")),
                written: Bytes(0),
                flops: Flops(number("num_ops")),
            };
            Descriptor::Recorded(Recorded { time: Duration::from_micros(node.duration_micros), work })
        });
        let operation = Operation {
            name: node.name.clone(),
            short_name: node.name.chars().take(80).collect(),
            descriptor,
            direction: Direction::Forward,
            launch: None,
        };
        let known = self.template.operations.iter().position(|known| *known == operation);
        let row = known.unwrap_or(self.template.operations.len());
        if known.is_none() {
            self.template.operations.push(operation);
        }
        self.push(Action::Enqueue { stream, operation: row as u32, blocking: false });
        Ok(())
    }

    /// The group call of a message: messages that follow each other on a stream and wait for the same run side by side.
    fn group_of(&mut self, node: &Node, stream: StreamId) -> u64 {
        let after: BTreeSet<u64> = deps(node).collect();
        if self.group.1 != stream || self.group.2 != after {
            self.group = (self.group.0 + 1, stream, after);
        }
        self.group.0
    }

    /// The collective or message that a node is; `None` for computation, and for communication that says no more than its
    /// time.
    fn collective(&mut self, node: &Node) -> Result<Option<Collective>, ImportError> {
        let message =
            [NodeType::Send, NodeType::Receive].into_iter().find(|kind| i32::from(*kind) == node.kind);
        if message.is_none() && node.kind != i32::from(NodeType::Collective) {
            return Ok(None);
        }
        let size = node.integer("comm_size").and_then(|size| u64::try_from(size).ok());
        let Some(mut bytes) = size.filter(|size| *size > 0) else { return Ok(None) };
        let members = match node.text("pg_name").filter(|name| !name.is_empty()) {
            Some(name) => match self.groups.get(name) {
                Some(members) if !members.is_empty() => members.clone(),
                // ASTRA-sim's group 0 and PyTorch's default group are the whole job.
                _ if name == "0" || self.groups.contains_key(name) => self.everyone(),
                _ => {
                    let (rank, node) = (self.rank, node.id);
                    return Err(ImportError::Group { rank, node, group: name.to_owned() });
                }
            },
            None => self.everyone(),
        };
        let place = |rank: i64| members.iter().position(|member| i64::from(*member) == rank);
        let (kind, peer) = match message {
            Some(kind) => {
                let sends = kind == NodeType::Send;
                let peer = node.integer(if sends { "comm_dst" } else { "comm_src" }).unwrap_or(-1);
                let found = place(peer).ok_or(ImportError::Peer {
                    rank: self.rank,
                    node: node.id,
                    peer,
                    world: self.world,
                })?;
                (if sends { CollectiveKind::Send } else { CollectiveKind::Recv }, found as u32)
            }
            None => {
                let code = node.integer("comm_type").and_then(|code| i32::try_from(code).ok()).unwrap_or(0);
                let kind = match CommunicationType::try_from(code).unwrap_or(CommunicationType::AllReduce) {
                    CommunicationType::AllReduce | CommunicationType::Barrier => CollectiveKind::AllReduce,
                    CommunicationType::Reduce => CollectiveKind::Reduce,
                    CommunicationType::AllGather => CollectiveKind::AllGather,
                    CommunicationType::Gather => CollectiveKind::Gather,
                    CommunicationType::Scatter => CollectiveKind::Scatter,
                    CommunicationType::Broadcast => CollectiveKind::Broadcast,
                    CommunicationType::AllToAll => CollectiveKind::AllToAll,
                    CommunicationType::ReduceScatter | CommunicationType::ReduceScatterBlock => {
                        CollectiveKind::ReduceScatter
                    }
                };
                let root = node.integer("root_rank").and_then(place).unwrap_or(0);
                (kind, root as u32)
            }
        };
        if kind == CollectiveKind::AllGather {
            bytes *= members.len() as u64;
        }
        let slot = self.slots.iter().position(|known| *known == members).unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(members);
        }
        let communicator = slot as u32;
        let sequence = self.sequences.entry(communicator).or_insert(0);
        let number = *sequence;
        *sequence += u64::from(message.is_none());
        let collective = Collective {
            kind,
            communicator,
            sequence: number,
            bytes: Bytes(bytes),
            dtype: DType::F32,
            peer,
            group: 0,
        };
        Ok(Some(collective))
    }

    fn everyone(&self) -> Vec<u32> {
        (0..self.world as u32).collect()
    }
}

fn deps(node: &Node) -> impl Iterator<Item = u64> {
    node.data.iter().chain(&node.control).copied().filter(|dep| *dep != node.id)
}

/// The stream of a node of the device; `None` for the processor.
fn lane_of(node: &Node) -> Option<u32> {
    let is = |kind: NodeType| node.kind == i32::from(kind);
    if is(NodeType::Metadata) || is(NodeType::Invalid) || node.integer("is_cpu_op") == Some(1) {
        return None;
    }
    let stated = node.integer("stream").and_then(|stream| u32::try_from(stream).ok());
    Some(stated.unwrap_or(if is(NodeType::Compute) { COMPUTE } else { COMMUNICATION }))
}
