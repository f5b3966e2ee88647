//! Properties of every replay, over random jobs.

mod common;

use std::collections::BTreeMap;

use common::{Script, WIRE, job};
use proptest::collection::vec;
use proptest::prelude::*;
use trompe_base::{Duration, Rank};
use trompe_cluster::{AlphaBeta, Contention, Instant, Options, Outcome, PathOwner, Prices, simulate};
use trompe_results::{Kind, TrackKind};
use trompe_trace::job::{Action, JobTrace};

/// One line of a random script.
#[derive(Clone, Debug)]
enum Line {
    Host(u64),
    Kernel(u32, u64),
    Upload(u32, u64),
    Record(u32, u32),
    Wait(u32, u32),
    SyncEvent(u32),
    SyncStream(u32),
    Sync,
    Graph(u32, Vec<u64>),
    AllReduce(u32, u64),
}

fn stream() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0u32, 1, 2, 7, 8])
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![
        6 => (0u64..20).prop_map(Line::Host),
        8 => (stream(), 1u64..40).prop_map(|(s, t)| Line::Kernel(s, t)),
        1 => (stream(), 1u64..40).prop_map(|(s, t)| Line::Upload(s, t)),
        3 => (stream(), 0u32..3).prop_map(|(s, e)| Line::Record(s, e)),
        3 => (stream(), 0u32..3).prop_map(|(s, e)| Line::Wait(s, e)),
        1 => (0u32..3).prop_map(Line::SyncEvent),
        1 => stream().prop_map(Line::SyncStream),
        1 => Just(Line::Sync),
        1 => (stream(), vec(1u64..9, 1..4)).prop_map(|(s, t)| Line::Graph(s, t)),
    ]
}

/// A script of these lines; recordings count their versions, waits are for the last one.
fn script(lines: &[Line]) -> Script {
    let mut versions = BTreeMap::<u32, u32>::new();
    lines.iter().fold(Script::new(), |script, line| match line {
        Line::Host(us) => script.host(*us).nothing(),
        Line::Kernel(stream, us) => script.kernel(*stream, *us),
        Line::Upload(stream, us) => script.upload(*stream, *us),
        Line::Record(stream, event) => {
            let version = versions.entry(*event).or_default();
            *version += 1;
            script.record(*stream, *event, *version)
        }
        Line::Wait(stream, event) => script.wait(*stream, *event, versions.get(event).copied().unwrap_or(0)),
        Line::SyncEvent(event) => script.sync_event(*event, versions.get(event).copied().unwrap_or(0)),
        Line::SyncStream(stream) => script.sync_stream(*stream),
        Line::Sync => script.sync(),
        Line::Graph(stream, us) => script.graph(*stream, us),
        Line::AllReduce(stream, megabytes) => script.all_reduce(*stream, 0, *megabytes),
    })
}

/// Ranks that all make the same collectives, with different work between them.
fn ranks(count: usize) -> impl Strategy<Value = Vec<Vec<Line>>> {
    let section = vec(line(), 0..8);
    vec((vec(section, count), stream(), 1u64..5), 1..5).prop_map(move |sections| {
        let mut ranks = vec![vec![]; count];
        for (parts, stream, megabytes) in sections {
            for (rank, part) in ranks.iter_mut().zip(parts) {
                rank.extend(part);
                rank.push(Line::AllReduce(stream, megabytes));
            }
        }
        ranks
    })
}

fn without_uploads(lines: &mut Vec<Line>) {
    lines.retain(|line| !matches!(line, Line::Upload(..)));
}

