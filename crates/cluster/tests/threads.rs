//! Several host threads of one rank: what one waits for holds up no other, and what they owe each other is kept.

mod common;

use common::{Script, WIRE, job, micros, run, run_one};
use proptest::collection::vec;
use proptest::prelude::*;
use trompe_base::{Duration, SimTime};
use trompe_cluster::{Options, Outcome, PathOwner, simulate};
use trompe_results::TrackKind;

/// Replays one rank and compares when its device and its last thread are done, in microseconds.
#[track_caller]
fn check(script: Script, (device, host): (u64, u64)) {
    let outcome = run_one(script, &Options::default());
    let rank = &outcome.ranks[0];
    let micros = |time: SimTime| time.as_picos() as f64 / 1e6;
    assert_eq!((micros(rank.device_end), micros(rank.host_end)), (device as f64, host as f64));
}

#[test]
fn one_thread_waits_for_the_device_while_the_other_launches() {
    let s = Script::new;
    // Thread 1 starts at 2, launches at 3 and waits until 103; thread 0 launches at 5 and 10.
    let both = |last: bool| {
        let start = s().host(2).give(0).thread(1).take(0).host(1).download(2, 100).sync_stream(2);
        let start = if last { start.host(7).nothing() } else { start };
        start.thread(0).host(3).kernel(1, 4).host(5).kernel(1, 4)
    };
    check(both(false), (103, 103));
    check(both(true), (103, 110));
    // The same calls by one thread: the kernels wait for the copy, at 103 + 3.
    check(s().host(2).nothing().host(1).download(2, 100).sync_stream(2).host(3).kernel(1, 4), (110, 106));
    // By two threads: the first kernel is over at 9.
    let outcome = run_one(both(true).sync_stream(1).host(1).kernel(1, 1), &Options::default());
    assert_eq!(outcome.ranks[0].device_end.as_picos(), 103_000_000);
}

#[test]
fn a_step_does_not_wait_for_what_other_threads_launch() {
    let body = |script: Script, number: u32| {
        let script = script.thread(0).host(10).give(number).kernel(1, 20);
        script.thread(1).take(number).download(2, 500).sync_stream(2).thread(0)
    };
    let threads = (0..4).fold(Script::new(), |script, number| body(script.boundary(), number)).boundary();
    let alone = Script::new().steps(4, |script| script.host(10).kernel(1, 20));
    let [threads, alone] = [threads, alone].map(|script| run_one(script, &Options::default()));
    // The host runs ahead: the first step takes 30, the others as long as their kernel.
    let steps = |outcome: &Outcome| outcome.ranks[0].steps.iter().map(|step| step.time).collect::<Vec<_>>();
    assert_eq!(steps(&alone), [30, 20, 20, 20].map(micros));
    assert_eq!(steps(&threads), steps(&alone));
    assert_eq!(threads.ranks[0].device_end.as_picos(), (10 + 4 * 500) * 1_000_000);
    // Only the first copy is launched before the host comes to its end: it counts for the step, as work overlapped.
    let copies: Duration =
        threads.ranks[0].steps.iter().map(|step| step.operation_time.iter().copied().sum::<Duration>()).sum();
    assert_eq!(copies, micros(4 * 20 + 500));
}

#[test]
fn threads_that_take_turns_are_one_queue() {
    // The autograd engine's thread (1) hands nothing over: the order of all calls is the recorded one.
    let turns = |first: u32, second: u32| {
        let s = Script::new().thread(first).host(5).kernel(1, 10).host(5).kernel(1, 10);
        let s = s.thread(second).host(3).kernel(1, 30).host(3).kernel(1, 30).sync_stream(1);
        s.thread(first).host(4).kernel(1, 1)
    };
    // Launches at 5, 10, 13 and 16; the device is done at 85; the last one is launched at 89.
    check(turns(0, 0), (90, 89));
    check(turns(0, 1), (90, 89));
    // Also when a third thread goes its own way.
    let third = |script: Script| script.thread(2).take(9).host(1).kernel(3, 200).thread(0);
    check(third(Script::new().give(9)).sync_stream(1).host(1).nothing(), (201, 1));
    let s = third(Script::new().give(9)).host(5).kernel(1, 10).thread(1).host(3).kernel(1, 30).sync_stream(1);
    check(s.thread(0).host(4).kernel(1, 1), (201, 49));
}

