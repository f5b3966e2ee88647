//! How many trace events per second a replay gets through, on one core.
//!
//! `cargo bench -p trompe-cluster --bench cluster -- [--json] [--quick] [CASE]`. The jobs are synthetic transformer steps:
//! kernels on a compute stream, gradient all-reduces on another, events between them, one copy and one synchronisation
//! per step. The baseline is the least that anyone could do with the same trace: one pass that adds each operation's
//! time to its stream, without any of the rules.

use std::time::Instant;

use serde::Serialize;
use trompe_base::{Bytes, DType, Duration, EventId, Rank, StreamId, ThreadIndex};
use trompe_cluster::{AlphaBeta, Options, Price, Prices, simulate};
use trompe_trace::descriptor::{Copy, Descriptor, Direction, Other, Place};
use trompe_trace::job::{
    Action, CallClass, Collective, Communicator, HostEvent, JobTrace, Operation, Phase, RankInstance,
    RankTemplate, Site, Steps, Stream,
};
use trompe_trace::record::{CollectiveKind, StreamKind};

const COMPUTE: StreamId = StreamId(0);
const NETWORK: StreamId = StreamId(13);

/// A job to replay.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    ranks: u32,
    layers: u32,
    kernels_per_layer: u32,
    steps: u32,
    timeline: bool,
}

const CASES: &[Case] = &[
    Case { name: "one rank", ranks: 1, layers: 48, kernels_per_layer: 60, steps: 100, timeline: false },
    Case {
        name: "one rank, with timeline",
        ranks: 1,
        layers: 48,
        kernels_per_layer: 60,
        steps: 100,
        timeline: true,
    },
    Case { name: "64 ranks", ranks: 64, layers: 24, kernels_per_layer: 40, steps: 4, timeline: false },
    Case { name: "1,024 ranks", ranks: 1_024, layers: 12, kernels_per_layer: 20, steps: 1, timeline: false },
];

fn operation(name: &str, descriptor: Descriptor) -> Operation {
    let (name, short_name) = (name.to_owned(), name.to_owned());
    Operation { name, short_name, descriptor, direction: Direction::Forward, launch: None }
}

fn template(case: Case) -> RankTemplate {
    let other = Descriptor::Other(Other { work: Default::default(), blocks: 1, threads: 1 });
    let mut operations: Vec<Operation> =
        (0..64).map(|i| operation(&format!("kernel {i}"), other.clone())).collect();
    let loss = Copy { from: Place::Device, to: Place::Pageable, bytes: Bytes(4) };
    operations.push(operation("copy", Descriptor::Copy(loss)));
    let mut template = RankTemplate {
        operations,
        sites: vec![Site { operator: "op".into(), scope: String::new(), phase: Phase::Forward }],
        streams: vec![
            Stream { id: COMPUTE, device: 0, priority: 0, kind: StreamKind::Legacy },
            Stream { id: NETWORK, device: 0, priority: 0, kind: StreamKind::NonBlocking },
        ],
        ..RankTemplate::default()
    };
    let mut boundaries = vec![0];
    let (mut version, mut sequence) = (0, 0);
    for _ in 0..case.steps {
        let mut push = |call, action| {
            let gap = Duration::from_micros(4);
            template.events.push(HostEvent { thread: ThreadIndex(0), gap, call, site: 0, action });
        };
        for layer in 0..case.layers {
            for kernel in 0..case.kernels_per_layer {
                let operation = (layer * 7 + kernel) % 64;
                push(CallClass::Launch, Action::Enqueue { stream: COMPUTE, operation, blocking: false });
            }
            version += 1;
            let event = EventId(0);
            push(CallClass::Event, Action::RecordEvent { stream: COMPUTE, event, version });
            push(CallClass::Event, Action::WaitEvent { stream: NETWORK, event, version });
            let collective = Collective {
                kind: CollectiveKind::AllReduce,
                communicator: 0,
                sequence,
                bytes: Bytes(25 << 20),
                dtype: DType::Bf16,
                peer: 0,
                group: 0,
            };
            sequence += 1;
            push(CallClass::Collective, Action::Collective { stream: NETWORK, collective });
        }
        version += 1;
        let event = EventId(1);
        push(CallClass::Event, Action::RecordEvent { stream: NETWORK, event, version });
        push(CallClass::Event, Action::WaitEvent { stream: COMPUTE, event, version });
        push(CallClass::Copy, Action::Enqueue { stream: COMPUTE, operation: 64, blocking: true });
        boundaries.push(template.events.len());
    }
    template.steps = Steps { boundaries, ..Steps::default() };
    template
}

