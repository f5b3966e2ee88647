//! Wall time of simulated kernels against the figures published for the reference simulator.
//!
//! `cargo bench -p trompe-npu --bench npu -- [--json] [--quick] [--plot FILE.svg]`; `--attention` runs the first line
//! only, for profilers. The baseline is a stated figure, not a measurement of ours: the reference runs fused attention
//! 1x1x1024x2048x128 on two cores (11,828 tasks) in 46 s, that is about 257 tasks per second. Times are the best of
//! several runs on one thread, as its time on a processor, so that other work does not count; the last rows, which
//! `--plot` draws, show the cost of a task against the size of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use trompe_npu::kernels::{Attention, Matmul, attention, matmul};
use trompe_npu::{Device, ElementType, Input, Options, Profile, Program, Role, run};

/// Seconds of the reference for fused attention, and its tasks per second there.
const REFERENCE_SECONDS: f64 = 46.0;
const REFERENCE_RATE: f64 = 11_828.0 / REFERENCE_SECONDS;

#[derive(Serialize)]
struct Row {
    kernel: String,
    mode: &'static str,
    tasks: u64,
    cycles: u64,
    milliseconds: f64,
    nanoseconds_per_task: f64,
    /// Tasks per second over the reference's.
    times_the_reference: f64,
    /// The reference's time for this kernel over ours, where it is known.
    times_the_reference_run: Option<f64>,
    limit_milliseconds: Option<f64>,
}

fn inputs(program: &Program) -> BTreeMap<String, Input> {
    let mut inputs = BTreeMap::new();
    for tensor in program.tensors.iter().filter(|tensor| tensor.role == Role::Input) {
        let count = tensor.shape.iter().product::<u64>() as usize;
        let bytes = (0..count)
            .flat_map(|at| half::f16::from_f32(((at * 7919) % 1009) as f32 / 1009.0 - 0.5).to_le_bytes())
            .collect();
        inputs.insert(tensor.name.clone(), Input { dtype: tensor.dtype, shape: tensor.shape.clone(), bytes });
    }
    inputs
}

/// Time that this thread has had a processor.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has this clock").into()
}

/// A measurement goes on until it has seen this much, so that runs of microseconds are seen often enough.
const LEAST: Duration = Duration::from_millis(50);

fn measure(kernel: &str, program: &Program, timing_only: bool, repeats: usize, limit: Option<f64>) -> Row {
    let device = Device::named("ascend-950").expect("a built-in device");
    let profile = Profile::named("reference", &device).expect("a built-in profile");
    let inputs = if timing_only { BTreeMap::new() } else { inputs(program) };
    let options = Options { timing_only, ..Options::default() };
    let (start, mut best, mut runs) = (now(), Duration::MAX, 0);
    let outcome = loop {
        let before = now();
        let outcome = run(program, &device, &profile, &inputs, &options).expect("the kernel runs");
        let after = now();
        best = best.min(after.saturating_sub(before));
        runs += 1;
        if runs >= repeats && after.saturating_sub(start) >= LEAST {
            break outcome;
        }
    };
    // The clock counts nanoseconds; nothing is drawn or divided by that is none.
    let seconds = best.max(Duration::from_nanos(1)).as_secs_f64();
    Row {
        kernel: kernel.to_owned(),
        mode: if timing_only { "timing only" } else { "with data" },
        tasks: outcome.tasks,
        cycles: outcome.makespan,
        milliseconds: seconds * 1e3,
        nanoseconds_per_task: seconds * 1e9 / outcome.tasks as f64,
        times_the_reference: outcome.tasks as f64 / seconds / REFERENCE_RATE,
        times_the_reference_run: kernel.starts_with("attention").then_some(REFERENCE_SECONDS / seconds),
        limit_milliseconds: limit,
    }
}

fn product(size: u64, cores: u32) -> Program {
    matmul(&Matmul {
        m: size,
        n: size,
        k: size,
        tile: [128, 128, 128],
        split_k: 1,
        cores,
        dtype: ElementType::F16,
        slots: 2,
    })
}

