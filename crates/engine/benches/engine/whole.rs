//! A whole model: what remains of the engine's speed when handlers do something.
//!
//! A closed network of queues: 256 stations, 1,024 customers. A customer is served at a station for 1 to 200 ticks, then
//! travels for 1 to 50 to any other; stations keep waiting lines and sums of waiting times. The same handlers run on the
//! engine and on the binary heap, and must come to the same sums.

use std::collections::VecDeque;

use trompe_base::{Duration, Rng};
use trompe_engine::{Event, PayloadEvent, Setup, Spec};

use crate::{Heap, LEGAL, now};

const STATIONS: u32 = 256;
const CUSTOMERS: u32 = 1_024;

/// What happens next, and when.
enum Next {
    Arrive { station: u32, customer: u32, delay: u64 },
    Depart { station: u32, delay: u64 },
}

struct Network {
    rng: Rng,
    /// Customers at each station, the first one being served, with their times of arrival.
    lines: Vec<VecDeque<(u32, u64)>>,
    waited: u64,
    checksum: u64,
    left: u64,
}

impl Network {
    fn new(firings: u64) -> Self {
        let lines = (0..STATIONS).map(|_| VecDeque::new()).collect();
        Self { rng: Rng::new(2), lines, waited: 0, checksum: 0, left: firings }
    }

    fn arrive(&mut self, station: u32, customer: u32, now: u64, next: &mut dyn FnMut(Next)) {
        self.left = self.left.saturating_sub(1);
        let line = &mut self.lines[station as usize];
        line.push_back((customer, now));
        if line.len() == 1 {
            next(Next::Depart { station, delay: 1 + self.rng.below(200) });
        }
    }

    fn depart(&mut self, station: u32, now: u64, next: &mut dyn FnMut(Next)) {
        self.left = self.left.saturating_sub(1);
        let line = &mut self.lines[station as usize];
        let (customer, came) = line.pop_front().expect("somebody was served");
        self.waited += now - came;
        self.checksum = (self.checksum ^ self.waited).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7);
        if !line.is_empty() {
            next(Next::Depart { station, delay: 1 + self.rng.below(200) });
        }
        let to = self.rng.below(u64::from(STATIONS)) as u32;
        next(Next::Arrive { station: to, customer, delay: 1 + self.rng.below(50) });
    }
}

struct World {
    network: Network,
    arrive: Vec<PayloadEvent<u32>>,
    depart: Vec<Event>,
}

/// Nanoseconds per event and the sums, on the engine.
pub(crate) fn on_engine(firings: u64) -> (f64, u64) {
    let mut setup = Setup::<World>::new();
    let mut world = World { network: Network::new(firings), arrive: Vec::new(), depart: Vec::new() };
    for station in 0..STATIONS {
        let spec = |name: &'static str| Spec::new(name).index(u64::from(station));
        world.arrive.push(setup.payload_event(
            spec("arrive"),
            move |world: &mut World, scheduler, customer| {
                let (now, World { network, arrive, depart }) = (scheduler.now().as_picos(), world);
                network.arrive(station, customer, now, &mut |next| put(next, arrive, depart, scheduler));
                if network.left == 0 {
                    scheduler.stop();
                }
            },
        ));
        world.depart.push(setup.event(spec("depart"), move |world: &mut World, scheduler| {
            let (now, World { network, arrive, depart }) = (scheduler.now().as_picos(), world);
            network.depart(station, now, &mut |next| put(next, arrive, depart, scheduler));
            if network.left == 0 {
                scheduler.stop();
            }
        }));
    }
    let mut engine = setup.finalize().expect(LEGAL);
    for customer in 0..CUSTOMERS {
        let arrive = world.arrive[(customer % STATIONS) as usize];
        engine.scheduler_mut().send(arrive, Duration::from_picos(1), customer).expect(LEGAL);
    }
    let start = now();
    engine.run(&mut world).expect("the benchmark ends");
    (start.elapsed().as_secs_f64() * 1e9 / firings as f64, world.network.checksum)
}

fn put(next: Next, arrive: &[PayloadEvent<u32>], depart: &[Event], scheduler: &mut trompe_engine::Scheduler) {
    match next {
        Next::Arrive { station, customer, delay } => {
            scheduler.send(arrive[station as usize], Duration::from_picos(delay), customer).expect(LEGAL);
        }
        Next::Depart { station, delay } => {
            scheduler.schedule(depart[station as usize], Duration::from_picos(delay)).expect(LEGAL);
        }
    }
}

/// The same on the binary heap: arrivals are events `0..STATIONS`, departures follow.
pub(crate) fn on_heap(firings: u64) -> (f64, u64) {
    let (mut network, mut heap) = (Network::new(firings), Heap::default());
    for customer in 0..CUSTOMERS {
        heap.schedule(customer % STATIONS, 1, u64::from(customer));
    }
    let start = now();
    while let Some((tick, event, value)) = heap.take() {
        let mut put = |next| match next {
            Next::Arrive { station, customer, delay } => heap.schedule(station, delay, u64::from(customer)),
            Next::Depart { station, delay } => heap.schedule(STATIONS + station, delay, 0),
        };
        if event < STATIONS {
            network.arrive(event, value as u32, tick, &mut put);
        } else {
            network.depart(event - STATIONS, tick, &mut put);
        }
        if network.left == 0 {
            break;
        }
    }
    (start.elapsed().as_secs_f64() * 1e9 / firings as f64, network.checksum)
}
