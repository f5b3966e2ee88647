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
    /// When each step of an optimizer began.
    steps: Vec<u64>,
    /// How many of them had begun before the last look: all that happened before those has been read.
    complete: usize,
    /// When the framework's allocator gave or got back how many bytes.
    memory: Vec<(u64, i64)>,
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
    /// When each began.
    times: Vec<u64>,
}

impl Thread {
    /// How many operations had begun before a time.
    fn before(&self, time: u64) -> usize {
        self.times.partition_point(|begin| *begin < time)
    }
}

#[derive(Debug)]
struct Communicator {
    members: Vec<u32>,
    /// Hash of its shape.
    shape: u64,
    /// When it was made.
    made: u64,
    /// Places to which this rank sent or from which it received, and when it first did.
    peers: BTreeMap<u32, u64>,
}

impl Communicator {
    /// The global rank at a place; a communicator whose members are not told is of all ranks.
    fn rank_at(&self, place: u32) -> u32 {
        self.members.get(place as usize).copied().unwrap_or(place)
    }

    /// What was known of it at a time.
    fn until(&self, time: u64) -> Option<Group> {
        let peers = self.peers.iter().filter(|(_, begin)| **begin < time).map(|(place, _)| *place).collect();
        (self.made < time).then(|| Group { members: self.members.clone(), peers })
    }
}

/// The first thing in which two ranks differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// An operation: its number in its thread, from 0; what it is here, and what it is there.
    Operation {
        /// Number.
        number: usize,
        /// Here.
        own: &'static str,
        /// There.
        other: &'static str,
    },
    /// The most memory that the framework's allocator had given out, in bytes.
    Memory {
        /// Here.
        own: u64,
        /// There.
        other: u64,
    },
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

/// Numbers of the allocator's events (`c10/core/CachingDeviceAllocator.h`).
const ALLOCATED: u8 = 0;
const FREED: u8 = 2;