/// Nanoseconds per task over tasks, both logarithmic, one line per mode, as an SVG picture.
fn drawn(rows: &[Row]) -> String {
    const SIZE: (f64, f64) = (640.0, 300.0);
    let decades = |values: &dyn Fn(&Row) -> f64| {
        let exponents = || rows.iter().map(|row| values(row).log10());
        let low = exponents().fold(f64::MAX, f64::min).floor();
        (low, exponents().fold(f64::MIN, f64::max).ceil().max(low + 1.0))
    };
    let (tasks, cost) = (|row: &Row| row.tasks as f64, |row: &Row| row.nanoseconds_per_task);
    let ((left, right), (low, high)) = (decades(&tasks), decades(&cost));
    let x = |value: f64| 60.0 + (value.log10() - left) / (right - left) * (SIZE.0 - 170.0);
    let y = |value: f64| SIZE.1 - 45.0 - (value.log10() - low) / (high - low) * (SIZE.1 - 70.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        SIZE.0, SIZE.1
    );
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    for exponent in left as i32..=right as i32 {
        let (at, value) = (x(10f64.powi(exponent)), 10f64.powi(exponent));
        line(format!("<path d=\"M{at:.1} 25V{:.1}\" stroke=\"#ddd\"/>", SIZE.1 - 45.0));
        line(format!("<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>", SIZE.1 - 28.0));
    }
    for exponent in low as i32..=high as i32 {
        let (at, value) = (y(10f64.powi(exponent)), 10f64.powi(exponent));
        line(format!("<path d=\"M60 {at:.1}H{:.1}\" stroke=\"#ddd\"/>", SIZE.0 - 110.0));
        line(format!("<text x=\"54\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>", at + 4.0));
    }
    line(format!(
        "<text x=\"60\" y=\"{:.1}\">tasks of a run (matmul in tiles of 128, 4 cores)</text>",
        SIZE.1 - 8.0
    ));
    line("<text x=\"10\" y=\"15\">nanoseconds per task, one thread</text>".to_owned());
    for (mode, color) in [("timing only", "#2f62c9"), ("with data", "#e8590c")] {
        let points: Vec<(f64, f64)> =
            rows.iter().filter(|row| row.mode == mode).map(|row| (x(tasks(row)), y(cost(row)))).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        line(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            path.join(" ")
        ));
        for (x, y) in &points {
            line(format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"));
        }
        if let Some((x, y)) = points.last() {
            line(format!("<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{color}\">{mode}</text>", x + 8.0, y + 4.0));
        }
    }
    out + "</svg>\n"
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let repeats = if has("--quick") { 1 } else { 5 };
    let fused = attention(&Attention { queries: 1024, keys: 2048, cores: 2 });
    if has("--attention") {
        let row = measure("attention 1024x2048x128, 2 cores", &fused, false, repeats, Some(150.0));
        println!("{:.2} ms", row.milliseconds);
        return;
    }
    let mut rows = vec![
        measure("attention 1024x2048x128, 2 cores", &fused, false, repeats, Some(150.0)),
        measure("attention 1024x2048x128, 2 cores", &fused, true, repeats, Some(15.0)),
        measure("matmul 4096x4096x4096, 32 cores", &product(4096, 32), true, repeats, Some(1000.0)),
        measure("matmul 1024x1024x1024, 32 cores", &product(1024, 32), false, repeats, None),
    ];
    let first_sized = rows.len();
    for timing_only in [true, false] {
        // With data the largest would take seconds and say nothing more.
        for size in [256, 512, 1024, 2048, 4096].into_iter().filter(|size| timing_only || *size <= 1024) {
            let name = format!("matmul {size}x{size}x{size}, 4 cores");
            rows.push(measure(&name, &product(size, 4), timing_only, repeats, None));
        }
    }
    let plot = arguments.iter().position(|argument| argument == "--plot");
    if let Some(path) = plot.and_then(|at| arguments.get(at + 1)) {
        std::fs::write(path, drawn(&rows[first_sized..])).expect("the plot can be written");
    }
    if has("--json") {
        println!(
            "{}",
            serde_json::to_string_pretty(&serde_json::json!({ "rows": rows })).expect("rows are JSON")
        );
        return;
    }
    println!(
        "{:<36} {:<12} {:>8} {:>10} {:>10} {:>8} {:>12} {:>10} {:>9}",
        "kernel", "mode", "tasks", "cycles", "ms", "ns/task", "x ref. tasks", "x ref. run", "limit ms"
    );
    for row in &rows {
        let whole = |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.0}"));
        println!(
            "{:<36} {:<12} {:>8} {:>10} {:>10.2} {:>8.0} {:>12.0} {:>10} {:>9}",
            row.kernel,
            row.mode,
            row.tasks,
            row.cycles,
            row.milliseconds,
            row.nanoseconds_per_task,
            row.times_the_reference,
            whole(row.times_the_reference_run),
            whole(row.limit_milliseconds)
        );
    }
}
