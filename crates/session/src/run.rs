//! A job under emulation, from its command line to its report.

mod met;
mod samples;
mod workers;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use trompe_fatbin::SmArch;
use trompe_hardware::{ClusterSheet, EmulatedNode, resolve};
use trompe_results::{Note, Severity};
use trompe_trace::job::JobTrace;

use crate::clock::Stopwatch;
use crate::estimators::{EstimatorChoice, Pricer};
use crate::launch::{Emulation, Ended, LauncherSettings};
use crate::output::{Existing, Layout, OutputFolder};
use crate::python::{Advice, How, Torch};
pub(crate) use crate::run::workers::Kept;
use crate::run::workers::{Launched, Workers};
use crate::{
    Choices, HostChoice, Prediction, Progress, RankChoice, Routing, RunFacts, SessionError, Stage,
    StepChoice, cache, collating, disk, env, hook, install, kernels, machine, predict_with, programs, python,
    simulate, world,
};

pub use samples::samples;

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The user's command and its arguments.
    pub command: Vec<OsString>,
    /// The cluster to pretend (`--cluster`).
    pub cluster: String,
    /// The cluster itself, when it is not quite what that name means.
    pub sheet: Option<ClusterSheet>,
    /// Where the report goes.
    pub out: PathBuf,
    /// What to do when that exists.
    pub existing: Existing,
    /// How the trace is simulated.
    pub choices: Choices,
    /// What prices its kernels.
    pub estimators: EstimatorChoice,
    /// Where the steps are.
    pub steps: StepChoice,
    /// Whether framework operators and their shapes are recorded.
    pub record_operators: bool,
    /// Which ranks of a distributed job run.
    pub ranks: RankChoice,
    /// How many further ranks are compared with those that they are taken to equal.
    pub verify: u32,
    /// How choices in values that nobody computes are made up; balanced when not given.
    pub routing: Option<Routing>,
    /// Whether ranks are forked from one process that has imported the framework.
    pub prefork: bool,
}

/// What came of a command that was started. What went wrong after it does not hide what went right.
#[derive(Debug)]
pub struct Finished {
    /// The command's exit code as a shell would give it.
    pub exit_code: i32,
    /// The signal with which the user stopped it.
    pub interrupted_by: Option<i32>,
    /// Names of the files; which of them exist depends on the other fields.
    pub layout: Layout,
    /// The prediction, when the trace allowed one.
    pub prediction: Option<Prediction>,
    /// Why there is no prediction, or why it could not be written.
    pub problems: Vec<SessionError>,
}

/// How often a distributed job is started again with more ranks before the user is asked.
const MOST_ATTEMPTS: usize = 4;

/// Everything that is known before the command starts.
struct Prepared {
    cluster: ClusterSheet,
    workers: Workers,
    folder: OutputFolder,
    emulation: Emulation,
    advice: Vec<Advice>,
}

impl Prepared {
    /// Takes the place of a launcher that the command came to.
    fn replace(&mut self, request: &Request, met: met::Met) -> Result<(), SessionError> {
        self.folder.clear_workers()?;
        self.emulation.launcher = met.settings;
        let board = self.folder.layout().workers.join("board.met");
        self.workers = Workers::prepare(&met.launch, &met.found, &request.ranks, (request.verify, &board))?;
        if request.prefork {
            self.workers.prefork(&self.emulation, &mut Kept::default());
        }
        Ok(())
    }
}

/// Runs a job and predicts it.
///
/// # Errors
/// What is wrong before the command starts; nothing was run and no file of an earlier run was touched then.
pub fn run(request: &Request, progress: &mut dyn Progress) -> Result<Finished, SessionError> {
    // What prices kernels is wrong before the command starts, or never.
    let pricer = Pricer::of(&request.estimators)?;
    let (prepared, launched) = execute(request, progress, &mut Kept::default())?;
    let mut finished = Finished {
        exit_code: launched.ended.exit_code(),
        interrupted_by: launched.ended.interrupted_by,
        layout: prepared.folder.layout(),
        prediction: None,
        problems: Vec::new(),
    };
    if let Err(problem) = report((request, &pricer), &prepared, &launched, &mut finished, progress) {
        finished.problems.push(explained(problem, &prepared.folder, finished.exit_code));
    }
    Ok(finished)
}

