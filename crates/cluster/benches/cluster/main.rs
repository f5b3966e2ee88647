//! How many trace events per second a replay gets through, on one core, in processor time.
//!
//! `cargo bench -p trompe-cluster --bench cluster -- [--json] [--quick] [--full] [--plot DIR] [CASE]`. The jobs of the
//! first table are synthetic transformer steps: kernels on a compute stream, gradient all-reduces on another, events
//! between them, one copy and one synchronisation per step. The baseline is the least that anyone could do with the same
//! trace: one pass that adds each operation's time to its stream, without any of the rules. Then come GPT-3 at the sizes
//! of a published study, and what jobs of up to 131,072 ranks cost ([`scale`]); with `--full` also 16,384 ranks each for
//! itself, which takes minutes. With `--plot` the figures of `docs/simulation.md` are written.

mod gpt;
mod plot;
mod scale;

use serde::Serialize;
use trompe_base::{Bytes, DType, Duration, EventId, Rank, StreamId, ThreadIndex};
use trompe_cluster::{AlphaBeta, Options, Price, Prices, Replay};
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
    fold: bool,
}

const CASES: &[Case] = &[
    case("one rank", (1, 48, 60, 100)),
    Case { timeline: true, ..case("one rank, with timeline", (1, 48, 60, 100)) },
    Case { fold: true, ..case("64 ranks, folded", (64, 48, 60, 100)) },
    case("64 ranks", (64, 24, 40, 4)),
    case("1,024 ranks", (1_024, 12, 20, 1)),
];

const fn case(name: &'static str, (ranks, layers, kernels_per_layer, steps): (u32, u32, u32, u32)) -> Case {
    Case { name, ranks, layers, kernels_per_layer, steps, timeline: false, fold: false }
}

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
    /// Processor seconds of one replay.
    seconds: f64,
    spread: f64,
    /// Processor seconds of compiling the trace, once for any number of replays.
    compile_seconds: f64,
    trace_events_per_second: f64,
    one_pass_seconds: f64,
    /// How many times as long as the baseline the replay takes.
    times_one_pass: f64,
}

/// Processor seconds of this program in `run`: on a shared machine other programs do not count.
pub(crate) fn seconds(mut run: impl FnMut()) -> f64 {
    let start = processor_time();
    run();
    (processor_time() - start).as_secs_f64()
}

fn processor_time() -> std::time::Duration {
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    nix::time::clock_gettime(clock).expect("the clock exists").into()
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
    let options = Options { timeline, fold: case.fold, ..Options::default() };
    let compile = || Replay::new(&trace, &prices, &wire, &options).expect("the synthetic job is sound");
    let replay = compile();
    let mut outcome = replay.run().expect("the synthetic job ends");
    let (compile_seconds, _) = several(repetitions, || {
        std::hint::black_box(compile());
    });
    let (least, most) = several(repetitions, || outcome = replay.run().expect("the synthetic job ends"));
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
        compile_seconds,
        trace_events_per_second: outcome.host_events as f64 / least,
        one_pass_seconds,
        times_one_pass: least / one_pass_seconds,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if let Some(at) = arguments.iter().position(|argument| argument == "--unfolded") {
        let number = |i: usize| arguments[at + i].parse::<u64>().expect("two numbers follow");
        return print_costs(&[scale::one(number(1), number(2))]);
    }
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
    let whole =
        !has("--test") && !arguments.iter().any(|argument| CASES.iter().any(|case| case.name == argument));
    let (points, costs) =
        if whole { (scale::strong_scaling(), scale::costs(has("--full"))) } else { Default::default() };
    if has("--json") {
        let all = serde_json::json!({ "replay": lines, "gpt3": points, "scale": costs });
        println!("{}", serde_json::to_string_pretty(&all).expect("numbers and texts are JSON"));
    } else {
        print_replay(&lines);
        print_scaling(&points);
        print_costs(&costs);
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--plot") {
        let folder = arguments.get(at + 1).expect("`--plot` is followed by a folder");
        let note = arguments.get(at + 2).map_or("", String::as_str);
        draw(std::path::Path::new(folder), note, &points, &costs);
    }
}

