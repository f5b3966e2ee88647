//! Ports and the order that follows from them.

use trompe_engine::{InPort, OutPort};

use super::*;

/// Two units that answer each other at once.
struct Units {
    outs: Vec<OutPort<u32>>,
    log: Log,
    errors: Vec<ScheduleError>,
}

fn logs_port(name: &'static str) -> impl FnMut(&mut Units, &mut Scheduler, u32) + Send {
    move |units, s, _| units.log.push((s.now().as_picos(), name))
}

fn world(outs: Vec<OutPort<u32>>) -> Units {
    Units { outs, log: vec![], errors: vec![] }
}

#[test]
fn without_delay_producers_precede_arrivals_and_arrivals_precede_consumers() {
    // By name alone the consumer would come first.
    let mut setup = Setup::<Units>::new();
    let input = setup.in_port("b arrival", ticks(0), logs_port("arrival"));
    let out = setup.out_port("out");
    setup.bind(out, input).unwrap();
    let consumer =
        setup.event("a consumer", |units: &mut Units, s| units.log.push((s.now().as_picos(), "consumer")));
    let producer = setup.event("c producer", |units: &mut Units, s| {
        units.log.push((s.now().as_picos(), "producer"));
        s.send_from(units.outs[0], ticks(0), 1).unwrap();
    });
    setup.produces(producer, out);
    setup.consumes(consumer, input);
    let (mut engine, mut units) = (finalize(setup), world(vec![out]));
    engine.scheduler_mut().schedule(consumer, ticks(4)).unwrap();
    engine.scheduler_mut().schedule(producer, ticks(4)).unwrap();
    engine.run(&mut units).unwrap();
    assert_eq!(units.log, [(4, "producer"), (4, "arrival"), (4, "consumer")]);
}

/// A zero-delay loop between two units; with automatic precedence or without.
fn looped(auto: bool) -> Result<Units, SetupError> {
    let mut setup = Setup::<Units>::new();
    let spec =
        |name: &'static str| if auto { Spec::new(name) } else { Spec::new(name).without_auto_precedence() };
    let mut events = vec![];
    let mut ports: Vec<(OutPort<u32>, InPort<u32>)> = vec![];
    for (i, name) in ["left", "right"].into_iter().enumerate() {
        let input = setup.in_port(spec(["left in", "right in"][i]), ticks(0), logs_port(name));
        let out = setup.out_port(spec(["left out", "right out"][i]));
        let event = setup.event(name, move |units: &mut Units, s| {
            units.errors.extend(s.send_from(units.outs[i], ticks(0), 0).err());
        });
        setup.produces(event, out);
        setup.consumes(event, input);
        events.push(event);
        ports.push((out, input));
    }
    setup.bind(ports[0].0, ports[1].1)?;
    setup.bind(ports[1].0, ports[0].1)?;
    // The one order that the loop without automatic precedence is given: left arrivals come first.
    if !auto {
        setup.precedes(ports[0].1.delivery(), events[1], "left goes first")?;
    }
    let mut engine = setup.finalize()?;
    let mut units = world(vec![ports[0].0, ports[1].0]);
    engine.scheduler_mut().schedule(events[1], ticks(0)).unwrap();
    engine.run(&mut units).unwrap();
    Ok(units)
}

#[test]
fn a_loop_without_delay_is_a_cycle_unless_precedence_is_off() {
    let Err(SetupError::Cycle(cycle)) = looped(true) else { panic!("the loop is a cycle") };
    assert_eq!(cycle.edges.len(), 4);
    assert!(
        cycle
            .to_string()
            .contains("`left` precedes `right in`, because it sends from `left out` to `right in`")
    );
    let units = looped(false).unwrap();
    assert!(matches!(units.errors.as_slice(), [ScheduleError::EarlierGroup { .. }]), "{:?}", units.errors);
}

