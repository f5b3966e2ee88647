//! What is predicted for a validation job: its traces priced and simulated, the step extended along a line where only
//! two shorter ones were emulated.
//!
//! A pipeline's step takes the slowest stage once per micro batch and every other stage once: it is linear in the micro
//! batches and in the stages (1F1B and interleaved, from as many micro batches as stages on). Deep pipelines are
//! therefore extended along a plane through three shorter jobs. So is the memory of the fullest stage, which keeps as
//! many micro batches as there are stages behind it.

use trompe_hardware::resolve;
use trompe_results::{Report, VerdictStatus};
use trompe_trace::job::JobTrace;

use super::jobs::Job;
use crate::estimators::{KernelPricing, Pricer};
use crate::{Choices, predict_with};

/// What a simulation says that a table may state too.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) seconds: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Seconds in which the device waits for the host.
    pub(super) host: f64,
    /// Executed arithmetic at the device's peak, in seconds.
    pub(super) arithmetic: f64,
    /// Largest allocated memory of a rank, in bytes.
    pub(super) allocated: u64,
    /// Largest memory of a device with everything on it, in bytes.
    pub(super) total: u64,
    /// Memory of a device, in bytes.
    pub(super) capacity: u64,
    pub(super) out_of_memory: bool,
}

/// A trace that stands for a job, or for a part of it.
pub(super) struct Sampled {
    /// Micro batches of a step.
    pub(super) micro_batches: u64,
    /// Stages of the pipeline.
    pub(super) stages: u64,
    /// The cluster that it is simulated on.
    pub(super) cluster: String,
    pub(super) trace: JobTrace,
}

/// The traces of a job.
pub(super) struct Traced {
    pub(super) job: Job,
    pub(super) traces: Vec<Sampled>,
}

impl Traced {
    /// The GPU that it is simulated on, by the name of its sheet.
    pub(super) fn device(&self) -> Option<String> {
        let cluster = resolve(&self.traces.first()?.cluster).ok()?;
        Some(cluster.node.device.name)
    }

    /// Simulates; with `clock`, at that share of the highest clock.
    ///
    /// # Errors
    /// In words, when the trace allows no prediction.
    pub(super) fn predict(
        &self,
        choices: &Choices,
        pricer: &Pricer,
        clock: Option<f64>,
    ) -> Result<Outcome, String> {
        let choices = Choices { explain: false, timeline_steps: 0, ..choices.clone() };
        let mut outcomes = Vec::new();
        for sampled in &self.traces {
            let cluster = resolve(&sampled.cluster).map_err(|error| error.to_string())?;
            let usual = pricer.on(&cluster);
            let pricing = KernelPricing { clock: clock.unwrap_or(usual.clock), ..usual };
            let prediction = predict_with(&sampled.trace, &cluster, &choices, &pricing);
            let report = prediction.map_err(|error| error.to_string())?.report;
            let at = [sampled.micro_batches as f64, sampled.stages as f64];
            outcomes.push((at, outcome(&report)?));
        }
        extend(&outcomes, [self.job.micro_batches as f64, self.job.stages as f64])
    }
}

