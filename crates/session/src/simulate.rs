//! A kept trace, simulated again: no job runs and no Python is needed.

use std::path::{Path, PathBuf};

use trompe_hardware::{ClusterSheet, resolve};
use trompe_trace::job::JobTrace;

use crate::clock::Stopwatch;
use crate::estimators::{self, EstimatorChoice};
use crate::output::{Existing, Layout, OutputFolder};
use crate::{Choices, Prediction, Progress, RunFacts, SessionError, Stage, disk, npu, traces};

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Request {
    /// The output folder of a run, or a `job.trace`.
    pub trace: PathBuf,
    /// Another cluster than the recorded one.
    pub cluster: Option<String>,
    /// Another profile of NPU kernels than the recorded one: a name or a TOML file.
    pub npu_profile: Option<String>,
    /// How.
    pub choices: Choices,
    /// What prices its kernels.
    pub estimators: EstimatorChoice,
    /// Where to write the report's files; `None`: nowhere.
    pub out: Option<PathBuf>,
    /// What to do when that exists.
    pub existing: Existing,
}

/// What came of it.
#[derive(Debug)]
pub struct Simulated {
    /// The prediction.
    pub prediction: Prediction,
    /// The files that were written.
    pub written: Option<Layout>,
}

/// Simulates a kept trace.
///
/// # Errors
/// When there is no trace, the cluster is not known, the trace contradicts itself, or files cannot be written.
pub fn simulate(request: &Request, progress: &mut dyn Progress) -> Result<Simulated, SessionError> {
    let watch = Stopwatch::start();
    let (mut job, own_folder) = open(&request.trace)?;
    if let Some(profile) = &request.npu_profile {
        npu::set_profile(&mut job, profile)?;
    }
    let facts = RunFacts::of(&job.facts);
    let cluster = cluster(request.cluster.as_deref(), own_folder.as_deref(), &facts)?;
    let folder = request.out.as_ref().map(|out| OutputFolder::take(out, request.existing)).transpose()?;
    progress.stage(Stage::Simulating);
    let mut prediction = estimators::predict(&job, &cluster, &request.choices, &request.estimators)?;
    prediction.report.job.trace = Some(request.trace.display().to_string());
    prediction.report.job.simulation_seconds = Some(watch.elapsed().as_secs_f64());
    let written = match folder {
        Some(folder) => {
            progress.stage(Stage::Writing);
            let layout = folder.layout();
            keep(&layout, &job, &cluster)?;
            write(&layout, &prediction)?;
            Some(layout)
        }
        None => None,
    };
    Ok(Simulated { prediction, written })
}

/// A kept trace and the cluster to simulate it on: the one asked for, else the one of the run.
///
/// # Errors
/// When there is no trace or no such cluster.
pub(crate) fn trace_and_cluster(
    path: &Path,
    asked: Option<&str>,
) -> Result<(JobTrace, ClusterSheet), SessionError> {
    let (job, folder) = open(path)?;
    let facts = RunFacts::of(&job.facts);
    let cluster = cluster(asked, folder.as_deref(), &facts)?;
    Ok((job, cluster))
}

/// The job trace of `path` and the folder it lies in.
fn open(path: &Path) -> Result<(JobTrace, Option<PathBuf>), SessionError> {
    if path.is_file() {
        return Ok((traces::open_job(path)?, path.parent().map(Path::to_owned)));
    }
    let layout = Layout::of(path);
    if !layout.job_trace.is_file() {
        let reason = if path.exists() { "`job.trace` is missing" } else { "it does not exist" };
        return Err(SessionError::NoTrace { path: path.to_owned(), reason: reason.to_owned() });
    }
    Ok((traces::open_job(&layout.job_trace)?, Some(path.to_owned())))
}

/// The cluster to simulate: the one asked for, else the one kept beside the trace, else the recorded name.
fn cluster(
    asked: Option<&str>,
    folder: Option<&Path>,
    facts: &RunFacts,
) -> Result<ClusterSheet, SessionError> {
    if let Some(name) = asked {
        return Ok(resolve(name)?);
    }
    if let Some(path) = folder.map(|folder| Layout::of(folder).cluster).filter(|path| path.is_file()) {
        let text = disk::read_text(&path)?;
        return serde_json::from_str(&text)
            .map_err(|error| SessionError::Damaged { path, reason: error.to_string() });
    }
    Ok(resolve(&facts.cluster)?)
}

/// Writes the report's files.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn write(layout: &Layout, prediction: &Prediction) -> Result<(), SessionError> {
    let Prediction { report, timeline } = prediction;
    disk::write(&layout.report_json, &json(report))?;
    disk::write_with(&layout.timeline, |file| {
        trompe_interop::chrome::write(timeline, std::io::BufWriter::new(file))
    })?;
    disk::write(&layout.report_html, trompe_report::html(report, timeline).as_bytes())
}

/// Writes what a simulation needs: the job trace, and the cluster beside it.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn keep(layout: &Layout, job: &JobTrace, cluster: &ClusterSheet) -> Result<(), SessionError> {
    disk::write(&layout.cluster, &json(cluster))?;
    save(job, &layout.job_trace)
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("plain data has a JSON form")
}

/// Writes a job trace.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn save(job: &JobTrace, path: &Path) -> Result<(), SessionError> {
    use trompe_trace::job_file::{JobFileError, save};
    save(job, path).map_err(|error| match error {
        JobFileError::Write { source, .. } => SessionError::writing(path, source),
        other => SessionError::Damaged { path: path.to_owned(), reason: other.to_string() },
    })
}