/// Two ranks use as much memory when their peaks differ by no more than one part in so many.
const MEMORY_SHARE: u64 = 100;

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
            steps: Vec::new(),
            complete: 0,
            memory: Vec::new(),
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
        self.complete = self.steps.len();
        match self.tail.read() {
            Ok(batch) => self.take(&batch),
            Err(_) => self.broken = true,
        }
    }

    /// Whether everything is known that the rank did before step `step` (from 1), or all that it ever did.
    pub(super) fn has_reached(&self, step: usize) -> bool {
        self.ended || self.complete >= step
    }

    /// When a step began; a rank that ended before it did everything before it.
    fn begin_of(&self, step: usize) -> u64 {
        step.checked_sub(1).and_then(|at| self.steps.get(at)).copied().unwrap_or(u64::MAX)
    }

    /// The groups of the rank before a step.
    pub(super) fn groups(&self, step: usize) -> impl Iterator<Item = Group> + '_ {
        let time = self.begin_of(step);
        let told = self.communicators.values().filter(|communicator| communicator.members.len() > 1);
        told.filter_map(move |communicator| communicator.until(time))
    }

    /// Ranks to which this one sends before a step, or from which it receives, what is theirs alone: `(own, other)`.
    pub(super) fn pairs(&self, step: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let time = self.begin_of(step);
        self.communicators.values().flat_map(move |communicator| {
            let group = communicator
                .until(time)
                .filter(|group| group.is_pipeline() || group.members.is_empty() && !group.peers.is_empty());
            let peers = group.map(|group| group.peers).unwrap_or_default();
            peers.into_iter().map(|place| (self.own, communicator.rank_at(place)))
        })
    }

    /// The first thing before a step in which two ranks differ.
    pub(super) fn difference(&self, other: &Self, step: usize) -> Option<Unlike> {
        let in_order = |sequence: &Self| {
            let mut threads: Vec<u32> = sequence.threads.keys().copied().collect();
            threads.sort_by_key(|thread| sequence.threads[thread].begin);
            threads
        };
        let times = (self.begin_of(step), other.begin_of(step));
        for (own, others) in in_order(self).into_iter().zip(in_order(other)) {
            let (own, others) = (&self.threads[&own], &other.threads[&others]);
            let (here, there) = (own.before(times.0), others.before(times.1));
            let both = here.min(there);
            let same = own.prefixes[..both].iter().zip(&others.prefixes).take_while(|(a, b)| a == b).count();
            if same < both || here != there {
                let name = |thread: &Thread, count: usize| match same < count {
                    true => KINDS[usize::from(thread.kinds[same])],
                    false => "nothing",
                };
                let (own, other) = (name(own, here), name(others, there));
                return Some(Unlike::Operation { number: same, own, other });
            }
        }
        let (own, other) = (self.peak(times.0), other.peak(times.1));
        (own.abs_diff(other) > own.max(other) / MEMORY_SHARE).then_some(Unlike::Memory { own, other })
    }

    /// The most bytes that the allocator had given out before a time.
    fn peak(&self, time: u64) -> u64 {
        let mut events: Vec<(u64, i64)> =
            self.memory.iter().filter(|(begin, _)| *begin < time).copied().collect();
        events.sort_by_key(|(begin, _)| *begin);
        let mut sum = 0_i64;
        let peak = events.into_iter().map(|(_, bytes)| {
            sum += bytes;
            sum
        });
        peak.max().unwrap_or(0).try_into().unwrap_or(0)
    }

    fn take(&mut self, batch: &Batch) {
        // Uses may stand before their announcements.
        for entry in batch.entries() {
            self.announced(&entry);
        }
        for entry in batch.entries() {
            self.happened(&entry);
        }
    }

    fn announced(&mut self, entry: &Entry<'_>) {
        match &entry.record {
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
                let made = entry.stamp.begin;
                let new = Communicator { members, shape, made, peers: BTreeMap::new() };
                self.communicators.entry(*id).or_insert(new);
            }
            Record::End => self.ended = true,
            _ => {}
        }
    }

    fn happened(&mut self, entry: &Entry<'_>) {
        let (kind, own) = match &entry.record {
            Record::OperatorBegin { name, .. } => {
                if self.optimizers.contains(name) {
                    let at = self.steps.partition_point(|begin| *begin < entry.stamp.begin);
                    self.steps.insert(at, entry.stamp.begin);
                }
                return;
            }
            Record::Allocator { action, bytes, .. } => {
                let signed = i64::try_from(*bytes).unwrap_or(i64::MAX);
                match *action {
                    ALLOCATED => self.memory.push((entry.stamp.begin, signed)),
                    FREED => self.memory.push((entry.stamp.begin, -signed)),
                    _ => {}
                }
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
            Record::Collective { collective, .. } => (6, self.collective(collective, entry.stamp.begin)),
            Record::Copy { copy, .. } => (7, hash(copy)),
            Record::Set { bytes, .. } => (8, hash(bytes)),
            Record::GraphLaunch { executable, .. } => (9, hash(executable)),
            _ => return,
        };
        let begin = entry.stamp.begin;
        let new = || Thread { begin, prefixes: Vec::new(), kinds: Vec::new(), times: Vec::new() };
        let thread = self.threads.entry(entry.thread).or_insert_with(new);
        thread.begin = thread.begin.min(begin);
        let before = thread.prefixes.last().copied().unwrap_or(0);
        let mut hasher = SipHasher13::new_with_keys(before, own);
        hasher.write_u8(kind);
        thread.prefixes.push(hasher.finish());
        thread.kinds.push(kind);
        // A chunk that another thread began may hold a record from before the last one.
        thread.times.push(thread.times.last().map_or(begin, |last| begin.max(*last)));
    }

    fn collective(&mut self, call: &Collective, begin: u64) -> u64 {
        let point = matches!(call.kind, CollectiveKind::Send | CollectiveKind::Recv);
        let Some(communicator) = self.communicators.get_mut(&call.communicator) else {
            return hash(&(call.kind, call.count, call.dtype, call.operator, call.peer));
        };
        let shape = communicator.shape;
        // Ranks of one stage send equally far.
        let peer = if point {
            let first = communicator.peers.entry(call.peer).or_insert(begin);
            *first = begin.min(*first);
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
