//! Small jobs whose times can be worked out on paper.

mod common;

use common::{Script, micros, run, run_one};
use trompe_base::{Duration, SimTime};
use trompe_cluster::{AlphaBeta, Bound, CallCosts, HostTime, Options, SimulationError, simulate};
use trompe_results::Kind;
use trompe_trace::record::CollectiveKind::{AllGather, Recv, Send};

/// Replays one rank and compares when its device and its host are done, in microseconds.
fn check(name: &str, script: Script, (device, host): (u64, u64)) {
    let outcome = run_one(script, &Options::default());
    let rank = &outcome.ranks[0];
    let micros = |time: SimTime| time.as_picos() as f64 / 1e6;
    assert_eq!((micros(rank.device_end), micros(rank.host_end)), (device as f64, host as f64), "{name}");
}

#[test]
fn one_rank() {
    let s = Script::new;
    check("nothing", s(), (0, 0));
    check("host only", s().host(5).nothing(), (0, 5));
    check("a stream is first in, first out", s().host(1).kernel(1, 10).host(1).kernel(1, 10), (21, 2));
    check("the device waits for the host", s().host(1).kernel(1, 2).host(9).kernel(1, 2), (12, 10));
    check("streams overlap", s().kernel(1, 10).kernel(2, 7), (10, 0));
    check("wait for a recording", s().kernel(1, 10).record(1, 0, 1).wait(2, 0, 1).kernel(2, 7), (17, 0));
    check(
        "a wait is for the recording at the time of the call",
        s().kernel(1, 10)
            .record(1, 0, 1)
            .wait(2, 0, 1)
            .kernel(1, 10)
            .record(1, 0, 2)
            .kernel(2, 7)
            .wait(3, 0, 2)
            .kernel(3, 1),
        (21, 0),
    );
    check(
        "a recording that was never made",
        s().kernel(1, 10).wait(2, 0, 0).kernel(2, 7).sync_event(3, 1),
        (10, 0),
    );
    check(
        "host waits for an event",
        s().kernel(1, 10).record(1, 0, 1).kernel(1, 5).sync_event(0, 1).host(1).nothing(),
        (15, 11),
    );
    check(
        "host waits for a stream",
        s().kernel(1, 10).kernel(2, 50).sync_stream(1).host(1).nothing(),
        (50, 11),
    );
    check("host waits for the device", s().kernel(1, 10).kernel(2, 50).sync().host(1).nothing(), (50, 51));
    check("nothing to wait for", s().kernel(1, 10).host(30).sync().host(1).nothing(), (10, 31));
    check(
        "blocking copy",
        s().kernel(1, 10)
            .copy(
                1,
                5,
                (trompe_trace::descriptor::Place::Pageable, trompe_trace::descriptor::Place::Device),
                true,
            )
            .host(2)
            .kernel(1, 1),
        (18, 17),
    );
    check("a graph costs the host one launch", s().host(3).graph(1, &[5, 6, 7]), (21, 3));
    check("copies of one direction share an engine", s().upload(1, 10).upload(2, 10), (20, 0));
    check("copies of both directions do not", s().upload(1, 10).download(2, 10), (10, 0));
    let peer = |script: Script, stream| {
        script.copy(
            stream,
            10,
            (trompe_trace::descriptor::Place::Device, trompe_trace::descriptor::Place::Peer),
            false,
        )
    };
    check("copies to other devices share an engine", peer(peer(s(), 1), 2), (20, 0));
    check("which is not that of the host's copies", peer(s().upload(1, 10), 2), (10, 0));
    check("a host function holds its stream", s().kernel(1, 10).host_function(1, 7).kernel(1, 5), (22, 0));
    check("and no other", s().host_function(1, 30).kernel(2, 5).host(1).nothing(), (30, 1));
    check(
        "a host function is waited for",
        s().host_function(1, 30)
            .record(1, 0, 1)
            .wait(2, 0, 1)
            .kernel(2, 5)
            .sync_event(0, 1)
            .host(1)
            .nothing(),
        (35, 31),
    );
    check("copies do not hold up kernels", s().upload(1, 10).kernel(2, 10), (10, 0));
    check("legacy waits for blocking", s().kernel(7, 10).kernel(0, 5), (15, 0));
    check("blocking waits for legacy", s().kernel(0, 10).kernel(7, 5), (15, 0));
    check("per-thread default waits for legacy", s().kernel(0, 10).kernel(8, 5), (15, 0));
    check("blocking streams do not wait for each other", s().kernel(7, 10).kernel(8, 5), (10, 0));
    check("non-blocking streams do not wait", s().kernel(1, 10).kernel(0, 5).kernel(1, 1), (11, 0));
    check(
        "legacy between two blocking streams",
        s().kernel(7, 10).kernel(0, 5).kernel(8, 5).kernel(7, 1),
        (20, 0),
    );
    check("a collective of one rank", s().kernel(1, 3).all_reduce(1, 1, 9).kernel(1, 3), (6, 0));
}

