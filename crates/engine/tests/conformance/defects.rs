//! Defects of other schedulers; each of these failed, or was slow, somewhere.

use super::*;

#[test]
fn a_stop_is_immediate_and_is_not_left_over() {
    let mut setup = Setup::<Log>::new();
    let stopper = setup.event("a", |log: &mut Log, s| {
        log.push((s.now().as_picos(), "stop"));
        s.stop();
    });
    let other = setup.event("b", logs("b"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for event in [stopper, other] {
        engine.scheduler_mut().schedule(event, ticks(2)).unwrap();
    }
    engine.scheduler_mut().schedule(other, ticks(9)).unwrap();
    assert_eq!(engine.run(&mut log), Ok(Ended::Stopped));
    assert_eq!((log.as_slice(), engine.scheduler().now()), (&[(2, "stop")][..], at(2)));
    assert_eq!(engine.run(&mut log), Ok(Ended::Finished));
    assert_eq!(log, [(2, "stop"), (2, "b"), (9, "b")]);
}

#[test]
fn a_stop_after_the_tick_finishes_it() {
    let mut setup = Setup::<Log>::new();
    let stopper = setup.event("a", |_: &mut Log, s| s.stop_after_tick());
    let other = setup.event("b", logs("b"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for (event, delay) in [(stopper, 0), (other, 0), (other, 1)] {
        engine.scheduler_mut().schedule(event, ticks(delay)).unwrap();
    }
    assert_eq!(engine.run(&mut log), Ok(Ended::Stopped));
    assert_eq!((log.as_slice(), engine.scheduler().now()), (&[(0, "b")][..], at(1)));
}

#[test]
fn cancelled_events_are_neither_visited_nor_counted_nor_waited_for() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    let s = engine.scheduler_mut();
    for delay in [1, 2, 3, 5_000] {
        s.schedule(event, ticks(delay)).unwrap();
    }
    for delay in [1, 2, 3] {
        assert_eq!(s.cancel_after(event, ticks(delay)), 1);
    }
    assert_eq!((s.pending(), s.next_event_tick()), (1, Some(at(5_000))));
    engine.run(&mut log).unwrap();
    assert_eq!((engine.scheduler().ticks_visited(), engine.scheduler().events_fired()), (1, 1));
}

#[test]
fn thousands_of_values_may_be_outstanding() {
    let mut setup = Setup::<u64>::new();
    let event = setup.payload_event("p", |sum: &mut u64, _, value: u64| *sum += value);
    let mut engine = finalize(setup);
    for i in 0..50_000 {
        engine.scheduler_mut().send(event, ticks(i % 7), i).unwrap();
    }
    let mut sum = 0;
    engine.run(&mut sum).unwrap();
    assert_eq!(sum, 50_000 * 49_999 / 2);
}

#[test]
fn a_reused_tick_does_not_keep_an_old_first_group() {
    // A thousand groups; the only live one moves. Every firing finds its own group.
    let mut setup = Setup::<Log>::new();
    let events: Vec<_> = (0..1_000).map(|i| setup.event(Spec::new("e").index(i), logs("e"))).collect();
    for pair in events.windows(2) {
        setup.precedes(pair[0], pair[1], "chain").unwrap();
    }
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for (i, event) in [999, 0, 500, 1, 998].into_iter().enumerate() {
        engine.scheduler_mut().schedule(events[event], ticks(i as u64)).unwrap();
    }
    engine.run(&mut log).unwrap();
    assert_eq!(log.iter().map(|line| line.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn very_long_delays_arrive() {
    let mut setup = Setup::<Log>::new();
    let event = setup.event("e", logs("e"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    let delays = [1, 1 << 20, 1 << 40, 1 << 60, u64::MAX - 1];
    for delay in delays {
        engine.scheduler_mut().schedule(event, ticks(delay)).unwrap();
    }
    let too_far = engine.scheduler_mut().schedule(event, ticks(u64::MAX));
    assert!(matches!(too_far, Err(ScheduleError::TooFar { .. })));
    engine.run(&mut log).unwrap();
    assert_eq!(log.iter().map(|line| line.0).collect::<Vec<_>>(), delays);
    assert!(matches!(
        engine.scheduler_mut().schedule_at(event, at(5)),
        Err(ScheduleError::InThePast { tick: 5, .. })
    ));
}

#[test]
fn a_unique_event_with_thousands_of_pending_ticks() {
    let mut setup = Setup::<Log>::new();
    let event = setup.unique_event("u", logs("u"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for round in 0..2 {
        for delay in 0..5_000 {
            engine.scheduler_mut().schedule(event, ticks(delay)).unwrap();
        }
        assert_eq!(engine.scheduler().outstanding(event), 5_000, "round {round}");
    }
    let s = engine.scheduler_mut();
    assert_eq!((s.cancel_after(event, ticks(4_321)), s.cancel_after(event, ticks(4_321))), (1, 0));
    assert!(!s.is_scheduled(event, ticks(4_321)) && s.is_scheduled(event, ticks(4_322)));
    engine.run_for(&mut log, ticks(1_000)).unwrap();
    engine.scheduler_mut().schedule(event, ticks(3_321)).unwrap();
    engine.run(&mut log).unwrap();
    assert_eq!(log.iter().map(|line| line.0).collect::<Vec<_>>(), (0..5_000).collect::<Vec<_>>());
    // Few again, and again many.
    for delay in 0..100 {
        engine.scheduler_mut().schedule(event, ticks(delay)).unwrap();
    }
    assert_eq!(engine.scheduler_mut().cancel(event), 100);
    assert!(!engine.scheduler().is_scheduled(event, ticks(50)));
}
