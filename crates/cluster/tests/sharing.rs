//! Contention on one device, worked out on paper, and as properties.

mod common;

use common::{Script, job, micros};
use proptest::collection::vec;
use proptest::prelude::*;
use trompe_base::{Duration, SimTime};
use trompe_cluster::{
    CollectiveCall, CollectiveModel, Contention, Options, Others, Outcome, Price, Traffic, simulate,
};
use trompe_results::TrackKind;

/// A hundred multiprocessors, one block of the test kernels on each, and bandwidth that nobody uses up.
const DEVICE: Contention = Contention {
    multiprocessors: 100,
    threads: 1_024,
    blocks: 32,
    registers: 65_536,
    shared: 233_472,
    shared_reserved: 1_024,
    bandwidth: 1e12,
    collective_priority: 0.5,
    collectives_hold: true,
};

/// Collectives of 21 us on 16 channels.
#[derive(Debug)]
struct Wire;

impl CollectiveModel for Wire {
    fn price(&self, _call: &CollectiveCall<'_>) -> Price {
        Price::exact(micros(21))
    }

    fn channels(&self, _call: &CollectiveCall<'_>) -> u32 {
        16
    }
}

fn run(script: &Script, contention: Option<Contention>) -> Outcome {
    let (trace, prices) = job(&[script.clone(), script.clone()]);
    let options = Options { contention, timeline: Some((0, 1)), ..Options::default() };
    simulate(&trace, &prices, &Wire, &options).expect("the job ends")
}

/// Compares when the device is done, without and with contention, in microseconds.
fn check(name: &str, script: &Script, (off, on): (u64, u64)) {
    let end = |contention| run(script, contention).ranks[0].device_end;
    assert_eq!(end(None), SimTime::ZERO + micros(off), "{name}: off");
    assert_eq!(end(Some(DEVICE)), SimTime::ZERO + micros(on), "{name}: on");
}

#[test]
fn what_runs_at_once_shares_the_device() {
    let s = Script::new;
    check("alone", &s().blocks(1, 10, 100).blocks(1, 10, 50), (20, 20));
    check("both fit", &s().blocks(1, 10, 40).blocks(2, 10, 60), (10, 10));
    check("the second waits for room", &s().blocks(1, 10, 100).blocks(2, 10, 100), (10, 20));
    // 100 blocks on 50 multiprocessors go at half speed for 10 us, then at full speed.
    check("half the room", &s().blocks(1, 10, 50).blocks(2, 10, 100), (10, 15));
    // 200 blocks beside 16 channels: three waves instead of two for 21 us, in which it does 14 us of its work.
    check("beside a collective", &s().all_reduce(2, 0, 1).blocks(1, 30, 200), (30, 37));
    // 84 blocks fit beside it.
    check("beside a collective, small", &s().all_reduce(2, 0, 1).blocks(1, 30, 84), (30, 30));
    check("copies leave the multiprocessors", &s().upload(1, 10).blocks(2, 10, 100), (10, 10));
    // The urgent one takes the device at 5 and gives it back at 15.
    let urgent = s().urgency(2, -5).blocks(1, 100, 100).host(5).blocks(2, 10, 100);
    check("urgent streams come first", &urgent, (100, 110));
    let patient = s().urgency(2, 5).blocks(1, 100, 100).host(5).blocks(2, 10, 100);
    check("patient streams come last", &patient, (100, 110));
}

/// Collectives of a microsecond per ten kilobytes that are in nobody's way on links.
#[derive(Debug)]
struct Slow;

impl CollectiveModel for Slow {
    fn price(&self, call: &CollectiveCall<'_>) -> Price {
        Price::exact(micros(call.bytes.0 / 10_000))
    }

    fn channels(&self, _call: &CollectiveCall<'_>) -> u32 {
        4
    }

    fn traffic(&self, _call: &CollectiveCall<'_>, _others: &Others<'_>) -> Option<Traffic> {
        Some(Traffic { id: 0, alone: 1.0 })
    }
}

/// The same over one link that all of them share.
#[derive(Debug)]
struct Crowded;

impl CollectiveModel for Crowded {
    fn price(&self, call: &CollectiveCall<'_>) -> Price {
        Slow.price(call)
    }

    fn channels(&self, call: &CollectiveCall<'_>) -> u32 {
        Slow.channels(call)
    }

    fn traffic(&self, call: &CollectiveCall<'_>, others: &Others<'_>) -> Option<Traffic> {
        Slow.traffic(call, others)
    }

    fn meets(&self, _: Traffic, _: Traffic) -> bool {
        true
    }

    fn speeds(&self, traffic: &[Traffic]) -> Vec<f64> {
        vec![1.0 / traffic.len() as f64; traffic.len()]
    }
}

/// Links and memories that are both too slow: the slower of the two sets the pace.
#[test]
fn what_links_cost_is_not_lost_on_devices_again() {
    let check = |bandwidth: f64, expect: f64| {
        let script = || (0..4).fold(Script::new(), |script, stream| script.all_reduce(1 + stream, 0, 1));
        let (trace, prices) = job(&[script(), script()]);
        let contention = Contention { bandwidth, collective_priority: 0.0, ..DEVICE };
        let options = Options { contention: Some(contention), ..Options::default() };
        let outcome = simulate(&trace, &prices, &Crowded, &options).expect("the job ends");
        let end = outcome.ranks[0].device_end.as_picos() as f64 / 1e6;
        assert!((end - expect).abs() < 0.01 * expect, "{end} for {expect}");
    };
    // Four of 100 us on one link take 400 us. Each moves 3e10 bytes per second alone; the memory gives all of them half
    // of that, which is more than the link does, or the tenth that every collective keeps.
    check(6e10, 400.0);
    check(1e9, 1000.0);
}

