//! From raw records to the events and operations of a job trace.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher as _;
use std::ops::Range;

use siphasher::sip::SipHasher13;
use trompe_base::{Bytes, Duration, KernelId, StreamId};
use trompe_trace::descriptor::{Copy, Descriptor, Set};
use trompe_trace::job::{Action, CallClass, Collective, HostEvent, Launch, Operation, Phase};
use trompe_trace::reader::Names;
use trompe_trace::record::{self, CollectiveKind, Record};

use crate::capture::{Captures, Node};
use crate::classify::{self, Kernel, Library};
use crate::direction::direction;
use crate::intern::{Operations, Sites};
use crate::kernel::{Name, Parameters, short};
use crate::memory::Live;
use crate::operator::{Context, Frame};
use crate::short_name;
use crate::walk::{RawEvent, Walk};

/// What the events of one process become.
#[derive(Debug, Default)]
pub(crate) struct Interpreted {
    /// Distinct operations.
    pub operations: Operations,
    /// Distinct sites.
    pub sites: Sites,
    /// Events; gaps are this run's own.
    pub events: Vec<HostEvent>,
    /// For each event a hash of what it does, equal in repeated steps; zero for polls, which repeat as they like.
    pub keys: Vec<u64>,
    /// For each event of the walk its first event here, and one entry more for the end.
    pub rows: Vec<usize>,
    /// Of collectives, by event, the place in the program.
    pub places: BTreeMap<usize, String>,
    /// Slots of communicators: the process's ids in order of first use; with a peer, the pair of this process and the
    /// member at that place of a communicator of all ranks.
    pub slots: Vec<(u32, Option<u32>)>,
    /// Launches per kernel that no family claimed.
    pub unclaimed: BTreeMap<String, u64>,
    /// Launches of graphs that were never captured in this trace.
    pub unknown_graphs: u64,
    /// Launches of the others, by their first event.
    pub replays: BTreeMap<usize, Replay>,
    /// Ends of optimizer steps that ran, ascending.
    pub optimizer_ends: Vec<OptimizerEnd>,
}

/// What a launch of a graph repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// Part of it is a backward pass.
    pub backward: bool,
    /// Events during which the graph was captured.
    pub captured: Range<usize>,
}

/// Where an optimizer's step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptimizerEnd {
    /// Events before it.
    pub at: usize,
    /// It was part of a graph that was launched.
    pub replayed: bool,
}

/// Interprets all events of a walk.
pub(crate) fn interpret<'a>(walk: &Walk<'a>, names: &'a Names<'a>) -> Interpreted {
    let mut interpreter = Interpreter {
        walk,
        names,
        kernels: HashMap::new(),
        captures: Captures::default(),
        live: Live::default(),
        tokens: BTreeMap::new(),
        out: Interpreted::default(),
    };
    let mut memory = walk.memory.iter().peekable();
    let mut ends = walk.optimizer_ends.iter().peekable();
    for (at, event) in walk.events.iter().enumerate() {
        while let Some(change) = memory.next_if(|change| change.at <= at) {
            interpreter.live.apply(&change.record);
        }
        let row = interpreter.out.events.len();
        interpreter.out.rows.push(row);
        while ends.next_if(|end| **end <= at).is_some() {
            interpreter.optimizer_ends(row);
        }
        interpreter.event(event);
    }
    let end = interpreter.out.events.len();
    interpreter.out.rows.push(end);
    ends.for_each(|_| interpreter.optimizer_ends(end));
    if interpreter.captures.have_collectives() {
        number_collectives(&mut interpreter.out);
    }
    interpreter.out
}

/// Numbers the collectives of each communicator in the order in which they run: those of a graph run at each launch,
/// but were numbered when they were captured. Sends and receives are counted apart, per direction and peer.
fn number_collectives(found: &mut Interpreted) {
    let mut next: BTreeMap<(u32, Option<(CollectiveKind, u32)>), u64> = BTreeMap::new();
    for event in &mut found.events {
        if let Action::Collective { collective, .. } = &mut event.action {
            let kind = collective.kind;
            let pair = matches!(kind, CollectiveKind::Send | CollectiveKind::Recv)
                .then_some((kind, collective.peer));
            let counter = next.entry((collective.communicator, pair)).or_default();
            collective.sequence = *counter;
            *counter += 1;
        }
    }
}

struct Interpreter<'w, 'a> {
    walk: &'w Walk<'a>,
    names: &'a Names<'a>,
    kernels: HashMap<KernelId, Name>,
    captures: Captures,
    live: Live,
    /// Hand-overs, numbered.
    tokens: BTreeMap<u64, u32>,
    out: Interpreted,
}

