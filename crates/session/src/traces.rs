//! Looking at traces: what a file holds, line by line or in sums.
//!
//! A path may be a worker trace, a job trace, or an output folder with both. Nothing is interpreted here: a line says
//! what the record says.

mod describe;
pub mod import;
mod job_lines;
mod stats;
mod worker_lines;

use std::fs;
use std::path::{Path, PathBuf};

use trompe_trace::reader::{ReadError, WorkerTrace};
use trompe_trace::{job::JobTrace, job_file};

use crate::SessionError;
use crate::output::Layout;

pub use job_lines::job_lines;
pub use stats::{JobStats, Tally, WorkerStats, job_stats, worker_stats};
pub use worker_lines::{KINDS, Line, worker_lines};

/// A trace file, read.
#[derive(Debug)]
pub enum Trace {
    /// One process's trace.
    Worker(WorkerTrace),
    /// A job's trace.
    Job(Box<JobTrace>),
}

/// The trace files that `path` means, in order of name: itself, or those of an output folder.
///
/// # Errors
/// When there is none.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, SessionError> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let layout = Layout::of(path);
    let mut found = Vec::new();
    for folder in [&layout.workers, path] {
        found.extend(worker_files(folder)?);
    }
    if layout.job_trace.is_file() {
        found.push(layout.job_trace);
    }
    if found.is_empty() {
        let reason =
            if path.exists() { "there is no `.trompe` file and no `job.trace`" } else { "it does not exist" };
        return Err(SessionError::NoTrace { path: path.to_owned(), reason: reason.to_owned() });
    }
    Ok(found)
}

/// The worker traces in `folder`, in order of process id; none when there is no such folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn worker_files(folder: &Path) -> Result<Vec<PathBuf>, SessionError> {
    files_of(folder, "trompe")
}

/// The traces in `folder` of ranks that were stopped because they did the same as others.
///
/// # Errors
/// When the folder cannot be read.
pub fn checked_files(folder: &Path) -> Result<Vec<PathBuf>, SessionError> {
    files_of(folder, CHECKED)
}

/// The end of the names of traces that were given up.
pub(crate) const CHECKED: &str = "checked";

fn files_of(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, SessionError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(SessionError::reading(folder, source)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| SessionError::reading(folder, source))?.path();
        if path.extension().is_some_and(|end| end == ending) {
            found.push(path);
        }
    }
    let number = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    found.sort_by_key(|path| (number(path), path.clone()));
    Ok(found)
}

/// Reads a trace file of either kind.
///
/// # Errors
/// When it is neither, of another version, or damaged.
pub fn open(path: &Path) -> Result<Trace, SessionError> {
    match WorkerTrace::open(path) {
        Ok(trace) => Ok(Trace::Worker(trace)),
        Err(ReadError::Io { source, .. }) => Err(SessionError::reading(path, source)),
        Err(ReadError::Version { found, .. }) => Err(SessionError::OtherVersion {
            path: path.to_owned(),
            reason: format!("it has worker trace format {found}"),
        }),
        Err(ReadError::NotATrace { .. }) => open_job(path).map(|job| Trace::Job(Box::new(job))),
    }
}

/// Reads a job trace.
///
/// # Errors
/// When it is none, of another version, or damaged.
pub fn open_job(path: &Path) -> Result<JobTrace, SessionError> {
    use job_file::JobFileError;
    job_file::load(path).map_err(|error| match error {
        JobFileError::Read { source, .. } => SessionError::reading(path, source),
        JobFileError::NotAJob { .. } => SessionError::NoTrace {
            path: path.to_owned(),
            reason: "it is neither a worker trace nor a job trace".to_owned(),
        },
        JobFileError::Version { found, .. } => SessionError::OtherVersion {
            path: path.to_owned(),
            reason: format!("it has job trace format {found}, this trompe reads {}", job_file::JOB_VERSION),
        },
        JobFileError::Damaged { reason, .. } => SessionError::Damaged { path: path.to_owned(), reason },
        other => SessionError::Damaged { path: path.to_owned(), reason: other.to_string() },
    })
}
