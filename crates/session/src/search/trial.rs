//! One trial: run the job (or take a trace that is there), simulate it, say how it ended.

use std::fs;
use std::path::PathBuf;

use super::replicas::with_replicas;
use serde::{Deserialize, Serialize};
use trompe_base::Bytes;
use trompe_hardware::ClusterSheet;
use trompe_results::study::{TrialOrigin, TrialStatus};
use trompe_search::Outcome;
use trompe_search::space::ResolvedJob;
use trompe_trace::job::JobTrace;

use super::measure;
use super::order::{Order, Reply, Runs, Samples};
use crate::clock::Stopwatch;
use crate::estimators::{EstimatorChoice, Pricer};
use crate::output::Existing;
use crate::run::{self, Kept};
use crate::{
    Choices, HostChoice, SessionError, Silent, disk, job_log, predict, predict_with, simulate, traces,
};

/// The place in which trials run, one after the other.
pub(super) struct Bench {
    /// Folder of its files.
    pub(super) folder: PathBuf,
    /// Where the output of jobs goes.
    pub(super) log: PathBuf,
    /// Folder of traces that trials share.
    pub(super) traces: PathBuf,
    /// What one run leaves for the next.
    pub(super) kept: Kept,
    /// What priced the kernels of the last trial.
    pub(super) pricer: Option<(EstimatorChoice, Pricer)>,
}

/// A job whose memory was not enough before it had done anything on a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Exhausted {
    /// Bytes that were missing.
    missing: Option<u64>,
    /// Bytes of the device that it ran on.
    capacity: u64,
}

/// Memory of a device without end.
const WITHOUT_END: Bytes = Bytes(1 << 44);

impl Bench {
    /// Runs a trial.
    pub(super) fn run(&mut self, order: &Order) -> Reply {
        let watch = Stopwatch::start();
        let mut reply = match self.outcome(order) {
            Ok((outcome, origin)) => Reply { outcome, origin, ..Reply::default() },
            Err(error @ SessionError::DiskFull { .. }) => {
                Reply { disk_full: Some(error.to_string()), accident: true, ..Reply::default() }
            }
            Err(error) => Reply { outcome: self.explained(order, &error), ..Reply::default() },
        };
        reply.number = order.number;
        reply.outcome.seconds = watch.elapsed().as_secs_f64();
        reply
    }

    fn outcome(&mut self, order: &Order) -> Result<(Outcome, TrialOrigin), SessionError> {
        if let Some(Exhausted { missing, capacity }) = self.exhausted_before(order) {
            return Ok((on_cluster(order, missing, capacity), TrialOrigin::Simulated));
        }
        match &order.runs {
            Runs::Whole(job) => {
                let (trace, origin) = self.trace(order, job)?;
                let trace = widened(order, trace)?;
                Ok((self.simulated(order, &trace, order.best_seconds)?, origin))
            }
            Runs::Sampled(samples) => self.sampled(order, samples),
        }
    }

    /// Two runs with few micro-batches, and the whole step that follows from them.
    fn sampled(&mut self, order: &Order, samples: &Samples) -> Result<(Outcome, TrialOrigin), SessionError> {
        let Samples { first, first_count, second, second_count, count } = samples;
        // Host time is no part of what follows a line.
        let device = Order { host: "off".to_owned(), ..order.clone() };
        let measures = order.host != device.host;
        let (trace, _) = self.trace(order, first)?;
        let trace = widened(order, trace)?;
        // Matrix products and attention happen in every micro-batch alike, so they bound the whole step.
        let scale = *count as f64 / *first_count as f64;
        let begun = self.simulated(&device, &trace, order.best_seconds.map(|best| best / scale))?;
        let Some(short) = begun.metrics.clone().filter(|_| begun.is_fit()) else {
            return Ok((scaled_bound(begun, scale), TrialOrigin::Executed));
        };
        let short_host = measures.then(|| self.simulated(order, &trace, None)).transpose()?;
        let (trace, origin) = self.trace(order, second)?;
        let trace = widened(order, trace)?;
        let mut outcome = self.simulated(&device, &trace, None)?;
        let Some(long) = outcome.metrics.take().filter(|_| outcome.is_fit()) else {
            return Ok((outcome, origin));
        };
        let extended = measure::extended(&short, &long, [*first_count, *second_count, *count]);
        let long_host = measures.then(|| self.simulated(order, &trace, None)).transpose()?;
        let hosts =
            short_host.and_then(|outcome| outcome.metrics).zip(long_host.and_then(|outcome| outcome.metrics));
        outcome.metrics = Some(match &hosts {
            Some((first, second)) => {
                let of = |count, measured, device| measure::Sampled { count, measured, device };
                let runs = [of(*first_count, first, &short), of(*second_count, second, &long)];
                measure::with_host(&extended, runs, *count)
            }
            None => extended,
        });
        Ok((outcome, origin))
    }

