//! From a job trace and a cluster to a report: price, replay, and fill in every number.
//!
//! The same job trace, cluster and options give the same report, byte by byte, but for the seconds that trompe itself
//! took, which the caller fills in.

mod bound;
pub mod export;
mod flops;
mod interval;
mod kernels;
mod memory;
mod notes;
mod path;
mod place;
mod pricing;
mod ranks;
mod software;
mod steps;
mod varied;
mod verdict;

use trompe_base::Duration;
use trompe_cluster::{Contention, Options, Outcome, Replay, Variation};
use trompe_estimate::{Stack, WithPrograms};
use trompe_hardware::ClusterSheet;
use trompe_results::{
    HostMode, HostModel, Job, Note, Report, SCHEMA_VERSION, Severity, Timeline, VerdictStatus,
};
use trompe_trace::job::{JobTrace, RankTemplate, StepSource};

use crate::SessionError;
use crate::estimators::KernelPricing;
use crate::host_model::{self, Host, HostChoice};
use crate::network::{Collectives, NetworkSource, Times};
use crate::npu;
use crate::run_facts::RunFacts;
use crate::variation::{JitterChoice, StragglerChoice, stragglers};
pub(crate) use bound::repeated_work;
pub(crate) use verdict::{lacked, says_no_memory};

/// How a trace is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// How the host's time passes.
    pub host: HostChoice,
    /// Samples per step and rank, where the user gives them.
    pub samples_per_step: Option<f64>,
    /// Tokens per step and rank, where the user gives them.
    pub tokens_per_step: Option<f64>,
    /// Used steps that the timeline shows.
    pub timeline_steps: usize,
    /// Whether operations that run at once on a device slow each other.
    pub contention: bool,
    /// How much times vary by chance.
    pub jitter: JitterChoice,
    /// Ranks whose machines are slow.
    pub stragglers: Vec<StragglerChoice>,
    /// The first seed of chance.
    pub seed: u64,
    /// How often a job with chance in it is replayed.
    pub repeat: u32,
    /// Where the times of collectives come from; the built-in constants when `None`.
    pub network: Option<NetworkSource>,
    /// Whether the job is also replayed to say what it would gain from what: several times as much work.
    pub explain: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            host: HostChoice::Measured,
            samples_per_step: None,
            tokens_per_step: None,
            timeline_steps: 1,
            contention: true,
            jitter: JitterChoice::default(),
            stragglers: Vec::new(),
            seed: 0,
            repeat: 1,
            network: None,
            explain: true,
        }
    }
}

/// What a simulation says.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Every number.
    pub report: Report,
    /// What happens when, in a used step.
    pub timeline: Timeline,
}

/// From the end of a launch call to the start of its kernel on an idle device: assumed, from the 5 us or so between
/// call and start of an empty kernel that micro-benchmarks show, of which the call itself takes half.
const LAUNCH_LATENCY: Duration = Duration::from_micros(2);

/// From the end of the awaited work to the return of a synchronising call that spins: assumed.
const WAKE_LATENCY: Duration = Duration::from_micros(3);

/// From a thread's handing over to the return of one that sleeps until then: assumed, from the 5 to 10 us that waking a
/// sleeping thread takes on Linux servers.
const HAND_OVER_LATENCY: Duration = Duration::from_micros(5);

/// Events of all templates up to which each host's times are kept.
const WATCHED: usize = 5_000_000;

/// Simulates `job` on `cluster`.
///
/// # Errors
/// When the trace contradicts itself or the job would hang.
pub fn predict(
    job: &JobTrace,
    cluster: &ClusterSheet,
    choices: &Choices,
) -> Result<Prediction, SessionError> {
    predict_with(job, cluster, choices, &KernelPricing::of(&Stack::builtin()))
}

