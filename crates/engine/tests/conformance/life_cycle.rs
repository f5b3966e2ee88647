//! Making, running, clearing and restarting an engine.

use super::*;

#[test]
fn a_new_engine_stands_at_tick_zero() {
    let engine = finalize(Setup::<()>::new());
    let scheduler = engine.scheduler();
    assert_eq!((scheduler.now(), scheduler.elapsed()), (SimTime::ZERO, Duration::ZERO));
    assert!(!scheduler.is_running() && scheduler.is_finished());
    assert_eq!(scheduler.next_event_tick(), None);
}

#[test]
fn an_exact_run_over_nothing_only_moves_time() {
    let mut engine = finalize(Setup::<()>::new());
    assert_eq!(engine.run_for(&mut (), ticks(1)), Ok(Ended::TimeIsUp));
    assert_eq!((engine.scheduler().now(), engine.scheduler().elapsed()), (at(1), ticks(0)));
    engine.run_for(&mut (), ticks(9)).unwrap();
    assert_eq!((engine.scheduler().now(), engine.scheduler().elapsed()), (at(10), ticks(9)));
    assert_eq!(engine.scheduler().ticks_visited(), 0);
}

#[test]
fn elapsed_is_the_present_tick_inside_a_handler() {
    let mut setup = Setup::<Vec<u64>>::new();
    let event = setup.event("e", |seen: &mut Vec<u64>, s| {
        assert!(s.is_running());
        seen.push(s.elapsed().as_picos());
    });
    let (mut engine, mut seen) = (finalize(setup), vec![]);
    engine.scheduler_mut().schedule(event, ticks(7)).unwrap();
    engine.run(&mut seen).unwrap();
    assert_eq!(seen, [7]);
    assert_eq!((engine.scheduler().now(), engine.scheduler().elapsed()), (at(8), ticks(7)));
}

#[test]
fn zero_delay_between_runs_fires_in_the_tick_that_runs_next() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    engine.run_for(&mut log, ticks(5)).unwrap();
    engine.scheduler_mut().schedule(event, ticks(0)).unwrap();
    assert_eq!(engine.run(&mut log), Ok(Ended::Finished));
    assert_eq!(log, [(5, "e")]);
    let scheduler = engine.scheduler();
    assert!(!scheduler.is_running() && scheduler.is_finished() && scheduler.next_event_tick().is_none());
}

#[test]
fn a_run_covers_exactly_its_ticks() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for delay in [0, 9, 10] {
        engine.scheduler_mut().schedule(event, ticks(delay)).unwrap();
    }
    assert_eq!(engine.run_at_most(&mut log, ticks(10)), Ok(Ended::TimeIsUp));
    assert_eq!((log.as_slice(), engine.scheduler().now()), (&[(0, "e"), (9, "e")][..], at(10)));
    engine.run_at_most(&mut log, ticks(10)).unwrap();
    assert_eq!((log.len(), engine.scheduler().now()), (3, at(11)));
}

#[test]
fn clear_drops_everything_and_time_goes_on() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for i in 0..1_000 {
        engine.scheduler_mut().schedule(event, ticks(i % 10)).unwrap();
    }
    engine.scheduler_mut().clear();
    assert!(engine.scheduler().is_finished());
    for _ in 0..10 {
        engine.run_for(&mut log, ticks(1)).unwrap();
    }
    assert_eq!((log.len(), engine.scheduler().now()), (0, at(10)));
}

#[test]
fn restart_goes_to_any_tick_with_nothing_pending() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    engine.scheduler_mut().schedule(event, ticks(50)).unwrap();
    engine.run_for(&mut log, ticks(20)).unwrap();
    engine.scheduler_mut().restart_at(at(2));
    assert!(engine.scheduler().is_finished());
    assert_eq!((engine.scheduler().now(), engine.scheduler().elapsed()), (at(2), ticks(1)));
    engine.scheduler_mut().schedule(event, ticks(3)).unwrap();
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(5, "e")]);
    engine.scheduler_mut().restart_at(at(0));
    assert_eq!((engine.scheduler().now(), engine.scheduler().elapsed()), (at(0), ticks(0)));
}

