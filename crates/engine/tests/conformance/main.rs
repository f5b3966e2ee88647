//! The engine's contract, one case per promise: life cycle, order, every kind of event, and the defects of other
//! schedulers that must not come back.

mod defects;
mod kinds;
mod life_cycle;
mod order;
mod payloads;
mod ports;

use std::sync::{Arc, Mutex};

use trompe_base::{Duration, SimTime};
use trompe_engine::{
    Clock, Ended, Engine, EventGroup, Firing, Observer, PayloadEvent, Phase, RunError, ScheduleError,
    Scheduler, Setup, SetupError, Spec, Ties,
};

type Log = Vec<(u64, &'static str)>;

fn ticks(n: u64) -> Duration {
    Duration::from_picos(n)
}

fn at(n: u64) -> SimTime {
    SimTime::from_picos(n)
}

/// A handler that logs its name.
fn logs(name: &'static str) -> impl FnMut(&mut Log, &mut Scheduler) + Send {
    move |log, scheduler| log.push((scheduler.now().as_picos(), name))
}

fn finalize<W>(setup: Setup<W>) -> Engine<W> {
    setup.finalize().expect("the order has no cycle")
}
