//! `trompe profile`: measuring on a machine with a real GPU. Python does it; what it writes is learned from by
//! [`crate::calibration`].
//!
//! Two ways: a sweep over about two thousand shapes (`trompe.profile`), and recording the kernels of a few steps of the
//! user's own job (`trompe_recorder`, put into the job's Python in front of `PYTHONPATH`). Neither needs anything of the
//! emulation, and nothing of it is loaded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use serde::Serialize;

use crate::{SessionError, cache, env, hook, python};

/// The sweep.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// The interpreter; the first `python3` or `python` on the path when not given.
    pub python: Option<PathBuf>,
    /// Folder for what is measured.
    pub out: PathBuf,
    /// Further arguments for `python -m trompe.profile`.
    pub arguments: Vec<OsString>,
}

/// Recording a job.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// The command.
    pub command: Vec<OsString>,
    /// What to record.
    pub recording: Recording,
}

/// What `trompe_recorder` is told, in `TROMPE_PROFILE`.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// Folder for the traces.
    pub out: PathBuf,
    /// Optimizer steps that are left out as warm-up.
    pub skip: u32,
    /// Steps that are recorded.
    pub steps: u32,
    /// Seconds after which recording ends early.
    pub seconds: u32,
    /// The job ends when they are recorded.
    pub stop: bool,
    /// Everything is recorded, steps or not.
    pub whole: bool,
}

/// Runs the sweep.
///
/// # Errors
/// When there is no Python, or a file cannot be written.
pub fn sweep(request: &SweepRequest) -> Result<ExitStatus, SessionError> {
    let interpreter = match &request.python {
        Some(python) => python.clone(),
        None => first_python()?,
    };
    let folder = hook::unpack_builder(&cache::open()?.folder)?;
    let mut command = Command::new(&interpreter);
    command.arg("-m").arg("trompe.profile").arg("--out").arg(&request.out).args(&request.arguments);
    command.env(env::PYTHONPATH, env::prepend(folder.as_os_str(), env::get(env::PYTHONPATH)));
    status(&mut command, interpreter.as_os_str())
}

/// Runs the user's command with the recorder in its Python.
///
/// # Errors
/// When the command cannot be started, or a file cannot be written.
pub fn record(request: &RecordRequest) -> Result<ExitStatus, SessionError> {
    let out = &request.recording.out;
    std::fs::create_dir_all(out).map_err(|error| SessionError::writing(out, error))?;
    let recording = Recording {
        out: std::path::absolute(out).map_err(|error| SessionError::writing(out, error))?,
        ..request.recording.clone()
    };
    let folder = hook::unpack_recorder(&cache::open()?.folder)?;
    let (program, arguments) = request
        .command
        .split_first()
        .ok_or_else(|| SessionError::Command { command: String::new(), reason: "it is empty".to_owned() })?;
    let text = serde_json::to_string(&recording).expect("plain data has a JSON form");
    let mut command = Command::new(program);
    command.args(arguments).env(env::TROMPE_PROFILE, text);
    command.env(env::PYTHONPATH, env::prepend(folder.as_os_str(), env::get(env::PYTHONPATH)));
    status(&mut command, program)
}

fn status(command: &mut Command, program: &std::ffi::OsStr) -> Result<ExitStatus, SessionError> {
    command.status().map_err(|error| SessionError::Command {
        command: program.to_string_lossy().into_owned(),
        reason: error.to_string(),
    })
}

fn first_python() -> Result<PathBuf, SessionError> {
    let path = env::get(env::PATH).unwrap_or_default();
    let found = ["python3", "python"].iter().find_map(|name| python::which(name.as_ref(), &path));
    found.ok_or_else(|| SessionError::NoPython {
        command: "trompe profile".to_owned(),
        reason: "neither `python3` nor `python` is on PATH".to_owned(),
    })
}

/// The traces in a folder, in order of name.
///
/// # Errors
/// When the folder cannot be read.
pub fn traces(folder: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let entries = std::fs::read_dir(folder).map_err(|error| SessionError::reading(folder, error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_trace = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.ends_with(".json.gz") && !name.starts_with('.')
    };
    let mut traces: Vec<PathBuf> = paths.filter(is_trace).collect();
    traces.sort();
    Ok(traces)
}
