//! Random programs fire the same events in the same order on the engine and on the naive reference.

mod common;

use common::{Action, EventPlan, Kind, Log, Machine, Program, Reference, Run, Verdict, react};
use proptest::collection::vec;
use proptest::prelude::*;
use trompe_base::{Duration, SimTime};
use trompe_engine::{
    Engine, Event, EveryTickEvent, PayloadEvent, Phase, ScheduleError, Scheduler, Setup, SingleCycleEvent,
    Spec, Ties, UniqueEvent,
};

/// The phases that programs use; start-up has only its own events.
const PHASES: [Phase; 3] = [Phase::Update, Phase::Tick, Phase::PostTick];

#[derive(Clone, Copy)]
enum Handle {
    Plain(Event),
    Unique(UniqueEvent),
    SingleCycle(SingleCycleEvent),
    Payload(PayloadEvent<u64>),
    EveryTick(EveryTickEvent),
}

struct World {
    program: Program,
    handles: Vec<Handle>,
    log: Log,
}

/// The engine as a program sees it.
struct Adapter<'a> {
    scheduler: &'a mut Scheduler,
    handles: &'a [Handle],
}

impl Machine for Adapter<'_> {
    fn now(&self) -> u64 {
        self.scheduler.now().as_picos()
    }

    fn schedule(&mut self, target: usize, delay: u64, value: u64) -> Verdict {
        let delay = Duration::from_picos(delay);
        let result = match self.handles[target] {
            Handle::Plain(event) => self.scheduler.schedule(event, delay),
            Handle::Unique(event) => self.scheduler.schedule(event, delay),
            Handle::SingleCycle(event) => self.scheduler.schedule(event, delay),
            Handle::Payload(event) => self.scheduler.send(event, delay, value).map(drop),
            Handle::EveryTick(_) => return Verdict::Fine,
        };
        match result {
            Ok(()) => Verdict::Fine,
            Err(ScheduleError::EarlierGroup { .. }) => Verdict::EarlierGroup,
            Err(ScheduleError::AlreadyFired { .. }) => Verdict::AlreadyFired,
            Err(ScheduleError::NotThisOrNextCycle { .. }) => Verdict::NotThisOrNextCycle,
            Err(_) => Verdict::Other,
        }
    }

    fn cancel(&mut self, target: usize, delay: Option<u64>) -> u32 {
        macro_rules! cancel {
            ($event:expr) => {
                match delay {
                    Some(delay) => self.scheduler.cancel_after($event, Duration::from_picos(delay)),
                    None => self.scheduler.cancel($event),
                }
            };
        }
        match self.handles[target] {
            Handle::Plain(event) => cancel!(event),
            Handle::Unique(event) => cancel!(event),
            Handle::SingleCycle(event) => cancel!(event),
            Handle::Payload(event) => cancel!(event),
            Handle::EveryTick(event) => cancel!(event),
        }
    }

    fn cancel_odd(&mut self, target: usize) -> u32 {
        match self.handles[target] {
            Handle::Payload(event) => self.scheduler.cancel_if(event, |value| value % 2 == 1),
            _ => 0,
        }
    }

    fn every(&mut self, target: usize, on: bool) {
        let Handle::EveryTick(event) = self.handles[target] else { return };
        if on { self.scheduler.start_every_tick(event) } else { self.scheduler.stop_every_tick(event) }
    }

    fn stop(&mut self, after_tick: bool) {
        if after_tick { self.scheduler.stop_after_tick() } else { self.scheduler.stop() }
    }
}

fn fire(world: &mut World, scheduler: &mut Scheduler, event: usize, value: u64) {
    let World { program, handles, log } = world;
    react(program, log, event, value, &mut Adapter { scheduler, handles });
}

/// The engine of a program. Events are registered in the order of `order`, which must not matter.
fn build(program: &Program, order: &[usize]) -> (Engine<World>, World) {
    let mut setup = Setup::<World>::new().ties(if program.keyed { Ties::Keyed } else { Ties::Fifo });
    let mut handles = vec![None; program.events.len()];
    for &event in order {
        let plan = &program.events[event];
        let mut spec = Spec::new("event").index(event as u64).phase(PHASES[plan.phase]);
        if !plan.continuing {
            spec = spec.non_continuing();
        }
        let handler = move |world: &mut World, scheduler: &mut Scheduler| fire(world, scheduler, event, 0);
        handles[event] = Some(match plan.kind {
            Kind::Plain => Handle::Plain(setup.event(spec, handler)),
            Kind::Unique => Handle::Unique(setup.unique_event(spec, handler)),
            Kind::SingleCycle => Handle::SingleCycle(setup.single_cycle_event(spec, None, handler)),
            Kind::Payload => Handle::Payload(setup.payload_event(spec, move |world, scheduler, value| {
                fire(world, scheduler, event, value);
            })),
            Kind::EveryTick => Handle::EveryTick(setup.every_tick_event(spec, handler)),
        });
    }
    let handles: Vec<Handle> =
        handles.into_iter().map(|handle| handle.expect("each event is registered")).collect();
    for &(from, to) in &program.edges {
        macro_rules! with {
            ($handle:expr, $event:ident => $body:expr) => {
                match $handle {
                    Handle::Plain($event) => $body,
                    Handle::Unique($event) => $body,
                    Handle::SingleCycle($event) => $body,
                    Handle::Payload($event) => $body,
                    Handle::EveryTick($event) => $body,
                }
            };
        }
        with!(handles[from], a => with!(handles[to], b => setup.precedes(a, b, "random")))
            .expect("edges go forward");
    }
    let engine = setup.finalize().expect("edges go forward");
    (engine, World { program: program.clone(), handles, log: Log::default() })
}

