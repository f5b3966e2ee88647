//! What is predicted for a validation job: its traces priced and simulated, the step extended along a line where only
//! two shorter ones were emulated.

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

/// The traces of a job, by number of micro batches.
pub(super) struct Traced {
    pub(super) job: Job,
    pub(super) traces: Vec<(u64, JobTrace)>,
}

impl Traced {
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
        let cluster = resolve(self.job.simulated.as_ref().unwrap_or(&self.job.cluster))
            .map_err(|error| error.to_string())?;
        let choices = Choices { explain: false, timeline_steps: 0, ..choices.clone() };
        let mut outcomes = Vec::new();
        for (count, trace) in &self.traces {
            let usual = pricer.on(&cluster);
            let pricing = KernelPricing { clock: clock.unwrap_or(usual.clock), ..usual };
            let prediction = predict_with(trace, &cluster, &choices, &pricing);
            let report = prediction.map_err(|error| error.to_string())?.report;
            outcomes.push((*count as f64, outcome(&report)?));
        }
        match outcomes.as_slice() {
            [(_, only)] => Ok(*only),
            all if all.iter().any(|(_, outcome)| outcome.out_of_memory) => {
                Ok(Outcome { seconds: 0.0, out_of_memory: true, ..all[all.len() - 1].1 })
            }
            [(a, first), (b, second), ..] => {
                let share = (self.job.micro_batches as f64 - a) / (b - a);
                let along = |of: fn(&Outcome) -> f64| of(first) + (of(second) - of(first)) * share;
                Ok(Outcome {
                    seconds: along(|o| o.seconds),
                    low: along(|o| o.low),
                    high: along(|o| o.high),
                    host: along(|o| o.host),
                    arithmetic: along(|o| o.arithmetic),
                    ..*second
                })
            }
            [] => Err("it has no trace".to_owned()),
        }
    }
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