/// When device and host of a single rank are done, worked out in one pass over its events: each operation starts at
/// the latest of its launch, the end of its stream, and whatever it waits for.
fn one_pass(trace: &JobTrace, prices: &Prices) -> (u64, u64) {
    let template = &trace.templates[0];
    let mut tail = BTreeMap::<u32, u64>::new();
    let mut recorded = BTreeMap::new();
    let (mut host, blocking) = (0, |stream: u32| matches!(stream, 7 | 8));
    for event in &template.events {
        host += event.gap.as_picos();
        let of = |tail: &BTreeMap<u32, u64>, stream: u32| tail.get(&stream).copied().unwrap_or(0);
        let blockers = |tail: &BTreeMap<u32, u64>| of(tail, 7).max(of(tail, 8));
        let after = |tail: &BTreeMap<u32, u64>, stream: u32| match stream {
            0 => of(tail, 0).max(blockers(tail)),
            s if blocking(s) => of(tail, s).max(of(tail, 0)),
            s => of(tail, s),
        };
        match &event.action {
            Action::Enqueue { stream, operation, .. } => {
                let start = after(&tail, stream.0).max(host);
                tail.insert(stream.0, start + prices.templates[0][*operation as usize].time.as_picos());
            }
            Action::Graph { stream, operations } => {
                let time: u64 =
                    operations.iter().map(|&o| prices.templates[0][o as usize].time.as_picos()).sum();
                let start = after(&tail, stream.0).max(host);
                tail.insert(stream.0, start + time);
            }
            Action::RecordEvent { stream, event, version } => {
                let at = after(&tail, stream.0).max(host);
                tail.insert(stream.0, at);
                recorded.insert((*event, *version), at);
            }
            Action::WaitEvent { stream, event, version } => {
                if let Some(&at) = recorded.get(&(*event, *version)) {
                    let start = after(&tail, stream.0).max(host).max(at);
                    tail.insert(stream.0, start);
                }
            }
            Action::SynchronizeEvent { event, version } => {
                host = host.max(recorded.get(&(*event, *version)).copied().unwrap_or(0));
            }
            Action::SynchronizeStream { stream } => {
                host = host.max(of(&tail, stream.0));
                if stream.0 == 0 {
                    host = host.max(blockers(&tail));
                }
            }
            Action::SynchronizeDevice { .. } => host = host.max(tail.values().copied().max().unwrap_or(0)),
            _ => {}
        }
    }
    (tail.values().copied().max().unwrap_or(0), host)
}

fn check_invariants(trace: &JobTrace, prices: &Prices, outcome: &Outcome) -> Result<(), TestCaseError> {
    for rank in &outcome.ranks {
        let template = &trace.templates[trace.ranks[rank.rank.index()].template];
        // Every moment of a step counts once.
        for step in &rank.steps {
            prop_assert_eq!(step.kinds.iter().copied().sum::<Duration>(), step.time);
            prop_assert!(step.exposed_communication() <= step.communication);
            prop_assert!(step.communication <= step.time);
        }
        // Not faster than any stream's own work, nor than the host's.
        let mut streams = BTreeMap::new();
        for event in &template.events {
            let price = |operation: u32| {
                prices.templates[trace.ranks[rank.rank.index()].template][operation as usize].time
            };
            match &event.action {
                Action::Enqueue { stream, operation, .. } => {
                    *streams.entry(*stream).or_insert(Duration::ZERO) += price(*operation);
                }
                Action::Graph { stream, operations } => {
                    *streams.entry(*stream).or_insert(Duration::ZERO) +=
                        operations.iter().map(|&o| price(o)).sum();
                }
                _ => {}
            }
        }
        for sum in streams.values() {
            prop_assert!(rank.device_end.as_picos() >= sum.as_picos());
        }
        let host: Duration = template.events.iter().map(|event| event.gap).sum();
        prop_assert!(rank.host_end.as_picos() >= host.as_picos());
    }
    // Causality: nothing runs before it is launched, and streams do one thing at a time.
    let mut launches = BTreeMap::new();
    for track in outcome.timeline.tracks.iter().filter(|track| track.kind == TrackKind::Host) {
        for span in track.spans.iter().filter(|span| span.correlation.is_some()) {
            launches.insert((track.rank, span.correlation), span.start_ps + span.duration_ps);
        }
    }
    for track in outcome.timeline.tracks.iter().filter(|track| track.kind == TrackKind::Stream) {
        let mut end = 0;
        for span in &track.spans {
            prop_assert!(span.start_ps >= end, "operations of one stream overlap");
            end = span.start_ps + span.duration_ps;
            if let Some(&launched) = launches.get(&(track.rank, span.correlation)) {
                prop_assert!(span.start_ps >= launched, "an operation ran before its launch");
            }
        }
    }
    Ok(())
}

