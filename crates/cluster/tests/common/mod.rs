//! A small language for job traces: one line per host event, times in microseconds.

#![allow(dead_code, reason = "each test file uses a part of it")]

use trompe_base::{Bytes, DType, Duration, EventId, Rank, StreamId, ThreadIndex};
use trompe_cluster::{AlphaBeta, Instant, Options, Outcome, Price, Prices, SimulationError, simulate};
use trompe_trace::descriptor::{Copy, Descriptor, Direction, Gemm, Other, Place, Work};
use trompe_trace::job::{
    Action, CallClass, Collective, Communicator, HostEvent, JobTrace, Launch, Operation, RankInstance,
    RankTemplate, Site, Stream,
};
use trompe_trace::record::{CollectiveKind, StreamKind};

/// Builds the events of one rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) template: RankTemplate,
    pub(crate) prices: Vec<Price>,
    gap: u64,
    thread: u32,
    calls: std::collections::BTreeMap<u32, u64>,
}

pub(crate) fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

impl Script {
    /// Streams 1 to 5 order against nothing; stream 0 is the legacy default stream, 7 and 8 are blocking ones.
    pub(crate) fn new() -> Self {
        let mut script = Self::default();
        let kinds = [
            (0, StreamKind::Legacy),
            (1, StreamKind::NonBlocking),
            (2, StreamKind::NonBlocking),
            (3, StreamKind::NonBlocking),
            (4, StreamKind::NonBlocking),
            (5, StreamKind::NonBlocking),
            (7, StreamKind::Blocking),
            (8, StreamKind::PerThread),
        ];
        let stream = |(id, kind)| Stream { id: StreamId(id), device: 0, priority: 0, kind };
        script.template.streams = kinds.into_iter().map(stream).collect();
        script.template.sites =
            vec![Site { operator: String::new(), scope: String::new(), phase: Default::default() }];
        script
    }

    /// Host time before the next event.
    pub(crate) fn host(mut self, us: u64) -> Self {
        self.gap += us;
        self
    }

    /// What follows is done by this thread.
    pub(crate) fn thread(mut self, thread: u32) -> Self {
        self.thread = thread;
        self
    }

    /// The thread hands something over.
    pub(crate) fn give(self, token: u32) -> Self {
        self.push(Action::Give { token })
    }

    /// The thread waits for it.
    pub(crate) fn take(self, token: u32) -> Self {
        self.push(Action::Take { token })
    }

    fn push(mut self, action: Action) -> Self {
        let gap = micros(std::mem::take(&mut self.gap));
        let call = CallClass::Launch;
        let thread = ThreadIndex(self.thread);
        self.template.events.push(HostEvent { thread, gap, call, site: 0, action });
        self
    }

    fn operation(&mut self, name: &str, descriptor: Descriptor, time: Duration) -> u32 {
        self.template.operations.push(Operation {
            name: name.into(),
            short_name: name.into(),
            descriptor,
            direction: Direction::Forward,
            launch: None,
        });
        self.prices.push(Price { time, low: time.scale(0.5), high: time.scale(2.0) });
        self.template.operations.len() as u32 - 1
    }

    pub(crate) fn kernel(mut self, stream: u32, us: u64) -> Self {
        let other = Other { work: Default::default(), blocks: 1, threads: 1 };
        let operation = self.operation("kernel", Descriptor::Other(other), micros(us));
        self.push(Action::Enqueue { stream: StreamId(stream), operation, blocking: false })
    }

    pub(crate) fn gemm(mut self, stream: u32, us: u64) -> Self {
        let gemm = Gemm {
            m: 1,
            n: 1,
            k: 1,
            batch: 1,
            transpose_a: false,
            transpose_b: false,
            a: DType::F16,
            b: DType::F16,
            c: DType::F16,
            compute: DType::F32,
            epilogue: Default::default(),
            accumulate: false,
            leading: [1; 3],
            strides: [0; 3],
        };
        let operation = self.operation("gemm", Descriptor::Gemm(gemm), micros(us));
        self.push(Action::Enqueue { stream: StreamId(stream), operation, blocking: false })
    }

