//! Nanoseconds per estimate: physics alone, the order of trust with its trained models, and an answer that is remembered.
//!
//! `cargo bench -p trompe-estimate --bench estimate -- [--json] [--quick]`; the baseline is physics alone in the same run.
//! Each figure is the best of several passes over distinct shapes on one thread.

use std::hint::black_box;
use std::time::Instant;

use trompe_base::{Bytes, DType, Flops};
use trompe_estimate::{Cached, KernelEstimator, Physics, Stack};
use trompe_hardware::{Catalogue, DeviceSheet};
use trompe_testkit::estimators::gemm;
use trompe_trace::descriptor::{Descriptor, Elementwise, Work};

/// Matrix products as layers of different width have them, and passes over memory.
fn operations(count: u64) -> [(&'static str, Vec<Descriptor>); 2] {
    let dtype = DType::Bf16;
    let product = |at: u64| {
        let [m, n, k] = [512 + 64 * (at % 61), 256 + 128 * (at % 53), 1024 + 64 * (at % 31)];
        gemm(m, n, k, 1, dtype)
    };
    let pass = |at: u64| {
        let elements = (1 << 16) + 4096 * at;
        let bytes = Bytes(2 * elements);
        let work = Work { read: bytes, written: bytes, flops: Flops(0) };
        Descriptor::Elementwise(Elementwise { elements, dtype, vectorized: true, work })
    };
    [
        ("matrix product", (0..count).map(product).collect()),
        ("pass over memory", (0..count).map(pass).collect()),
    ]
}

/// Best nanoseconds per operation over several passes.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn best(passes: u32, operations: &[Descriptor], mut one: impl FnMut(&Descriptor)) -> f64 {
    (0..passes)
        .map(|_| {
            let start = Instant::now();
            operations.iter().for_each(&mut one);
            start.elapsed().as_secs_f64() * 1e9 / operations.len() as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn rows(quick: bool, device: &DeviceSheet) -> Vec<(&'static str, [f64; 3])> {
    let (count, passes) = if quick { (500, 3) } else { (5_000, 9) };
    let (physics, stack, cached) = (Physics::new(), Stack::builtin(), Cached::new(Stack::builtin()));
    let measure = |(name, operations): (&'static str, Vec<Descriptor>)| {
        let by = |estimator: &dyn KernelEstimator| {
            best(passes, &operations, |operation| {
                black_box(estimator.estimate(operation, device));
            })
        };
        // The first pass fills the memory, and is not the best one.
        (name, [by(&physics), by(&stack), by(&cached)])
    };
    operations(count).into_iter().map(measure).collect()
}

fn main() {
    let given = |flag: &str| std::env::args().any(|argument| argument == flag);
    let device = Catalogue::builtin().device("h100-sxm").expect("it is in the catalogue");
    let rows = rows(given("--quick"), &device);
    if given("--json") {
        let line = |(name, [physics, trust, remembered]): &(&str, [f64; 3])| {
            format!(
                r#"{{"operation":"{name}","physics_ns":{physics:.0},"estimate_ns":{trust:.0},"remembered_ns":{remembered:.0}}}"#
            )
        };
        println!("[{}]", rows.iter().map(line).collect::<Vec<_>>().join(","));
        return;
    }
    println!(
        "{:<18} {:>10} {:>10} {:>11} {:>17}",
        "ns an estimate", "physics", "estimate", "remembered", "over physics"
    );
    for (name, [physics, trust, remembered]) in rows {
        println!("{name:<18} {physics:>10.0} {trust:>10.0} {remembered:>11.0} {:>16.1}x", trust / physics);
    }
}
