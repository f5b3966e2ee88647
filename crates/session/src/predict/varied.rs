//! What contention, chance and slow machines make of the step.

use trompe_cluster::{Options, Outcome, Variation};
use trompe_results::{self as results, ContentionEffect, Repeats};

use super::Simulation;
use crate::SessionError;

/// Replays a job with chance in it as often as asked; from then on the simulation is the repetition with the median step.
pub(super) fn repeat(simulation: &mut Simulation<'_>) -> Result<results::Variation, SessionError> {
    let variation = simulation.options.variation.clone();
    let seconds = |variation: Variation| -> Result<f64, SessionError> {
        let outcome = simulation.run(&Options { variation, ..simulation.options.clone() })?;
        Ok(simulation.step_seconds(&outcome))
    };
    let plain_seconds = seconds(Variation::default())?;
    let mut found = Vec::new();
    for seed in (variation.seed..).take(simulation.choices.repeat.max(1) as usize) {
        found.push((seconds(Variation { seed, ..variation.clone() })?, seed));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    simulation.options.variation.seed = found[(found.len() - 1) / 2].1;
    let straggler = |slow: &trompe_cluster::Straggler| results::Straggler {
        rank: slow.rank.0,
        gpu: slow.gpu,
        host: slow.host,
        nic: slow.nic,
    };
    Ok(results::Variation {
        seed: variation.seed,
        kernel_jitter: variation.jitter.kernel,
        host_jitter: variation.jitter.host,
        link_jitter: variation.jitter.link,
        stragglers: variation.stragglers.iter().map(straggler).collect(),
        plain_seconds,
        repeats: Repeats::of(found.into_iter().map(|row| row.0).collect()),
    })
}

/// The step of `outcome` against one with contention the other way.
pub(super) fn contention(
    simulation: &Simulation<'_>,
    outcome: &Outcome,
) -> Result<ContentionEffect, SessionError> {
    let on = simulation.options.contention.is_some();
    let device = simulation.cluster.device();
    let other = (!on).then(|| trompe_cluster::Contention::of(device));
    let other = simulation.run(&Options { contention: other, ..simulation.options.clone() })?;
    let (own, other) = (simulation.step_seconds(outcome), simulation.step_seconds(&other));
    let (with_seconds, without_seconds) = if on { (own, other) } else { (other, own) };
    let (cores, collectives) = match &device.npu {
        Some(_) => ("cores", "a collective holds none"),
        None => ("multiprocessors", "a collective holds one multiprocessor per channel"),
    };
    let model = format!(
        "kernels share {} {cores} by occupancy and {:.0} % of {:.0} GB/s max-min fair; {collectives} and is spared \
         {:.0} % of a shortage",
        device.compute.sm_count,
        device.memory.concurrent_share * 100.0,
        device.memory.bandwidth.0 / 1e9,
        device.memory.collective_priority * 100.0
    );
    Ok(ContentionEffect { on, with_seconds, without_seconds, model })
}