/// The two-stream feed-forward example: GEMM 14 ms, all-reduce 20 ms, event, wait, GEMM 10 ms, all-reduce 16 ms, with
/// host delays of 5, 3, 3 and 6 ms.
#[test]
fn feed_forward_on_two_streams() {
    let ffn = || {
        Script::new()
            .host(5_000)
            .gemm(1, 14_000)
            .host(3_000)
            .all_reduce(2, 0, 20)
            .record(2, 0, 1)
            .wait(1, 0, 1)
            .host(3_000)
            .gemm(1, 10_000)
            .host(6_000)
            .all_reduce(2, 0, 16)
    };
    let outcome = run(&[ffn(), ffn()], &Options::default()).unwrap();
    // GEMM 5..19, all-reduce 8..28, the second GEMM waits for it: 28..38, the second all-reduce follows: 28..44.
    for rank in &outcome.ranks {
        assert_eq!(rank.device_end, SimTime::ZERO + micros(44_000));
        assert_eq!(rank.host_end, SimTime::ZERO + micros(17_000));
        let step = &rank.steps[0];
        assert_eq!(step.kinds[Kind::HostBound as usize], micros(5_000));
        assert_eq!(step.kinds[Kind::Gemm as usize], micros(24_000));
        assert_eq!(step.exposed_communication(), micros(28_000 - 19_000 + 44_000 - 38_000));
        assert_eq!(step.communication, micros(36_000));
        assert_eq!(step.busy(), micros(39_000));
        assert_eq!(rank.communication[0].calls, 2);
        assert_eq!(rank.communication[0].exposed, step.exposed_communication());
    }
}

#[test]
fn tensor_parallel_feed_forward_waits_both_ways() {
    let ffn = || {
        Script::new()
            .host(5_000)
            .gemm(1, 14_000)
            .record(1, 0, 1)
            .wait(2, 0, 1)
            .host(3_000)
            .all_reduce(2, 0, 20)
            .record(2, 1, 1)
            .wait(1, 1, 1)
            .host(3_000)
            .gemm(1, 10_000)
            .record(1, 0, 2)
            .wait(2, 0, 2)
            .host(6_000)
            .all_reduce(2, 0, 16)
    };
    let outcome = run(&[ffn(), ffn()], &Options::default()).unwrap();
    assert_eq!(outcome.end, SimTime::ZERO + micros(5_000 + 14_000 + 20_000 + 10_000 + 16_000));
}

#[test]
fn a_collective_waits_for_its_last_member() {
    let late = Script::new().kernel(1, 10).all_reduce(1, 0, 1);
    let early = Script::new().kernel(1, 3).all_reduce(1, 0, 1);
    let outcome = run(&[early, late], &Options::default()).unwrap();
    for rank in &outcome.ranks {
        assert_eq!(rank.device_end, SimTime::ZERO + micros(1_010));
        assert_eq!(rank.steps[0].exposed_communication(), micros(1_000));
    }
    assert_eq!(outcome.ranks[0].steps[0].kinds[Kind::Bubble as usize], micros(7));
    assert_eq!(outcome.ranks[1].steps[0].kinds[Kind::Bubble as usize], Duration::ZERO);
}