/// The same with kernels priced as `kernels` says.
///
/// # Errors
/// As [`predict()`].
pub fn predict_with(
    job: &JobTrace,
    cluster: &ClusterSheet,
    choices: &Choices,
    kernels: &KernelPricing<'_>,
) -> Result<Prediction, SessionError> {
    let mut run = RunFacts::of(&job.facts);
    run.samples_per_step = choices.samples_per_step.or(run.samples_per_step);
    run.tokens_per_step = choices.tokens_per_step.or(run.tokens_per_step);
    let calibrated = calibrated(choices, cluster, &run, kernels);
    let choices = &calibrated;
    let device = cluster.device();
    let provenance = place::provenance(device);
    let same_device = run.device.is_empty() || run.device == device.name;
    let memory = memory::memory(job, &run, device, &provenance);
    let mut report = Report {
        schema_version: SCHEMA_VERSION,
        trompe_version: env!("CARGO_PKG_VERSION").to_owned(),
        job: Job {
            command: run.command.clone(),
            directory: run.directory.clone(),
            exit_code: run.exit_code,
            records: run.records,
            ..Job::default()
        },
        verdict: verdict::verdict(job, &run, &memory, same_device),
        cluster: place::cluster(cluster),
        world_size: job.ranks.len() as u32,
        ranks_checked: run.ranks_checked,
        ranks_emulated: job.ranks.iter().filter(|rank| rank.emulated).count() as u32,
        memory,
        device: place::device(device, &provenance),
        software: software::software(&job.facts, &run),
        ..Report::default()
    };
    let (mut timeline, mut host, mut not_simulated) = (Timeline::default(), None, None);
    if job.templates.iter().any(|template| !template.events.is_empty()) {
        let before = report.clone();
        match simulated(job, cluster, choices, (&run, &mut report), kernels) {
            Ok(found) => (timeline, host) = (found.0, Some(found.1)),
            // Ranks that ended early leave others waiting; that they ended is what matters.
            Err(SessionError::Simulation { reason }) if report.verdict.status != VerdictStatus::Fits => {
                report = before;
                not_simulated = Some(Note {
                    severity: Severity::Info,
                    code: "not-simulated".to_owned(),
                    text: format!("The part that ran cannot be simulated: {reason}."),
                    action: None,
                });
            }
            Err(error) => return Err(error),
        }
    }
    notes::write(&mut report, job, &run, (choices, host.as_ref(), kernels.oracle.is_some()));
    notes::calibration(&mut report, &run, cluster, kernels.calibration);
    report.notes.extend(not_simulated);
    report.check().map_err(|error| SessionError::Simulation { reason: error.to_string() })?;
    Ok(Prediction { report, timeline })
}

/// The choices, where the user left them open, as the calibration has them.
fn calibrated(
    choices: &Choices,
    cluster: &ClusterSheet,
    run: &RunFacts,
    kernels: &KernelPricing<'_>,
) -> Choices {
    let mut choices = choices.clone();
    let Some(calibration) = kernels.calibration else { return choices };
    if choices.host == HostChoice::Measured
        && let Some(host) = calibration.host(run.processor.as_deref(), cluster)
    {
        choices.host = HostChoice::Scale(host.factor);
    }
    let times = choices.network.as_ref().map_or(&Times::BuiltIn, |network| &network.times);
    if *times == Times::BuiltIn
        && let Some(constants) = calibration.network(cluster)
    {
        choices.network.get_or_insert_default().times = Times::Constants(constants);
    }
    choices
}