    /// How a job ended that has no trace.
    fn explained(&self, order: &Order, error: &SessionError) -> Outcome {
        let mut lines = self.last_lines();
        if matches!(error, SessionError::FailedEarly { .. })
            && let Some((missing, capacity)) = exhausted(&job_log::tail(&self.log))
        {
            self.keep_exhausted(order, &Exhausted { missing, capacity });
            return on_cluster(order, missing, capacity);
        }
        if lines.is_empty() || !matches!(error, SessionError::FailedEarly { .. }) {
            // One line: summaries show the last one.
            lines.push(error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}")));
        }
        Outcome::failed(lines)
    }

    /// Where it is kept that a job has no trace because its memory was not enough before it did anything.
    fn exhausted_path(&self, order: &Order) -> Option<PathBuf> {
        // A device without end is another matter.
        let first = order.runs.jobs().into_iter().next().filter(|_| !order.unlimited)?;
        let name = order.trace_of(first)?;
        Some(self.traces.join(format!("{name}.exhausted.json")))
    }

    /// That another trial with the same job ended so.
    fn exhausted_before(&self, order: &Order) -> Option<Exhausted> {
        serde_json::from_slice(&fs::read(self.exhausted_path(order)?).ok()?).ok()
    }

    fn keep_exhausted(&self, order: &Order, exhausted: &Exhausted) {
        let Some(path) = self.exhausted_path(order) else { return };
        let content = serde_json::to_vec(exhausted).unwrap_or_default();
        // Where it cannot be written the next one runs.
        let _ = fs::create_dir_all(&self.traces).and_then(|()| fs::write(path, content));
    }

    /// The job's trace: one that is there, or one that is made now.
    fn trace(&mut self, order: &Order, job: &ResolvedJob) -> Result<(JobTrace, TrialOrigin), SessionError> {
        let shared = order.trace_of(job).map(|name| self.traces.join(format!("{name}.trace")));
        if let Some(path) = shared.as_ref().filter(|path| path.is_file())
            && let Ok(trace) = traces::open_job(path)
        {
            return Ok((trace, TrialOrigin::Simulated));
        }
        let trace = self.emulate(order, job)?;
        if let Some(path) = &shared {
            fs::create_dir_all(&self.traces).map_err(|source| SessionError::writing(&self.traces, source))?;
            simulate::save(&trace, path)?;
        }
        Ok((trace, TrialOrigin::Executed))
    }