#[test]
fn point_to_point_follows_pairs_and_order() {
    // Rank 1 receives both before it computes; rank 0 sends the second one 20 us after the first.
    let sender = Script::new().transfer(1, Send, 1, 0).host(1_020).transfer(2, Send, 1, 0);
    let receiver = Script::new().transfer(1, Recv, 0, 0).kernel(1, 5).transfer(1, Recv, 0, 0).kernel(1, 5);
    let outcome = run(&[sender, receiver], &Options::default()).unwrap();
    assert_eq!(outcome.ranks[1].device_end, SimTime::ZERO + micros(1_020 + 1_000 + 5));
}

#[test]
fn grouped_sends_and_receives_go_both_ways_at_once() {
    let exchange =
        |peer| Script::new().transfer(1, Send, peer, 9).host(2).transfer(1, Recv, peer, 9).kernel(1, 1);
    let outcome = run(&[exchange(1), exchange(0)], &Options::default()).unwrap();
    assert_eq!(outcome.end, SimTime::ZERO + micros(2 + 1_000 + 1));
    let ungrouped = |peer| Script::new().transfer(1, Send, peer, 0).transfer(1, Recv, peer, 0);
    let error = run(&[ungrouped(1), ungrouped(0)], &Options::default()).unwrap_err();
    let SimulationError::Hang { waiting, .. } = error else { panic!("{error}") };
    assert_eq!(
        waiting[0],
        "send of 976.56 KiB #0 on communicator 0: rank 0 waits for rank 1, which is in send of 976.56 KiB #0 on \
         communicator 0"
    );
}

#[test]
fn jobs_that_would_hang_are_errors() {
    let calls = |n| (0..n).fold(Script::new(), |script, _| script.all_reduce(1, 0, 1));
    let error = run(&[calls(2), calls(1), calls(2)], &Options::default()).unwrap_err();
    let expect = "communicator 0: rank 0, 2 waits for rank 1, whose program is over";
    assert!(error.to_string().contains(expect), "{error}");
    let other = Script::new().collective(1, AllGather, 0, 1);
    let error = run(&[calls(1), other], &Options::default()).unwrap_err();
    assert!(matches!(error, SimulationError::Mismatch { sequence: 0, .. }), "{error}");
}

#[test]
fn more_time_than_can_be_counted_is_an_error() {
    let long = Script::new().host(u64::MAX / 3_000_000).nothing().host(u64::MAX / 3_000_000).nothing();
    assert_eq!(run(&[long], &Options::default()), Err(SimulationError::TooLong));
    let (trace, prices) =
        common::job(&[Script::new().all_reduce(1, 0, 1), Script::new().all_reduce(1, 0, 1)]);
    let no_link = AlphaBeta { bytes_per_second: 0.0, ..common::WIRE };
    assert_eq!(simulate(&trace, &prices, &no_link, &Options::default()), Err(SimulationError::TooLong));
}

#[test]
fn a_full_launch_queue_blocks_the_host() {
    let script = || (0..4).fold(Script::new(), |script, _| script.host(1).kernel(1, 10)).host(1).nothing();
    let options = Options { queue_depth: 2, ..Options::default() };
    let outcome = run_one(script(), &options);
    // Launches at 1, 2, 3 (room after the first ends at 11), 12 (room at 21).
    assert_eq!(outcome.ranks[0].host_end, SimTime::ZERO + micros(22));
    assert_eq!(outcome.end, SimTime::ZERO + micros(41));
    assert_eq!(run_one(script(), &Options::default()).ranks[0].host_end, SimTime::ZERO + micros(5));
}

