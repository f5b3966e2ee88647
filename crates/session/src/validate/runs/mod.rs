//! Whole training runs against predictions: each row's job is emulated (once), simulated and compared.
//!
//! `jobs` says which job stands for a row, `emulate` keeps traces, `predict` simulates, `fit` fits the numbers that no
//! row states on other rows, `goldens` compares memories.

mod emulate;
pub mod environment;
mod fit;
mod goldens;
mod jobs;
mod megatron;
mod mpt;
mod predict;
mod sample;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use trompe_measure::Left;
use trompe_measure::runs::published::Published;
use trompe_measure::runs::score::{groups, orderings};
use trompe_measure::runs::{Compared, Group, Ordering, RunRow, golden, row};
use trompe_measure::sources::Sources;

use self::emulate::Emulator;
use self::predict::{Outcome, Sampled, Traced};
use super::Request;
use crate::estimators::Pricer;
use crate::{Choices, HostChoice, Progress, SessionError, hook};

pub use fit::{Fit, Fitted, FittedOn, SharedClock};
pub use goldens::MemoryCompared;

/// What to compare whole runs with.
#[derive(Clone, Debug, Default)]
pub struct RunsRequest {
    /// A table of runs.
    pub runs: Option<PathBuf>,
    /// Records with exact command lines.
    pub goldens: Option<PathBuf>,
    /// Only rows whose source contains this.
    pub source: Option<String>,
    /// The interpreter with PyTorch and Megatron-Core.
    pub python: Option<PathBuf>,
    /// Where traces are kept.
    pub kept: Option<PathBuf>,
    /// Whether nothing new is emulated.
    pub kept_only: bool,
    /// How the host's time is modelled in the first table.
    pub host: HostChoice,
    /// Seconds after which a job is given up.
    pub time_limit: f64,
}

/// Out-of-memory predictions against what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fits {
    /// Ran, and predicted to fit.
    pub ran_fits: u64,
    /// Ran, but predicted not to fit.
    pub ran_full: u64,
    /// Out of memory, but predicted to fit.
    pub full_fits: u64,
    /// Out of memory, as predicted.
    pub full_full: u64,
}

/// Everything about whole runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunErrors {
    /// How the host was modelled in `groups`.
    pub host: String,
    /// Every row.
    pub rows: Vec<Compared>,
    /// Errors with nothing fitted.
    pub groups: Vec<Group>,
    /// The order of the configurations with nothing fitted.
    pub orderings: Vec<Ordering>,
    /// The same with one number fitted on other rows.
    pub fitted: Vec<Fit>,
    /// The clocks that GPUs sustain by what all their sources say.
    pub clocks: Vec<SharedClock>,
    /// Out-of-memory predictions.
    pub fits: Fits,
    /// Memories.
    pub memory: Vec<MemoryCompared>,
}

/// Compares whole runs; lines about rows that were left out go to `left_out`.
pub(super) fn compare(
    request: &Request,
    left_out: &mut Vec<String>,
    progress: &mut dyn Progress,
) -> Result<RunErrors, SessionError> {
    let own = &request.whole;
    let sources = crate::estimate::sources(&request.sheets)?;
    // Tables first: what is wrong with them is known at once.
    let runs = own.runs.as_ref().map(|path| row::read(path).map(|read| (path, read))).transpose()?;
    let goldens = own.goldens.as_ref().map(|path| golden::read(path).map(|read| (path, read))).transpose()?;
    let cache = crate::cache::open()?.folder;
    let emulator = Emulator {
        folder: emulate::folder(own.kept.as_deref())?,
        scripts: hook::unpack_jobs(&cache)?,
        environment: environment::find(own.python.as_deref(), &cache)?,
        kept_only: own.kept_only,
        limit: own.time_limit,
    };
    let pricer = Pricer::of(&request.estimators)?;
    let comparison = Comparison { request, sources: &sources, emulator: &emulator, pricer: &pricer };
    let mut found = RunErrors { host: own.host.to_string(), ..RunErrors::default() };
    if let Some((path, (rows, mut left))) = runs {
        comparison.runs(&rows, &mut left, &mut found, progress);
        left_out.extend(left.lines(&path.display().to_string()));
    }
    if let Some((path, (records, mut left))) = goldens {
        comparison.goldens(&records, &mut left, &mut found, progress);
        left_out.extend(left.lines(&path.display().to_string()));
    }
    Ok(found)
}

struct Comparison<'a> {
    request: &'a Request,
    sources: &'a Sources,
    emulator: &'a Emulator,
    pricer: &'a Pricer,
}