/// What a record does, before captures are sorted out.
enum Effect {
    Node(StreamId, Node, bool),
    Action(Action),
}

impl<'a> Interpreter<'_, 'a> {
    fn event(&mut self, event: &RawEvent<'a>) {
        let frames: &[Frame<'a>] = &self.walk.frames;
        let range = event.frame.and_then(|row| frames[row].range).or(event.mark).unwrap_or("");
        let context = Context::new(frames, event.frame);
        let site = self.out.sites.row(context.name(), range, event.phase);
        let call = self.class(&event.record);
        let actions = match self.effect(event, &context, range) {
            Effect::Node(stream, node, blocking) => {
                vec![self.captures.node(stream, node, blocking, event.phase)]
            }
            Effect::Action(action) => vec![action],
        };
        let actions = match &event.record {
            Record::GraphLaunch { executable, stream, .. } => self.launch_graph(*executable, *stream),
            _ => actions,
        };
        let mut gap = Duration::from_picos((self.names.clock.length_nanos(event.gap) * 1e3) as u64);
        let mut class = call;
        let row = self.out.events.len();
        if let Some(place) = event.place.filter(|_| call == CallClass::Collective) {
            self.out.places.insert(row, place.to_owned());
        }
        for action in actions {
            self.out.keys.push(self.key(&action, class));
            self.out.events.push(HostEvent { thread: event.thread, gap, call: class, site, action });
            // A graph that holds collectives is several actions of one call.
            gap = Duration::ZERO;
            class = CallClass::None;
        }
        if let Record::GraphLaunch { executable, .. } = &event.record
            && let Some(graph) = self.captures.captured(*executable)
        {
            let replay = Replay { backward: graph.backward, captured: graph.rows.clone() };
            self.out.replays.insert(row, replay);
            if graph.optimizer {
                self.out.optimizer_ends.push(OptimizerEnd { at: self.out.events.len(), replayed: true });
            }
        }
    }

    /// An optimizer's step ends before event `row`; during a capture it ends at each launch instead.
    fn optimizer_ends(&mut self, row: usize) {
        if !self.captures.end_optimizer() {
            self.out.optimizer_ends.push(OptimizerEnd { at: row, replayed: false });
        }
    }

    fn effect(&mut self, event: &RawEvent<'a>, context: &Context<'_, 'a>, range: &str) -> Effect {
        let host = Effect::Action(Action::Host);
        match &event.record {
            Record::EventRecord { event, version, stream, .. } => {
                if self.captures.record_event(*stream, *event, *version) {
                    return host;
                }
                Effect::Action(Action::RecordEvent { stream: *stream, event: *event, version: *version })
            }
            Record::StreamWaitEvent { stream, event, version, .. } => {
                if *version == u32::MAX || self.captures.wait_event(*stream, *event, *version) {
                    return host;
                }
                Effect::Action(Action::WaitEvent { stream: *stream, event: *event, version: *version })
            }
            Record::EventSynchronize { event, version, .. } if *version != u32::MAX => {
                Effect::Action(Action::SynchronizeEvent { event: *event, version: *version })
            }
            Record::StreamSynchronize { stream, .. } => {
                Effect::Action(Action::SynchronizeStream { stream: *stream })
            }
            Record::DeviceSynchronize { device, .. } => {
                Effect::Action(Action::SynchronizeDevice { device: device.0 })
            }
            // cudaFree waits for the device; the stream-ordered and the virtual-memory calls do not.
            Record::Free { api, device, .. } if self.symbol(*api) == "cudaFree" => {
                Effect::Action(Action::SynchronizeDevice { device: device.0 })
            }
            Record::CaptureBegin { stream, graph } => {
                self.captures.begin(*stream, *graph, self.out.events.len());
                host
            }
            Record::CaptureEnd { graph, .. } => {
                self.captures.end(*graph, self.out.events.len());
                host
            }
            Record::GraphInstantiate { graph, executable } => {
                self.captures.instantiate(*graph, *executable);
                host
            }
            Record::Give { token } => Effect::Action(Action::Give { token: self.token(*token) }),
            Record::Take { token } => Effect::Action(Action::Take { token: self.token(*token) }),
            Record::Collective { stream, collective, .. } => {
                let collective = self.collective(collective);
                Effect::Node(*stream, Node::Collective(collective), false)
            }
            record => match self.operation(record, context, event.phase, range) {
                Some((stream, operation, blocking)) => {
                    let row = self.out.operations.row(operation);
                    Effect::Node(stream, Node::Operation(row), blocking)
                }
                None => host,
            },
        }
    }

    fn token(&mut self, token: u64) -> u32 {
        let next = self.tokens.len() as u32;
        *self.tokens.entry(token).or_insert(next)
    }

    /// The device operation that a record enqueues.
    fn operation(
        &mut self,
        record: &Record<'a>,
        context: &Context<'_, 'a>,
        phase: Phase,
        range: &str,
    ) -> Option<(StreamId, Operation, bool)> {
        let library = |api: u16, descriptor: Descriptor| {
            let name = self.symbol(api).to_owned();
            let short_name = short_name::of(&descriptor, &name);
            let direction = direction(&descriptor, phase, range);
            Operation { name, short_name, descriptor, direction, launch: None }
        };
        Some(match record {
            Record::Launch { .. } => return self.launch(record, context, phase, range),
            Record::Gemm { api, stream, gemm } => {
                (*stream, library(*api, Descriptor::Gemm(gemm.clone())), false)
            }
            Record::Convolution { api, stream, convolution } => {
                (*stream, library(*api, Descriptor::Convolution(convolution.clone())), false)
            }
            Record::Attention { api, stream, attention } => {
                (*stream, library(*api, Descriptor::Attention(attention.clone())), false)
            }
            Record::Rnn { api, stream, rnn } => (*stream, library(*api, Descriptor::Rnn(rnn.clone())), false),
            Record::Library { api, stream, read, written, detail } => {
                let call = Library { symbol: self.symbol(*api), read: *read, written: *written };
                let descriptor = classify::library(call, context);
                let mut operation = library(*api, descriptor);
                if detail.starts_with(&operation.name) {
                    operation.short_name = short_name::brief(detail);
                } else if !detail.is_empty() {
                    operation.short_name = format!("{} {}", operation.short_name, short_name::brief(detail));
                }
                (*stream, operation, false)
            }
            Record::Copy { api, stream, copy, blocking } => {
                (*stream, library(*api, copied(*copy)), *blocking)
            }
            Record::Set { api, stream, bytes, .. } => {
                (*stream, library(*api, Descriptor::Set(Set { bytes: Bytes(*bytes) })), false)
            }
            Record::HostFunction { api, stream } => {
                let nothing =
                    trompe_trace::descriptor::Other { work: Default::default(), blocks: 0, threads: 0 };
                (*stream, library(*api, Descriptor::Other(nothing)), false)
            }
            _ => return None,
        })
    }

    fn launch(
        &mut self,
        record: &Record<'a>,
        context: &Context<'_, 'a>,
        phase: Phase,
        range: &str,
    ) -> Option<(StreamId, Operation, bool)> {
        let Record::Launch { kernel: id, stream, grid, block, shared, parameters, .. } = record else {
            return None;
        };
        let announced = self.names.kernels.get(id);
        let mangled = announced.map_or("unnamed kernel", |kernel| kernel.name);
        let name = self.kernels.entry(*id).or_insert_with(|| Name::parse(mangled));
        let sizes = announced.map_or(&[][..], |kernel| &kernel.parameters);
        let (registers, fixed) = announced.map_or((0, 0), |kernel| (kernel.registers, kernel.static_shared));
        let launch = Launch { grid: *grid, block: *block, shared: shared.saturating_add(fixed), registers };
        let kernel = Kernel {
            name,
            parameters: Parameters::new(sizes, parameters),
            grid: *grid,
            block: *block,
            shared: launch.shared,
            registers,
            from_module: announced.is_some_and(|kernel| kernel.from_module),
            code: announced
                .filter(|kernel| kernel.from_module)
                .and_then(|_| self.names.meta.get(format!("kernel.instructions/{}", id.0).as_str()).copied()),
            context,
            allocation: &self.live,
        };
        let descriptor = classify::describe(&kernel);
        let short_name = short::short_name(name);
        if matches!(descriptor, Descriptor::Other(_)) {
            *self.out.unclaimed.entry(short_name.clone()).or_default() += 1;
        }
        let direction = direction(&descriptor, phase, range);
        let operation =
            Operation { name: name.mangled.clone(), short_name, descriptor, direction, launch: Some(launch) };
        Some((*stream, operation, false))
    }

    fn collective(&mut self, call: &record::Collective) -> Collective {
        let communicator = self.walk.communicators.get(&call.communicator);
        // Among all ranks a peer is told by its number, which is another for each rank that does the same. In a pair it
        // is not.
        let point = matches!(call.kind, CollectiveKind::Send | CollectiveKind::Recv);
        let of_all = communicator.filter(|c| point && c.size > 2 && c.is_of_all() && c.rank != call.peer);
        let key = (call.communicator, of_all.map(|_| call.peer));
        let slot = self.out.slots.iter().position(|slot| *slot == key).unwrap_or_else(|| {
            self.out.slots.push(key);
            self.out.slots.len() - 1
        });
        let peer = of_all.map_or(call.peer, |own| u32::from(call.peer > own.rank));
        let ranks = self.walk.communicators.get(&call.communicator).map_or(1, |c| u64::from(c.size));
        let own = call.count * call.dtype.size();
        let bytes = match call.kind {
            CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::Scatter => own * ranks,
            _ => own,
        };
        Collective {
            kind: call.kind,
            communicator: slot as u32,
            sequence: call.sequence,
            bytes: Bytes(bytes),
            dtype: call.dtype,
            peer,
            group: call.group,
        }
    }

    fn launch_graph(&mut self, executable: u32, stream: StreamId) -> Vec<Action> {
        self.captures.launch(executable, stream).unwrap_or_else(|| {
            self.out.unknown_graphs += 1;
            vec![Action::Host]
        })
    }

    fn symbol(&self, api: u16) -> &'a str {
        let name = self.names.apis.get(&u32::from(api)).copied().unwrap_or("unnamed function");
        name.split('/').nth(1).unwrap_or(name)
    }

    /// Which kind of call a record stands for.
    fn class(&self, record: &Record<'_>) -> CallClass {
        match record {
            Record::Launch { .. } | Record::HostFunction { .. } => CallClass::Launch,
            Record::Gemm { .. }
            | Record::Convolution { .. }
            | Record::Attention { .. }
            | Record::Rnn { .. }
            | Record::Library { .. } => CallClass::LibraryLaunch,
            Record::Collective { .. } => CallClass::Collective,
            Record::Copy { .. } | Record::Set { .. } => CallClass::Copy,
            Record::EventRecord { .. } | Record::StreamWaitEvent { .. } => CallClass::Event,
            Record::EventSynchronize { .. }
            | Record::EventQuery { .. }
            | Record::StreamSynchronize { .. }
            | Record::DeviceSynchronize { .. } => CallClass::Synchronize,
            Record::Malloc { api, .. } | Record::Free { api, .. } if self.is_stream_ordered(*api) => {
                CallClass::Pool
            }
            Record::Malloc { .. } | Record::Free { .. } | Record::Call { .. } => CallClass::Memory,
            Record::GraphLaunch { .. } => CallClass::Graph,
            _ => CallClass::None,
        }
    }

    /// Whether a function takes device memory from, or gives it to, a stream-ordered pool.
    fn is_stream_ordered(&self, api: u16) -> bool {
        self.symbol(api).ends_with("Async")
    }

    /// Event versions, collective numbers and the sizes that vary with the data are left out.
    fn key(&self, action: &Action, call: CallClass) -> u64 {
        let mut hasher = SipHasher13::new();
        let (kind, stream, row) = match action {
            Action::Enqueue { stream, operation, blocking } => {
                (1 + u8::from(*blocking), stream.0, *operation)
            }
            Action::Collective { stream, collective } => (3, stream.0, collective.kind as u32),
            Action::RecordEvent { stream, .. } => (4, stream.0, 0),
            Action::WaitEvent { stream, .. } => (5, stream.0, 0),
            Action::SynchronizeEvent { .. } => (6, 0, 0),
            Action::SynchronizeStream { stream } => (7, stream.0, 0),
            Action::SynchronizeDevice { .. } => (8, 0, 0),
            Action::Graph { stream, operations } => (9, stream.0, operations.len() as u32),
            Action::Host if call == CallClass::Synchronize => return 0,
            Action::Host => (10, 0, 0),
            Action::Give { .. } => (11, 0, 0),
            Action::Take { .. } => (12, 0, 0),
        };
        hasher.write(&[kind, call as u8]);
        hasher.write_u32(stream);
        if kind <= 2 {
            let operation = &self.out.operations.list[row as usize];
            hasher.write(operation.name.as_bytes());
            hasher.write(operation.descriptor.family().as_bytes());
        } else {
            hasher.write_u32(row);
        }
        hasher.finish().max(1)
    }
}

fn copied(copy: Copy) -> Descriptor {
    Descriptor::Copy(copy)
}