#[test]
fn a_tick_that_does_not_end_is_an_error() {
    struct World(Option<trompe_engine::Event>);
    let mut setup = Setup::<World>::new();
    let spin = setup.event("spin", |world: &mut World, s| s.schedule(world.0.unwrap(), ticks(0)).unwrap());
    let mut engine = finalize(setup);
    engine.set_tick_limit(1_000);
    engine.scheduler_mut().schedule(spin, ticks(3)).unwrap();
    let error = engine.run(&mut World(Some(spin))).unwrap_err();
    assert!(matches!(error, RunError::Livelock { tick: 3, events: 1_000, .. }), "{error}");
    assert!(error.to_string().contains("`spin`"));
}

#[test]
fn an_interrupt_ends_a_run_between_ticks_and_the_next_run_goes_on() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    engine.scheduler_mut().schedule(event, ticks(3)).unwrap();
    engine.interrupt().raise();
    assert_eq!(engine.run(&mut log), Err(RunError::Interrupted { tick: 0 }));
    assert_eq!(engine.run(&mut log), Ok(Ended::Finished));
    assert_eq!(log, [(3, "e")]);
}

#[test]
fn an_observer_sees_every_firing() {
    struct Tap(Arc<Mutex<Vec<String>>>);
    impl Observer for Tap {
        fn before(&mut self, firing: &Firing<'_>) {
            self.0
                .lock()
                .unwrap()
                .push(format!("{:?} {} {} {}", firing.tick, firing.group, firing.phase, firing.event));
        }
    }
    let mut setup = Setup::<Log>::new();
    let event = setup.event(Spec::new("e").index(4), logs("e"));
    let late = setup.event(Spec::new("l").phase(Phase::PostTick), logs("l"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    let seen = Arc::new(Mutex::new(vec![]));
    engine.observe(Some(Box::new(Tap(Arc::clone(&seen)))));
    engine.scheduler_mut().schedule(late, ticks(1)).unwrap();
    engine.scheduler_mut().schedule(event, ticks(1)).unwrap();
    engine.run(&mut log).unwrap();
    assert_eq!(*seen.lock().unwrap(), ["@1ps 0 tick e[4]", "@1ps 1 post-tick l"]);
}

#[test]
fn counters() {
    let mut setup = Setup::<Log>::new();
    let a = setup.event("a", logs("a"));
    let b = setup.event("b", logs("b"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for (event, delay) in [(a, 0), (a, 0), (b, 0), (a, 900)] {
        engine.scheduler_mut().schedule(event, ticks(delay)).unwrap();
    }
    engine.run(&mut log).unwrap();
    let s = engine.scheduler();
    assert_eq!((s.events_fired(), s.ticks_visited(), s.times_fired(a), s.times_fired(b)), (4, 2, 3, 1));
}

#[test]
fn a_profile_adds_up_host_time_per_event() {
    let clock = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let mut setup = Setup::<Log>::new();
    let spend = |clock: &Arc<std::sync::atomic::AtomicU64>, time| {
        let clock = Arc::clone(clock);
        move |_: &mut Log, _: &mut Scheduler| {
            clock.fetch_add(time, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let cheap = setup.event("cheap", spend(&clock, 2));
    let dear = setup.event("dear", spend(&clock, 70));
    let mut engine = finalize(setup);
    let reader = Arc::clone(&clock);
    let profile = trompe_engine::Profile::new(move || reader.load(std::sync::atomic::Ordering::Relaxed));
    let costs = profile.costs();
    engine.observe(Some(Box::new(profile)));
    for (event, delay) in [(cheap, 0), (cheap, 5), (dear, 5)] {
        engine.scheduler_mut().schedule(event, ticks(delay)).unwrap();
    }
    engine.run(&mut Log::new()).unwrap();
    let costs: Vec<_> = costs
        .by_event()
        .into_iter()
        .map(|(name, cost)| (name.to_string(), cost.firings, cost.time))
        .collect();
    assert_eq!(costs, [("cheap".into(), 2, 4), ("dear".into(), 1, 70)]);
}
