//! A deterministic discrete-event engine.
//!
//! Time is a `u64` of ticks, one tick being one picosecond ([`trompe_base::SimTime`]). Events are registered with a
//! [`Setup`], each with a handler, a [`Phase`] and a name, and ordered by precedence edges that carry reasons.
//! [`Setup::finalize`] turns that into an [`Engine`]; handlers get the *world* (any type of yours, lent to each run) and
//! the [`Scheduler`], and nothing else, so no cell or lock is needed anywhere.
//!
//! What it promises:
//!
//! * **A total order**: (tick, group, tie). The group of an event is its place in the precedence graph. Ties inside a
//!   group are broken by the event's name ([`Ties::Keyed`], the default) or by the order of the schedule calls
//!   ([`Ties::Fifo`]). The same program fires the same events in the same order on every machine.
//! * **Zero delay**: an event scheduled into the running tick fires in it, if its group has not run; otherwise the call
//!   fails and says which event had to precede which.
//! * **No time spent on nothing**: empty ticks are skipped; cancelled events are taken out, not left to be skipped.
//! * **No allocation in a steady state**, and constant-time insertion and cancellation whatever is pending.
//!
//! What it is not: it knows no GPU, no network and no wall clock.
//!
//! ```
//! use trompe_base::Duration;
//! use trompe_engine::{Ended, PayloadEvent, Setup, Spec, Phase};
//!
//! /// The world: what the handlers work on. It may hold handles, because it is made after the events.
//! struct Queue {
//!     served: Option<PayloadEvent<u32>>,
//!     log: Vec<(u64, String)>,
//! }
//!
//! let mut setup = Setup::<Queue>::new();
//! let served = setup.payload_event("served", |queue: &mut Queue, now, customer: u32| {
//!     queue.log.push((now.now().as_picos(), format!("served {customer}")));
//! });
//! let arrival = setup.event("arrival", |queue: &mut Queue, now| {
//!     queue.log.push((now.now().as_picos(), "arrival".into()));
//!     now.send(queue.served.unwrap(), Duration::from_picos(5), 7).unwrap();
//! });
//! let audit = setup.unique_event(Spec::new("audit").phase(Phase::PostTick), |queue: &mut Queue, now| {
//!     queue.log.push((now.now().as_picos(), "audit".into()));
//! });
//! setup.precedes(served, arrival, "who leaves makes room for who comes").unwrap();
//!
//! let mut engine = setup.finalize().unwrap();
//! let mut queue = Queue { served: Some(served), log: Vec::new() };
//! engine.scheduler_mut().schedule(arrival, Duration::from_picos(10)).unwrap();
//! engine.scheduler_mut().schedule(arrival, Duration::from_picos(15)).unwrap();
//! engine.scheduler_mut().schedule(audit, Duration::from_picos(10)).unwrap();
//! assert_eq!(engine.run(&mut queue), Ok(Ended::Finished));
//! let log: Vec<_> = queue.log.iter().map(|(tick, what)| (*tick, what.as_str())).collect();
//! assert_eq!(log, [(10, "arrival"), (10, "audit"), (15, "served 7"), (15, "arrival"), (20, "served 7")]);
//! ```

mod asynchronous;
mod bitmap;
mod clock;
mod cycle;
mod engine;
mod error;
mod event;
mod graph;
mod phase;
mod pool;
mod port;
mod profile;
mod scheduler;
mod setup;
mod slab;
mod wheel;

pub use asynchronous::AsyncSender;
pub use clock::{Clock, ClockIndex, ClockTree};
pub use cycle::{Cycle, CycleEdge};
pub use engine::{Ended, Engine, Firing, Interrupt, Observer};
pub use error::{RunError, ScheduleError, SetupError};
pub use event::{
    AnyEvent, Event, EventGroup, EventName, EveryTickEvent, Ordered, OrderingPoint, PayloadEvent,
    Schedulable, SingleCycleEvent, Spec, StartUpEvent, Ticket, UniqueEvent,
};
pub use phase::Phase;
pub use port::{InPort, OutPort};
pub use profile::{Costs, HostCost, Profile};
pub use scheduler::{Scheduler, Ties};
pub use setup::{Edges, Setup};
