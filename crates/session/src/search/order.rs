//! What a worker is told and what it answers: one JSON object a line.

use std::collections::BTreeMap;

use super::replicas::Replicas;
use serde::{Deserialize, Serialize};
use trompe_results::study::TrialOrigin;
use trompe_search::Outcome;
use trompe_search::memo::Key;
use trompe_search::space::{GLOBAL_BATCH, MICRO_BATCHES, ResolvedJob};
use trompe_search::study::Proposal;
use trompe_search::{Value, Values};

use super::{Plan, SearchError};
use crate::SessionError;
use crate::estimators::EstimatorChoice;

/// A trial to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Its number in the study.
    pub number: u32,
    /// What to run.
    pub runs: Runs,
    /// Variables of the job, which its worker is started with; `@trial@` stands for the worker's folder of files.
    pub environment: BTreeMap<String, String>,
    /// The cluster that is simulated.
    pub cluster: String,
    /// The cluster that the job sees, when it is another one.
    pub emulated_on: Option<String>,
    /// That the job runs with fewer replicas than are simulated.
    #[serde(default)]
    pub replicas: Option<Replicas>,
    /// As `--host`.
    pub host: String,
    /// What prices kernels; its paths are absolute.
    #[serde(default)]
    pub estimators: EstimatorChoice,
    /// As `--steps`.
    pub steps: String,
    /// As `--ranks`.
    pub ranks: String,
    /// A step time that the trial must beat to be of interest.
    pub best_seconds: Option<f64>,
    /// Seconds after which it is given up.
    pub timeout: Option<f64>,
    /// What names the traces that other trials may use too; see [`Order::trace_of`].
    pub trace: Option<String>,
    /// Devices have memory without end, to see how much is needed.
    #[serde(default)]
    pub unlimited: bool,
}

/// The runs of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// The job as it is.
    Whole(ResolvedJob),
    /// The job with few micro-batches, twice.
    Sampled(Samples),
}

/// A job with few micro-batches, twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// With fewer.
    pub first: ResolvedJob,
    /// How many.
    pub first_count: u64,
    /// With more.
    pub second: ResolvedJob,
    /// How many.
    pub second_count: u64,
    /// How many a whole step has.
    pub count: u64,
}

impl Order {
    /// Name of the trace that `job` leaves for other trials. The job alone decides, whether it is a whole step or a
    /// sample of one: with twice the nodes and half the batch for each replica it may be the one, with fewer the other.
    #[must_use]
    pub fn trace_of(&self, job: &ResolvedJob) -> Option<String> {
        let job = serde_json::to_string(job).expect("plain data has a JSON form");
        self.trace.as_ref().map(|place| key_of(&[place, &job]).text().to_owned())
    }

    /// Names of all traces that it leaves.
    #[must_use]
    pub fn traces(&self) -> Vec<String> {
        self.runs.jobs().into_iter().filter_map(|job| self.trace_of(job)).collect()
    }
}

impl Default for Runs {
    fn default() -> Self {
        Self::Whole(ResolvedJob::default())
    }
}

impl Runs {
    /// The jobs that run.
    #[must_use]
    pub fn jobs(&self) -> Vec<&ResolvedJob> {
        match self {
            Self::Whole(job) => vec![job],
            Self::Sampled(samples) => vec![&samples.first, &samples.second],
        }
    }
}

/// What came of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its number.
    pub number: u32,
    /// How it ended; prices and rates of tokens are filled in by the driver.
    pub outcome: Outcome,
    /// Whether it ran or was simulated from a trace.
    pub origin: TrialOrigin,
    /// Whether it would end otherwise another time (a time limit, a machine that failed).
    #[serde(default)]
    pub accident: bool,
    /// That there was no space left on the disk it ran on, in words. It says nothing about the trial.
    #[serde(default)]
    pub disk_full: Option<String>,
}

impl Reply {
    /// The reply, when it is one about the trial.
    ///
    /// # Errors
    /// That the disk was full.
    pub(super) fn usable(self) -> Result<Self, SearchError> {
        match self.disk_full {
            Some(reason) => Err(SearchError::DiskFull(reason)),
            None => Ok(self),
        }
    }

    /// Whether the outcome is one to keep for other studies: not when it was stopped for the sake of this one.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        use trompe_results::study::TrialStatus;
        !self.accident && matches!(self.outcome.status, TrialStatus::Fits | TrialStatus::OutOfMemory)
    }
}

