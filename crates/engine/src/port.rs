//! Ports: units send values to each other without knowing each other's events, and the order of events follows from
//! who sends to whom without delay.
//!
//! An in-port has a delay and a handler that takes what arrives; an out-port is bound to any number of in-ports. With
//! a delay, values arrive in the [`Phase::PortUpdate`] phase, before the main work of their tick. Without one they
//! arrive in the [`Phase::Tick`] phase of the tick they were sent in, and then order matters: every *producer* of a
//! bound out-port precedes the arrival, and the arrival precedes every *consumer* of the in-port. These edges are
//! derived when the engine is finalized; a port or event that asks for it
//! ([`Spec::without_auto_precedence`]) takes no part.

use std::marker::PhantomData;

use trompe_base::{Duration, SimTime};

use crate::clock::Clock;
use crate::error::{ScheduleError, SetupError};
use crate::event::{Id, Ordered, PayloadEvent, Spec};
use crate::phase::Phase;
use crate::scheduler::Scheduler;
use crate::setup::Setup;

/// Where values of type `P` leave a unit.
#[derive(Debug, PartialEq, Eq)]
pub struct OutPort<P> {
    index: u32,
    engine: u32,
    payload: PhantomData<fn(P)>,
}

impl<P> Clone for OutPort<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for OutPort<P> {}

/// Where values of type `P` come to a unit.
#[derive(Debug, PartialEq, Eq)]
pub struct InPort<P> {
    index: u32,
    delivery: PayloadEvent<P>,
}

impl<P> Clone for InPort<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for InPort<P> {}

impl<P> InPort<P> {
    /// The event that hands values to the port's handler, to order, find or cancel them.
    #[must_use]
    pub const fn delivery(self) -> PayloadEvent<P> {
        self.delivery
    }
}

/// An out-port while an engine is set up.
#[derive(Debug)]
struct Out {
    name: String,
    auto: bool,
    bound: Vec<u32>,
    producers: Vec<Id>,
}

/// An in-port while an engine is set up.
#[derive(Debug)]
struct In {
    name: String,
    auto: bool,
    delivery: Id,
    delay: u64,
    clock: Option<Clock>,
    consumers: Vec<Id>,
}

/// All ports of an engine.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    outs: Vec<Out>,
    ins: Vec<In>,
}

/// Where one out-port's values go.
#[derive(Debug, Default)]
pub(crate) struct Route {
    name: String,
    targets: Vec<Target>,
}

#[derive(Debug, Clone, Copy)]
struct Target {
    delivery: Id,
    delay: u64,
    clock: Option<Clock>,
}

impl Ports {
    /// The edges that follow from bindings without delay: first, second, reason.
    pub(crate) fn edges(&self) -> Vec<(Id, Id, String)> {
        let mut edges = Vec::new();
        for out in self.outs.iter().filter(|out| out.auto) {
            for input in out.bound.iter().map(|&input| &self.ins[input as usize]) {
                if input.auto && input.delay == 0 {
                    let reason = format!("it sends from `{}` to `{}` without delay", out.name, input.name);
                    edges.extend(out.producers.iter().map(|&event| (event, input.delivery, reason.clone())));
                }
            }
        }
        for input in self.ins.iter().filter(|input| input.auto) {
            let reason = format!("it uses what comes to `{}` in the same tick", input.name);
            edges.extend(input.consumers.iter().map(|&event| (input.delivery, event, reason.clone())));
        }
        edges
    }

    /// Where everything goes, by out-port.
    pub(crate) fn routes(self) -> Vec<Route> {
        let ins = self.ins;
        let target = |&input: &u32| {
            let input = &ins[input as usize];
            Target { delivery: input.delivery, delay: input.delay, clock: input.clock }
        };
        let route =
            |out: &Out| Route { name: out.name.clone(), targets: out.bound.iter().map(target).collect() };
        self.outs.iter().map(route).collect()
    }
}

impl<W> Setup<W> {
    /// A place that values leave from.
    pub fn out_port<P>(&mut self, spec: impl Into<Spec>) -> OutPort<P> {
        let spec = spec.into();
        let out =
            Out { name: spec.name.to_string(), auto: spec.auto_precedence, bound: vec![], producers: vec![] };
        self.ports.outs.push(out);
        OutPort { index: self.ports.outs.len() as u32 - 1, engine: self.engine, payload: PhantomData }
    }