#[test]
fn host_models() {
    let script = || Script::new().host(4).kernel(1, 10).host(2).nothing().host(4).kernel(1, 10);
    let calls = CallCosts { launch: micros(1), ..CallCosts::default() };
    let check = |host, expect| {
        let outcome = run_one(script(), &Options { host, calls, ..Options::default() });
        assert_eq!(outcome.ranks[0].host_end, SimTime::ZERO + micros(expect), "{host:?}");
    };
    check(HostTime::Measured, 13);
    check(HostTime::Scale(2.0), 23);
    check(HostTime::Fixed(micros(7)), 14);
    check(HostTime::Off, 0);
}

#[test]
fn prices_can_be_taken_at_either_end() {
    let script = || Script::new().kernel(1, 10).kernel(1, 20);
    let check = |bound, expect| {
        let outcome = run_one(script(), &Options { bound, ..Options::default() });
        assert_eq!(outcome.end, SimTime::ZERO + micros(expect), "{bound:?}");
    };
    check(Bound::Low, 15);
    check(Bound::Expected, 30);
    check(Bound::High, 60);
}

#[test]
fn latencies() {
    let script = Script::new().host(1).kernel(1, 10).sync().host(1).kernel(1, 10);
    let options = Options { launch_latency: micros(3), wake_latency: micros(2), ..Options::default() };
    let outcome = run_one(script, &options);
    // Launch at 1, start at 4, end at 14, the host is back at 16, launches at 17, starts at 20.
    assert_eq!(outcome.end, SimTime::ZERO + micros(30));
}

#[test]
fn steps_are_measured_on_the_device() {
    // The host needs 10 us per step, the device 100: the host runs ahead, the step still takes 100.
    let script = Script::new().steps(5, |script| script.host(10).kernel(1, 60).kernel(1, 40)).warmup(2);
    let outcome = run_one(script, &Options::default());
    let rank = &outcome.ranks[0];
    assert_eq!(outcome.step, micros(100));
    assert_eq!(rank.used_count, 3);
    assert!(rank.steps.iter().skip(1).all(|step| step.time == micros(100)), "{:?}", rank.steps);
    assert_eq!(rank.used.busy(), micros(300));
    assert_eq!(rank.used.operations(), 6);
    assert_eq!(rank.used.host, micros(30));
    assert_eq!(rank.device_end, SimTime::ZERO + micros(510));
    // Each launch of the script is an operation of its own; those of the warm-up do not count.
    let launches: Vec<u64> = outcome.operations[0].iter().map(|operation| operation.launches).collect();
    assert_eq!(launches, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    assert_eq!((outcome.operations[0][9].kind, outcome.operations[0][9].site), (Kind::Other, Some(0)));
}

#[test]
fn a_host_bound_step_shows_who_is_late() {
    let script = Script::new().steps(4, |script| script.host(100).kernel(1, 30)).warmup(1);
    let outcome = run_one(script, &Options::default());
    assert_eq!(outcome.step, micros(100));
    let used = &outcome.ranks[0].used;
    assert_eq!((used.busy(), used.host_bound()), (micros(90), micros(210)));
}

#[test]
fn a_step_that_ends_in_a_synchronisation() {
    let script = Script::new().steps(4, |script| script.host(20).kernel(1, 30).sync()).warmup(1);
    let outcome = run_one(script, &Options::default());
    assert_eq!(outcome.step, micros(50));
}

#[test]
fn the_timeline_shows_the_steps_that_were_asked_for() {
    let script = Script::new().steps(4, |script| script.host(20).gemm(1, 30).all_reduce(2, 0, 1).sync());
    let options = Options { timeline: Some((1, 2)), ..Options::default() };
    let (trace, prices) = common::job(&[script.clone(), script]);
    let outcome = trompe_cluster::simulate(&trace, &prices, &common::WIRE, &options).unwrap();
    let shape: Vec<(String, usize)> =
        outcome.timeline.tracks.iter().map(|track| (track.name.clone(), track.spans.len())).collect();
    // Two launches and a wait in each of two steps; the first wait belongs to the step whose launches it follows.
    assert_eq!(shape, [("thread 0".into(), 4), ("stream 1".into(), 2), ("stream 2".into(), 2)]);
    assert!(outcome.timeline.tracks.iter().all(|track| track.rank == 0));
}
