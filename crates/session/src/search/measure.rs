//! From a report to the numbers of a trial, and what of them only the space knows: tokens, prices.

use trompe_results::study::{Metrics, Parts};
use trompe_results::{Kind, Report, VerdictStatus};
use trompe_search::space::{MachineFacts, Objective, Space};
use trompe_search::{Machines, Outcome, Value, Values};

use super::SearchError;

/// The outcome that a report says; the driver completes it.
pub(super) fn outcome(report: &Report) -> Outcome {
    let capacity = report.memory.capacity_bytes;
    match report.verdict.status {
        VerdictStatus::OutOfMemory => {
            let failed = report.verdict.out_of_memory.as_ref();
            let asked = failed.map(|failed| failed.requested_bytes.saturating_sub(failed.free_bytes));
            // A job that ran on more memory than there is says how much it needs in full.
            let whole = report.memory.total_bytes.checked_sub(capacity).filter(|missing| *missing > 0);
            Outcome::out_of_memory(whole.or(asked).filter(|missing| *missing > 0), capacity)
        }
        VerdictStatus::Fits => match metrics(report) {
            Some(metrics) => Outcome::fits(metrics),
            None => Outcome::failed(vec![
                "no complete step was seen; let the script run at least two steps, or say where they are with \
                 `steps` in [trial]"
                    .to_owned(),
            ]),
        },
        VerdictStatus::Failed | VerdictStatus::Interrupted => Outcome::failed(vec![report.verdict.text.clone()]),
    }
}

/// The numbers of a job that fits; `None` without a step.
fn metrics(report: &Report) -> Option<Metrics> {
    let step = report.step_time.as_ref()?;
    Some(Metrics {
        step_seconds: step.seconds,
        step_seconds_low: step.low,
        step_seconds_high: step.high,
        memory_bytes: report.memory.total_bytes,
        capacity_bytes: report.memory.capacity_bytes,
        mfu: report.flops.as_ref().map(|flops| flops.mfu),
        parts: parts(report, step.seconds),
        ..Metrics::default()
    })
}

/// Where the step's time goes. What the breakdown does not name (rounding) counts as waiting.
fn parts(report: &Report, step: f64) -> Parts {
    let seconds = |wanted: fn(Kind) -> bool| -> f64 {
        report.breakdown.iter().filter(|part| wanted(part.kind)).map(|part| part.seconds).sum()
    };
    let communication = seconds(|kind| kind == Kind::Communication);
    let host = seconds(|kind| kind == Kind::HostBound);
    let work = seconds(|kind| !matches!(kind, Kind::Communication | Kind::HostBound | Kind::Bubble));
    let again = report.flops.as_ref().map_or(0.0, |flops| {
        if flops.hardware_flops > 0.0 {
            (1.0 - flops.model_flops / flops.hardware_flops).max(0.0)
        } else {
            0.0
        }
    });
    Parts {
        compute: work * (1.0 - again),
        recompute: work * again,
        communication,
        host,
        bubble: (step - communication - host - work).max(0.0),
    }
}

/// The affine law of a step in its number of micro-batches, from two runs with few of them.
pub(super) fn extended(first: &Metrics, second: &Metrics, counts: [u64; 3]) -> Metrics {
    let [first_count, second_count, count] = counts.map(|count| count as f64);
    let share = (count - first_count) / (second_count - first_count);
    let law = |a: f64, b: f64| (b - a).mul_add(share, a);
    let (a, b) = (&first.parts, &second.parts);
    let step = law(first.step_seconds, second.step_seconds);
    // Work is MFU times step time, and affine as well.
    let work = |metrics: &Metrics| metrics.mfu.map(|mfu| mfu * metrics.step_seconds);
    Metrics {
        step_seconds: step,
        step_seconds_low: law(first.step_seconds_low, second.step_seconds_low),
        step_seconds_high: law(first.step_seconds_high, second.step_seconds_high),
        memory_bytes: first.memory_bytes.max(second.memory_bytes),
        mfu: work(first).zip(work(second)).map(|(a, b)| law(a, b) / step),
        parts: Parts {
            compute: law(a.compute, b.compute),
            recompute: law(a.recompute, b.recompute),
            communication: law(a.communication, b.communication).max(0.0),
            bubble: law(a.bubble, b.bubble).max(0.0),
            host: law(a.host, b.host).max(0.0),
        },
        ..first.clone()
    }
}

/// A step with host time, from the same step without and from two runs with few micro-batches.
///
/// Without host time the law is exact. Host time is measured, and differs from run to run by more than a micro-batch takes
/// where the machine is busy, so a line through two of them may lead anywhere. What the host adds to each micro-batch
/// past the longer run is the difference of the two runs, but no less than nothing and no more than the longer
/// run's average.
pub(super) fn with_host(device: &Metrics, runs: [Sampled<'_>; 2], count: u64) -> Metrics {
    let [first, second] = runs;
    let added = |run: &Sampled<'_>| (run.measured.step_seconds - run.device.step_seconds).max(0.0);
    let (shorter, longer) = (added(&first), added(&second));
    let slope = (longer - shorter) / (second.count - first.count) as f64;
    let each = slope.clamp(0.0, longer / second.count as f64);
    let host = longer + each * (count - second.count) as f64;
    let step = device.step_seconds + host;
    let share = |end: fn(&Metrics) -> f64| end(second.measured) / second.measured.step_seconds;
    Metrics {
        step_seconds: step,
        step_seconds_low: step * share(|metrics| metrics.step_seconds_low),
        step_seconds_high: step * share(|metrics| metrics.step_seconds_high),
        memory_bytes: device.memory_bytes.max(first.measured.memory_bytes).max(second.measured.memory_bytes),
        mfu: device.mfu.map(|mfu| mfu * device.step_seconds / step),
        parts: Parts { host: device.parts.host + host, ..device.parts },
        ..device.clone()
    }
}

/// A run with few micro-batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled<'a> {
    /// How many.
    pub(super) count: u64,
    /// With the host's time.
    pub(super) measured: &'a Metrics,
    /// The time of the devices alone.
    pub(super) device: &'a Metrics,
}