/// Fills in what only a simulation says.
fn simulated(
    job: &JobTrace,
    cluster: &ClusterSheet,
    choices: &Choices,
    (run, report): (&RunFacts, &mut Report),
    kernels: &KernelPricing<'_>,
) -> Result<(Timeline, Host), SessionError> {
    let device = cluster.device();
    let estimator = WithPrograms { programs: npu::of_job(job, cluster)?, others: kernels.estimator };
    let pricing = KernelPricing { estimator: &estimator, ..*kernels };
    let mut simulation = Simulation::new(job, cluster, choices, run, &pricing)?;
    if simulation.options.variation.tells_ranks_apart() {
        report.variation = Some(varied::repeat(&mut simulation)?);
    }
    let replay = simulation.compile(&simulation.options)?;
    let outcome = simulation.replayed(&replay)?;
    simulation.fill(report, &outcome, run)?;
    memory::over_time(&mut report.memory, job, &outcome);
    if simulation.has_steps(&outcome) {
        report.ranks = ranks::ranks(job, &simulation.kinds, &outcome);
    }
    if simulation.has_steps(&outcome) && choices.explain {
        report.critical_path = path::critical_path(job, &simulation.kinds, &outcome, &replay)?;
        report.contention = Some(varied::contention(&simulation, &outcome)?);
    }
    if let Some(flops) = &simulation.flops_of(&outcome) {
        report.flops =
            flops::usage(flops, simulation.step_seconds(&outcome), device, &place::provenance(device));
    }
    Ok((outcome.timeline, simulation.host.clone()))
}

/// A job with its prices, ready to be replayed under several options.
pub(crate) struct Simulation<'a> {
    job: &'a JobTrace,
    cluster: &'a ClusterSheet,
    choices: &'a Choices,
    priced: Vec<Vec<pricing::Priced>>,
    prices: trompe_cluster::Prices,
    collectives: Collectives,
    options: Options,
    host: Host,
    kinds: ranks::Kinds,
}

impl<'a> Simulation<'a> {
    fn new(
        job: &'a JobTrace,
        cluster: &'a ClusterSheet,
        choices: &'a Choices,
        run: &RunFacts,
        pricing: &KernelPricing<'_>,
    ) -> Result<Self, SessionError> {
        let priced = pricing::price(job, cluster.device(), pricing);
        let prices = pricing::prices(&priced);
        let steps = job.templates.first().map(|template| &template.steps);
        let warmup = steps.map_or(0, |steps| steps.warmup);
        let used = steps.map_or(0, |steps| steps.count().saturating_sub(warmup));
        let host = choices.host.resolve(run.processor.as_deref(), &cluster.node.host)?;
        let variation = Variation {
            seed: choices.seed,
            jitter: choices.jitter.0,
            stragglers: stragglers(&choices.stragglers, cluster, job.ranks.len())?,
        };
        let events: usize = job.templates.iter().map(|template| template.events.len()).sum();
        let options = Options {
            host: host.time,
            calls: host_model::call_costs(&host.sheet),
            launch_latency: LAUNCH_LATENCY,
            wake_latency: WAKE_LATENCY,
            hand_over_latency: HAND_OVER_LATENCY,
            timeline: Some((warmup, choices.timeline_steps)),
            contention: choices.contention.then(|| Contention::of(cluster.device())),
            // A step from the middle of those that count.
            path: (used > 0).then_some(warmup + used / 2),
            host_times: events < WATCHED,
            variation,
            ..Options::default()
        };
        let collectives = Collectives::of(cluster, choices.network.as_ref())?;
        let kinds = trompe_cluster::group_kinds(job);
        Ok(Self { job, cluster, choices, priced, prices, collectives, options, host, kinds })
    }

    fn compile<'b>(&'b self, options: &'b Options) -> Result<Replay<'b>, SessionError> {
        Replay::new(self.job, &self.prices, self.collectives.model(), options)
            .map_err(|error| SessionError::Simulation { reason: error.to_string() })
    }

    fn replayed(&self, replay: &Replay<'_>) -> Result<Outcome, SessionError> {
        let outcome = replay.run().map_err(|error| SessionError::Simulation { reason: error.to_string() })?;
        self.collectives.check()?;
        Ok(outcome)
    }