impl Comparison<'_> {
    fn choices(&self, host: HostChoice) -> Choices {
        Choices { host, ..Choices::default() }
    }

    /// All rows of a table.
    fn runs(&self, rows: &[RunRow], left: &mut Left, found: &mut RunErrors, progress: &mut dyn Progress) {
        let own = &self.request.whole;
        let mut wanted: Vec<(&RunRow, jobs::Job)> = Vec::new();
        let published = Published::builtin();
        let engine = self.emulator.environment.engine.is_some();
        for row in rows {
            if own.source.as_ref().is_some_and(|source| !row.source.contains(source.as_str())) {
                left.add("its source was not asked for", row.line);
                continue;
            }
            if row.source == "megatron_lm_golden" {
                left.add("its exact command line is among the goldens", row.line);
                continue;
            }
            match jobs::job(&published.complete(row), self.sources, engine) {
                Ok(job) => wanted.push((row, job)),
                Err(reason) => left.add(reason, row.line),
            }
        }
        sample::choose(&mut wanted, self.request.limit, self.request.seed, |(row, job)| {
            format!(
                "{} {} {} {:?} {:?} {}",
                row.source,
                row.gpu,
                row.parallelism(),
                row.hidden,
                row.recompute,
                job.script
            )
        });
        let noise = noise(rows);
        let mut traced: Vec<(&RunRow, Traced)> = Vec::new();
        let count = wanted.len();
        for (at, (row, job)) in wanted.into_iter().enumerate() {
            match self.traces(&job, &format!("{}/{count} row {}", at + 1, row.id), progress) {
                Ok(traces) => traced.push((row, Traced { job, traces })),
                Err(reason) => left.add(reason, row.line),
            }
        }
        let choices = self.choices(own.host.clone());
        let mut kept: Vec<(&RunRow, Traced, Compared)> = Vec::new();
        for (row, traced) in traced {
            match traced.predict(&choices, self.pricer, None) {
                Err(reason) => left.add(reason, row.line),
                Ok(outcome) => {
                    fits(&mut found.fits, row, &outcome);
                    if let Some(memory) = memory(row, &outcome) {
                        found.memory.push(memory);
                    }
                    if row.step_time_s.is_some() && outcome.seconds > 0.0 {
                        let compared = compared(row, &traced, &outcome, noise.get(&row.line).copied());
                        kept.push((row, traced, compared));
                    }
                }
            }
        }
        found.rows = kept.iter().map(|(_, _, compared)| compared.clone()).collect();
        found.groups = groups(&found.rows);
        found.orderings = orderings(&found.rows);
        let fitter = fit::Fitter { pricer: self.pricer, seed: self.request.seed, host: own.host.clone() };
        found.fitted = fitter.all(&kept, &noise);
        let (clocks, judged) = fitter.clocks(&kept, &noise);
        found.clocks = clocks;
        found.fitted.extend(judged);
    }

    /// The traces of a job.
    fn traces(
        &self,
        job: &jobs::Job,
        name: &str,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Sampled>, String> {
        let mut told = |text: &str| progress.note(&format!("{name}: {text}"));
        let parts = if job.shorter.is_empty() { std::slice::from_ref(job) } else { &job.shorter };
        let mut found = Vec::new();
        for part in parts {
            for count in &part.counts {
                found.push(Sampled {
                    micro_batches: *count,
                    stages: part.stages,
                    cluster: part.simulated.as_ref().unwrap_or(&part.cluster).clone(),
                    trace: self.emulator.trace(part, *count, &mut told)?,
                });
            }
        }
        Ok(found)
    }

    /// All records.
    fn goldens(
        &self,
        records: &[golden::Golden],
        left: &mut Left,
        found: &mut RunErrors,
        progress: &mut dyn Progress,
    ) {
        let mut wanted = Vec::new();
        for record in records {
            match goldens::job(record, self.sources, self.emulator.environment.engine.is_some()) {
                Ok(job) => wanted.push((record, job)),
                Err(reason) => left.add(reason, record.line),
            }
        }
        sample::choose(&mut wanted, self.request.limit, self.request.seed, |(record, _)| {
            format!("{} {}", record.test_case, record.gpu)
        });
        let count = wanted.len();
        for (at, (record, job)) in wanted.into_iter().enumerate() {
            let name = format!("{}/{count} golden {}", at + 1, record.name());
            let predicted = self.traces(&job, &name, progress).and_then(|traces| {
                let choices = self.choices(HostChoice::Off);
                Traced { job, traces }.predict(&choices, self.pricer, None)
            });
            match (predicted, record.peak_allocated_bytes) {
                (Ok(outcome), Some(measured)) => found.memory.push(MemoryCompared {
                    id: record.name(),
                    line: record.line,
                    what: record.test_case.clone(),
                    gpu: record.gpu.clone(),
                    kind: "allocated, last rank".to_owned(),
                    measured,
                    predicted: outcome.allocated,
                    reason: goldens::reason(record, measured, outcome.allocated),
                }),
                (Err(reason), _) => left.add(reason, record.line),
                (Ok(_), None) => left.add("it states no peak memory", record.line),
            }
        }
    }
}