fn scaled(prices: &Prices, factors: &[f64]) -> Prices {
    let mut factors = factors.iter().cycle();
    let mut scaled = prices.clone();
    for price in scaled.templates.iter_mut().flatten() {
        price.time = price.time.scale(*factors.next().expect("the cycle does not end"));
    }
    scaled
}

/// Everything, in one timeline.
fn watched() -> Options {
    Options { timeline: Some((0, 1)), timeline_ranks: usize::MAX, ..Options::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn critical_paths_add_up_and_leave_nothing_out(ranks in ranks(3), depth in 2u32..12) {
        let scripts: Vec<Script> = ranks.iter().map(|lines| script(lines)).collect();
        let (trace, prices) = job(&scripts);
        let device = trompe_hardware::resolve("h100-sxm").unwrap();
        let latency = Duration::from_micros(2);
        for contention in [None, Some(Contention::of(device.device()))] {
            let options = Options {
                launch_latency: latency,
                wake_latency: latency,
                queue_depth: depth,
                path: Some(0),
                contention,
                ..Options::default()
            };
            let outcome = simulate(&trace, &prices, &WIRE, &options).unwrap();
            let path = outcome.path.as_ref().unwrap();
            prop_assert_eq!(path.time, outcome.slowest_rank().steps[0].time);
            prop_assert_eq!(path.shares.iter().map(|share| share.time).sum::<Duration>(), path.time);
            prop_assert_eq!(path.ranks.iter().map(|rank| rank.1).sum::<Duration>(), path.time);
            let unknown = path.shares.iter().find(|share| share.owner == PathOwner::Earlier);
            prop_assert_eq!(unknown, None, "{:?}", path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_rank_agrees_with_one_pass(mut lines in vec(line(), 0..60)) {
        without_uploads(&mut lines);
        let (trace, prices) = job(&[script(&lines)]);
        let outcome = simulate(&trace, &prices, &Instant, &Options::default()).unwrap();
        let rank = &outcome.ranks[0];
        prop_assert_eq!((rank.device_end.as_picos(), rank.host_end.as_picos()), one_pass(&trace, &prices));
    }

    #[test]
    fn invariants_hold_and_a_rerun_is_identical(ranks in ranks(3)) {
        let scripts: Vec<Script> = ranks.iter().map(|lines| script(lines)).collect();
        let (trace, prices) = job(&scripts);
        let outcome = simulate(&trace, &prices, &WIRE, &watched()).unwrap();
        check_invariants(&trace, &prices, &outcome)?;
        prop_assert_eq!(&simulate(&trace, &prices, &WIRE, &watched()).unwrap(), &outcome);
    }

    #[test]
    fn faster_is_never_slower(mut ranks in ranks(2), factors in vec(0.1f64..1.0, 7)) {
        // Copies that share an engine are first come, first served: there, faster can be slower, as in real machines.
        ranks.iter_mut().for_each(without_uploads);
        let scripts: Vec<Script> = ranks.iter().map(|lines| script(lines)).collect();
        let (trace, prices) = job(&scripts);
        let end = |prices: &Prices, wire: &AlphaBeta, depth| {
            let options = Options { queue_depth: depth, ..Options::default() };
            simulate(&trace, prices, wire, &options).unwrap().ranks.iter().map(|rank| rank.device_end).collect::<Vec<_>>()
        };
        for depth in [4, 1_000] {
            let slow = end(&prices, &WIRE, depth);
            let faster_wire = AlphaBeta { bytes_per_second: 2e9, ..WIRE };
            for fast in [end(&scaled(&prices, &factors), &WIRE, depth), end(&prices, &faster_wire, depth)] {
                prop_assert!(fast.iter().zip(&slow).all(|(fast, slow)| fast <= slow), "{fast:?} {slow:?}");
            }
        }
        let (deep, flat) = (end(&prices, &WIRE, 1_000), end(&prices, &WIRE, 2));
        prop_assert!(deep.iter().zip(&flat).all(|(deep, flat)| deep <= flat));
    }

    #[test]
    fn unrelated_ranks_do_not_matter(first in ranks(2), second in ranks(2)) {
        // Two jobs of two ranks in one, in both orders.
        let scripts = |a: &[Vec<Line>], b: &[Vec<Line>]| -> Vec<Script> {
            a.iter().chain(b).map(|lines| script(lines)).collect()
        };
        let run = |scripts: &[Script]| {
            let (mut trace, prices) = job(scripts);
            trace.communicators[0].members = vec![Rank(0), Rank(1)];
            let pair = trompe_trace::job::Communicator { members: vec![Rank(2), Rank(3)], purpose: None };
            trace.communicators.push(pair);
            let last = trace.communicators.len() - 1;
            trace.ranks[2].communicators[0] = last;
            trace.ranks[3].communicators[0] = last;
            let outcome = simulate(&trace, &prices, &WIRE, &Options::default()).unwrap();
            let steps = |rank: usize| (outcome.ranks[rank].steps.clone(), outcome.ranks[rank].device_end);
            [steps(0), steps(1), steps(2), steps(3)]
        };
        let [a, b, c, d] = run(&scripts(&first, &second));
        prop_assert_eq!(run(&scripts(&second, &first)), [c, d, a, b]);
    }

    #[test]
    fn equal_ranks_are_alike_and_wait_for_nobody(lines in ranks(1), count in 2usize..6) {
        let scripts: Vec<Script> = (0..count).map(|_| script(&lines[0])).collect();
        let (trace, prices) = job(&scripts);
        let outcome = simulate(&trace, &prices, &WIRE, &Options::default()).unwrap();
        for rank in &outcome.ranks {
            prop_assert_eq!(&rank.steps, &outcome.ranks[0].steps);
            prop_assert_eq!(rank.steps[0].kinds[Kind::Bubble as usize], Duration::ZERO);
        }
    }

    #[test]
    fn damaged_traces_are_errors_or_replayed_but_never_panic(
        ranks in ranks(2),
        damage in vec((0u8..9, any::<prop::sample::Index>(), 0u32..12), 1..6),
    ) {
        let scripts: Vec<Script> = ranks.iter().map(|lines| script(lines)).collect();
        let (mut trace, prices) = job(&scripts);
        for (kind, index, value) in damage {
            let rank = value as usize % 2;
            let template = &mut trace.templates[rank];
            if template.events.is_empty() {
                continue;
            }
            let row = index.index(template.events.len());
            let event = &mut template.events[row];
            match (kind, &mut event.action) {
                (0, _) => event.site = value,
                (1, Action::Enqueue { operation, .. }) => *operation += value,
                (2, Action::Enqueue { stream, .. } | Action::RecordEvent { stream, .. } | Action::WaitEvent { stream, .. }) => {
                    stream.0 = value;
                }
                (3, Action::Collective { collective, .. }) => collective.communicator = value,
                (4, Action::Collective { collective, .. }) => collective.sequence = u64::from(value),
                (5, Action::Collective { collective, .. }) => {
                    collective.kind = trompe_trace::record::CollectiveKind::Recv;
                    collective.peer = value;
                }
                (6, _) => template.steps.boundaries = vec![row, value as usize, row],
                (7, _) => {
                    template.steps.boundaries = vec![0, row, template.events.len()];
                    template.steps.warmup = value as usize;
                }
                (8, _) => { template.events.remove(row); }
                (_, action) => *action = Action::SynchronizeDevice { device: value },
            }
        }
        if let Ok(outcome) = simulate(&trace, &prices, &WIRE, &watched()) {
            check_invariants(&trace, &prices, &outcome)?;
        }
    }
}