/// Runs a job and collates its traces; nothing is simulated or written beside them. `kept` is what one run leaves for
/// the next one of the same script.
///
/// # Errors
/// What is wrong before the command starts, or why it has no trace.
pub(crate) fn record(
    request: &Request,
    progress: &mut dyn Progress,
    kept: &mut Kept,
) -> Result<JobTrace, SessionError> {
    let (prepared, launched) = execute(request, progress, kept)?;
    let exit_code = launched.ended.exit_code();
    let recorded = recorded(request, &prepared, &launched, progress);
    recorded.map(|(job, _)| job).map_err(|problem| explained(problem, &prepared.folder, exit_code))
}

/// Runs the command, with more ranks where those that ran cannot go on.
fn execute(
    request: &Request,
    progress: &mut dyn Progress,
    kept: &mut Kept,
) -> Result<(Prepared, Launched), SessionError> {
    let mut prepared = prepare(request, progress, kept)?;
    progress.stage(Stage::Running);
    if request.prefork {
        prepared.workers.prefork(&prepared.emulation, kept);
    }
    let auto = request.ranks == RankChoice::Auto;
    let mut launched = prepared.workers.launch(&prepared.emulation, auto)?;
    for attempt in 1..=MOST_ATTEMPTS {
        let Ended { failed, interrupted_by, stopped, .. } = launched.ended;
        if interrupted_by.is_some() {
            break;
        }
        let met =
            if stopped { met::read(&prepared.folder.layout().workers, &prepared.cluster)? } else { None };
        if let Some(met) = met {
            prepared.replace(request, met)?;
        } else {
            if !auto || failed.is_none() && !stopped {
                break;
            }
            let Some(more) = prepared.workers.again(&launched)? else { break };
            if let Some(note) = more.chosen() {
                progress.note(&note.text);
            }
            prepared.folder.clear_workers()?;
            prepared.workers = more;
        }
        progress.stage(Stage::Running);
        launched = prepared.workers.launch(&prepared.emulation, auto && attempt < MOST_ATTEMPTS)?;
    }
    if matches!(request.ranks, RankChoice::List(_)) && !prepared.workers.are_ranks() {
        prepared.advice.push(Advice {
            severity: Severity::Warning,
            code: "no-ranks",
            text: "the command came to no launcher, so `--ranks` had nothing to choose from".to_owned(),
            hint: SessionError::NoRanks.hint(),
        });
    }
    prepared.workers.keep(kept);
    Ok((prepared, launched))
}

fn prepare(
    request: &Request,
    progress: &mut dyn Progress,
    kept: &mut Kept,
) -> Result<Prepared, SessionError> {
    progress.stage(Stage::Checking);
    let cluster = match &request.sheet {
        Some(sheet) => sheet.clone(),
        None => resolve(&request.cluster)?,
    };
    if cluster.device().npu.is_some() {
        return Err(SessionError::NoCuda { device: cluster.device().name.clone() });
    }
    let mut advice = Vec::new();
    let path = env::get(env::PATH).unwrap_or_default();
    let launch = world::read(&request.command, &cluster)?;
    let found = python::find(&launch.command, &path)?;
    let torch = match kept.torch.take_if(|(python, _)| *python == found.python) {
        Some((_, torch)) => Some(torch),
        None => torch_of(&found, &mut advice)?,
    };
    kept.torch = torch.clone().map(|torch| (found.python.clone(), torch));
    let software = torch.as_ref().and_then(Torch::software);
    let libraries = install::find()?;
    let folder = OutputFolder::take(&request.out, request.existing)?;
    let cache = cache::open()?;
    advice.extend(cache.instead_of.as_ref().map(|(wanted, reason)| Advice {
        severity: Severity::Info,
        code: "cache",
        text: format!(
            "the cache folder `{}` cannot be used ({reason}); `{}` is used instead",
            wanted.display(),
            cache.folder.display()
        ),
        hint: Some("set XDG_CACHE_HOME to a folder that can be written to".to_owned()),
    }));
    advice.extend(hidden_devices());
    let hook = hook::unpack(&cache.folder)?;
    let device = cluster.device();
    let arch = kernels::architecture(device);
    let kernels =
        torch.map(|torch| database(&torch, arch, &cache.folder, kept, progress)).unwrap_or_default();
    advice.extend(kernels.advice);
    folder.clear()?;
    if let Err(error) = folder.check_room() {
        advice.push(Advice {
            severity: Severity::Warning,
            code: "disk",
            text: error.to_string(),
            hint: error.hint(),
        });
    }
    let layout = folder.layout();
    let mut node = EmulatedNode::new(&cluster.node);
    if let Some(software) = software {
        node.software = software;
    }
    let config = layout.workers.join("node.json");
    disk::write(&config, node.to_json().as_bytes())?;
    let programs = programs::write(&layout.workers.join("bin"), &node)?;
    let workers =
        Workers::prepare(&launch, &found, &request.ranks, (request.verify, &layout.workers.join("board")))?;
    for found in &advice {
        progress.note(&found.text);
    }
    let emulation = Emulation {
        libraries,
        hook,
        programs: Some(programs),
        config,
        traces: Some(layout.workers),
        kernel_db: kernels.path,
        record_operators: request.record_operators,
        launcher: LauncherSettings::default(),
        routing: request.routing,
    };
    Ok(Prepared { cluster, workers, folder, emulation, advice })
}