    fn emulate(&mut self, order: &Order, job: &ResolvedJob) -> Result<JobTrace, SessionError> {
        let files = self.folder.join("files");
        let job = job.in_folder(&files.display().to_string());
        if !job.files.is_empty() {
            fs::create_dir_all(&files).map_err(|source| SessionError::writing(&files, source))?;
        }
        for (name, content) in &job.files {
            disk::write(&files.join(name), content.as_bytes())?;
        }
        let _ = fs::File::options().write(true).open(&self.log).and_then(|log| log.set_len(0));
        let cluster = order.emulated_on.as_ref().unwrap_or(&order.cluster);
        let request = run::Request {
            estimators: order.estimators.clone(),
            command: job.command.iter().map(Into::into).collect(),
            cluster: cluster.clone(),
            sheet: order.unlimited.then(|| without_end(cluster)).transpose()?,
            out: self.folder.join("run"),
            existing: Existing::Replace,
            choices: Choices::default(),
            steps: order.steps.parse().unwrap_or_default(),
            record_operators: true,
            ranks: order.ranks.parse().unwrap_or_default(),
            verify: 0,
            prefork: true,
            routing: None,
        };
        self.kept.wanted = true;
        run::record(&request, &mut Silent, &mut self.kept)
    }

    /// Simulates a trace on the order's cluster. With `best`, a trial whose kernels alone take longer is stopped.
    fn simulated(
        &mut self,
        order: &Order,
        trace: &JobTrace,
        best: Option<f64>,
    ) -> Result<Outcome, SessionError> {
        if let Some((missing, capacity)) = predict::lacked(trace) {
            return Ok(on_cluster(order, missing, capacity));
        }
        let cluster = trompe_hardware::resolve(&order.cluster)?;
        let pricer = match self.pricer.take() {
            Some((choice, pricer)) if choice == order.estimators => pricer,
            _ => Pricer::of(&order.estimators)?,
        };
        let (_, pricer) = self.pricer.insert((order.estimators.clone(), pricer));
        let kernels = pricer.on(&cluster);
        if let Some(best) = best
            && let Some(bound) = predict::repeated_work(trace, &cluster, &kernels)
            && bound > best
        {
            return Ok(Outcome {
                status: TrialStatus::Stopped,
                at_least_seconds: Some(bound),
                ..Outcome::default()
            });
        }
        let choices = Choices {
            host: order.host.parse().unwrap_or(HostChoice::Measured),
            timeline_steps: 0,
            explain: false,
            ..Choices::default()
        };
        let prediction = predict_with(trace, &cluster, &choices, &kernels)?;
        let mut outcome = measure::outcome(&prediction.report);
        if outcome.status == TrialStatus::Failed {
            let lines = self.last_lines();
            if !lines.is_empty() {
                outcome.last_lines = lines;
            }
        }
        if order.unlimited {
            outcome.notes.push("measured on devices with memory without end".to_owned());
        }
        Ok(outcome)
    }

    /// The end of what the job has written.
    fn last_lines(&self) -> Vec<String> {
        job_log::last_lines(&self.log)
    }
}

/// The trace with as many replicas as the order simulates.
fn widened(order: &Order, trace: JobTrace) -> Result<JobTrace, SessionError> {
    let Some(more) = order.replicas else { return Ok(trace) };
    with_replicas(trace, more).map_err(|error| SessionError::Simulation {
        reason: format!(
            "a trace with fewer replicas does not serve: {error}; take `replicas` out of [hardware]"
        ),
    })
}

/// Out of memory on the cluster of `order`. The job may have run on another one, whose devices have more.
fn on_cluster(order: &Order, missing: Option<u64>, capacity: u64) -> Outcome {
    let memory =
        |cluster: &str| trompe_hardware::resolve(cluster).ok().map(|sheet| sheet.device().memory.total.0);
    let both = order.emulated_on.as_deref().and_then(memory).zip(memory(&order.cluster));
    let less = both.map_or(0, |(emulated, own)| emulated.saturating_sub(own));
    Outcome::out_of_memory(missing.map(|missing| missing + less), capacity.saturating_sub(less))
}

/// The bound of a run with few micro-batches, for the whole step.
fn scaled_bound(mut outcome: Outcome, scale: f64) -> Outcome {
    outcome.at_least_seconds = outcome.at_least_seconds.map(|seconds| seconds * scale);
    outcome
}