    pub(crate) fn copy(mut self, stream: u32, us: u64, (from, to): (Place, Place), blocking: bool) -> Self {
        let copy = Copy { from, to, bytes: Bytes(1) };
        let operation = self.operation("copy", Descriptor::Copy(copy), micros(us));
        self.push(Action::Enqueue { stream: StreamId(stream), operation, blocking })
    }

    pub(crate) fn upload(self, stream: u32, us: u64) -> Self {
        self.copy(stream, us, (Place::Pinned, Place::Device), false)
    }

    pub(crate) fn download(self, stream: u32, us: u64) -> Self {
        self.copy(stream, us, (Place::Device, Place::Pinned), false)
    }

    pub(crate) fn graph(mut self, stream: u32, us: &[u64]) -> Self {
        let mut operations = Vec::new();
        for &us in us {
            let other = Other { work: Default::default(), blocks: 1, threads: 1 };
            operations.push(self.operation("node", Descriptor::Other(other), micros(us)));
        }
        self.push(Action::Graph { stream: StreamId(stream), operations })
    }

    pub(crate) fn record(self, stream: u32, event: u32, version: u32) -> Self {
        self.push(Action::RecordEvent { stream: StreamId(stream), event: EventId(event), version })
    }

    pub(crate) fn wait(self, stream: u32, event: u32, version: u32) -> Self {
        self.push(Action::WaitEvent { stream: StreamId(stream), event: EventId(event), version })
    }

    pub(crate) fn sync_event(self, event: u32, version: u32) -> Self {
        self.push(Action::SynchronizeEvent { event: EventId(event), version })
    }

    pub(crate) fn sync_stream(self, stream: u32) -> Self {
        self.push(Action::SynchronizeStream { stream: StreamId(stream) })
    }

    pub(crate) fn sync(self) -> Self {
        self.push(Action::SynchronizeDevice { device: 0 })
    }

    pub(crate) fn nothing(self) -> Self {
        self.push(Action::Host)
    }

    pub(crate) fn collective(mut self, stream: u32, kind: CollectiveKind, slot: u32, megabytes: u64) -> Self {
        let sequence = self.calls.entry(slot).or_default();
        *sequence += 1;
        let collective = Collective {
            kind,
            communicator: slot,
            sequence: *sequence - 1,
            bytes: Bytes(megabytes * 1_000_000),
            dtype: DType::F32,
            peer: 0,
            group: 0,
        };
        self.push(Action::Collective { stream: StreamId(stream), collective })
    }

    pub(crate) fn all_reduce(self, stream: u32, slot: u32, megabytes: u64) -> Self {
        self.collective(stream, CollectiveKind::AllReduce, slot, megabytes)
    }

    /// A point-to-point operation with `peer`, in group call `group` (0: in none).
    pub(crate) fn transfer(self, stream: u32, kind: CollectiveKind, peer: u32, group: u64) -> Self {
        let mut script = self.collective(stream, kind, 0, 1);
        if let Some(Action::Collective { collective, .. }) =
            script.template.events.last_mut().map(|event| &mut event.action)
        {
            collective.peer = peer;
            collective.group = group;
        }
        script
    }

    /// A point-to-point operation with `peer` on the communicator of `slot`, in no group call.
    pub(crate) fn pass(self, stream: u32, kind: CollectiveKind, slot: u32, peer: u32) -> Self {
        let mut script = self.collective(stream, kind, slot, 1);
        if let Some(Action::Collective { collective, .. }) =
            script.template.events.last_mut().map(|event| &mut event.action)
        {
            collective.peer = peer;
        }
        script
    }

    /// Gives a stream a priority; lower is more urgent.
    pub(crate) fn urgency(mut self, stream: u32, priority: i32) -> Self {
        let found = self.template.streams.iter_mut().find(|found| found.id == StreamId(stream));
        found.expect("the stream exists").priority = priority;
        self
    }

