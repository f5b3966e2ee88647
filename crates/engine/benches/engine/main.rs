//! Nanoseconds per event of the engine against a binary heap that keeps the same total order and against the `nexosim`
//! crate, in one run; and of a whole model.
//!
//! `cargo bench -p trompe-engine --bench engine -- [--json] [--quick] [--callgrind]`. Handlers count, mix a checksum and schedule;
//! both sides must come to the same checksum, which depends on the order of all firings. Each figure is the best of
//! several repetitions in processor time, the spread is how much longer the worst took. With `--callgrind` the instructions of the engine
//! per event are counted too, which another job on the machine does not change; that needs `valgrind`.

mod actors;
mod whole;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::process::Command;
use std::time::Duration as WallTime;

use serde::Serialize;
use trompe_base::{Duration, Rng};
use trompe_engine::{Event, PayloadEvent, Scheduler, Setup, Spec, UniqueEvent};

/// What a benchmark case schedules.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Each of the events fires in every tick.
    EveryTick,
    /// Each firing schedules its event after a random delay of `1..=most`.
    Random { most: u64 },
    /// The same, with a value.
    Payload { most: u64 },
    /// Each firing schedules a random event after a random delay of `1..=most`; all events are in groups of their own.
    Groups { most: u64 },
    /// Each event schedules the next one in the same tick; the last one schedules the first for the next tick.
    Chain,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    shape: Shape,
    events: u32,
    /// Schedulings at the start.
    live: u32,
}

const fn case(name: &'static str, shape: Shape, events: u32, live: u32) -> Case {
    Case { name, shape, events, live }
}

const CASES: &[Case] = &[
    case("a: unique events in every tick", Shape::EveryTick, 16, 16),
    case("a: unique events in every tick", Shape::EveryTick, 256, 256),
    case("a: unique events in every tick", Shape::EveryTick, 4_096, 4_096),
    case("b: delays to 100", Shape::Random { most: 100 }, 16, 16),
    case("b: delays to 100", Shape::Random { most: 100 }, 256, 256),
    case("b: delays to 100", Shape::Random { most: 100 }, 4_096, 4_096),
    case("b: delays to 100, with values", Shape::Payload { most: 100 }, 256, 256),
    case("c: delays to 1e6", Shape::Random { most: 1_000_000 }, 16, 16),
    case("c: delays to 1e6", Shape::Random { most: 1_000_000 }, 256, 256),
    case("c: delays to 1e6", Shape::Random { most: 1_000_000 }, 4_096, 4_096),
    case("d: 1,000 groups", Shape::Groups { most: 1 }, 1_000, 1),
    case("d: 1,000 groups", Shape::Groups { most: 1 }, 1_000, 4),
    case("d: 1,000 groups", Shape::Groups { most: 1 }, 1_000, 64),
    case("d': 1,000 groups, delays to 1e6", Shape::Groups { most: 1_000_000 }, 1_000, 256),
    case("e: zero-delay chain", Shape::Chain, 16, 1),
    case("e: zero-delay chain", Shape::Chain, 64, 1),
];

/// What handlers work on, on both sides.
struct World {
    rng: Rng,
    left: u64,
    checksum: u64,
    events: u32,
}

impl World {
    fn new(case: Case, firings: u64) -> Self {
        Self { rng: Rng::new(1), left: firings, checksum: 0, events: case.events }
    }

    /// The work of a handler; false when the benchmark is over.
    #[inline]
    fn fire(&mut self, event: u32) -> bool {
        self.checksum = (self.checksum ^ u64::from(event)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7);
        self.left -= 1;
        self.left > 0
    }

    #[inline]
    fn delay(&mut self, most: u64) -> u64 {
        if most == 1 { 1 } else { 1 + self.rng.below(most) }
    }

    #[inline]
    fn any(&mut self) -> u32 {
        self.rng.below(u64::from(self.events)) as u32
    }
}

/// The engine's world: handlers find their handles in it.
struct EngineWorld {
    world: World,
    plain: Vec<Event>,
    unique: Vec<UniqueEvent>,
    payload: Vec<PayloadEvent<u64>>,
}

const LEGAL: &str = "the case schedules nothing illegal";

fn handler(shape: Shape, event: u32) -> impl FnMut(&mut EngineWorld, &mut Scheduler) + Send + 'static {
    move |state, scheduler| {
        if !state.world.fire(event) {
            return scheduler.stop();
        }
        let (target, delay) = match shape {
            Shape::EveryTick => {
                let unique = state.unique[event as usize];
                return scheduler.schedule(unique, Duration::from_picos(1)).expect(LEGAL);
            }
            Shape::Random { most } | Shape::Payload { most } => (event, state.world.delay(most)),
            Shape::Groups { most } => (state.world.any(), state.world.delay(most)),
            Shape::Chain if event + 1 < state.world.events => (event + 1, 0),
            Shape::Chain => (0, 1),
        };
        scheduler.schedule(state.plain[target as usize], Duration::from_picos(delay)).expect(LEGAL);
    }
}