/// Where a machine stands after a run: tick, whether it is finished, next tick.
type Stand = (u64, bool, Option<u64>);

fn run_engine(program: &Program, order: &[usize]) -> (Log, Vec<Stand>) {
    let (mut engine, mut world) = build(program, order);
    let mut stands = Vec::new();
    let handles = world.handles.clone();
    let mut at_start = Adapter { scheduler: engine.scheduler_mut(), handles: &handles };
    for &(target, delay) in &program.start {
        at_start.schedule(target, delay, 0);
    }
    for run in &program.runs {
        match *run {
            Run::For(ticks) => {
                engine.run_for(&mut world, Duration::from_picos(ticks)).expect("it ends");
            }
            Run::AtMost(ticks) => {
                engine.run_at_most(&mut world, Duration::from_picos(ticks)).expect("it ends");
            }
            Run::Schedule { target, delay } => {
                let verdict = Adapter { scheduler: engine.scheduler_mut(), handles: &handles }
                    .schedule(target, delay, 1);
                world.log.lines.push((0, target, verdict as u64));
            }
            Run::Clear => engine.scheduler_mut().clear(),
            Run::RestartAt(tick) => engine.scheduler_mut().restart_at(SimTime::from_picos(tick)),
        }
        let scheduler = engine.scheduler();
        let next = scheduler.next_event_tick().map(SimTime::as_picos);
        stands.push((scheduler.now().as_picos(), scheduler.is_finished(), next));
    }
    (world.log, stands)
}

fn run_reference(program: &Program) -> (Log, Vec<Stand>) {
    let mut reference = Reference::new(program);
    let (mut log, mut stands) = (Log::default(), Vec::new());
    for &(target, delay) in &program.start {
        if program.events[target].kind != Kind::EveryTick {
            reference.schedule(target, delay, 0);
        }
    }
    for run in &program.runs {
        match *run {
            Run::For(ticks) => reference.run(program, &mut log, ticks, true),
            Run::AtMost(ticks) => reference.run(program, &mut log, ticks, false),
            Run::Schedule { target, delay } => {
                let verdict = if program.events[target].kind == Kind::EveryTick {
                    Verdict::Fine
                } else {
                    reference.schedule(target, delay, 1)
                };
                log.lines.push((0, target, verdict as u64));
            }
            Run::Clear => reference.clear(),
            Run::RestartAt(tick) => reference.restart_at(tick),
        }
        stands.push((reference.now(), reference.finished(), reference.next_tick()));
    }
    (log, stands)
}

fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 4 => 1u64..4, 2 => 0u64..3_000, 1 => 0u64..(1 << 42)]
}

fn action(events: usize) -> impl Strategy<Value = Action> {
    let target = 0..events;
    prop_oneof![
        12 => (target.clone(), delay()).prop_map(|(target, delay)| Action::Schedule { target, delay }),
        1 => target.clone().prop_map(|target| Action::Cancel { target }),
        1 => (target.clone(), delay()).prop_map(|(target, delay)| Action::CancelAfter { target, delay }),
        1 => target.clone().prop_map(|target| Action::CancelOdd { target }),
        1 => (target, any::<bool>()).prop_map(|(target, on)| Action::Every { target, on }),
        1 => any::<bool>().prop_map(|after_tick| Action::Stop { after_tick }),
    ]
}

fn event(events: usize) -> impl Strategy<Value = EventPlan> {
    let kind = prop_oneof![
        3 => Just(Kind::Plain),
        2 => Just(Kind::Unique),
        1 => Just(Kind::SingleCycle),
        2 => Just(Kind::Payload),
        1 => Just(Kind::EveryTick),
    ];
    let continuing = prop::bool::weighted(0.8);
    (kind, 0..PHASES.len(), continuing, vec(action(events), 0..6), 1usize..3).prop_map(
        |(kind, phase, continuing, actions, per_firing)| EventPlan {
            kind,
            phase,
            continuing,
            actions,
            per_firing,
        },
    )
}

