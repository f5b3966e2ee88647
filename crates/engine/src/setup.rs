//! Registration: which events there are, what they do, and which must fire before which.
//!
//! A [`Setup`] becomes an [`Engine`] by [`Setup::finalize`]. Before that nothing can be scheduled, after it nothing
//! can be registered or ordered: both would not compile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::asynchronous::{AsyncSender, Mailbox};
use crate::clock::Clock;
use crate::engine::{Engine, Fire, Handler, PayloadHandler};
use crate::error::SetupError;
use crate::event::{
    Event, EveryTickEvent, Id, Kind, Ordered, OrderingPoint, PayloadEvent, SingleCycleEvent, Spec,
    StartUpEvent, UniqueEvent,
};
use crate::graph::Graph;
use crate::phase::Phase;
use crate::pool::{AnyPool, Pool};
use crate::port::Ports;
use crate::scheduler::{EventState, Label, Parts, Place, Scheduler, Ties};

/// Tells the handles of different engines apart; it has no influence on any order.
static ENGINES: AtomicU32 = AtomicU32::new(0);

/// What an event is, beside its vertex.
struct Registered<W> {
    kind: Kind,
    continuing: bool,
    auto_precedence: bool,
    cycle: u64,
    handler: Box<dyn Fire<W>>,
    pool: Option<Box<dyn AnyPool>>,
}

/// Edges that one call of [`Setup::precedes`] added; takes them out again.
#[derive(Debug, Clone)]
pub struct Edges(Vec<usize>);

/// See the module's documentation. `W` is the world: whatever the handlers work on, handed in at each run.
pub struct Setup<W> {
    pub(crate) engine: u32,
    graph: Graph,
    pub(crate) ports: Ports,
    registered: Vec<Registered<W>>,
    ties: Ties,
    cycles_at_once: bool,
    mailboxes: Vec<Mailbox>,
    mail: Arc<AtomicBool>,
}

impl<W> Default for Setup<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W> Setup<W> {
    /// An engine-to-be without events, with keyed ties.
    #[must_use]
    pub fn new() -> Self {
        Self {
            engine: ENGINES.fetch_add(1, Ordering::Relaxed),
            graph: Graph::default(),
            ports: Ports::default(),
            registered: Vec::new(),
            ties: Ties::default(),
            cycles_at_once: false,
            mailboxes: Vec::new(),
            mail: Arc::default(),
        }
    }

    /// Chooses how ties inside a group are broken.
    #[must_use]
    pub fn ties(mut self, ties: Ties) -> Self {
        self.ties = ties;
        self
    }

    /// Looks for cycles at every edge, so that the call that closes one fails; costs a search per edge.
    #[must_use]
    pub fn detect_cycles_at_once(mut self) -> Self {
        self.cycles_at_once = true;
        self
    }

    /// Registers an event that fires as often as it is scheduled.
    pub fn event(
        &mut self,
        spec: impl Into<Spec>,
        handler: impl FnMut(&mut W, &mut Scheduler) + Send + 'static,
    ) -> Event {
        Event::from_id(self.register(spec.into(), Kind::Plain, handler))
    }

    /// Registers an event that fires at most once per tick.
    pub fn unique_event(
        &mut self,
        spec: impl Into<Spec>,
        handler: impl FnMut(&mut W, &mut Scheduler) + Send + 'static,
    ) -> UniqueEvent {
        UniqueEvent::from_id(self.register(spec.into(), Kind::Unique, handler))
    }

    /// Registers a unique event that can be scheduled only for this and the next cycle of `clock` (of one tick, when
    /// there is none).
    pub fn single_cycle_event(
        &mut self,
        spec: impl Into<Spec>,
        clock: Option<Clock>,
        handler: impl FnMut(&mut W, &mut Scheduler) + Send + 'static,
    ) -> SingleCycleEvent {
        let id = self.register(spec.into(), Kind::SingleCycle, handler);
        self.registered[id.vertex as usize].cycle = clock.map_or(1, |clock| clock.period().as_picos());
        SingleCycleEvent::from_id(id)
    }

    /// Registers an event that fires in every tick, from the first one on, until it is switched off.
    pub fn every_tick_event(
        &mut self,
        spec: impl Into<Spec>,
        handler: impl FnMut(&mut W, &mut Scheduler) + Send + 'static,
    ) -> EveryTickEvent {
        EveryTickEvent::from_id(self.register(spec.into(), Kind::EveryTick, handler))
    }

