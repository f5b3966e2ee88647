//! Threads of one process: which are dispatch queues of their own, whose time is whose, and what they hand over.

use std::collections::BTreeSet;

use trompe_collate::{Options, collate};
use trompe_testkit::{Launch, TraceBuilder};
use trompe_trace::job::{Action, HostEvent, RankTemplate};
use trompe_trace::record::Record;

fn launch(t: &mut TraceBuilder, name: &str) {
    t.launch(Launch { name, ..Launch::default() });
}

fn give(t: &mut TraceBuilder, token: u64) {
    t.record(&Record::Give { token });
}

fn take(t: &mut TraceBuilder, token: u64) {
    t.record(&Record::Take { token });
}

fn template(build: impl FnOnce(&mut TraceBuilder)) -> RankTemplate {
    let mut t = TraceBuilder::new(1);
    build(&mut t);
    let mut job = collate(&[t.finish()], &Options::default()).unwrap();
    job.templates.remove(0)
}

/// What each event is: the thread, and `l`aunch, `g`ive or `t`ake with its number.
fn told(template: &RankTemplate) -> String {
    let event = |event: &HostEvent| match event.action {
        Action::Give { token } => format!("{}g{token}", event.thread.0),
        Action::Take { token } => format!("{}t{token}", event.thread.0),
        _ => format!("{}l", event.thread.0),
    };
    template.events.iter().map(event).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(build: impl FnOnce(&mut TraceBuilder), expect: &str, queues: &[u16]) {
    let template = template(build);
    assert_eq!(told(&template), expect);
    let threads: BTreeSet<_> = template.events.iter().map(|event| event.thread).collect();
    let found = template.queues();
    assert_eq!(threads.into_iter().map(|thread| found.queue(thread)).collect::<Vec<_>>(), queues);
}

#[test]
fn threads_that_hand_over_are_queues() {
    // The autograd engine's thread hands nothing over: one queue.
    check(
        |t| {
            launch(t, "forward");
            launch(t.on_thread(2), "backward");
            launch(t.on_thread(1), "optimizer");
        },
        "0l 1l 0l",
        &[0, 0],
    );
    // A thread that the program starts is one; the engine's stays with the program.
    check(
        |t| {
            launch(t, "forward");
            give(t, 7);
            launch(t.on_thread(2), "backward");
            take(t.on_thread(3), 7);
            launch(t, "copy");
            launch(t.on_thread(1), "optimizer");
        },
        "0l 0g0 1l 2t0 2l 0l",
        &[0, 0, 1],
    );
    // What is handed to a thread without device work, or comes from one, is nothing.
    check(
        |t| {
            launch(t, "forward");
            give(t, 7);
            take(t.on_thread(3), 7);
            give(t, 8);
            take(t.on_thread(1), 8);
            launch(t, "optimizer");
        },
        "0l 0l",
        &[0],
    );
    // But what such a thread passes on counts: a dispatcher (3) between the program and a worker (4), there and back.
    check(
        |t| {
            launch(t, "forward");
            give(t, 7);
            take(t.on_thread(3), 7);
            give(t, 8);
            take(t.on_thread(4), 8);
            launch(t, "work");
            give(t, 9);
            take(t.on_thread(3), 9);
            give(t, 10);
            take(t.on_thread(1), 10);
            launch(t, "optimizer");
        },
        "0l 0g0 1t0 1l 1g1 0t1 0l",
        &[0, 1],
    );
    // A thread that does all the training is the program, whoever started it.
    check(
        |t| {
            launch(t, "warm up");
            give(t, 7);
            take(t.on_thread(2), 7);
            launch(t, "forward");
            launch(t, "backward");
            launch(t, "optimizer");
        },
        "1l 1g0 0t0 0l 0l 0l",
        &[0, 1],
    );
}

#[test]
fn each_queue_has_its_own_time() {
    let template = template(|t| {
        launch(t, "forward");
        give(t, 7);
        take(t.on_thread(3), 7);
        // The thread computes, and the program as well: 4000 ticks pass for both.
        t.pass(4000);
        launch(t, "copy");
        launch(t.on_thread(1), "forward");
        give(t.on_thread(3), 8);
        take(t.on_thread(1), 8);
        launch(t, "optimizer");
    });
    assert_eq!(told(&template), "0l 0g0 1t0 1l 0l 1g1 0t1 0l");
    let gaps: Vec<u64> = template.events.iter().map(|event| event.gap.as_picos() / 1000).collect();
    const PAUSE: u64 = TraceBuilder::PAUSE;
    // From one record of a queue's to the next, the records between them being other queues'.
    let call = TraceBuilder::CALL;
    assert_eq!(gaps[3], 4000 + PAUSE);
    assert_eq!(gaps[4], 4000 + 3 * PAUSE + 2 * call);
    assert_eq!(gaps[2], 0, "it began with that");
    assert_eq!(gaps[7], PAUSE, "waiting is nobody's time");
}

#[test]
fn steps_are_those_of_the_program() {
    // A copy in some steps, by a thread of its own: all steps but the first are alike.
    let template = template(|t| {
        launch(t, "initialise");
        for step in 0..6u64 {
            launch(t, "forward");
            if step % 2 == 1 {
                give(t, step);
                take(t.on_thread(3), step);
                launch(t, "copy");
                t.on_thread(1);
            }
            t.range("Optimizer.step#AdamW.step", |t| launch(t, "fused_adam"));
        }
    });
    assert_eq!((template.steps.count(), template.steps.warmup), (6, 1));
}

#[test]
fn ranks_whose_threads_came_in_another_order_are_the_same() {
    let rank = |rank: u32, copy_first: bool, thirds: u32| {
        let mut t = TraceBuilder::new(100 + rank);
        t.meta("job.rank", &rank.to_string()).meta("job.world", "2");
        launch(&mut t, "forward");
        give(&mut t, 7);
        let copy = |t: &mut TraceBuilder| {
            take(t.on_thread(3), 7);
            launch(t, "copy");
            t.on_thread(100 + rank);
        };
        if copy_first {
            copy(&mut t);
        }
        (0..thirds).for_each(|_| launch(&mut t, "backward"));
        if !copy_first {
            copy(&mut t);
        }
        t.finish()
    };
    let templates = |thirds| {
        let job = collate(&[rank(0, true, 2), rank(1, false, thirds)], &Options::default()).unwrap();
        assert_eq!(job.ranks.len(), 2);
        job.templates.len()
    };
    assert_eq!((templates(2), templates(3)), (1, 2));
}