fn on_engine(case: Case, firings: u64) -> (WallTime, u64) {
    let mut setup = Setup::<EngineWorld>::new();
    let mut state =
        EngineWorld { world: World::new(case, firings), plain: vec![], unique: vec![], payload: vec![] };
    for event in 0..case.events {
        let spec = Spec::new("event").index(u64::from(event));
        match case.shape {
            Shape::EveryTick => state.unique.push(setup.unique_event(spec, handler(case.shape, event))),
            Shape::Payload { most } => {
                let deliver = move |state: &mut EngineWorld, scheduler: &mut Scheduler, value: u64| {
                    if !state.world.fire(event) {
                        return scheduler.stop();
                    }
                    let delay = Duration::from_picos(state.world.delay(most));
                    scheduler.send(state.payload[event as usize], delay, value + 1).expect(LEGAL);
                };
                state.payload.push(setup.payload_event(spec, deliver));
            }
            _ => state.plain.push(setup.event(spec, handler(case.shape, event))),
        }
        if matches!(case.shape, Shape::Groups { .. } | Shape::Chain) && event > 0 {
            let pair = &state.plain[event as usize - 1..=event as usize];
            setup.precedes(pair[0], pair[1], "each event has its own group").expect(LEGAL);
        }
    }
    let mut engine = setup.finalize().expect(LEGAL);
    let scheduler = engine.scheduler_mut();
    for i in 0..case.live {
        match case.shape {
            Shape::EveryTick => scheduler.schedule(state.unique[i as usize], Duration::ZERO).expect(LEGAL),
            Shape::Payload { .. } => {
                scheduler.send(state.payload[i as usize], Duration::ZERO, 0).expect(LEGAL);
            }
            _ => scheduler.schedule(state.plain[i as usize], Duration::ZERO).expect(LEGAL),
        }
    }
    let start = now();
    engine.run(&mut state).expect("the benchmark ends");
    (start.elapsed(), state.world.checksum)
}

/// The baseline: one heap of (tick, event, sequence). The benchmark's events are ordered by their number in all cases.
#[derive(Default)]
struct Heap {
    queue: BinaryHeap<Reverse<(u64, u32, u64, u64)>>,
    sequence: u64,
    now: u64,
}

impl Heap {
    #[inline]
    fn schedule(&mut self, event: u32, delay: u64, value: u64) {
        self.sequence += 1;
        self.queue.push(Reverse((self.now + delay, event, self.sequence, value)));
    }

    /// The next event with its tick and value.
    #[inline]
    fn take(&mut self) -> Option<(u64, u32, u64)> {
        let Reverse((tick, event, _, value)) = self.queue.pop()?;
        self.now = tick;
        Some((tick, event, value))
    }
}

fn on_heap(case: Case, firings: u64) -> (WallTime, u64) {
    type HeapHandler = Box<dyn FnMut(&mut World, &mut Heap, u64) -> bool>;
    let (mut world, mut heap) = (World::new(case, firings), Heap::default());
    let mut handlers: Vec<HeapHandler> = Vec::new();
    for event in 0..case.events {
        let shape = case.shape;
        let mut last_scheduled = 0;
        handlers.push(Box::new(move |world: &mut World, heap: &mut Heap, value| {
            if !world.fire(event) {
                return false;
            }
            let (target, delay) = match shape {
                Shape::EveryTick => (event, 1),
                Shape::Random { most } | Shape::Payload { most } => (event, world.delay(most)),
                Shape::Groups { most } => (world.any(), world.delay(most)),
                Shape::Chain if event + 1 < world.events => (event + 1, 0),
                Shape::Chain => (0, 1),
            };
            // The uniqueness check that the engine makes, at its cheapest.
            let tick = heap.now + delay;
            if matches!(shape, Shape::EveryTick) && std::mem::replace(&mut last_scheduled, tick) == tick {
                return true;
            }
            heap.schedule(target, delay, value + 1);
            true
        }));
    }
    for i in 0..case.live {
        heap.schedule(i, 0, 0);
    }
    let start = now();
    while let Some((_, event, value)) = heap.take() {
        if !handlers[event as usize](&mut world, &mut heap, value) {
            break;
        }
    }
    (start.elapsed(), world.checksum)
}

/// Processor time of this program: on a shared machine other programs do not count.
#[derive(Clone, Copy)]
struct Instant(WallTime);

impl Instant {
    fn elapsed(self) -> WallTime {
        now().0 - self.0
    }
}

fn now() -> Instant {
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    Instant(nix::time::clock_gettime(clock).expect("the clock exists").into())
}

/// One line of the result.
#[derive(Serialize)]
struct Line {
    case: &'static str,
    events: u32,
    live: u32,
    engine_ns_per_event: f64,
    engine_spread: f64,
    binary_heap_ns_per_event: f64,
    binary_heap_spread: f64,
    /// How many times as fast as the heap the engine is.
    speedup: f64,
    /// Of `nexosim`, where it can do the case.
    nexosim_ns_per_event: Option<f64>,
    /// Instructions per event, handler included, when they were counted.
    engine_instructions_per_event: Option<f64>,
}