#[test]
fn kernels_beside_it_slow_a_collective() {
    // An all-reduce of two ranks moves three times its bytes in each memory: 3 MB in 100 us, 3e10 bytes per second.
    let device = |collective_priority| Contention { bandwidth: 3e10, collective_priority, ..DEVICE };
    let ends = |scripts: [Script; 2], priority| {
        let (trace, prices) = job(&scripts);
        let options = Options { contention: Some(device(priority)), ..Options::default() };
        let outcome = simulate(&trace, &prices, &Slow, &options).expect("the job ends");
        outcome.ranks.iter().map(|rank| rank.device_end.as_picos() as f64 / 1e6).collect::<Vec<_>>()
    };
    let check = |name: &str, scripts: [Script; 2], priority: f64, expect: [f64; 2]| {
        let found = ends(scripts, priority);
        let close = found.iter().zip(expect).all(|(found, expect)| (found - expect).abs() < 0.01);
        assert!(close, "{name}: {found:?} for {expect:?}");
    };
    let alone = || Script::new().all_reduce(1, 0, 1);
    // A kernel that uses all of the memory for 400 us on one rank, 10 blocks beside 4 channels.
    let beside = |us| Script::new().all_reduce(1, 0, 1).streaming(2, us, (10, us * 30));
    check("alone", [alone(), alone()], 0.0, [100.0, 100.0]);
    // Half speed for both, and the other rank waits for the slow one; then the kernel has 400 - 100 us left.
    check("all alike", [beside(400), alone()], 0.0, [500.0, 200.0]);
    check("on both ranks", [beside(400), beside(400)], 0.0, [500.0, 500.0]);
    // Spared, it takes 100 us, in which the kernel gets a tenth; half spared it goes at 3/4, the kernel at 1/4.
    check("spared", [beside(400), alone()], 1.0, [490.0, 100.0]);
    check("half spared", [beside(400), alone()], 0.5, [400.0 + 100.0, 400.0 / 3.0]);
    // The kernel ends first: 50 us of it take 100, in which half of the transfer is done.
    check("a short kernel", [beside(50), alone()], 0.0, [150.0, 150.0]);
    // One that begins in the middle: half of the transfer at full speed, the rest at half.
    let late = Script::new().all_reduce(1, 0, 1).host(50).streaming(2, 400, (10, 12_000));
    check("a late kernel", [late, alone()], 0.0, [500.0, 150.0]);
}

#[test]
fn the_urgent_one_is_not_slowed() {
    let urgent = Script::new().urgency(2, -5).blocks(1, 100, 100).host(5).blocks(2, 10, 100);
    let outcome = run(&urgent, Some(DEVICE));
    let track =
        outcome.timeline.tracks.iter().find(|track| track.kind == TrackKind::Stream && track.number == 2);
    let span = &track.expect("stream 2 worked").spans[0];
    assert_eq!((span.start_ps, span.duration_ps), (5_000_000, 10_000_000));
}

#[derive(Clone, Debug)]
enum Line {
    Host(u64),
    Kernel(u32, u64, u32),
    Record(u32),
    Wait(u32),
    AllReduce(u32),
    Sync,
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![
        2 => (0u64..20).prop_map(Line::Host),
        6 => (1u32..4, 1u64..40, 1u32..300).prop_map(|(s, t, b)| Line::Kernel(s, t, b)),
        2 => (1u32..4).prop_map(Line::Record),
        2 => (1u32..4).prop_map(Line::Wait),
        1 => (1u32..4).prop_map(Line::AllReduce),
        1 => Just(Line::Sync),
    ]
}

fn script(lines: &[Line]) -> Script {
    let mut version = 0;
    lines.iter().fold(Script::new().urgency(3, -1), |script, line| match *line {
        Line::Host(us) => script.host(us).nothing(),
        Line::Kernel(stream, us, blocks) => script.blocks(stream, us, blocks),
        Line::Record(stream) => {
            version += 1;
            script.record(stream, 0, version)
        }
        Line::Wait(stream) => script.wait(stream, 0, version),
        Line::AllReduce(stream) => script.all_reduce(stream, 0, 1),
        Line::Sync => script.sync(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sharing_never_makes_anything_faster(lines in vec(line(), 0..60)) {
        let (off, on) = (run(&script(&lines), None), run(&script(&lines), Some(DEVICE)));
        prop_assert!(off.end <= on.end, "{} {}", off.end, on.end);
        for (off, on) in off.ranks.iter().zip(&on.ranks) {
            prop_assert!(off.device_end <= on.device_end);
            prop_assert_eq!(on.steps[0].kinds.iter().copied().sum::<Duration>(), on.steps[0].time);
        }
        // Whatever is on the device at a moment, its blocks find room: the work done fits into the time.
        let work: u64 = lines.iter().map(|line| match line { Line::Kernel(_, us, 100..) => *us, _ => 0 }).sum();
        prop_assert!(on.ranks[0].device_end >= SimTime::ZERO + micros(work));
        prop_assert_eq!(&run(&script(&lines), Some(DEVICE)), &on);
    }
}