fn job(case: Case) -> (JobTrace, Prices) {
    let template = template(case);
    let times =
        (0..template.operations.len()).map(|i| Price::exact(Duration::from_micros(2 + i as u64 % 13)));
    let prices = Prices { templates: vec![times.collect()] };
    let ranks = (0..case.ranks).map(|_| RankInstance { template: 0, communicators: vec![0], emulated: true });
    let trace = JobTrace {
        templates: vec![template],
        ranks: ranks.collect(),
        communicators: vec![Communicator { members: (0..case.ranks).map(Rank).collect(), purpose: None }],
        ..JobTrace::default()
    };
    (trace, prices)
}

/// The baseline: no events, no waiting, no ranks that meet.
fn one_pass(trace: &JobTrace, prices: &Prices) -> u64 {
    let mut last = 0;
    for rank in &trace.ranks {
        let (mut host, mut tails) = (0, [0u64; 16]);
        for event in &trace.templates[rank.template].events {
            host += event.gap.as_picos();
            let (stream, time) = match &event.action {
                Action::Enqueue { stream, operation, .. } => {
                    (stream, prices.templates[rank.template][*operation as usize].time.as_picos())
                }
                Action::Collective { stream, collective } => (stream, collective.bytes.0),
                _ => continue,
            };
            let tail = &mut tails[stream.index()];
            *tail = host.max(*tail) + time;
            last = last.max(*tail);
        }
    }
    last
}

/// One line of the result.
#[derive(Serialize)]
struct Line {
    case: &'static str,
    ranks: u32,
    trace_events: u64,
    engine_events: u64,
    seconds: f64,
    spread: f64,
    trace_events_per_second: f64,
    one_pass_seconds: f64,
    /// How many times as long as the baseline the replay takes.
    times_one_pass: f64,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall time")]
fn seconds(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

/// Least and greatest of several measurements.
fn several(repetitions: usize, mut run: impl FnMut()) -> (f64, f64) {
    let times: Vec<f64> = (0..repetitions).map(|_| seconds(&mut run)).collect();
    (times.iter().copied().fold(f64::INFINITY, f64::min), times.iter().copied().fold(0.0, f64::max))
}

fn measure(case: Case, repetitions: usize) -> Line {
    let (trace, prices) = job(case);
    let wire = AlphaBeta { alpha: Duration::from_micros(5), bytes_per_second: 300e9 };
    let timeline = case.timeline.then_some((0, case.steps as usize));
    let options = Options { timeline, ..Options::default() };
    let mut outcome = simulate(&trace, &prices, &wire, &options).expect("the synthetic job ends");
    let (least, most) = several(repetitions, || {
        outcome = simulate(&trace, &prices, &wire, &options).expect("the synthetic job ends");
    });
    let mut sum = 0;
    let (one_pass_seconds, _) =
        several(repetitions, || sum += std::hint::black_box(one_pass(&trace, &prices)));
    std::hint::black_box(sum);
    Line {
        case: case.name,
        ranks: case.ranks,
        trace_events: outcome.host_events,
        engine_events: outcome.engine_events,
        seconds: least,
        spread: most / least - 1.0,
        trace_events_per_second: outcome.host_events as f64 / least,
        one_pass_seconds,
        times_one_pass: least / one_pass_seconds,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let repetitions = if has("--test") {
        1
    } else if has("--quick") {
        3
    } else {
        5
    };
    let mut lines = Vec::new();
    for &case in CASES {
        let named = |argument: &String| CASES.iter().any(|case| case.name == argument);
        if arguments.iter().any(named) && !has(case.name) {
            continue;
        }
        let case = if has("--test") { Case { ranks: case.ranks.min(4), steps: 1, ..case } } else { case };
        lines.push(measure(case, repetitions));
    }
    if has("--json") {
        println!("{}", serde_json::to_string_pretty(&lines).expect("numbers and texts are JSON"));
        return;
    }
    println!(
        "{:<26} {:>6} {:>14} {:>14} {:>20} {:>12}",
        "case", "ranks", "trace events", "ms (spread)", "trace events / s", "x one pass"
    );
    for line in lines {
        println!(
            "{:<26} {:>6} {:>14} {:>6.0} ({:>3.0} %) {:>18.1} M {:>11.1}x",
            line.case,
            line.ranks,
            line.trace_events,
            line.seconds * 1e3,
            line.spread * 100.0,
            line.trace_events_per_second / 1e6,
            line.times_one_pass
        );
    }
}