/// Best nanoseconds per event and the spread of the repetitions.
fn best(times: &[WallTime], firings: u64) -> (f64, f64) {
    let nanos: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e9 / firings as f64).collect();
    let best = nanos.iter().copied().fold(f64::INFINITY, f64::min);
    (best, nanos.iter().copied().fold(0.0, f64::max) / best - 1.0)
}

fn measure(case: Case, firings: u64, repetitions: usize) -> Line {
    let (mut engine, mut heap) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        let (time, checksum) = on_engine(case, firings);
        let (heap_time, expect) = on_heap(case, firings);
        assert_eq!(checksum, expect, "the engine and the heap fire in different orders in {case:?}");
        engine.push(time);
        heap.push(heap_time);
    }
    let (engine_ns_per_event, engine_spread) = best(&engine, firings);
    let (binary_heap_ns_per_event, binary_heap_spread) = best(&heap, firings);
    Line {
        case: case.name,
        events: case.events,
        live: case.live,
        engine_ns_per_event,
        engine_spread,
        binary_heap_ns_per_event,
        binary_heap_spread,
        speedup: binary_heap_ns_per_event / engine_ns_per_event,
        nexosim_ns_per_event: actors::nanoseconds(case, firings / 4),
        engine_instructions_per_event: None,
    }
}

/// Instructions per event of case `index`: what a long run of it takes more than a short one, under `valgrind`.
fn instructions(index: usize) -> f64 {
    const SHORT: u64 = 20_000;
    const LONG: u64 = 120_000;
    let count = |firings: u64| -> f64 {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
        command.args([ONLY.to_owned(), index.to_string(), firings.to_string()]);
        let output = command.output().expect("`--callgrind` needs `valgrind` on the PATH");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line =
            text.lines().find_map(|line| line.split_once("Collected :")).expect("valgrind prints a count");
        line.1.trim().parse().expect("the count is a number")
    };
    (count(LONG) - count(SHORT)) / (LONG - SHORT) as f64
}

/// Tells the program to run one case on the engine alone: index of the case, firings.
const ONLY: &str = "--only";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == ONLY) {
        let number = |i: usize| arguments[at + i].parse::<u64>().expect("two numbers follow");
        on_engine(CASES[number(1) as usize], number(2));
        return;
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    // `cargo test --benches` runs this with `--test`: once and short, for the checksums.
    let (firings, repetitions) = match (has("--test"), has("--quick")) {
        (true, _) => (20_000, 1),
        (_, true) => (200_000, 3),
        _ => (2_000_000, 5),
    };
    let mut lines: Vec<Line> = CASES.iter().map(|&case| measure(case, firings, repetitions)).collect();
    if has("--callgrind") {
        for (index, line) in lines.iter_mut().enumerate() {
            line.engine_instructions_per_event = Some(instructions(index));
        }
    }
    let (mut whole_engine, mut whole_heap) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..repetitions {
        let ((engine, sums), (heap, expect)) = (whole::on_engine(firings), whole::on_heap(firings));
        assert_eq!(sums, expect, "the engine and the heap disagree about the whole model");
        (whole_engine, whole_heap) = (whole_engine.min(engine), whole_heap.min(heap));
    }
    if has("--json") {
        let whole = serde_json::json!({ "engine_ns_per_event": whole_engine, "binary_heap_ns_per_event": whole_heap });
        let all = serde_json::json!({ "cases": lines, "whole_model": whole });
        println!("{}", serde_json::to_string_pretty(&all).expect("numbers and texts are JSON"));
        return;
    }
    println!(
        "{:<34} {:>6} {:>6} {:>18} {:>18} {:>8} {:>11} {:>13}",
        "case",
        "events",
        "live",
        "engine ns (spread)",
        "heap ns (spread)",
        "speed-up",
        "nexosim ns",
        "instructions"
    );
    for line in lines {
        let instructions =
            line.engine_instructions_per_event.map_or(String::new(), |count| format!("{count:.0}"));
        let nexosim = line.nexosim_ns_per_event.map_or_else(|| "-".to_owned(), |time| format!("{time:.0}"));
        println!(
            "{:<34} {:>6} {:>6} {:>10.1} ({:>3.0} %) {:>10.1} ({:>3.0} %) {:>7.1}x {nexosim:>11} {instructions:>13}",
            line.case,
            line.events,
            line.live,
            line.engine_ns_per_event,
            line.engine_spread * 100.0,
            line.binary_heap_ns_per_event,
            line.binary_heap_spread * 100.0,
            line.speedup
        );
    }
    println!(
        "whole model (closed network of 256 queues): engine {whole_engine:.1} ns, heap {whole_heap:.1} ns per event"
    );
}