    /// A kernel of so many blocks, one to a multiprocessor.
    pub(crate) fn blocks(self, stream: u32, us: u64, blocks: u32) -> Self {
        let mut script = self.kernel(stream, us);
        let launch = Launch { grid: [blocks, 1, 1], block: [1_024, 1, 1], shared: 0, registers: 64 };
        script.template.operations.last_mut().expect("it was just added").launch = Some(launch);
        script
    }

    /// A kernel of so many blocks that moves so many kilobytes.
    pub(crate) fn streaming(self, stream: u32, us: u64, (blocks, kilobytes): (u32, u64)) -> Self {
        let mut script = self.blocks(stream, us, blocks);
        let work = Work { read: Bytes(kilobytes * 1_000), ..Work::default() };
        script.template.operations.last_mut().expect("it was just added").descriptor =
            Descriptor::Other(Other { work, blocks: u64::from(blocks), threads: 1 });
        script
    }

    /// A host function: an item of the stream that the device does nothing for.
    pub(crate) fn host_function(mut self, stream: u32, us: u64) -> Self {
        let other = Other { work: Default::default(), blocks: 0, threads: 0 };
        let operation = self.operation("host function", Descriptor::Other(other), micros(us));
        self.push(Action::Enqueue { stream: StreamId(stream), operation, blocking: false })
    }

    /// A group call that exchanges `parts[peer]` kilobytes with each peer but `own`, there and back.
    pub(crate) fn exchange(self, stream: u32, own: u32, (to, from): (&[u64], &[u64]), group: u64) -> Self {
        let mut script = self;
        for peer in (0..to.len() as u32).filter(|peer| *peer != own) {
            for (kind, parts) in [(CollectiveKind::Send, to), (CollectiveKind::Recv, from)] {
                script = script.transfer(stream, kind, peer, group);
                let Some(Action::Collective { collective, .. }) =
                    script.template.events.last_mut().map(|event| &mut event.action)
                else {
                    unreachable!("it was just added")
                };
                collective.bytes = Bytes(parts[peer as usize] * 1_000);
            }
        }
        script
    }

    /// A step begins (or the last one ends) here.
    pub(crate) fn boundary(mut self) -> Self {
        let at = self.template.events.len();
        self.template.steps.boundaries.push(at);
        self
    }

    pub(crate) fn warmup(mut self, steps: usize) -> Self {
        self.template.steps.warmup = steps;
        self
    }

    /// The same `body` several times, each a step.
    pub(crate) fn steps(mut self, count: usize, body: impl Fn(Self) -> Self) -> Self {
        for _ in 0..count {
            self = body(self.boundary());
        }
        self.boundary()
    }
}

/// A job of these ranks, all of them members of communicator 0 (and alone in communicator slot 1).
pub(crate) fn job(scripts: &[Script]) -> (JobTrace, Prices) {
    let world: Vec<Rank> = (0..scripts.len() as u32).map(Rank).collect();
    let mut communicators = vec![Communicator { members: world, purpose: None }];
    let alone = |rank| Communicator { members: vec![Rank(rank)], purpose: None };
    communicators.extend((0..scripts.len() as u32).map(alone));
    let instance = |i| RankInstance { template: i, communicators: vec![0, i + 1], emulated: true };
    let trace = JobTrace {
        templates: scripts.iter().map(|script| script.template.clone()).collect(),
        ranks: (0..scripts.len()).map(instance).collect(),
        communicators,
        ..JobTrace::default()
    };
    (trace, Prices { templates: scripts.iter().map(|script| script.prices.clone()).collect() })
}

/// All-reduces of two ranks take a millisecond per megabyte: one gigabyte per second, no latency.
pub(crate) const WIRE: AlphaBeta = AlphaBeta { alpha: Duration::ZERO, bytes_per_second: 1e9 };

pub(crate) fn run(scripts: &[Script], options: &Options) -> Result<Outcome, SimulationError> {
    let (trace, prices) = job(scripts);
    simulate(&trace, &prices, &WIRE, options)
}

/// Replays one rank whose collectives take no time.
pub(crate) fn run_one(script: Script, options: &Options) -> Outcome {
    let (trace, prices) = job(&[script]);
    simulate(&trace, &prices, &Instant, options).expect("the job ends")
}
