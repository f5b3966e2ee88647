//! What can go wrong in a search, each with what to do about it.

use std::path::PathBuf;

use trompe_search::feasible::NoSpace;
use trompe_search::journal::JournalError;
use trompe_search::space::SpaceError;
use trompe_search::study::StudyError;

/// An error of a search. `Display` says what is the case, [`SearchError::hint`] what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The space file is wrong.
    #[error(transparent)]
    Space(SpaceError),
    /// There is nothing to search.
    #[error(transparent)]
    Empty(NoSpace),
    /// No cluster.
    #[error("there is no cluster: neither `--cluster` nor a `cluster` list in [hardware] names one")]
    NoCluster,
    /// The job's folder.
    #[error("the job's directory `{}` does not exist", directory.display())]
    NoDirectory {
        /// The folder.
        directory: PathBuf,
    },
    /// Something that is sought cannot be computed.
    #[error("the objective `{objective}` needs {needs}")]
    NoObjective {
        /// What is sought.
        objective: &'static str,
        /// What is missing.
        needs: &'static str,
    },
    /// A value in the space file that another part of trompe reads.
    #[error("`{name}` in [trial]: {reason}")]
    Trial {
        /// The key.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The table of trials.
    #[error("the table of trials cannot be written as Parquet: {0}")]
    Table(String),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A study is there already.
    #[error("`{}` holds a study with {trials} trials", path.display())]
    StudyExists {
        /// The journal.
        path: PathBuf,
        /// Its trials.
        trials: usize,
    },
    /// A study of something else.
    #[error("the study in `{}` cannot go on, because of what has changed since: {changed}", path.display())]
    Changed {
        /// The journal.
        path: PathBuf,
        /// What.
        changed: String,
    },
    /// A point has no job.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The processes that run trials.
    #[error("trials cannot run: {0}")]
    Pool(String),
    /// A trial found no space for its files.
    #[error("a trial could not run: {0}")]
    DiskFull(String),
    /// A Python program that helps.
    #[error("{program} does not work: {reason}")]
    Helper {
        /// Which one.
        program: &'static str,
        /// What it said.
        reason: String,
    },
    /// A study's file.
    #[error("`{}` is no study: {reason}", path.display())]
    NoStudy {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A trial that is not there, or cannot be applied.
    #[error("{0}")]
    NoTrial(String),
    /// A question that makes no sense.
    #[error("{0}")]
    Question(String),
}

const RESUME_AFTER_SPACE: &str =
    "free some space and go on with `--resume`: every trial that finished before is kept";

impl SearchError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Space(_) => {
                "docs/search.md describes space files; `trompe search spaces megatron` prints one that works"
                    .to_owned()
            }
            Self::Empty(_) => "loosen a constraint, add values to a knob, or choose a larger cluster".to_owned(),
            Self::NoCluster => "pass `--cluster dgx-h100:4`; `trompe gpus` lists what is known".to_owned(),
            Self::NoObjective { .. } => "add it to the space file, or seek something else".to_owned(),
            Self::StudyExists { .. } => {
                "go on with it with `--resume`, begin anew with `--restart`, or write elsewhere with `--out DIR`"
                    .to_owned()
            }
            Self::Changed { .. } => {
                "begin anew with `--restart` (results that are still valid are taken from the cache), or put back \
                 what changed"
                    .to_owned()
            }
            Self::Journal(JournalError::File { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                RESUME_AFTER_SPACE.to_owned()
            }
            Self::DiskFull(_) => RESUME_AFTER_SPACE.to_owned(),
            Self::Journal(JournalError::Damaged { .. }) => "begin anew with `--restart`".to_owned(),
            Self::Helper { program: "nevergrad", .. } => {
                "install it for the job's Python (`python -m pip install nevergrad`), or choose a strategy that \
                 needs no Python: auto, cma, oneplusone, pso, twopointsde"
                    .to_owned()
            }
            Self::Helper { program: "Ray", .. } => {
                "install it for the job's Python (`python -m pip install ray`), start a cluster with `ray start \
                 --head`, and pass its address"
                    .to_owned()
            }
            Self::NoStudy { .. } => "give the `--out` folder of a `trompe search`".to_owned(),
            _ => return None,
        })
    }
}