    /// A place that values come to, `delay` after they were sent. The phase of their arrival is that of `spec`; if it
    /// names none, it is [`Phase::PortUpdate`] with a delay and [`Phase::Tick`] without.
    pub fn in_port<P: Send + 'static>(
        &mut self,
        spec: impl Into<Spec>,
        delay: Duration,
        handler: impl FnMut(&mut W, &mut Scheduler, P) + Send + 'static,
    ) -> InPort<P> {
        self.add_in_port(spec.into(), (delay, None), handler)
    }

    /// As [`Self::in_port`]; values arrive at the first edge of `clock` at or after their time.
    pub fn clocked_in_port<P: Send + 'static>(
        &mut self,
        spec: impl Into<Spec>,
        (delay, clock): (Duration, Clock),
        handler: impl FnMut(&mut W, &mut Scheduler, P) + Send + 'static,
    ) -> InPort<P> {
        self.add_in_port(spec.into(), (delay, Some(clock)), handler)
    }

    fn add_in_port<P: Send + 'static>(
        &mut self,
        mut spec: Spec,
        (delay, clock): (Duration, Option<Clock>),
        handler: impl FnMut(&mut W, &mut Scheduler, P) + Send + 'static,
    ) -> InPort<P> {
        let usual = if delay.is_zero() { Phase::Tick } else { Phase::PortUpdate };
        spec.phase = spec.phase.or(Some(usual));
        let (name, auto) = (spec.name.to_string(), spec.auto_precedence);
        let delivery = self.payload_event(spec, handler);
        let input =
            In { name, auto, delivery: delivery.id, delay: delay.as_picos(), clock, consumers: vec![] };
        self.ports.ins.push(input);
        InPort { index: self.ports.ins.len() as u32 - 1, delivery }
    }

    /// Lets what leaves `out` come to `input`.
    ///
    /// # Errors
    /// When the two are bound already, or belong to another engine.
    pub fn bind<P>(&mut self, out: OutPort<P>, input: InPort<P>) -> Result<(), SetupError> {
        if out.engine != self.engine || input.delivery.id.engine != self.engine {
            return Err(SetupError::ForeignEvent);
        }
        let port = &mut self.ports.outs[out.index as usize];
        if port.bound.contains(&input.index) {
            return Err(SetupError::BoundTwice {
                from: port.name.clone(),
                to: self.ports.ins[input.index as usize].name.clone(),
            });
        }
        port.bound.push(input.index);
        Ok(())
    }

    /// Says that `event` sends from `out`.
    pub fn produces<P>(&mut self, event: impl Ordered, out: OutPort<P>) {
        event.add_to(&mut self.ports.outs[out.index as usize].producers);
    }

    /// Says that `event` uses what comes to `input` in the same tick.
    pub fn consumes<P>(&mut self, event: impl Ordered, input: InPort<P>) {
        event.add_to(&mut self.ports.ins[input.index as usize].consumers);
    }
}

impl Scheduler {
    /// Sends `value` from `out` to every in-port that is bound to it, `delay` from now plus each port's own delay.
    ///
    /// # Errors
    /// When nothing is bound to `out`, or a value would arrive in a group that has already run in this tick; then the
    /// ports bound later get nothing.
    pub fn send_from<P: Clone + Send + 'static>(
        &mut self,
        out: OutPort<P>,
        delay: Duration,
        value: P,
    ) -> Result<(), ScheduleError> {
        let targets = self.routes[out.index as usize].targets.len();
        if targets == 0 {
            return Err(ScheduleError::Unbound { port: self.routes[out.index as usize].name.clone() });
        }
        for i in 0..targets {
            let target = self.routes[out.index as usize].targets[i];
            let event = PayloadEvent::from_id(target.delivery);
            self.send(event, self.arrival(delay, target), value.clone())?;
        }
        Ok(())
    }

    /// From now until a value arrives.
    fn arrival(&self, delay: Duration, target: Target) -> Duration {
        let delay = delay.as_picos().saturating_add(target.delay);
        let at = self.now().as_picos().saturating_add(delay);
        let to_edge =
            target.clock.map_or(Duration::ZERO, |clock| clock.until_edge(SimTime::from_picos(at), 0));
        Duration::from_picos(delay.saturating_add(to_edge.as_picos()))
    }
}
