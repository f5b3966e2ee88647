//! Phases, groups, cycles and ties.

use super::*;

#[test]
fn phases_run_in_order_whatever_the_order_of_scheduling() {
    let mut setup = Setup::<Log>::new();
    let phases = [
        (Phase::Tick, "tick"),
        (Phase::Trigger, "trigger"),
        (Phase::PostTick, "post"),
        (Phase::Update, "update"),
        (Phase::Collection, "collection"),
        (Phase::PortUpdate, "port"),
        (Phase::Flush, "flush"),
    ];
    let events = phases.map(|(phase, name)| setup.event(Spec::new(name).phase(phase), logs(name)));
    setup.start_up_event("start", logs("start"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    for event in events {
        engine.scheduler_mut().schedule(event, ticks(0)).unwrap();
    }
    engine.run(&mut log).unwrap();
    let names: Vec<&str> = log.iter().map(|line| line.1).collect();
    assert_eq!(names, ["start", "trigger", "update", "port", "flush", "collection", "tick", "post"]);
}

#[test]
fn earlier_phases_refuse_zero_delay_and_the_run_goes_on() {
    type World = (Vec<trompe_engine::Event>, Vec<ScheduleError>, u32);
    let mut setup = Setup::<World>::new();
    let earlier: Vec<_> = [Phase::Trigger, Phase::Update, Phase::PortUpdate, Phase::Collection]
        .into_iter()
        .map(|phase| setup.event(Spec::new(phase.to_string()).phase(phase), |_: &mut World, _| {}))
        .collect();
    let tick = setup.event("worker", |(targets, errors, fired): &mut World, s| {
        *fired += 1;
        for &target in targets.iter() {
            errors.extend(s.schedule(target, ticks(0)).err());
            s.schedule(target, ticks(1)).unwrap();
        }
    });
    let mut engine = finalize(setup);
    engine.scheduler_mut().schedule(tick, ticks(0)).unwrap();
    engine.scheduler_mut().schedule(tick, ticks(0)).unwrap();
    let mut world = (earlier, vec![], 0);
    engine.run(&mut world).unwrap();
    assert_eq!((world.1.len(), world.2), (8, 2));
    assert_eq!(
        world.1[0].to_string(),
        "`worker` (group 4, tick phase) cannot schedule `trigger` (group 0, trigger phase) in the running tick 0, \
         because that group has already run; schedule it one tick later, or let `trigger` succeed `worker` with \
         `Setup::precedes`"
    );
}

#[test]
fn groups_are_longest_paths() {
    let mut setup = Setup::<()>::new();
    let mut event = |name: &'static str| setup.event(name, |(): &mut (), _| {});
    let (a, b, c, d, e) = (event("a"), event("b"), event("c"), event("d"), event("e"));
    for (from, to) in [(a, c), (b, c), (c, d), (d, e), (a, e)] {
        setup.precedes(from, to, "test").unwrap();
    }
    let engine = finalize(setup);
    assert_eq!([a, b, c, d, e].map(|event| engine.scheduler().group_of(event)), [0, 0, 1, 2, 3]);
    assert_eq!(engine.scheduler().group_count(), 4);
}

#[test]
fn a_grid_has_diagonal_groups() {
    let mut setup = Setup::<()>::new();
    let events: Vec<_> = (0..25).map(|i| setup.event(Spec::new("n").index(i), |(): &mut (), _| {})).collect();
    for i in 0..5 {
        for j in 0..5 {
            if i < 4 {
                setup.precedes(events[i * 5 + j], events[i * 5 + 5 + j], "down").unwrap();
            }
            if j < 4 {
                setup.precedes(events[i * 5 + j], events[i * 5 + j + 1], "right").unwrap();
            }
        }
    }
    let engine = finalize(setup);
    for i in 0..5 {
        for j in 0..5 {
            assert_eq!(engine.scheduler().group_of(events[i * 5 + j]), (i + j) as u32);
        }
    }
}

#[test]
fn a_cycle_is_shown_alone_with_its_reasons() {
    let mut setup = Setup::<()>::new();
    let mut event = |name: &'static str| setup.event(name, |(): &mut (), _| {});
    let (lead, a, b, c, tail) = (event("lead"), event("a"), event("b"), event("c"), event("tail"));
    setup.chain(&[&lead, &a, &b, &c, &tail], "chain").unwrap();
    let back = setup.precedes(c, a, "credit returns \"at once\"").unwrap();
    let Err(SetupError::Cycle(cycle)) = setup.check_order() else { panic!("there is a cycle") };
    assert_eq!(
        cycle.to_string().lines().collect::<std::collections::BTreeSet<_>>(),
        [
            "the order of 3 events is circular; drop one of these edges:",
            "  `a` precedes `b`, because chain",
            "  `b` precedes `c`, because chain",
            "  `c` precedes `a`, because credit returns \"at once\"",
        ]
        .into()
    );
    let dot = cycle.to_dot();
    assert!(
        dot.starts_with("digraph cycle {")
            && dot.contains(r#""c" -> "a" [label="credit returns \"at once\""];"#)
    );
    assert!(!dot.contains("lead") && !dot.contains("tail"));
    assert!(setup.edges_csv().contains("\"b\",\"c\",\"chain\""));
    assert!(setup.vertices_csv().contains("\"tail\",tick"));
    setup.remove(&back);
    let engine = finalize(setup);
    assert_eq!([lead, a, b, c, tail].map(|event| engine.scheduler().group_of(event)), [0, 1, 2, 3, 4]);
}

#[test]
fn cycles_can_be_found_at_once() {
    let mut setup = Setup::<()>::new().detect_cycles_at_once();
    let a = setup.event("a", |(): &mut (), _| {});
    let b = setup.event("b", |(): &mut (), _| {});
    setup.precedes(a, b, "first").unwrap();
    assert!(matches!(setup.precedes(b, a, "second"), Err(SetupError::Cycle(_))));
    assert!(matches!(setup.precedes(a, a, "itself"), Err(SetupError::Cycle(_))));
    assert_eq!(finalize(setup).scheduler().group_of(b), 1);
}

#[test]
fn groups_points_and_kinds_can_all_be_ordered() {
    let mut setup = Setup::<Log>::new();
    let point = setup.ordering_point("point");
    let payload: PayloadEvent<u8> =
        setup.payload_event("a payload", |log: &mut Log, s, _| log.push((s.now().as_picos(), "payload")));
    let unique = setup.unique_event("b unique", logs("unique"));
    let single = setup.single_cycle_event("c single", None, logs("single"));
    let plain = setup.event("d plain", logs("plain"));
    let before = EventGroup::new().with(plain).with(single);
    let after = EventGroup::new().with(unique).with(payload);
    setup.precedes(&before, point, "reads before").unwrap();
    setup.precedes(point, &after, "writes after").unwrap();
    setup.precedes(plain, single, "also").unwrap();
    let (mut engine, mut log) = (finalize(setup), Log::new());
    let s = engine.scheduler_mut();
    s.send(payload, ticks(1), 0).unwrap();
    s.schedule(unique, ticks(1)).unwrap();
    s.schedule(single, ticks(1)).unwrap();
    s.schedule(plain, ticks(1)).unwrap();
    assert_eq!((s.group_of(plain), s.group_of(single), s.group_of(point), s.group_of(payload)), (0, 1, 2, 3));
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(1, "plain"), (1, "single"), (1, "payload"), (1, "unique")]);
}

#[test]
fn edges_against_the_phases_foreign_handles_and_double_names_are_errors() {
    let mut setup = Setup::<Log>::new();
    let update = setup.event(Spec::new("u").phase(Phase::Update), logs("u"));
    let tick = setup.event("t", logs("t"));
    let error = setup.precedes(tick, update, "wrong way").unwrap_err();
    assert!(matches!(error, SetupError::AgainstPhases { .. }) && error.to_string().contains("wrong way"));
    setup.precedes(update, tick, "always true").unwrap();
    let other = Setup::<Log>::new().event("t", logs("t"));
    assert!(matches!(setup.precedes(tick, other, "foreign"), Err(SetupError::ForeignEvent)));
    setup.event("t", logs("again"));
    assert!(matches!(setup.finalize(), Err(SetupError::DuplicateName(_))));
}

#[test]
fn ties_are_broken_by_name_or_by_call() {
    let run = |ties, names: [&'static str; 3]| {
        let mut setup = Setup::<Log>::new().ties(ties);
        let events = names.map(|name| setup.event(name, logs(name)));
        let (mut engine, mut log) = (finalize(setup), Log::new());
        for event in events {
            engine.scheduler_mut().schedule(event, ticks(1)).unwrap();
        }
        engine.run(&mut log).unwrap();
        log.into_iter().map(|line| line.1).collect::<Vec<_>>()
    };
    assert_eq!(run(Ties::Keyed, ["c", "a", "b"]), ["a", "b", "c"]);
    assert_eq!(run(Ties::Keyed, ["b", "c", "a"]), ["a", "b", "c"]);
    assert_eq!(run(Ties::Fifo, ["c", "a", "b"]), ["c", "a", "b"]);
}

#[test]
fn fifo_holds_between_near_and_far_schedulings_of_one_tick() {
    let mut setup = Setup::<Log>::new().ties(Ties::Fifo);
    let far = setup.event("far", logs("far"));
    let near = setup.event("near", logs("near"));
    let (mut engine, mut log) = (finalize(setup), Log::new());
    engine.scheduler_mut().schedule_at(far, at(5_000_000)).unwrap();
    engine.run_for(&mut log, ticks(4_999_990)).unwrap();
    engine.scheduler_mut().schedule_at(near, at(5_000_000)).unwrap();
    engine.scheduler_mut().schedule_at(far, at(5_000_000)).unwrap();
    engine.run(&mut log).unwrap();
    assert_eq!(log, [(5_000_000, "far"), (5_000_000, "near"), (5_000_000, "far")]);
}