/// The outcome at `to` (micro batches, stages) from those at one, two or three other places.
fn extend(outcomes: &[([f64; 2], Outcome)], to: [f64; 2]) -> Result<Outcome, String> {
    let [.., (_, last)] = outcomes else { return Err("it has no trace".to_owned()) };
    if outcomes.iter().any(|(_, outcome)| outcome.out_of_memory) {
        return Ok(Outcome { seconds: 0.0, out_of_memory: true, ..*last });
    }
    // Parts of each outcome, which add up to 1.
    let shares = match outcomes {
        [] | [_] => vec![1.0],
        [(a, _), (b, _)] => {
            let share = (to[0] - a[0]) / (b[0] - a[0]);
            vec![1.0 - share, share]
        }
        [(a, _), (b, _), (c, _), ..] => {
            let deeper = (to[1] - a[1]) / (c[1] - a[1]);
            let more = (to[0] - a[0] - deeper * (c[0] - a[0])) / (b[0] - a[0]);
            vec![1.0 - more - deeper, more, deeper]
        }
    };
    let along = |of: fn(&Outcome) -> f64| {
        outcomes.iter().zip(&shares).map(|((_, outcome), share)| of(outcome) * share).sum::<f64>()
    };
    // Memory does not depend on the micro batches, once there are as many as stages.
    let bytes = |of: fn(&Outcome) -> u64| match outcomes {
        [_, (b, less), (c, more), ..] => {
            let each = (of(more) as f64 - of(less) as f64) / (c[1] - b[1]);
            (of(less) as f64 + each * (to[1] - b[1])).max(0.0) as u64
        }
        _ => of(last),
    };
    Ok(Outcome {
        seconds: along(|o| o.seconds),
        low: along(|o| o.low),
        high: along(|o| o.high),
        host: along(|o| o.host).max(0.0),
        arithmetic: along(|o| o.arithmetic),
        allocated: bytes(|o| o.allocated),
        total: bytes(|o| o.total),
        ..*last
    })
}

fn outcome(report: &Report) -> Result<Outcome, String> {
    let memory = &report.memory;
    let out_of_memory = report.verdict.status == VerdictStatus::OutOfMemory;
    let base = Outcome {
        allocated: memory.peak_allocated_bytes,
        total: memory.total_bytes,
        capacity: memory.capacity_bytes,
        out_of_memory,
        ..Outcome::default()
    };
    // The steps of a job that ended before its time are not those of the row.
    if out_of_memory {
        return Ok(base);
    }
    let Some(step) = report.step_time.as_ref().filter(|_| report.verdict.status != VerdictStatus::Failed)
    else {
        return Err(format!("its emulation made no whole step: {}", report.verdict.text));
    };
    let flops = report.flops.as_ref().filter(|flops| flops.peak_flops_per_second > 0.0);
    Ok(Outcome {
        seconds: step.seconds,
        low: step.low,
        high: step.high,
        host: report.device_use.as_ref().map_or(0.0, |used| used.host_bound_seconds),
        arithmetic: flops.map_or(0.0, |flops| flops.hardware_flops / flops.peak_flops_per_second),
        ..base
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of 0.1 s, 10 ms per micro batch and 30 ms per stage; a stage's memory grows by 7 bytes per stage.
    fn at(micro_batches: f64, stages: f64) -> ([f64; 2], Outcome) {
        let seconds = 0.1 + 0.01 * micro_batches + 0.03 * stages;
        (
            [micro_batches, stages],
            Outcome { seconds, allocated: 50 + 7 * stages as u64, ..Outcome::default() },
        )
    }

    #[test]
    fn a_step_is_extended_along_a_line_or_a_plane() {
        let check = |from: &[(f64, f64)], to: (f64, f64)| {
            let outcomes: Vec<_> = from.iter().map(|(micro, stages)| at(*micro, *stages)).collect();
            let found = extend(&outcomes, [to.0, to.1]).unwrap();
            let (_, expect) = at(to.0, to.1);
            assert!((found.seconds - expect.seconds).abs() < 1e-9, "{found:?}");
            assert_eq!(found.allocated, expect.allocated);
        };
        check(&[(8.0, 4.0)], (8.0, 4.0));
        check(&[(8.0, 4.0), (12.0, 4.0)], (64.0, 4.0));
        check(&[(8.0, 4.0), (12.0, 4.0), (12.0, 6.0)], (512.0, 64.0));
        check(&[(4.0, 4.0), (8.0, 4.0), (12.0, 6.0)], (280.0, 35.0));
        assert!(extend(&[], [1.0, 1.0]).is_err());
        let full = (at(8.0, 4.0).0, Outcome { out_of_memory: true, ..Outcome::default() });
        assert!(extend(&[full, at(12.0, 4.0)], [64.0, 4.0]).unwrap().out_of_memory);
    }
}