/// The order for a proposal.
pub(super) fn of(plan: &Plan, proposal: &Proposal) -> Result<Order, SessionError> {
    let space = &plan.space;
    let settings = &space.trial;
    let facts = plan.machines.of(&proposal.point);
    let filled = |text: Option<&str>, default: &str| -> String { text.unwrap_or(default).to_owned() };
    let runs_on = super::reuse::smaller(plan, proposal)?;
    let job = plan.space.job.resolve(&runs_on.values).map_err(SearchError::Question)?;
    let mut order = Order {
        number: proposal.number,
        environment: job.environment.clone(),
        runs: runs(plan, &runs_on.values, job)?,
        cluster: facts.cluster.clone(),
        emulated_on: runs_on.cluster.filter(|other| *other != facts.cluster),
        replicas: runs_on.replicas,
        host: filled(settings.host.as_deref(), "measured"),
        estimators: plan.estimators.clone(),
        steps: filled(settings.steps.as_deref(), "auto"),
        ranks: ranks(plan, &runs_on.values)?,
        best_seconds: proposal.best_seconds,
        timeout: settings.timeout,
        trace: None,
        unlimited: false,
    };
    if space.knobs.iter().any(|knob| knob.hardware) {
        order.trace = Some(plan.grounds.trace_key(&order)?.text().to_owned());
    }
    Ok(order)
}

/// The ranks that run.
fn ranks(plan: &Plan, values: &Values) -> Result<String, SessionError> {
    let Some(template) = &plan.space.trial.ranks else { return Ok("auto".to_owned()) };
    let wrong = |reason| SearchError::Trial { name: "ranks", reason };
    let text = template.fill(values).map_err(wrong)?;
    text.parse::<crate::RankChoice>().map_err(|error| wrong(error.to_string()))?;
    Ok(text)
}

/// The whole job, or two samples of it where that is less work.
fn runs(plan: &Plan, values: &Values, job: ResolvedJob) -> Result<Runs, SessionError> {
    let Some(sampling) = &plan.space.sampling else { return Ok(Runs::Whole(job)) };
    let wrong = |reason: String| {
        SessionError::from(SearchError::Question(format!("[sampling] cannot be used: {reason}")))
    };
    let number = |value: Option<Value>, name: &str| match value.as_ref().and_then(Value::integer) {
        Some(number) if number >= 1 => Ok(number as u64),
        _ => Err(wrong(format!("`{name}` is no positive whole number at {}", text(values)))),
    };
    let first = number(sampling.first.evaluate(values).map_err(wrong)?, "first")?;
    let second = number(sampling.second.evaluate(values).map_err(wrong)?, "second")?;
    let count = number(values.get(MICRO_BATCHES).cloned(), MICRO_BATCHES)?;
    if first >= second {
        return Err(wrong(format!("`first` ({first}) is not below `second` ({second})")));
    }
    if first + second >= count {
        return Ok(Runs::Whole(job));
    }
    let sample = |part: u64| -> Result<ResolvedJob, SessionError> {
        let mut values = values.clone();
        let global = number(values.get(GLOBAL_BATCH).cloned(), GLOBAL_BATCH)?;
        values.insert(MICRO_BATCHES.to_owned(), Value::Integer(part as i64));
        values.insert(GLOBAL_BATCH.to_owned(), Value::Integer((global / count * part) as i64));
        plan.space.job.resolve(&values).map_err(wrong)
    };
    Ok(Runs::Sampled(Samples {
        first: sample(first)?,
        first_count: first,
        second: sample(second)?,
        second_count: second,
        count,
    }))
}

fn text(values: &Values) -> String {
    values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The order without what does not change its result, and without estimators, which count by their content.
pub(super) fn essence(order: &Order) -> Order {
    let estimators = EstimatorChoice::default();
    Order { number: 0, best_seconds: None, timeout: None, trace: None, estimators, ..order.clone() }
}

/// The parts of an order that decide, beside its job, what a trace holds.
pub(super) fn recording(order: &Order) -> Order {
    let (cluster, host, runs) = (String::new(), String::new(), Runs::default());
    Order { cluster, host, runs, emulated_on: None, replicas: None, ..essence(order) }
}

/// A key of some text.
pub(super) fn key_of(parts: &[&str]) -> Key {
    Key::of(parts.iter().map(|part| part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_step_and_a_sample_that_run_the_same_job_share_its_trace() {
        let job = |word: &str| ResolvedJob { command: vec![word.to_owned()], ..ResolvedJob::default() };
        let order = |runs| Order { runs, trace: Some("place".to_owned()), ..Order::default() };
        let samples =
            Samples { first: job("4"), first_count: 4, second: job("8"), second_count: 8, count: 32 };
        let sampled = order(Runs::Sampled(samples.clone())).traces();
        let fewer = order(Runs::Sampled(Samples { count: 16, ..samples })).traces();
        assert_eq!(sampled, fewer);
        assert_eq!(order(Runs::Whole(job("8"))).traces(), sampled[1..]);
        assert_ne!(sampled[0], sampled[1]);
        assert_eq!(Order { trace: None, ..order(Runs::Whole(job("8"))) }.traces(), Vec::<String>::new());
    }
}
