//! Host time per event, for those who ask for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{Firing, Observer};
use crate::event::EventName;

/// What the firings of one event cost the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCost {
    /// Number of firings.
    pub firings: u64,
    /// Time spent in the handler, in the units of the clock.
    pub time: u64,
}

/// An [`Observer`] that adds up the host time of each event's handler. The clock is the caller's.
pub struct Profile {
    clock: Box<dyn Fn() -> u64 + Send>,
    began: u64,
    costs: Costs,
}

/// What a [`Profile`] has counted so far; stays readable while the engine owns the profile.
#[derive(Clone, Debug, Default)]
pub struct Costs(Arc<Mutex<BTreeMap<EventName, HostCost>>>);

impl Profile {
    /// A profile that reads `clock` before and after each handler.
    pub fn new(clock: impl Fn() -> u64 + Send + 'static) -> Self {
        Self { clock: Box::new(clock), began: 0, costs: Costs::default() }
    }

    /// A handle to read the costs by.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.costs.clone()
    }
}

impl Costs {
    /// The cost of each event that has fired, by name.
    #[must_use]
    pub fn by_event(&self) -> BTreeMap<EventName, HostCost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Profile {
    fn before(&mut self, _firing: &Firing<'_>) {
        self.began = (self.clock)();
    }

    fn after(&mut self, firing: &Firing<'_>) {
        let time = (self.clock)().saturating_sub(self.began);
        let mut costs = self.costs.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cost = costs.entry(firing.event.clone()).or_default();
        cost.firings += 1;
        cost.time += time;
    }
}