/// The kernel database of a PyTorch: the one that an earlier run found, or that of the cache.
fn database(
    torch: &Torch,
    arch: SmArch,
    cache: &Path,
    kept: &mut Kept,
    progress: &mut dyn Progress,
) -> kernels::Provided {
    let known = kept.kernels.as_ref().filter(|(folder, own, _)| *folder == torch.folder && *own == arch);
    if let Some((_, _, path)) = known {
        return kernels::Provided { path: Some(path.clone()), advice: None };
    }
    let provided = kernels::provide(&torch.folder, arch, cache, progress);
    kept.kernels = provided.path.clone().map(|path| (torch.folder.clone(), arch, path));
    provided
}

/// That the environment hides every device from the job.
fn hidden_devices() -> Option<Advice> {
    let visible = env::get(env::CUDA_VISIBLE_DEVICES)?;
    let text = visible.to_string_lossy();
    let first = text.split(',').next().unwrap_or_default().trim();
    (first.is_empty() || first.starts_with('-')).then(|| Advice {
        severity: Severity::Warning,
        code: "hidden-devices",
        text: format!("CUDA_VISIBLE_DEVICES is `{text}`, which hides every device from the job"),
        hint: Some("unset it, or name devices of the pretended node: `CUDA_VISIBLE_DEVICES=0`".to_owned()),
    })
}

