//! Whole jobs at scale: GPT-3 strong scaling beside a published study, and cost against the number of ranks.

use serde::Serialize;
use trompe_cluster::{Contention, HostTime, Jitter, Network, Options, Outcome, Variation, simulate};
use trompe_estimate::{KernelEstimator, Physics, Stack};
use trompe_hardware::{ClusterSheet, resolve};
use trompe_results::Kind;

use crate::gpt::{self, Layout};
use crate::seconds;

/// Global batch of the strong scaling study in sequences, and its micro-batches.
const BATCH: u64 = 12_288;
const MICRO_BATCHES: u64 = 64;

/// GPUs and published seconds per step.
const PUBLISHED: [(u64, f64); 6] =
    [(1_024, 44.4), (2_048, 22.4), (3_072, 15.9), (4_096, 12.4), (6_144, 9.0), (12_288, 5.7)];

/// One point of the strong scaling study.
#[derive(Serialize)]
pub(crate) struct Point {
    pub(crate) ranks: u64,
    pub(crate) micro_batch: u64,
    /// Ranks that were replayed.
    pub(crate) replayed: usize,
    pub(crate) trace_events: u64,
    /// Processor seconds of compiling, folding and replaying.
    pub(crate) simulation_seconds: f64,
    /// With the learned estimators, the default of every prediction.
    pub(crate) step_seconds: f64,
    pub(crate) mfu: f64,
    /// With the physics model alone.
    pub(crate) physics_step_seconds: f64,
    /// Where the step goes, in seconds, the mean over all ranks.
    pub(crate) parts: Parts,
    pub(crate) published_step_seconds: f64,
    /// By the same formula.
    pub(crate) published_mfu: f64,
}

/// What a device does at each moment of a step.
#[derive(Default, Serialize)]
pub(crate) struct Parts {
    pub(crate) products: f64,
    pub(crate) attention: f64,
    /// Kernels bound by memory.
    pub(crate) other_kernels: f64,
    /// Transfers that nothing hides.
    pub(crate) communication: f64,
    /// Waiting for other ranks.
    pub(crate) bubble: f64,
    /// Waiting for the own host.
    pub(crate) host: f64,
}

impl Parts {
    fn of(outcome: &Outcome) -> Self {
        let mut parts = Self::default();
        let all: f64 = outcome.ranks.iter().map(|rank| f64::from(rank.stands_for)).sum();
        for rank in &outcome.ranks {
            for kind in Kind::ALL {
                let time = rank.used.kinds[kind as usize].as_secs_f64() * f64::from(rank.stands_for) / all;
                *match kind {
                    Kind::Gemm => &mut parts.products,
                    Kind::Attention => &mut parts.attention,
                    Kind::Communication => &mut parts.communication,
                    Kind::Bubble => &mut parts.bubble,
                    kind if kind.is_idle() => &mut parts.host,
                    _ => &mut parts.other_kernels,
                } += time;
            }
        }
        parts
    }
}

fn cluster(ranks: u64) -> ClusterSheet {
    resolve(&format!("dgx-h100:{}", ranks.div_ceil(8))).expect("the sheet is built in")
}

fn options(cluster: &ClusterSheet) -> Options {
    Options {
        host: HostTime::Measured,
        launch_latency: trompe_base::Duration::from_micros(2),
        wake_latency: trompe_base::Duration::from_micros(3),
        contention: Some(Contention::of(cluster.device())),
        ..Options::default()
    }
}

pub(crate) fn strong_scaling() -> Vec<Point> {
    let (learned, physics) = (Stack::builtin(), Physics::new());
    let point = |&(ranks, published): &(u64, f64)| {
        let data = ranks / 64;
        let layout = Layout { data, micro_batch: BATCH / data / MICRO_BATCHES, micro_batches: MICRO_BATCHES };
        let run = replay(layout, &learned, &|_| {});
        let peak = cluster(64).device().peaks.tensor.bf16.expect("an H100 has tensor cores").0;
        let mfu = |step: f64| gpt::model_flops(BATCH) / (step * peak * ranks as f64);
        let step = run.outcome.step.as_secs_f64();
        Point {
            ranks,
            micro_batch: layout.micro_batch,
            replayed: run.outcome.ranks.len(),
            trace_events: run.outcome.host_events,
            simulation_seconds: run.seconds,
            step_seconds: step,
            mfu: mfu(step),
            physics_step_seconds: replay(layout, &physics, &|_| {}).outcome.step.as_secs_f64(),
            parts: Parts::of(&run.outcome),
            published_step_seconds: published,
            published_mfu: mfu(published),
        }
    };
    PUBLISHED.iter().map(point).collect()
}

struct Run {
    outcome: Outcome,
    seconds: f64,
}

fn replay(layout: Layout, estimator: &dyn KernelEstimator, change: &dyn Fn(&mut Options)) -> Run {
    let cluster = cluster(layout.ranks());
    let (trace, prices) = gpt::job(layout, cluster.device(), estimator);
    let mut options = options(&cluster);
    change(&mut options);
    let mut outcome = Outcome::default();
    let seconds = seconds(|| {
        let network = Network::of_cluster(&cluster);
        outcome = simulate(&trace, &prices, &network, &options).expect("the schedule ends");
    });
    Run { outcome, seconds }
}

/// What one size costs.
#[derive(Serialize)]
pub(crate) struct Cost {
    pub(crate) ranks: u64,
    pub(crate) folded: bool,
    pub(crate) jitter: bool,
    pub(crate) replayed: usize,
    pub(crate) micro_batches: u64,
    pub(crate) trace_events: u64,
    pub(crate) seconds: f64,
    pub(crate) trace_events_per_second: f64,
    /// Highest resident memory of the whole program so far.
    pub(crate) peak_gib: f64,
}

/// Cost against ranks: folded, and each rank for itself with chance.
pub(crate) fn costs(full: bool) -> Vec<Cost> {
    let mut costs = Vec::new();
    for data in [1, 16, 128, 256, 2_048] {
        costs.push(cost(Layout { data, micro_batch: 1, micro_batches: MICRO_BATCHES }, false));
    }
    let largest: &[u64] = if full { &[1, 4, 16, 64, 256] } else { &[1, 4, 16] };
    for &data in largest {
        costs.push(cost(Layout { data, micro_batch: 1, micro_batches: 16 }, true));
    }
    costs
}

/// Cost of one size with chance, for profiling: `--unfolded RANKS MICRO_BATCHES`.
pub(crate) fn one(ranks: u64, micro_batches: u64) -> Cost {
    cost(Layout { data: (ranks / 64).max(1), micro_batch: 1, micro_batches }, true)
}

fn cost(layout: Layout, jitter: bool) -> Cost {
    let vary = |options: &mut Options| {
        if jitter {
            let jitter = Jitter { kernel: 0.02, host: 0.1, link: 0.03 };
            options.variation = Variation { seed: 1, jitter, stragglers: Vec::new() };
        }
    };
    let Run { outcome, seconds } = replay(layout, &Physics::new(), &vary);
    let peak_gib = peak_memory() as f64 / (1u64 << 20) as f64;
    eprintln!("{} ranks, jitter {jitter}: {seconds:.2} s, {peak_gib:.2} GiB", layout.ranks());
    Cost {
        ranks: layout.ranks(),
        folded: !jitter,
        jitter,
        replayed: outcome.ranks.len(),
        micro_batches: layout.micro_batches,
        trace_events: outcome.host_events,
        seconds,
        trace_events_per_second: outcome.host_events as f64 / seconds,
        peak_gib,
    }
}

/// Highest resident memory of this process in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
