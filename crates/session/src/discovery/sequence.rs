//! What one rank has asked of the device and the network so far, followed while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;
use trompe_base::{Rank, RankPattern};
use trompe_trace::reader::Entry;
use trompe_trace::record::{Collective, CollectiveKind, NameTable, Record};
use trompe_trace::tail::{Batch, Tail};

use super::plan::Group;

/// A rank's operations, as hashes of everything up to each of them, by thread.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) path: PathBuf,
    own: u32,
    tail: Tail,
    threads: BTreeMap<u32, Thread>,
    /// Kernels by id: a hash of the name.
    kernels: BTreeMap<u32, u64>,
    /// Names of operators that end a step.
    optimizers: BTreeSet<u32>,
    communicators: BTreeMap<u32, Communicator>,
    /// Steps of optimizers that have begun.
    pub(super) steps: usize,
    /// The process has ended in an orderly way.
    pub(super) ended: bool,
    /// What could not be read any more.
    broken: bool,
}

/// What one thread asked for.
#[derive(Debug)]
struct Thread {
    /// Its first operation.
    begin: u64,
    /// After each operation, the hash of all up to it.
    prefixes: Vec<u64>,
    /// Kinds of the operations, for messages.
    kinds: Vec<u8>,
}

#[derive(Debug)]
struct Communicator {
    members: Vec<u32>,
    /// Hash of its shape.
    shape: u64,
    peers: BTreeSet<u32>,
}

impl Communicator {
    /// The global rank at a place; a communicator whose members are not told is of all ranks.
    fn rank_at(&self, place: u32) -> u32 {
        self.members.get(place as usize).copied().unwrap_or(place)
    }
}

/// What a file turned out to be.
pub(super) enum Opened {
    /// The trace of this rank.
    Rank(Rank, Box<Sequence>),
    /// The trace of a process that is no rank.
    NoRank,
    /// It says nothing yet.
    NotYet,
}

const KINDS: [&str; 10] = [
    "a kernel",
    "a matrix product",
    "a convolution",
    "an attention call",
    "a recurrent network",
    "a library call",
    "a collective",
    "a copy",
    "a fill",
    "a graph launch",
];

impl Sequence {
    /// Opens a trace and reads which rank it is of.
    pub(super) fn open(path: &Path) -> Opened {
        let Ok(Some(mut tail)) = Tail::open(path) else { return Opened::NotYet };
        let Ok(batch) = tail.read() else { return Opened::NotYet };
        let mut environment = None;
        for entry in batch.entries() {
            if let Record::Meta { key: "environment", value } = entry.record {
                environment = Some(value.to_owned());
            }
        }
        // Written when the framework has been imported.
        let Some(environment) = environment else { return Opened::NotYet };
        let value: serde_json::Value = serde_json::from_str(&environment).unwrap_or_default();
        let rank = value.get(crate::env::TROMPE_RANK).and_then(|text| text.as_str()?.parse().ok());
        let Some(rank) = rank else { return Opened::NoRank };
        let mut sequence = Self {
            path: path.to_owned(),
            own: rank,
            tail,
            threads: BTreeMap::new(),
            kernels: BTreeMap::new(),
            optimizers: BTreeSet::new(),
            communicators: BTreeMap::new(),
            steps: 0,
            ended: false,
            broken: false,
        };
        sequence.take(&batch);
        Opened::Rank(Rank(rank), Box::new(sequence))
    }

    /// Reads what is new.
    pub(super) fn follow(&mut self) {
        if self.ended || self.broken {
            return;
        }
        match self.tail.read() {
            Ok(batch) => self.take(&batch),
            Err(_) => self.broken = true,
        }
    }