/// The outcome with what only the space knows: rates of samples and tokens, and money.
pub(crate) fn completed(
    mut outcome: Outcome,
    space: &Space,
    values: &Values,
    facts: &MachineFacts,
) -> Outcome {
    let Some(metrics) = &mut outcome.metrics else { return outcome };
    let Some(batch) = &space.batch else { return outcome };
    let number = |value: Result<Option<Value>, String>| value.ok().flatten().and_then(|value| value.number());
    let samples = number(batch.global.evaluate(values));
    let sequence = batch.sequence.as_ref().and_then(|sequence| number(sequence.evaluate(values)));
    let (step, gpus) = (metrics.step_seconds, f64::from(facts.gpus.max(1)));
    metrics.samples_per_second = samples.map(|samples| samples / step);
    let tokens = samples.zip(sequence).map(|(samples, sequence)| samples * sequence);
    metrics.tokens_per_second_per_gpu = tokens.map(|tokens| tokens / step / gpus);
    let price = space.prices.of(facts);
    metrics.cost_per_million_tokens =
        tokens.zip(price).map(|(tokens, price)| price * gpus * step / 3600.0 / tokens * 1e6);
    outcome
}

/// Whether everything that is sought can be computed.
pub(super) fn check(space: &Space, machines: &Machines) -> Result<(), SearchError> {
    let tokens = space.batch.as_ref().is_some_and(|batch| batch.sequence.is_some());
    for objective in &space.objectives {
        let missing = match objective {
            Objective::TokensPerSecondPerGpu if !tokens => {
                Some("`sequence` in [batch], the tokens of a sample")
            }
            Objective::CostPerMillionTokens if !tokens => {
                Some("`sequence` in [batch], the tokens of a sample")
            }
            Objective::CostPerMillionTokens
                if machines.all().any(|facts| space.prices.of(facts).is_none()) =>
            {
                Some("`price_per_gpu_hour` for every cluster")
            }
            _ => None,
        };
        if let Some(needs) = missing {
            return Err(SearchError::NoObjective { objective: objective.name(), needs });
        }
    }
    let settings = &space.trial;
    let bad = |name, reason: String| SearchError::Trial { name, reason };
    if let Some(host) = &settings.host {
        host.parse::<crate::HostChoice>().map_err(|error| bad("host", error.to_string()))?;
    }
    if let Some(steps) = &settings.steps {
        steps.parse::<crate::StepChoice>().map_err(|error| bad("steps", error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_host_does_not_lead_the_line_astray() {
        let run = |step: f64| Metrics {
            step_seconds: step,
            step_seconds_low: 0.5 * step,
            step_seconds_high: 2.0 * step,
            ..Metrics::default()
        };
        let whole = Metrics { parts: Parts { compute: 6.4, ..Parts::default() }, ..run(6.4) };
        let check = |first: f64, second: f64, expect: f64| {
            let (device, measured) = ([run(0.8), run(1.2)], [run(first), run(second)]);
            let of = |at: usize, count| Sampled { count, measured: &measured[at], device: &device[at] };
            let found = with_host(&whole, [of(0, 8), of(1, 12)], 64);
            assert!((found.step_seconds - expect).abs() < 1e-12, "{first} {second}: {found:?}");
            let parts: f64 = found.parts.named().iter().map(|(_, seconds)| seconds).sum();
            assert!((parts - found.step_seconds).abs() < 1e-12);
            assert!(found.step_seconds_low > 0.0 && found.step_seconds_low < found.step_seconds_high);
        };
        // Hidden behind the devices.
        check(0.8, 1.2, 6.4);
        // 10 ms for each micro-batch.
        check(0.88, 1.32, 6.4 + 0.64);
        // The first run was disturbed: the line would lead below nothing.
        check(9.0, 1.32, 6.4 + 0.12);
        // The second was: no more than its average.
        check(0.8, 2.4, 6.4 + 1.2 / 12.0 * 64.0);
    }

    #[test]
    fn a_step_is_extended_along_a_line() {
        let run = |count: f64| Metrics {
            step_seconds: 0.5 + 0.1 * count,
            step_seconds_low: 0.4 + 0.1 * count,
            step_seconds_high: 0.6 + 0.1 * count,
            memory_bytes: 7,
            mfu: Some(0.03 * count / (0.5 + 0.1 * count)),
            parts: Parts { compute: 0.1 * count, bubble: 0.5, ..Parts::default() },
            ..Metrics::default()
        };
        let extended = extended(&run(8.0), &run(12.0), [8, 12, 64]);
        let whole = run(64.0);
        assert!((extended.step_seconds - whole.step_seconds).abs() < 1e-12);
        assert!((extended.mfu.unwrap() - whole.mfu.unwrap()).abs() < 1e-12);
        assert!((extended.parts.compute - whole.parts.compute).abs() < 1e-12);
        assert!((extended.parts.bubble - 0.5).abs() < 1e-12);
    }
}