#[test]
fn a_value_arrives_after_its_delay_and_the_ports_own() {
    let mut setup = Setup::<Units>::new();
    let out = setup.out_port("out");
    for (name, delay) in [("two", 2), ("five", 5)] {
        let input = setup.in_port(name, ticks(delay), logs_port(name));
        setup.bind(out, input).unwrap();
    }
    let (mut engine, mut units) = (finalize(setup), world(vec![]));
    engine.run_for(&mut units, ticks(100)).unwrap();
    engine.scheduler_mut().send_from(out, ticks(10), 0).unwrap();
    engine.run(&mut units).unwrap();
    assert_eq!(units.log, [(112, "two"), (115, "five")]);
}

#[test]
fn arrivals_with_delay_come_before_the_main_work() {
    let mut setup = Setup::<Units>::new();
    let (out, input) = (setup.out_port("out"), setup.in_port("z", ticks(1), logs_port("arrival")));
    setup.bind(out, input).unwrap();
    let work = setup.event("a", |units: &mut Units, s| units.log.push((s.now().as_picos(), "work")));
    let (mut engine, mut units) = (finalize(setup), world(vec![]));
    engine.scheduler_mut().schedule(work, ticks(1)).unwrap();
    engine.scheduler_mut().send_from(out, ticks(0), 0).unwrap();
    engine.run(&mut units).unwrap();
    assert_eq!(units.log, [(1, "arrival"), (1, "work")]);
}

#[test]
fn clocked_ports_wait_for_an_edge() {
    let clock = Clock::from_period("slow", ticks(100)).unwrap();
    let mut setup = Setup::<Units>::new();
    let (out, input) =
        (setup.out_port("out"), setup.clocked_in_port("in", (ticks(1), clock), logs_port("arrival")));
    setup.bind(out, input).unwrap();
    let (mut engine, mut units) = (finalize(setup), world(vec![]));
    for delay in [0, 98, 99, 100] {
        engine.scheduler_mut().send_from(out, ticks(delay), 0).unwrap();
    }
    engine.run(&mut units).unwrap();
    assert_eq!(units.log.iter().map(|line| line.0).collect::<Vec<_>>(), [100, 100, 100, 200]);
}

#[test]
fn binding_twice_and_sending_from_an_unbound_port_are_errors() {
    let mut setup = Setup::<Units>::new();
    let (out, lonely) = (setup.out_port("out"), setup.out_port::<u32>("lonely"));
    let input = setup.in_port("in", ticks(1), logs_port("arrival"));
    setup.bind(out, input).unwrap();
    assert!(matches!(setup.bind(out, input), Err(SetupError::BoundTwice { .. })));
    let mut engine = finalize(setup);
    let error = engine.scheduler_mut().send_from(lonely, ticks(0), 0).unwrap_err();
    assert!(matches!(&error, ScheduleError::Unbound { port } if port == "lonely"), "{error}");
}

#[test]
fn values_on_the_way_can_be_cancelled_and_background_traffic_keeps_nothing_alive() {
    let mut setup = Setup::<Units>::new();
    let out = setup.out_port("out");
    let input =
        setup.in_port(Spec::new("in").non_continuing(), ticks(1), |units: &mut Units, s, value: u32| {
            units.log.push((s.now().as_picos(), "arrival"));
            s.send_from(units.outs[0], ticks(0), value).unwrap();
        });
    setup.bind(out, input).unwrap();
    let work = setup.event("work", |_: &mut Units, _| {});
    let (mut engine, mut units) = (finalize(setup), world(vec![out]));
    let s = engine.scheduler_mut();
    for value in 0..4 {
        s.send_from(out, ticks(0), value).unwrap();
    }
    assert_eq!(s.cancel_if(input.delivery(), |&value| value != 2), 3);
    s.schedule(work, ticks(50)).unwrap();
    assert_eq!(engine.run(&mut units), Ok(Ended::Finished));
    assert_eq!(units.log.len(), 50);
    assert_eq!(engine.scheduler_mut().cancel(input.delivery()), 1);
}