/// A cluster whose devices have memory without end.
fn without_end(cluster: &str) -> Result<ClusterSheet, SessionError> {
    let mut sheet = trompe_hardware::resolve(cluster)?;
    sheet.node.device.memory.total = WITHOUT_END;
    sheet.node.device.memory.nvml_total = WITHOUT_END;
    Ok(sheet)
}

/// What PyTorch says when memory is not enough: bytes that are missing, and bytes of the device. A job that asks for too
/// much before it has done any work on a device says it nowhere else.
fn exhausted(lines: &[String]) -> Option<(Option<u64>, u64)> {
    let line =
        lines.iter().rev().find(|line| line.contains("OutOfMemoryError") || predict::says_no_memory(line))?;
    let after = |words: &str| {
        let mut rest = line.split(words).nth(1)?.split_whitespace();
        let number: f64 = rest.next()?.parse().ok()?;
        let unit = match rest.next()?.trim_end_matches(['.', ',']) {
            "bytes" => 1.0,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            "TiB" => 1_099_511_627_776.0,
            _ => return None,
        };
        Some((number * unit) as u64)
    };
    let missing =
        after("Tried to allocate").zip(after("of which")).map(|(asked, free)| asked.saturating_sub(free));
    Some((missing.filter(|missing| *missing > 0), after("total capacity of").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_missing_is_read_from_the_last_words() {
        let line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total capacity \
                    of 79.00 GiB of which 78.50 GiB is free. Including non-PyTorch memory, this process has 512.00 MiB";
        let lines = |line: &str| vec!["Traceback".to_owned(), line.to_owned()];
        let gib = f64::from(1 << 30);
        let expect = Some((Some((121.5 * gib) as u64), (79.0 * gib) as u64));
        assert_eq!(exhausted(&lines(line)), expect);
        assert_eq!(exhausted(&lines("RuntimeError: CUDA error: out of memory")), Some((None, 0)));
        assert_eq!(exhausted(&lines("ValueError: no")), None);
    }

    #[test]
    fn a_job_that_had_too_little_memory_to_begin_runs_once_for_all_clusters() {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench {
            folder: folder.path().to_owned(),
            log: folder.path().join("log"),
            traces: folder.path().join("traces"),
            kept: Kept::default(),
            pricer: None,
        };
        let order = |cluster: &str| Order {
            cluster: cluster.to_owned(),
            emulated_on: Some("a100-80".to_owned()),
            trace: Some("t".to_owned()),
            ..Order::default()
        };
        fs::write(
            &bench.log,
            "OutOfMemoryError: Tried to allocate 9.00 GiB. GPU 0 has 1 of which 5.00 GiB is free",
        )
        .unwrap();
        let error = SessionError::FailedEarly { exit_code: 1 };
        let first = bench.explained(&order("a100-80"), &error);
        assert_eq!(first.missing_bytes, Some(4 << 30));
        let Exhausted { missing, capacity } = bench.exhausted_before(&order("v100-32")).unwrap();
        assert!(on_cluster(&order("v100-32"), missing, capacity).missing_bytes > first.missing_bytes);
        assert_eq!(
            bench.exhausted_before(&Order { trace: Some("other".to_owned()), ..order("v100-32") }),
            None
        );
        assert_eq!(bench.exhausted_before(&Order { unlimited: true, ..order("v100-32") }), None);
    }

    #[test]
    fn memory_that_is_missing_is_that_of_the_simulated_cluster() {
        let order = |emulated_on: Option<&str>| Order {
            cluster: "v100-32".to_owned(),
            emulated_on: emulated_on.map(str::to_owned),
            ..Order::default()
        };
        let total = |name: &str| trompe_hardware::resolve(name).unwrap().device().memory.total.0;
        let (large, small) = (total("a100-80"), total("v100-32"));
        assert_eq!(on_cluster(&order(None), Some(5), small), Outcome::out_of_memory(Some(5), small));
        let expect = Outcome::out_of_memory(Some(5 + large - small), small);
        assert_eq!(on_cluster(&order(Some("a100-80")), Some(5), large), expect);
    }
}
