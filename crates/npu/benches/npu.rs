//! Wall time of simulated kernels against the figures published for the reference simulator.
//!
//! `cargo bench -p trompe-npu --bench npu -- [--json] [--quick]`; `--attention` runs the first line only, for profilers. The baseline is a stated figure, not a measurement of
//! ours: the reference runs fused attention 1x1x1024x2048x128 on two cores (11,828 tasks) in 46 s, that is about 257
//! tasks per second. Times are the best of several runs on one thread; the last table shows the cost of a task against
//! the size of a program.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use trompe_npu::kernels::{Attention, Matmul, attention, matmul};
use trompe_npu::{Device, ElementType, Input, Options, Outcome, Profile, Program, Role, run};

/// Tasks per second of the reference.
const REFERENCE_RATE: f64 = 11_828.0 / 46.0;

#[derive(Serialize)]
struct Row {
    kernel: String,
    mode: &'static str,
    tasks: u64,
    cycles: u64,
    milliseconds: f64,
    nanoseconds_per_task: f64,
    times_the_reference: f64,
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

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]
fn measure(kernel: &str, program: &Program, timing_only: bool, repeats: usize, limit: Option<f64>) -> Row {
    let device = Device::named("ascend-950").expect("a built-in device");
    let profile = Profile::named("reference", &device).expect("a built-in profile");
    let inputs = if timing_only { BTreeMap::new() } else { inputs(program) };
    let options = Options { timing_only, ..Options::default() };
    let mut best = Duration::MAX;
    let mut last: Option<Outcome> = None;
    for _ in 0..repeats {
        let start = Instant::now();
        let outcome = run(program, &device, &profile, &inputs, &options).expect("the kernel runs");
        best = best.min(start.elapsed());
        last = Some(outcome);
    }
    let outcome = last.expect("at least one run");
    let seconds = best.as_secs_f64();
    Row {
        kernel: kernel.to_owned(),
        mode: if timing_only { "timing only" } else { "with data" },
        tasks: outcome.tasks,
        cycles: outcome.makespan,
        milliseconds: seconds * 1e3,
        nanoseconds_per_task: seconds * 1e9 / outcome.tasks as f64,
        times_the_reference: outcome.tasks as f64 / seconds / REFERENCE_RATE,
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
    for size in [512, 1024, 2048, 4096] {
        rows.push(measure(
            &format!("matmul {size}x{size}x{size}, 4 cores"),
            &product(size, 4),
            true,
            repeats,
            None,
        ));
    }
    if has("--json") {
        println!(
            "{}",
            serde_json::to_string_pretty(&serde_json::json!({ "rows": rows })).expect("rows are JSON")
        );
        return;
    }
    println!(
        "{:<36} {:<12} {:>8} {:>10} {:>10} {:>8} {:>10} {:>9}",
        "kernel", "mode", "tasks", "cycles", "ms", "ns/task", "x ref.", "limit ms"
    );
    for row in &rows {
        let limit = row.limit_milliseconds.map_or_else(String::new, |limit| format!("{limit:.0}"));
        println!(
            "{:<36} {:<12} {:>8} {:>10} {:>10.2} {:>8.0} {:>10.0} {limit:>9}",
            row.kernel,
            row.mode,
            row.tasks,
            row.cycles,
            row.milliseconds,
            row.nanoseconds_per_task,
            row.times_the_reference
        );
    }
}
