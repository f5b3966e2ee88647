//! A bound that needs no replay: a step takes at least as long as its matrix products and attention.

use std::collections::BTreeMap;

use trompe_base::StreamId;
use trompe_cluster::kind_of;
use trompe_hardware::ClusterSheet;
use trompe_results::Kind;
use trompe_trace::job::{Action, JobTrace, RankTemplate, StepSource};

use super::pricing::{self, Priced};
use crate::estimators::KernelPricing;

/// Seconds that forward and backward matrix products and attention take in a step, each at its expected price, on the
/// stream and rank that has the most of them: no replay of the job on this cluster is shorter. Every micro-batch has the
/// same ones, so the number is proportional to the micro-batches of the step. `None` when the trace has no steps.
pub(crate) fn repeated_work(
    job: &JobTrace,
    cluster: &ClusterSheet,
    kernels: &KernelPricing<'_>,
) -> Option<f64> {
    let priced = pricing::price(job, cluster.device(), kernels);
    let all: Option<Vec<f64>> =
        job.templates.iter().zip(&priced).map(|(template, priced)| of_rank(template, priced)).collect();
    all?.into_iter().reduce(f64::max)
}

fn of_rank(template: &RankTemplate, priced: &[Priced]) -> Option<f64> {
    let (steps, warmup) = (template.steps.count(), template.steps.warmup);
    if template.steps.source == StepSource::WholeRun || steps <= warmup {
        return None;
    }
    let mut streams = BTreeMap::<StreamId, f64>::new();
    for event in &template.events[template.steps.boundaries[warmup]..template.steps.boundaries[steps]] {
        let phase = template.sites.get(event.site as usize).map(|site| site.phase).unwrap_or_default();
        let mut add = |stream: StreamId, operation: u32| {
            let descriptor = &template.operations[operation as usize].descriptor;
            if matches!(kind_of(descriptor, phase), Kind::Gemm | Kind::Attention) {
                *streams.entry(stream).or_default() += priced[operation as usize].price.time.as_secs_f64();
            }
        };
        match &event.action {
            Action::Enqueue { stream, operation, .. } => add(*stream, *operation),
            Action::Graph { stream, operations } => operations.iter().for_each(|one| add(*stream, *one)),
            _ => {}
        }
    }
    let longest = streams.into_values().fold(0.0, f64::max);
    Some(longest / (steps - warmup) as f64)
}
