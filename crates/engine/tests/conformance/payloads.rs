//! Events that carry values.

use super::*;

type Values = Vec<(u64, u32)>;

fn setup() -> (Engine<Values>, PayloadEvent<u32>) {
    let mut setup = Setup::<Values>::new();
    let event = setup
        .payload_event("p", |values: &mut Values, s, value: u32| values.push((s.now().as_picos(), value)));
    (finalize(setup), event)
}

#[test]
fn values_arrive_in_order() {
    let (mut engine, event) = setup();
    for i in 0..10 {
        engine.scheduler_mut().send(event, ticks(u64::from(i % 2)), i).unwrap();
    }
    assert_eq!(engine.scheduler().outstanding(event), 10);
    let mut values = vec![];
    engine.run_for(&mut values, ticks(2)).unwrap();
    assert_eq!(
        values,
        [0, 2, 4, 6, 8]
            .map(|v| (0, v))
            .into_iter()
            .chain([1, 3, 5, 7, 9].map(|v| (1, v)))
            .collect::<Vec<_>>()
    );
    assert_eq!(engine.scheduler().outstanding(event), 0);
}

#[test]
fn tickets_cancel_once() {
    let (mut engine, event) = setup();
    let s = engine.scheduler_mut();
    let tickets: Vec<_> = (0..5).map(|i| s.send(event, ticks(3), i).unwrap()).collect();
    assert!(s.is_outstanding(tickets[2]));
    assert!(s.cancel_ticket(tickets[2]));
    assert!(!s.cancel_ticket(tickets[2]) && !s.is_outstanding(tickets[2]));
    // The slot is used again; the old ticket does not reach the new value.
    s.send(event, ticks(3), 9).unwrap();
    assert!(!s.cancel_ticket(tickets[2]));
    let mut values = vec![];
    engine.run(&mut values).unwrap();
    assert_eq!(values, [0, 1, 3, 4, 9].map(|v| (3, v)));
    assert!(!engine.scheduler_mut().cancel_ticket(tickets[0]));
}

#[test]
fn values_can_be_found_and_cancelled_by_predicate_and_by_tick() {
    let (mut engine, event) = setup();
    let s = engine.scheduler_mut();
    for i in 0..10 {
        s.send(event, ticks(u64::from(i)), i).unwrap();
    }
    assert!(s.any_outstanding(event, |&v| v == 7) && !s.any_outstanding(event, |&v| v == 70));
    assert_eq!(s.cancel_if(event, |&v| v % 3 == 0), 4);
    assert_eq!(s.cancel_after(event, ticks(7)), 1);
    let tickets = s.tickets_if(event, |&v| v > 4);
    assert_eq!(tickets.len(), 2);
    assert!(s.cancel_ticket(tickets[0]));
    let mut values = vec![];
    engine.run(&mut values).unwrap();
    assert_eq!(values.iter().map(|v| v.1).collect::<Vec<_>>(), [1, 2, 4, 8]);
}

#[test]
fn values_are_dropped_after_delivery_by_clear_and_with_the_engine() {
    let value = Arc::new(());
    let mut setup = Setup::<u32>::new();
    let event = setup.payload_event("p", |count: &mut u32, _, _: Arc<()>| *count += 1);
    let mut engine = finalize(setup);
    let send =
        |engine: &mut Engine<u32>| drop(engine.scheduler_mut().send(event, ticks(1), Arc::clone(&value)));
    send(&mut engine);
    assert_eq!(Arc::strong_count(&value), 2);
    let mut count = 0;
    engine.run(&mut count).unwrap();
    assert_eq!((Arc::strong_count(&value), count), (1, 1));
    send(&mut engine);
    engine.scheduler_mut().clear();
    assert_eq!((Arc::strong_count(&value), engine.scheduler().outstanding(event)), (1, 0));
    send(&mut engine);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(engine);
    assert_eq!(Arc::strong_count(&value), 1);
}