fn print_scaling(points: &[scale::Point]) {
    if points.is_empty() {
        return;
    }
    println!(
        "\nGPT-3 145.6B, TP 8, PP 8, 64 micro-batches, batch 12,288, on H100: beside the published study"
    );
    println!(
        "{:>8} {:>6} {:>9} {:>14} {:>12} {:>10} {:>8} {:>11} {:>9} {:>11}",
        "ranks",
        "batch",
        "replayed",
        "trace events",
        "simulated in",
        "step",
        "MFU",
        "published",
        "MFU",
        "by physics"
    );
    for point in points {
        println!(
            "{:>8} {:>6} {:>9} {:>14} {:>10.2} s {:>8.2} s {:>6.1} % {:>9.1} s {:>7.1} % {:>9.2} s",
            point.ranks,
            point.micro_batch,
            point.replayed,
            point.trace_events,
            point.simulation_seconds,
            point.step_seconds,
            point.mfu * 100.0,
            point.published_step_seconds,
            point.published_mfu * 100.0,
            point.physics_step_seconds
        );
    }
    println!(
        "\n{:>8} {:>10} {:>10} {:>10} {:>14} {:>10} {:>8}   seconds of the step",
        "ranks", "products", "attention", "other", "communication", "bubble", "host"
    );
    for scale::Point { ranks, parts, .. } in points {
        println!(
            "{ranks:>8} {:>10.2} {:>10.2} {:>10.2} {:>14.2} {:>10.2} {:>8.2}",
            parts.products,
            parts.attention,
            parts.other_kernels,
            parts.communication,
            parts.bubble,
            parts.host
        );
    }
}

fn print_costs(costs: &[scale::Cost]) {
    if costs.is_empty() {
        return;
    }
    println!("\nWhat size costs (one micro-batch of one sequence each)");
    println!(
        "{:>8} {:>8} {:>9} {:>14} {:>10} {:>18} {:>14}",
        "ranks", "jitter", "replayed", "trace events", "time", "trace events / s", "peak memory"
    );
    for cost in costs {
        println!(
            "{:>8} {:>8} {:>9} {:>14} {:>8.2} s {:>16.1} M {:>10.2} GiB",
            cost.ranks,
            if cost.jitter { "yes" } else { "no" },
            cost.replayed,
            cost.trace_events,
            cost.seconds,
            cost.trace_events_per_second / 1e6,
            cost.peak_gib
        );
    }
}

/// Writes the figures of the documentation.
fn draw(folder: &std::path::Path, note: &str, points: &[scale::Point], costs: &[scale::Cost]) {
    use plot::{Frame, Series, chart};
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("the folder can be written to")
    };
    let series =
        |name: &str, reference, points: Vec<(f64, f64)>| Series { name: name.to_owned(), points, reference };
    let frame = |title, across, up| Frame { title, across, up, note };
    let of =
        |value: &dyn Fn(&scale::Point) -> f64| points.iter().map(|p| (p.ranks as f64, value(p))).collect();
    write(
        "gpt3-step-time.svg",
        chart(
            &frame("GPT-3 145.6B, TP 8, PP 8, batch 12,288: seconds per step", "GPUs", "seconds per step"),
            &[
                series("predicted", false, of(&|p| p.step_seconds)),
                series("by physics alone", false, of(&|p| p.physics_step_seconds)),
                series("published", true, of(&|p| p.published_step_seconds)),
            ],
        ),
    );
    write(
        "gpt3-mfu.svg",
        chart(
            &frame(
                "GPT-3 145.6B, TP 8, PP 8, batch 12,288: model FLOPs utilisation",
                "GPUs",
                "MFU in per cent",
            ),
            &[
                series("predicted", false, of(&|p| p.mfu * 100.0)),
                series("published", true, of(&|p| p.published_mfu * 100.0)),
            ],
        ),
    );
    let of = |jitter, across: &dyn Fn(&scale::Cost) -> f64| {
        let chosen = costs.iter().filter(|cost| cost.jitter == jitter);
        chosen.map(|cost| (across(cost), cost.seconds)).collect()
    };
    write(
        "cost-of-ranks.svg",
        chart(
            &frame("What a replay costs by the number of ranks", "ranks", "seconds on one core"),
            &[
                series("equal ranks folded", false, of(false, &|cost| cost.ranks as f64)),
                series("every rank, with jitter", false, of(true, &|cost| cost.ranks as f64)),
            ],
        ),
    );
    write(
        "cost-of-events.svg",
        chart(
            &frame(
                "What a replay costs by the number of trace events",
                "trace events",
                "seconds on one core",
            ),
            &[series("every rank, with jitter", false, of(true, &|cost| cost.trace_events as f64))],
        ),
    );
}

fn print_replay(lines: &[Line]) {
    println!(
        "{:<26} {:>6} {:>14} {:>12} {:>14} {:>20} {:>12}",
        "case", "ranks", "trace events", "compiling", "ms (spread)", "trace events / s", "x one pass"
    );
    for line in lines {
        println!(
            "{:<26} {:>6} {:>14} {:>9.1} ms {:>6.1} ({:>3.0} %) {:>18.1} M {:>11.1}x",
            line.case,
            line.ranks,
            line.trace_events,
            line.compile_seconds * 1e3,
            line.seconds * 1e3,
            line.spread * 100.0,
            line.trace_events_per_second / 1e6,
            line.times_one_pass
        );
    }
}