/// The job's PyTorch. What is wrong with a guessed interpreter is advice only.
fn torch_of(found: &python::Found, advice: &mut Vec<Advice>) -> Result<Option<Torch>, SessionError> {
    let checked = python::probe(&found.python).and_then(|environment| {
        let torch = environment.check()?.clone();
        advice.extend(environment.advice());
        Ok(torch)
    });
    match checked {
        Ok(torch) => Ok(Some(torch)),
        Err(error) if found.how == How::Guessed => {
            advice.push(Advice {
                severity: Severity::Warning,
                code: "guessed-python",
                text: format!(
                    "which Python `{}` starts is not known; the one on PATH: {error}",
                    found.program.display()
                ),
                hint: error.hint(),
            });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The trace of a job that has ended.
fn recorded(
    request: &Request,
    prepared: &Prepared,
    launched: &Launched,
    progress: &mut dyn Progress,
) -> Result<(JobTrace, RunFacts), SessionError> {
    progress.stage(Stage::Collating);
    let collated = collating::collate(&prepared.folder.layout().workers, &request.steps, progress)?;
    let mut job = collated.job;
    let facts = RunFacts {
        records: collated.records,
        trace_bytes: collated.bytes,
        ..facts(request, prepared, launched)
    };
    facts.store(&mut job);
    Ok((job, facts))
}

/// Everything after the command: collate, simulate, write.
fn report(
    (request, pricer): (&Request, &Pricer),
    prepared: &Prepared,
    launched: &Launched,
    finished: &mut Finished,
    progress: &mut dyn Progress,
) -> Result<(), SessionError> {
    let watch = Stopwatch::start();
    let layout = &finished.layout;
    let (job, facts) = recorded(request, prepared, launched, progress)?;
    // Before anything is made of it: what the ranks did is there to be looked at whatever comes of the simulation.
    let saved = simulate::keep(layout, &job, &prepared.cluster);
    progress.stage(Stage::Simulating);
    let (cluster, choices) = (&prepared.cluster, &request.choices);
    let prediction = predict_with(&job, cluster, choices, &pricer.on(cluster));
    let mut prediction = prediction.map_err(|error| disagreement(&job).unwrap_or(error))?;
    let own = &mut prediction.report.job;
    own.trace = layout.job_trace.file_name().map(|name| name.to_string_lossy().into_owned());
    own.emulation_seconds = Some(facts.seconds);
    own.simulation_seconds = Some(watch.elapsed().as_secs_f64());
    progress.stage(Stage::Writing);
    let written = simulate::write(layout, &prediction);
    finished.prediction = Some(prediction);
    finished.problems.extend([saved, written].into_iter().filter_map(Result::err).take(1));
    Ok(())
}

/// What the ranks disagree about, when a job cannot be simulated because of it.
fn disagreement(job: &JobTrace) -> Option<SessionError> {
    let notes = || job.notes.iter().filter(|note| note.severity == trompe_trace::job::Severity::Error);
    let told: Vec<&str> = notes().map(|note| note.text.as_str()).collect();
    let meaning = notes().find_map(|note| note.hint.clone())?;
    Some(SessionError::RanksDisagree { told: told.join("; "), meaning })
}

/// Why nothing was recorded, where that can be told: no room for a trace, or a command that failed early.
fn explained(problem: SessionError, folder: &OutputFolder, exit_code: i32) -> SessionError {
    match problem {
        SessionError::NothingRecorded => match folder.check_room() {
            Err(full) => full,
            Ok(()) if exit_code != 0 => SessionError::FailedEarly { exit_code },
            Ok(()) => SessionError::NothingRecorded,
        },
        other => other,
    }
}

fn facts(request: &Request, prepared: &Prepared, launched: &Launched) -> RunFacts {
    use std::os::unix::process::ExitStatusExt;
    let ended = &launched.ended;
    let device = prepared.cluster.device();
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    RunFacts {
        command: request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        directory: directory.display().to_string(),
        exit_code: ended.status.code(),
        ended_by: ended.status.signal(),
        interrupted_by: ended.interrupted_by,
        seconds: ended.took.as_secs_f64(),
        cluster: request.cluster.clone(),
        device: device.name.clone(),
        context_bytes: device.runtime.context.0,
        capability: (device.compute.capability_major, device.compute.capability_minor),
        processor: machine::processor(),
        system: machine::system(),
        notes: prepared
            .advice
            .iter()
            .map(note)
            .chain(busy(machine::load(), request))
            .chain(prepared.workers.notes(ended, &launched.findings))
            .collect(),
        samples_per_step: request.choices.samples_per_step,
        tokens_per_step: request.choices.tokens_per_step,
        host: request.choices.host.to_string(),
        ranks_checked: launched.findings.checked.len() as u32,
        ..RunFacts::default()
    }
}

fn note(advice: &Advice) -> Note {
    Note {
        severity: advice.severity,
        code: advice.code.to_owned(),
        text: advice.text.clone(),
        action: advice.hint.clone(),
    }
}

/// That other programs took processor time while the host's time was recorded.
fn busy(load: Option<f64>, request: &Request) -> Option<Note> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = load.filter(|load| *load > 1.25 * processors as f64)?;
    matches!(request.choices.host, HostChoice::Measured | HostChoice::Scale(_) | HostChoice::Named(_)).then(|| Note {
        severity: Severity::Warning,
        code: "busy-machine".to_owned(),
        text: format!(
            "This machine was busy during the run ({load:.1} runnable processes on {processors} processors), so \
             the recorded host time is too long."
        ),
        action: Some("run again on a quiet machine, or pass `--host scale=FACTOR` or `fixed=TIME`".to_owned()),
    })
}
