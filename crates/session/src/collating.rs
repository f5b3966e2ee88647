//! From the worker traces of a folder to a job trace.

use std::path::Path;
use std::str::FromStr;

use trompe_collate::{CollateError, Options, StepBoundary, StepsOverride};
use trompe_trace::job::JobTrace;

use crate::traces::{self, Trace};
use crate::{Progress, SessionError};

/// Where the steps are (`--steps`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepChoice {
    /// Found without help.
    #[default]
    Auto,
    /// The run consists of so many equal steps.
    Count(usize),
    /// The first so many steps are left out as warm-up.
    Skip(usize),
    /// Every range of this name that the program marks (NVTX) is a step.
    Marker(String),
}

/// A `--steps` value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name steps; write the number of equal steps, `skip=K` or `marker=NAME`")]
pub struct BadStepChoice(pub String);

impl FromStr for StepChoice {
    type Err = BadStepChoice;

    fn from_str(text: &str) -> Result<Self, BadStepChoice> {
        let bad = || BadStepChoice(text.to_owned());
        match text.split_once('=') {
            None if text == "auto" => Ok(Self::Auto),
            None => text.parse().ok().filter(|n| *n > 0).map(Self::Count).ok_or_else(bad),
            Some(("skip", number)) => number.parse().map(Self::Skip).map_err(|_| bad()),
            Some(("marker", name)) if !name.is_empty() => Ok(Self::Marker(name.to_owned())),
            Some(_) => Err(bad()),
        }
    }
}

/// A job trace and the size of what it was made from.
#[derive(Debug)]
pub(crate) struct Collated {
    pub(crate) job: JobTrace,
    /// Records in the worker traces.
    pub(crate) records: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// Collates the worker traces in `folder`. A file that cannot be read is named and left out when others can.
///
/// # Errors
/// When no process did any work on a device, or no trace can be read.
pub(crate) fn collate(
    folder: &Path,
    steps: &StepChoice,
    progress: &mut dyn Progress,
) -> Result<Collated, SessionError> {
    let mut workers = Vec::new();
    let mut unreadable = None;
    for path in traces::worker_files(folder)? {
        match traces::open(&path) {
            Ok(Trace::Worker(trace)) => workers.push(trace),
            Ok(Trace::Job(_)) => {}
            Err(error) => {
                progress.note(&error.to_string());
                unreadable = Some(error);
            }
        }
    }
    if workers.is_empty() {
        return Err(unreadable.unwrap_or(SessionError::NothingRecorded));
    }
    let records = workers.iter().map(|trace| trace.entries().count() as u64).sum();
    let bytes = workers.iter().map(|trace| trace.len() as u64).sum();
    let job = trompe_collate::collate(&workers, &Options { steps: wish(steps) });
    match job {
        Ok(job) => Ok(Collated { job, records, bytes }),
        Err(CollateError::NoDeviceWork { .. }) => Err(SessionError::NothingRecorded),
        Err(error) => Err(SessionError::Simulation { reason: error.to_string() }),
    }
}

fn wish(choice: &StepChoice) -> StepsOverride {
    let (boundary, warmup) = match choice {
        StepChoice::Auto => (StepBoundary::Automatic, None),
        StepChoice::Count(count) => (StepBoundary::Count(*count), None),
        StepChoice::Skip(warmup) => (StepBoundary::Automatic, Some(*warmup)),
        StepChoice::Marker(name) => (StepBoundary::Marker(name.clone()), None),
    };
    StepsOverride { boundary, warmup }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_choices_are_read_as_written() {
        let check = |text: &str, expect: StepChoice| assert_eq!(text.parse(), Ok(expect));
        check("auto", StepChoice::Auto);
        check("12", StepChoice::Count(12));
        check("skip=0", StepChoice::Skip(0));
        check("marker=train step", StepChoice::Marker("train step".to_owned()));
        for text in ["", "0", "-1", "skip=x", "marker=", "every=2"] {
            assert!(text.parse::<StepChoice>().unwrap_err().to_string().contains("does not name steps"));
        }
    }

    #[test]
    fn a_folder_without_traces_recorded_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let error = collate(folder.path(), &StepChoice::Auto, &mut crate::Silent).unwrap_err();
        assert!(matches!(error, SessionError::NothingRecorded), "{error}");
        std::fs::write(folder.path().join("1.trompe"), "not a trace").unwrap();
        let error = collate(folder.path(), &StepChoice::Auto, &mut crate::Silent).unwrap_err();
        assert!(error.to_string().contains("neither a worker trace"), "{error}");
    }
}