#[test]
fn what_is_handed_over_comes_first() {
    let s = Script::new;
    // A queue's item that was there in the recorded run, and is not in the replay: the taker waits.
    let late = s().give(0).host(10).nothing();
    let late = late.thread(1).take(0).download(2, 100).sync_stream(2).host(5).give(1);
    check(late.thread(0).take(1).host(1).kernel(1, 10), (116, 106));
    // What was given long ago is not waited for.
    let early = s().give(0).thread(1).take(0).host(5).give(1);
    check(early.thread(0).host(30).take(1).host(1).kernel(1, 10), (41, 31));
    // Taken by two.
    let both = s().give(0).thread(1).take(0).host(20).give(1);
    let both = both.thread(2).host(0).take(0).take(1).kernel(2, 7);
    check(both.thread(0).take(1).host(1).kernel(1, 10), (31, 21));
    // Never given (the recording began later): not waited for.
    check(s().give(0).thread(1).take(7).host(2).kernel(1, 10), (12, 2));
    // Waking up takes time.
    let options = Options { hand_over_latency: micros(4), ..Options::default() };
    let wakes = s().give(0).thread(1).take(0).host(20).give(1).thread(0).take(1).host(1).kernel(1, 10);
    assert_eq!(run_one(wakes, &options).end.as_picos(), 35_000_000);
}

#[test]
fn three_threads_hand_on() {
    // A loader brings batches (thread 1), the program computes (0), a writer copies results back (2).
    let script = Script::new().give(0).thread(1).take(0).host(10).upload(2, 30).record(2, 0, 1).give(1);
    let script = script.host(10).upload(2, 30).record(2, 0, 2).give(2);
    let script = script.thread(0).take(1).wait(1, 0, 1).host(1).kernel(1, 50).record(1, 1, 1).give(3);
    let script = script.thread(2).take(3).wait(3, 1, 1).download(3, 40).sync_stream(3).host(2).give(4);
    let script = script.thread(0).take(2).wait(1, 0, 2).host(1).kernel(1, 50).take(4).host(1).nothing();
    // Uploads 10..40 and 40..70; kernels 40..90 and 90..140; the copy back 90..130, the writer goes on until 132.
    check(script, (140, 133));
}

#[test]
fn streams_that_threads_share_take_calls_in_the_order_of_their_clocks() {
    // In the recorded run thread 1's kernel came last; its time is before thread 0's second one.
    let script = Script::new().give(0).host(1).kernel(1, 10).host(50).kernel(1, 10);
    let script = script.thread(1).take(0).host(20).kernel(1, 5).sync_stream(1).host(3).nothing();
    check(script, (61, 51));
    // A wait for the device is for what has been launched until then, not for what comes later.
    let script = Script::new().give(0).host(1).kernel(1, 10).host(50).kernel(1, 10);
    let script = script.thread(1).take(0).host(2).nothing().sync().host(3).nothing();
    check(script, (61, 51));
}

#[test]
fn the_critical_path_leads_over_threads() {
    let script =
        Script::new().give(0).thread(1).take(0).host(20).give(1).thread(0).take(1).host(5).kernel(1, 10);
    let (trace, prices) = job(&[script]);
    let options = Options { path: Some(0), hand_over_latency: micros(2), ..Options::default() };
    let path = simulate(&trace, &prices, &WIRE, &options).unwrap().path.unwrap();
    let of = |wanted: fn(PathOwner) -> bool| -> Duration {
        path.shares.iter().filter(|share| wanted(share.owner)).map(|share| share.time).sum()
    };
    assert_eq!(path.time, micros(37));
    assert_eq!(of(|owner| matches!(owner, PathOwner::Host { .. })), micros(25));
    assert_eq!(of(|owner| owner == PathOwner::Wake), micros(2));
    assert_eq!(of(|owner| matches!(owner, PathOwner::Operation { .. })), micros(10));
}

#[test]
fn each_thread_has_a_track() {
    let script = Script::new().boundary().give(0).host(1).kernel(1, 10);
    let script = script.thread(3).take(0).host(2).download(2, 50).sync_stream(2).host(1).nothing();
    let script = script.thread(0).host(4).kernel(1, 10).host(100).nothing().boundary();
    let options = Options { timeline: Some((0, 1)), ..Options::default() };
    let timeline = run_one(script, &options).timeline;
    let spans = |name: &str| {
        let track =
            timeline.tracks.iter().position(|track| track.kind == TrackKind::Host && track.name == name);
        let spans = &timeline.tracks[track.expect("a track of that name")].spans;
        spans.iter().map(|span| (span.start_ps / 1_000_000, span.duration_ps / 1_000_000)).collect::<Vec<_>>()
    };
    assert_eq!(spans("thread 0"), [(0, 1), (1, 4), (5, 100)]);
    // Its launch, its wait, and what it does afterwards.
    assert_eq!(spans("thread 3"), [(0, 2), (2, 50), (52, 1)]);
}

/// One line of a thread of a random job: host time, a kernel or a copy on the thread's own stream, a wait for it.
#[derive(Clone, Debug)]
enum Line {
    Host(u64),
    Kernel(u64),
    Download(u64),
    Sync,
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = prop_oneof![
        3 => (0u64..20).prop_map(Line::Host),
        4 => (1u64..40).prop_map(Line::Kernel),
        1 => (1u64..40).prop_map(Line::Download),
        1 => Just(Line::Sync),
    ];
    vec(line, 0..12)
}

