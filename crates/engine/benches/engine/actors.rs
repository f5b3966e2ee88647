//! The same cases on the `nexosim` crate: one model per event, which schedules itself.
//!
//! Its models cannot schedule each other, and it leaves the order of events at one time open, so there are figures only
//! for the cases in which each event schedules itself, and no checksum to compare. One thread; the shortest time is a
//! nanosecond, which stands for a tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nexosim::model::{Context, Model, schedulable};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use trompe_base::Rng;

use crate::{Case, Shape, now};

#[derive(Serialize, Deserialize)]
struct Actor {
    event: u64,
    most: u64,
    checksum: u64,
    #[serde(skip)]
    rng: Option<Rng>,
    /// How often it has fired, for whoever looks from outside.
    #[serde(skip)]
    fired: Arc<AtomicU64>,
}

#[Model]
impl Actor {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>, _: &mut ()) {
        cx.schedule_event(Duration::from_nanos(1), schedulable!(Self::fire), 0).expect("the time lies ahead");
    }

    #[nexosim(schedulable)]
    fn fire(&mut self, value: u64, cx: &Context<Self>) {
        self.checksum = (self.checksum ^ self.event).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7);
        self.fired.store(self.fired.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let delay = match &mut self.rng {
            Some(rng) if self.most > 1 => 1 + rng.below(self.most),
            _ => 1,
        };
        cx.schedule_event(Duration::from_nanos(delay), schedulable!(Self::fire), value + 1)
            .expect("the time lies ahead");
    }
}

/// Nanoseconds per event; `None` where the case cannot be put.
pub(crate) fn nanoseconds(case: Case, firings: u64) -> Option<f64> {
    let most = match case.shape {
        Shape::EveryTick => 1,
        Shape::Random { most } | Shape::Payload { most } => most,
        Shape::Groups { .. } | Shape::Chain => return None,
    };
    let mut init = SimInit::with_num_threads(1);
    let mut counts = Vec::new();
    for event in 0..u64::from(case.events) {
        let fired = Arc::new(AtomicU64::new(0));
        counts.push(Arc::clone(&fired));
        let actor = Actor { event, most, checksum: 0, rng: Some(Rng::new(event)), fired };
        init = init.add_model(actor, Mailbox::new(), &format!("event {event}"));
    }
    let mut simulation = init.init(MonotonicTime::EPOCH).expect("the models are sound");
    // So much time that about as many events fire as were asked for.
    let span = firings * (most + 1) / 2 / u64::from(case.events);
    let start = now();
    simulation.step_until(Duration::from_nanos(span.max(1))).expect("nothing fails");
    let elapsed = start.elapsed();
    let fired: u64 = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    Some(elapsed.as_secs_f64() * 1e9 / fired.max(1) as f64)
}
