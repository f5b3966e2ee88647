//! Every kind of event.

use super::*;

type UniqueWorld = (Option<trompe_engine::UniqueEvent>, Log, Vec<ScheduleError>);

#[test]
fn an_event_rescheduled_by_nought_or_one_fires_each_time() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for i in 0..10 {
        engine.scheduler_mut().schedule(event, ticks(i % 2)).unwrap();
        engine.run(&mut log).unwrap();
    }
    assert_eq!(log.len(), 10);
}

#[test]
fn a_unique_event_fires_once_per_tick() {
    let mut setup = Setup::<Log>::new();
    let event = setup.unique_event("u", logs("u"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    let s = engine.scheduler_mut();
    for delay in [0, 1, 2, 10] {
        for _ in 0..4 {
            s.schedule(event, ticks(delay)).unwrap();
        }
    }
    let scheduled = |s: &Scheduler| [0, 1, 2, 10, 100].map(|delay| s.is_scheduled(event, ticks(delay)));
    assert_eq!((scheduled(s), s.outstanding(event)), ([true, true, true, true, false], 4));
    engine.run_for(&mut log, ticks(3)).unwrap();
    assert!(engine.scheduler().is_scheduled(event, ticks(7)));
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(0, "u"), (1, "u"), (2, "u"), (10, "u")]);
}

#[test]
fn a_unique_event_cannot_be_scheduled_for_the_tick_it_has_fired_in() {
    let mut setup = Setup::<UniqueWorld>::new();
    let event = setup.unique_event("u", |world: &mut UniqueWorld, s| {
        world.1.push((s.now().as_picos(), "u"));
        world.2.extend(s.schedule(world.0.unwrap(), ticks(0)).err());
    });
    let mut engine = finalize(setup);
    engine.scheduler_mut().schedule(event, ticks(0)).unwrap();
    let mut world = (Some(event), vec![], vec![]);
    engine.run(&mut world).unwrap();
    assert!(matches!(world.2.as_slice(), [ScheduleError::AlreadyFired { tick: 0, .. }]));
    assert_eq!(world.1, [(0, "u")]);
}

#[test]
fn cancelling_takes_one_tick_or_all_and_scheduling_again_works() {
    let mut setup = Setup::<Log>::new();
    let event = setup.unique_event("u", logs("u"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    let s = engine.scheduler_mut();
    for delay in [0, 1, 2_000] {
        s.schedule(event, ticks(delay)).unwrap();
    }
    assert_eq!(s.cancel_after(event, ticks(1)), 1);
    assert_eq!(s.cancel_after(event, ticks(1)), 0);
    assert!(s.is_scheduled(event, ticks(0)) && !s.is_scheduled(event, ticks(1)));
    assert_eq!(s.cancel(event), 2);
    assert!(s.is_finished() && s.next_event_tick().is_none());
    s.schedule(event, ticks(1)).unwrap();
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(1, "u")]);
}

#[test]
fn single_cycle_events() {
    struct World(Option<trompe_engine::SingleCycleEvent>, Log);
    let mut setup = Setup::<World>::new();
    let single = setup.single_cycle_event("single", None, |world: &mut World, s| {
        world.1.push((s.now().as_picos(), "single"));
        s.schedule(world.0.unwrap(), ticks(0)).expect("asking again while firing is ignored");
    });
    let mut engine = finalize(setup);
    let mut world = World(Some(single), vec![]);
    let s = engine.scheduler_mut();
    for _ in 0..100 {
        s.schedule(single, ticks(1)).unwrap();
        s.schedule(single, ticks(0)).unwrap();
    }
    assert!(matches!(s.schedule(single, ticks(2)), Err(ScheduleError::NotThisOrNextCycle { cycles: 2, .. })));
    engine.run_for(&mut world, ticks(1)).unwrap();
    // "Next" was asked for a tick ago; "now" is the same firing.
    engine.scheduler_mut().schedule(single, ticks(0)).unwrap();
    engine.run(&mut world).unwrap();
    assert_eq!(world.1, [(0, "single"), (1, "single")]);
    // Cancelled and asked for again: it fires.
    let s = engine.scheduler_mut();
    s.schedule(single, ticks(1)).unwrap();
    assert_eq!(s.cancel(single), 1);
    s.schedule(single, ticks(1)).unwrap();
    engine.run(&mut world).unwrap();
    assert_eq!(world.1.len(), 3);
}