    /// Replays under other options, for the step time alone.
    fn run(&self, options: &Options) -> Result<Outcome, SessionError> {
        let options = Options { timeline: None, path: None, host_times: false, ..options.clone() };
        self.replayed(&self.compile(&options)?)
    }

    /// The number of the slowest rank's template.
    fn slowest(&self, outcome: &Outcome) -> usize {
        self.job.ranks[outcome.slowest_rank().rank.index()].template
    }

    /// The template of the slowest rank.
    fn template(&self, outcome: &Outcome) -> &'a RankTemplate {
        &self.job.templates[self.slowest(outcome)]
    }

    /// Whether the run has steps at all; a run that was cut before its first step has only a whole.
    fn has_steps(&self, outcome: &Outcome) -> bool {
        let steps = &self.template(outcome).steps;
        steps.count() > 0 && steps.source != StepSource::WholeRun
    }

    fn step_seconds(&self, outcome: &Outcome) -> f64 {
        steps::Mean::of(outcome.slowest_rank()).seconds()
    }

    fn flops_of(&self, outcome: &Outcome) -> Option<flops::Work> {
        let template = self.template(outcome);
        let rank = outcome.slowest_rank();
        let boundaries = &template.steps.boundaries;
        if rank.used_count == 0 || !self.has_steps(outcome) {
            return None;
        }
        let range = boundaries[rank.warmup]..boundaries[rank.warmup + rank.used_count];
        Some(flops::work(template, range).per_step(rank.used_count))
    }

    /// Everything that one replay (and those of the interval) say.
    fn fill(&self, report: &mut Report, outcome: &Outcome, run: &RunFacts) -> Result<(), SessionError> {
        let rank = outcome.slowest_rank();
        let template = self.template(outcome);
        let mean = steps::Mean::of(rank);
        let table = kernels::Table {
            template,
            priced: &self.priced[self.slowest(outcome)],
            uses: &outcome.operations[self.slowest(outcome)],
            steps: rank.used_count,
        };
        report.steps = steps::steps(template, rank);
        report.kernels = table.kernels();
        report.coverage = table.coverage();
        report.host = self.host(run, mean.host_seconds(), template, rank.used_count);
        if self.has_steps(outcome) {
            report.step_time = Some(interval::step_time(self, outcome)?);
            report.breakdown = mean.breakdown();
            report.device_use = Some(mean.device_use());
            report.communication = Some(steps::communication(self.job, &self.kinds, outcome));
            report.throughput = steps::throughput(self.job, template, run, mean.seconds());
        }
        Ok(())
    }

    fn host(&self, run: &RunFacts, seconds: f64, template: &RankTemplate, used: usize) -> HostModel {
        let (mode, scale, fixed) = match &self.choices.host {
            HostChoice::Measured => (HostMode::Measured, 1.0, None),
            HostChoice::Fixed(time) => (HostMode::Fixed, 1.0, Some(time.as_secs_f64() * 1e9)),
            HostChoice::Scale(factor) => (HostMode::Scale, *factor, None),
            HostChoice::Named(_) => (HostMode::Named, self.host.factor.unwrap_or(1.0), None),
            HostChoice::Off => (HostMode::Off, 0.0, None),
        };
        let boundaries = &template.steps.boundaries;
        let events = match (boundaries.get(template.steps.count().saturating_sub(used)), boundaries.last()) {
            (Some(begin), Some(end)) => end - begin,
            _ => template.events.len(),
        };
        HostModel {
            mode,
            recorded_on: run.processor.clone(),
            simulated_on: self.host.sheet.name.clone(),
            scale,
            fixed_nanoseconds: fixed,
            seconds_per_step: seconds,
            calls_per_step: events as f64 / used.max(1) as f64,
            call_cost_source: host_model::cost_source(&self.host.sheet, &self.choices.host),
            emulator_nanoseconds_per_call: self
                .job
                .facts
                .get("emulator.nanoseconds_per_call")
                .and_then(|text| text.parse().ok()),
        }
    }
}