    /// The groups of the rank.
    pub(super) fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        let told = self.communicators.values().filter(|communicator| communicator.members.len() > 1);
        told.map(|communicator| Group {
            members: communicator.members.clone(),
            peers: communicator.peers.clone(),
        })
    }

    /// Ranks to which this one sends, or from which it receives, what is theirs alone: `(own, other)`.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pipelines = self.communicators.values().filter(|communicator| {
            let members = communicator.members.clone();
            let group = Group { members, peers: communicator.peers.clone() };
            group.is_pipeline() || communicator.members.is_empty() && !communicator.peers.is_empty()
        });
        pipelines.flat_map(|communicator| {
            communicator.peers.iter().map(|place| (self.own, communicator.rank_at(*place)))
        })
    }

    /// The first operation in which two ranks differ, as far as both have come: its number in its thread, and what it
    /// is here and there.
    pub(super) fn first_difference(&self, other: &Self) -> Option<(usize, (String, String))> {
        let in_order = |sequence: &Self| {
            let mut threads: Vec<u32> = sequence.threads.keys().copied().collect();
            threads.sort_by_key(|thread| sequence.threads[thread].begin);
            threads
        };
        for (own, others) in in_order(self).into_iter().zip(in_order(other)) {
            let (own, others) = (&self.threads[&own], &other.threads[&others]);
            let both = own.prefixes.len().min(others.prefixes.len());
            if both > 0 && own.prefixes[both - 1] != others.prefixes[both - 1] {
                let at =
                    own.prefixes[..both].iter().zip(&others.prefixes).take_while(|(a, b)| a == b).count();
                let name = |thread: &Thread| KINDS[usize::from(thread.kinds[at])].to_owned();
                return Some((at, (name(own), name(others))));
            }
        }
        None
    }

    fn take(&mut self, batch: &Batch) {
        // Uses may stand before their announcements.
        for entry in batch.entries() {
            self.announced(&entry.record);
        }
        for entry in batch.entries() {
            self.happened(&entry);
        }
    }

    fn announced(&mut self, record: &Record<'_>) {
        match record {
            Record::Kernel { id, name, .. } => {
                self.kernels.insert(id.0, hash(&name));
            }
            Record::Name { table: NameTable::Operator, id, name } if name.starts_with("Optimizer.step#") => {
                self.optimizers.insert(*id);
            }
            Record::Communicator { id, size, members, .. } => {
                let members: Vec<u32> = members
                    .chunks_exact(4)
                    .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                    .collect();
                let axes = RankPattern::of(&members).map(|pattern| pattern.axes().to_vec());
                let shape = hash(&(size, axes));
                let peers = BTreeSet::new();
                self.communicators.entry(*id).or_insert(Communicator { members, shape, peers });
            }
            Record::End => self.ended = true,
            _ => {}
        }
    }

    fn happened(&mut self, entry: &Entry<'_>) {
        let (kind, own) = match &entry.record {
            Record::OperatorBegin { name, .. } => {
                self.steps += usize::from(self.optimizers.contains(name));
                return;
            }
            Record::Launch { kernel, grid, block, shared, .. } => {
                (0, hash(&(self.kernels.get(&kernel.0), grid, block, shared)))
            }
            Record::Gemm { gemm, .. } => (1, hash(gemm)),
            Record::Convolution { convolution, .. } => (2, hash(convolution)),
            Record::Attention { attention, .. } => (3, hash(attention)),
            Record::Rnn { rnn, .. } => (4, hash(rnn)),
            Record::Library { api, read, written, .. } => (5, hash(&(api, read, written))),
            Record::Collective { collective, .. } => (6, self.collective(collective)),
            Record::Copy { copy, .. } => (7, hash(copy)),
            Record::Set { bytes, .. } => (8, hash(bytes)),
            Record::GraphLaunch { executable, .. } => (9, hash(executable)),
            _ => return,
        };
        let new = || Thread { begin: entry.stamp.begin, prefixes: Vec::new(), kinds: Vec::new() };
        let thread = self.threads.entry(entry.thread).or_insert_with(new);
        thread.begin = thread.begin.min(entry.stamp.begin);
        let before = thread.prefixes.last().copied().unwrap_or(0);
        let mut hasher = SipHasher13::new_with_keys(before, own);
        hasher.write_u8(kind);
        thread.prefixes.push(hasher.finish());
        thread.kinds.push(kind);
    }

    fn collective(&mut self, call: &Collective) -> u64 {
        let point = matches!(call.kind, CollectiveKind::Send | CollectiveKind::Recv);
        let Some(communicator) = self.communicators.get_mut(&call.communicator) else {
            return hash(&(call.kind, call.count, call.dtype, call.operator, call.peer));
        };
        let shape = communicator.shape;
        // Ranks of one stage send equally far.
        let peer = if point {
            communicator.peers.insert(call.peer);
            i64::from(communicator.rank_at(call.peer)) - i64::from(self.own)
        } else {
            i64::from(call.peer)
        };
        hash(&(call.kind, shape, call.count, call.dtype, call.operator, peer))
    }
}

/// A hash of a value's text: it has no addresses in it.
fn hash(value: &impl Debug) -> u64 {
    struct Sink(SipHasher13);
    impl std::fmt::Write for Sink {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut sink = Sink(SipHasher13::new());
    let _ = std::fmt::Write::write_fmt(&mut sink, format_args!("{value:?}"));
    sink.0.finish()
}