fn run(events: usize) -> impl Strategy<Value = Run> {
    let ticks = || prop_oneof![0u64..6, 0u64..5_000, 0u64..(1 << 43)];
    prop_oneof![
        3 => ticks().prop_map(Run::For),
        4 => ticks().prop_map(Run::AtMost),
        2 => (0..events, delay()).prop_map(|(target, delay)| Run::Schedule { target, delay }),
        1 => Just(Run::Clear),
        1 => (0u64..10_000).prop_map(Run::RestartAt),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    (2usize..9).prop_flat_map(|events| {
        (
            vec(event(events), events),
            vec((0..events, 0..events), 0..8),
            any::<bool>(),
            vec((0..events, delay()), 1..6),
            vec(run(events), 1..8),
        )
            .prop_map(|(events, edges, keyed, start, runs)| sanitise(events, edges, keyed, (start, runs)))
    })
}

/// Makes a program legal: edges go forward, nobody schedules an every-tick event, and every-tick events are off at the
/// end of long runs (they would fire trillions of times).
fn sanitise(
    mut events: Vec<EventPlan>,
    edges: Vec<(usize, usize)>,
    keyed: bool,
    (start, mut runs): (Vec<(usize, u64)>, Vec<Run>),
) -> Program {
    let every: Vec<bool> = events.iter().map(|event| event.kind == Kind::EveryTick).collect();
    let phases: Vec<usize> = events.iter().map(|event| event.phase).collect();
    for plan in &mut events {
        plan.actions.retain(|action| match *action {
            Action::Schedule { target, .. }
            | Action::Cancel { target }
            | Action::CancelAfter { target, .. } => !every[target],
            Action::CancelOdd { target } => !every[target],
            Action::Every { target, .. } => every[target],
            Action::Stop { .. } => true,
        });
    }
    if every.contains(&true) {
        for run in &mut runs {
            match run {
                Run::For(ticks) | Run::AtMost(ticks) => *ticks %= 200,
                _ => {}
            }
        }
    }
    let forward = |&(from, to): &(usize, usize)| from != to && (phases[from], from) < (phases[to], to);
    let edges = edges.into_iter().filter(forward).collect();
    Program { events, edges, keyed, start, runs, budget: 300 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_agrees_with_the_reference(program in program()) {
        let order: Vec<usize> = (0..program.events.len()).collect();
        let (log, stands) = run_engine(&program, &order);
        let (expect, expect_stands) = run_reference(&program);
        prop_assert_eq!(log.lines, expect.lines);
        prop_assert_eq!(stands, expect_stands);
    }

    #[test]
    fn the_order_of_registration_does_not_matter(program in program(), seed in any::<u64>()) {
        let program = Program { keyed: true, ..program };
        let mut order: Vec<usize> = (0..program.events.len()).collect();
        let mut rng = trompe_base::Rng::new(seed);
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let straight: Vec<usize> = (0..program.events.len()).collect();
        prop_assert_eq!(run_engine(&program, &order), run_engine(&program, &straight));
    }

    #[test]
    fn an_unrelated_event_changes_no_other_order(
        program in program(),
        stranger in event(1),
        ticks in vec(0u64..20, 1..10),
    ) {
        // The stranger schedules nothing, is not ordered against anyone, and its name sorts first or last.
        let mut program = Program { keyed: true, ..program };
        for event in &mut program.events {
            event.actions.retain(|action| !matches!(action, Action::Stop { .. } | Action::CancelOdd { .. }));
        }
        program.budget = usize::MAX;
        program.runs = vec![Run::AtMost(60)];
        for event in &mut program.events {
            // One action per firing, so that the number of pending events stays small without a budget.
            event.per_firing = 1;
            for action in &mut event.actions {
                if let Action::Schedule { delay, .. } = action { *delay += 1; }
            }
        }
        let (alone, _) = run_engine(&program, &(0..program.events.len()).collect::<Vec<_>>());
        let id = program.events.len();
        program.events.push(EventPlan { kind: Kind::Plain, continuing: false, actions: vec![], ..stranger });
        program.start.extend(ticks.iter().map(|&tick| (id, tick)));
        let (both, _) = run_engine(&program, &(0..=id).rev().collect::<Vec<_>>());
        // Values count firings, so leave them out.
        let others: Vec<_> = both.lines.iter().filter(|line| line.1 != id).map(|line| (line.0, line.1)).collect();
        let expect: Vec<_> = alone.lines.iter().map(|line| (line.0, line.1)).collect();
        prop_assert_eq!(others, expect);
    }
}