fn follow(script: Script, stream: u32, lines: &[Line]) -> Script {
    lines.iter().fold(script, |script, line| match line {
        Line::Host(us) => script.host(*us).nothing(),
        Line::Kernel(us) => script.kernel(stream, *us),
        Line::Download(us) => script.download(stream, *us),
        Line::Sync => script.sync_stream(stream),
    })
}

/// When a thread that is started at `from` is done with `lines`, and its stream, if nobody else does anything.
fn alone(lines: &[Line], from: u64) -> (u64, u64) {
    let (mut host, mut device) = (from, 0);
    for line in lines {
        match line {
            Line::Host(us) => host += us,
            Line::Kernel(us) | Line::Download(us) => device = host.max(device) + us,
            Line::Sync => host = host.max(device),
        }
    }
    (host, device)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Threads with streams of their own are as fast as each would be alone, and the taker goes on after both.
    #[test]
    fn threads_disturb_nobody_and_are_waited_for(first in lines(), second in lines(), third in lines()) {
        let no_copies = |lines: &[Line]| -> Vec<Line> {
            lines.iter().filter(|line| !matches!(line, Line::Download(_))).cloned().collect()
        };
        // One copy engine: only the second thread copies.
        let (first, third) = (no_copies(&first), no_copies(&third));
        let script = follow(Script::new().give(0), 1, &first);
        let script = follow(script.thread(1).take(0), 2, &second).give(1);
        let script = follow(script.thread(2).take(0), 3, &third).give(2);
        let script = script.thread(0).take(1).take(2).host(3).kernel(4, 11);
        let outcome = run_one(script, &Options::default());
        let all = [alone(&first, 0), alone(&second, 0), alone(&third, 0)];
        let host = all.iter().map(|each| each.0).max().unwrap() + 3;
        let device = all.iter().map(|each| each.1).max().unwrap().max(host + 11);
        let rank = &outcome.ranks[0];
        prop_assert_eq!(rank.host_end.as_picos(), host * 1_000_000);
        prop_assert_eq!(rank.device_end.as_picos(), device * 1_000_000);
    }

    /// A rank with a thread more that does nothing takes the long way and gives the same.
    #[test]
    fn the_short_way_and_the_long_way_agree(
        one in lines(), two in lines(), megabytes in 1u64..30, depth in 1u32..5, legacy: bool,
    ) {
        // How many waits for the default stream are put on streams depends on how far ahead the host is. They take no
        // time, but room; and a step ends with the last of its items.
        let (depth, [a, b, c]) = if legacy { (1_000, [7, 0, 8]) } else { (depth, [4, 3, 5]) };
        let script = |silent: bool| {
            let script = Script::new().boundary();
            let script = if silent { script.give(0).thread(5).take(0).thread(0) } else { script.nothing().nothing() };
            let script = follow(follow(script, 1, &one), a, &two).record(1, 0, 1).wait(b, 0, 1).kernel(b, 9);
            let script = follow(script.all_reduce(2, 0, megabytes).boundary(), b, &two).sync_event(0, 1);
            follow(follow(script, c, &one), 1, &two).all_reduce(1, 0, megabytes).boundary()
        };
        let options = Options {
            launch_latency: micros(2), wake_latency: micros(3), queue_depth: depth, path: Some(1), ..Options::default()
        };
        let [short, long] = [false, true].map(|silent| run(&[script(silent), script(silent)], &options).unwrap());
        prop_assert_eq!(short.end, long.end);
        for (short, long) in short.ranks.iter().zip(&long.ranks) {
            if !legacy {
                prop_assert_eq!(&short.steps, &long.steps);
            }
            prop_assert_eq!(&short.communication, &long.communication);
            prop_assert_eq!(short.device_end, long.device_end);
        }
        if !legacy {
            prop_assert_eq!(short.path, long.path);
        }
    }

    /// Equal ranks with threads are folded to the picosecond, and runs are repeated bit by bit.
    #[test]
    fn ranks_with_threads_fold(first in lines(), second in lines(), megabytes in 1u64..30) {
        let script = follow(Script::new().give(0), 1, &first);
        let script = follow(script.thread(1).take(0), 2, &second).all_reduce(2, 1, megabytes).give(1);
        let script = script.thread(0).all_reduce(1, 0, megabytes).take(1).kernel(1, 5);
        let (mut trace, prices) = job(&[script.clone(), script]);
        trace.ranks[1].template = 0;
        let outcome = |fold| {
            let options = Options { fold, ..Options::default() };
            simulate(&trace, &prices, &WIRE, &options).unwrap()
        };
        let (folded, all) = (outcome(true), outcome(false));
        prop_assert_eq!(folded.ranks.len(), 1);
        prop_assert_eq!(all.ranks.len(), 2);
        prop_assert_eq!(&folded.ranks[0].steps, &all.ranks[0].steps);
        prop_assert_eq!(&folded.ranks[0].steps, &all.ranks[1].steps);
        prop_assert_eq!(&all, &outcome(false));
    }
}