/// A row that ran, or did not, against its prediction.
fn fits(fits: &mut Fits, row: &RunRow, outcome: &Outcome) {
    let full = row.step_time_s.is_none() && row.notes.to_ascii_lowercase().contains("out of memory");
    let predicted = outcome.out_of_memory || outcome.total > outcome.capacity;
    match (full, predicted) {
        (false, false) => fits.ran_fits += 1,
        (false, true) => fits.ran_full += 1,
        (true, false) => fits.full_fits += 1,
        (true, true) => fits.full_full += 1,
    }
}

/// The memory that a row states against the predicted one.
fn memory(row: &RunRow, outcome: &Outcome) -> Option<MemoryCompared> {
    let gib = row.peak_mem_gib?;
    let whole = row.mem_kind.contains("nvidia-smi") || row.mem_kind.contains("total");
    let predicted = if whole { outcome.total } else { outcome.allocated };
    Some(MemoryCompared {
        id: row.id.clone(),
        line: row.line,
        what: format!("{} {}", row.model, row.parallelism()),
        gpu: row.gpu.clone(),
        kind: if whole { "device, everything" } else { "allocated, fullest rank" }.to_owned(),
        measured: (gib * 1_073_741_824.0) as u64,
        predicted,
        reason: if whole {
            "context, NCCL buffers and what the allocator reserves without using".to_owned()
        } else {
            "layers that the script builds otherwise than the framework".to_owned()
        },
    })
}

/// The nearest other measurement of the same configuration, by line, as a share.
fn noise(rows: &[RunRow]) -> BTreeMap<u64, f64> {
    let mut same = BTreeMap::<String, Vec<(u64, f64)>>::new();
    for row in rows {
        if let Some(seconds) = row.step_time_s {
            same.entry(format!("{} {}", row.source, row.configuration()))
                .or_default()
                .push((row.line, seconds));
        }
    }
    let mut noise = BTreeMap::new();
    for rows in same.values().filter(|rows| rows.len() > 1) {
        for (line, seconds) in rows {
            let others = rows.iter().filter(|(other, _)| other != line);
            let nearest = others.map(|(_, other)| (other / seconds - 1.0).abs()).reduce(f64::min);
            noise.extend(nearest.map(|nearest| (*line, nearest)));
        }
    }
    noise
}

fn compared(row: &RunRow, traced: &Traced, outcome: &Outcome, noise: Option<f64>) -> Compared {
    let (pp, vp) = (row.pp.unwrap_or(1) as f64, row.vp.unwrap_or(1).max(1) as f64);
    let bubble = 1.0 + (pp - 1.0) / (vp * traced.job.micro_batches.max(1) as f64);
    let count = |value: Option<u64>| value.unwrap_or(0);
    Compared {
        id: row.id.clone(),
        line: row.line,
        source: row.source.clone(),
        gpu: row.gpu.clone(),
        what: format!(
            "{} h{} l{} s{} mbs{} m{} {} on {}",
            row.model,
            count(row.hidden),
            count(row.layers),
            count(row.seq),
            count(row.micro_batch),
            traced.job.micro_batches,
            row.parallelism(),
            count(row.n_gpus)
        ),
        parallelism: row.parallelism(),
        alternatives: format!(
            "{} {} {} {:?} {:?} {:?} {:?} {}",
            row.source, row.gpu, row.model, row.hidden, row.layers, row.seq, row.n_gpus, row.precision
        ),
        batch: traced.job.sequences * traced.job.micro_batches,
        measured: row.step_time_s.unwrap_or(f64::NAN),
        predicted: outcome.seconds,
        low: outcome.low,
        high: outcome.high,
        roofline: outcome.arithmetic * bubble,
        host_share: outcome.host / outcome.seconds,
        noise,
        assumed: traced.job.assumed.clone(),
    }
}