    /// Registers an event that fires once, before everything else of the first tick that runs. Its phase is
    /// [`Phase::StartUp`] whatever `spec` says.
    pub fn start_up_event(
        &mut self,
        spec: impl Into<Spec>,
        handler: impl FnMut(&mut W, &mut Scheduler) + Send + 'static,
    ) -> StartUpEvent {
        StartUpEvent::from_id(self.register(spec.into().phase(Phase::StartUp), Kind::StartUp, handler))
    }

    /// Registers an event that carries a value to its handler.
    pub fn payload_event<P: Send + 'static>(
        &mut self,
        spec: impl Into<Spec>,
        handler: impl FnMut(&mut W, &mut Scheduler, P) + Send + 'static,
    ) -> PayloadEvent<P> {
        let vertex = self.graph.vertices.len() as u32;
        let handler: Box<dyn Fire<W>> = Box::new(PayloadHandler::new(vertex, handler));
        let id = self.add(spec.into(), Kind::Payload, handler);
        self.registered[id.vertex as usize].pool = Some(Box::new(Pool::<P>::default()));
        PayloadEvent::from_id(id)
    }

    /// Registers an event whose values come from other threads. They are taken between two ticks and fire in the tick
    /// that runs next; when that is depends on the other threads, so a run with such events is not reproducible.
    pub fn async_event<P: Send + 'static>(
        &mut self,
        spec: impl Into<Spec>,
        handler: impl FnMut(&mut W, &mut Scheduler, P) + Send + 'static,
    ) -> (PayloadEvent<P>, AsyncSender<P>) {
        let event = self.payload_event(spec, handler);
        let (sender, mailbox) = crate::asynchronous::channel(event, Arc::clone(&self.mail));
        self.mailboxes.push(mailbox);
        (event, sender)
    }

    /// A named point of a phase to order others against.
    pub fn ordering_point(&mut self, spec: impl Into<Spec>) -> OrderingPoint {
        OrderingPoint::from_id(self.register(spec.into(), Kind::Plain, |_, _| {}))
    }

    /// Lets `first` fire before `second` in every tick. With groups: each of the one before each of the other.
    ///
    /// # Errors
    /// When `first` belongs to a later phase than `second`, or a handle belongs to another engine; with
    /// [`Self::detect_cycles_at_once`] also when the edge closes a cycle. Then no edge is added.
    pub fn precedes(
        &mut self,
        first: impl Ordered,
        second: impl Ordered,
        reason: &str,
    ) -> Result<Edges, SetupError> {
        let (mut from, mut to) = (Vec::new(), Vec::new());
        first.add_to(&mut from);
        second.add_to(&mut to);
        if from.iter().chain(&to).any(|id| id.engine != self.engine) {
            return Err(SetupError::ForeignEvent);
        }
        let mut edges = Edges(Vec::new());
        for a in &from {
            for b in &to {
                let added = self.graph.add_edge(a.vertex, b.vertex, reason).and_then(|edge| {
                    edges.0.push(edge);
                    let cycle = self.cycles_at_once.then(|| self.graph.cycle_through(edge)).flatten();
                    cycle.map_or(Ok(()), |cycle| Err(SetupError::Cycle(cycle)))
                });
                if let Err(error) = added {
                    self.remove(&edges);
                    return Err(error);
                }
            }
        }
        Ok(edges)
    }

    /// Lets each member of `chain` precede the next one.
    ///
    /// # Errors
    /// As [`Self::precedes`].
    pub fn chain(&mut self, chain: &[&dyn Ordered], reason: &str) -> Result<(), SetupError> {
        for pair in chain.windows(2) {
            self.precedes(pair[0], pair[1], reason)?;
        }
        Ok(())
    }

    /// Takes edges out again.
    pub fn remove(&mut self, edges: &Edges) {
        for &edge in &edges.0 {
            self.graph.remove_edge(edge);
        }
    }

    /// The vertices of the precedence graph as CSV.
    #[must_use]
    pub fn vertices_csv(&self) -> String {
        self.graph.vertices_csv()
    }

    /// The edges of the precedence graph as CSV.
    #[must_use]
    pub fn edges_csv(&self) -> String {
        self.graph.edges_csv()
    }

    /// Whether the edges contradict each other.
    ///
    /// # Errors
    /// The shortest cycle through one of the events concerned.
    pub fn check_order(&self) -> Result<(), SetupError> {
        self.graph.groups().map(drop).map_err(SetupError::Cycle)
    }

    /// Fixes the order of all events.
    ///
    /// # Errors
    /// When two events have one name and index, or the edges contradict each other, those of ports included.
    pub fn finalize(mut self) -> Result<Engine<W>, SetupError> {
        self.add_port_edges()?;
        let (groups, group_count) = self.graph.groups().map_err(SetupError::Cycle)?;
        let buckets = self.buckets(&groups)?;
        let mut parts = Parts {
            engine: self.engine,
            events: Vec::with_capacity(groups.len()),
            labels: Vec::with_capacity(groups.len()),
            pools: Vec::with_capacity(groups.len()),
            buckets: if self.ties == Ties::Keyed { groups.len() } else { group_count as usize },
            groups: group_count,
            start_up: Vec::new(),
            every_tick: Vec::new(),
            routes: self.ports.routes(),
        };
        let mut handlers = Vec::with_capacity(groups.len());
        for (i, (event, vertex)) in self.registered.into_iter().zip(self.graph.vertices).enumerate() {
            let place = Place { bucket: buckets[i], group: groups[i], alone: self.ties == Ties::Keyed };
            parts.events.push(EventState::new(place, event.kind, event.continuing, event.cycle));
            parts.labels.push(Label { name: vertex.name, phase: vertex.phase });
            parts.pools.push(event.pool);
            handlers.push(event.handler);
            match event.kind {
                Kind::StartUp => parts.start_up.push(i as u32),
                Kind::EveryTick => parts.every_tick.push(i as u32),
                _ => {}
            }
        }
        parts.start_up.sort_by_key(|&event| buckets[event as usize]);
        Ok(Engine::new(Scheduler::new(parts), handlers, self.mailboxes, self.mail))
    }

    /// Adds the edges that follow from ports without delay.
    fn add_port_edges(&mut self) -> Result<(), SetupError> {
        for (first, second, reason) in self.ports.edges() {
            let takes_part = |id: Id| self.registered[id.vertex as usize].auto_precedence;
            let phase = |id: Id| self.graph.vertices[id.vertex as usize].phase;
            // Against the phases there is no edge to add: what arrives late is used a tick later, and what is sent too
            // late is an error of the call.
            if takes_part(first) && takes_part(second) && phase(first) <= phase(second) {
                self.graph.add_edge(first.vertex, second.vertex, &reason)?;
            }
        }
        Ok(())
    }

    /// The bucket of each vertex: its place in the order of (group, name), or its group.
    fn buckets(&self, groups: &[u32]) -> Result<Vec<u32>, SetupError> {
        let mut names = BTreeSet::new();
        for vertex in &self.graph.vertices {
            if !names.insert(&vertex.name) {
                return Err(SetupError::DuplicateName(vertex.name.clone()));
            }
        }
        if self.ties == Ties::Fifo {
            return Ok(groups.to_vec());
        }
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by(|&a, &b| {
            let key = |v: usize| (groups[v], &self.graph.vertices[v].name);
            key(a).cmp(&key(b))
        });
        let mut buckets = vec![0; groups.len()];
        for (bucket, vertex) in order.into_iter().enumerate() {
            buckets[vertex] = bucket as u32;
        }
        Ok(buckets)
    }

    fn register(
        &mut self,
        spec: Spec,
        kind: Kind,
        handler: impl FnMut(&mut W, &mut Scheduler) + Send + 'static,
    ) -> Id {
        self.add(spec, kind, Box::new(Handler(handler)))
    }

    fn add(&mut self, spec: Spec, kind: Kind, handler: Box<dyn Fire<W>>) -> Id {
        let vertex = self.graph.add_vertex(spec.name, spec.phase.unwrap_or_default());
        self.registered.push(Registered {
            kind,
            continuing: spec.continuing,
            auto_precedence: spec.auto_precedence,
            cycle: 1,
            handler,
            pool: None,
        });
        Id { engine: self.engine, vertex }
    }
}