#[test]
fn single_cycle_events_follow_their_clock() {
    let clock = Clock::from_period("c", ticks(1_000)).unwrap();
    let mut setup = Setup::<Log>::new();
    let single = setup.single_cycle_event("single", Some(clock), logs("single"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    let s = engine.scheduler_mut();
    s.schedule_cycles(single, clock, 1).unwrap();
    assert!(s.schedule_cycles(single, clock, 2).is_err());
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(1_000, "single")]);
}

#[test]
fn start_up_events_fire_once_before_everything() {
    let mut setup = Setup::<Log>::new();
    let b = setup.start_up_event("b", logs("b"));
    let a = setup.start_up_event("a", logs("a"));
    setup.precedes(b, a, "b prepares").unwrap();
    let event = setup.event(Spec::new("e").phase(Phase::Trigger), logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    engine.scheduler_mut().schedule(event, ticks(0)).unwrap();
    engine.run(&mut log).unwrap();
    engine.scheduler_mut().schedule(event, ticks(0)).unwrap();
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(0, "b"), (0, "a"), (0, "e"), (1, "e")]);
}

#[test]
fn every_tick_events_fire_in_every_tick_while_they_are_on() {
    let mut setup = Setup::<Log>::new();
    let every = setup.every_tick_event("every", logs("every"));
    let late = setup.event("late", logs("late"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    engine.scheduler_mut().schedule(late, ticks(3)).unwrap();
    engine.run_for(&mut log, ticks(3)).unwrap();
    engine.scheduler_mut().stop_every_tick(every);
    assert!(!engine.scheduler().is_finished());
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(0, "every"), (1, "every"), (2, "every"), (3, "late")]);
}

#[test]
fn non_continuing_events_do_not_keep_a_run_alive() {
    struct World(Option<trompe_engine::Event>, u32);
    let mut setup = Setup::<World>::new();
    let background = setup.event(Spec::new("background").non_continuing(), |world: &mut World, s| {
        world.1 += 1;
        s.schedule(world.0.unwrap(), ticks(10)).unwrap();
    });
    let work = setup.event("work", |_: &mut World, _| {});
    let mut engine = finalize(setup);
    engine.scheduler_mut().schedule(background, ticks(0)).unwrap();
    engine.scheduler_mut().schedule(work, ticks(95)).unwrap();
    let mut world = World(Some(background), 0);
    assert_eq!(engine.run(&mut world), Ok(Ended::Finished));
    assert_eq!((world.1, engine.scheduler().now()), (10, at(96)));
}

#[test]
fn events_from_other_threads_are_all_delivered_one_at_a_time() {
    struct World {
        tick: Option<trompe_engine::Event>,
        got: Vec<u32>,
    }
    let mut setup = Setup::<World>::new();
    let (_, sender) = setup.async_event("mail", |world: &mut World, _, value: u32| world.got.push(value));
    let keep_alive = setup.event("keep alive", |world: &mut World, s| {
        if world.got.len() < 128 {
            std::thread::yield_now();
            s.schedule(world.tick.unwrap(), ticks(1)).unwrap();
        }
    });
    let mut engine = finalize(setup);
    engine.scheduler_mut().schedule(keep_alive, ticks(0)).unwrap();
    let mut world = World { tick: Some(keep_alive), got: vec![] };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let sender = sender.clone();
            scope.spawn(move || (0..16).for_each(|i| assert!(sender.send(thread * 16 + i))));
        }
        engine.run(&mut world).unwrap();
    });
    world.got.sort_unstable();
    assert_eq!(world.got, (0..128).collect::<Vec<_>>());
}
