//! `trompe search`: studies whose trials are emulated runs.
//!
//! The space, strategies, rules and the study itself are `trompe-search`'s. Here is what they must not know: clusters by
//! name, the journal's place, processes that run trials, and the clock. A trial runs in a *worker* (`worker`), a
//! process of this same program that keeps the framework imported from one trial to the next; `local` keeps one
//! worker for each job slot, pinned to processors of its own, `ray` has them on a Ray cluster.

mod apply;
mod begin;
mod digest;
mod drive;
mod error;
mod external;
mod files;
mod local;
mod measure;
mod nearest;
mod nevergrad;
mod order;
mod plan;
mod ray;
mod replicas;
mod reuse;
mod serve;
mod trial;
mod watch;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trompe_results::study::Study as StudyReport;
use trompe_search::Study;
use trompe_search::summary::{self, Circumstances};

use crate::SessionError;
use crate::estimators::EstimatorChoice;
use crate::output::{Existing, OutputFolder};

pub use apply::{Application, apply};
pub use error::SearchError;
pub use files::StudyFiles;
pub use order::{Order, Reply};
pub use serve::serve;
pub use trompe_search::spaces::SPACES;
pub use trompe_search::strategy::Choice;
pub use watch::{SearchProgress, State};
pub use worker::work;

use drive::Drive;
use plan::{Plan, plan, strategy};

/// What to search.
#[derive(Clone, Debug)]
pub struct Request {
    /// The space file.
    pub space: PathBuf,
    /// The cluster (`--cluster`), where the space has no cluster knob.
    pub cluster: Option<String>,
    /// What prices kernels.
    pub estimators: EstimatorChoice,
    /// Who chooses points.
    pub strategy: Choice,
    /// When to stop.
    pub budget: Budget,
    /// Trials at the same time; as many as there are processors when not given.
    pub jobs: Option<usize>,
    /// Seed of the strategy.
    pub seed: u64,
    /// The study's folder.
    pub out: PathBuf,
    /// What to do when that exists and is not ours.
    pub existing: Existing,
    /// What to do with a study that is there already.
    pub earlier: Earlier,
    /// Address of a Ray cluster.
    pub ray: Option<String>,
    /// Whether rules may make trials needless, and hopeless ones are stopped.
    pub prune: bool,
    /// How many of the best trials that rules told run after all, at the end.
    pub verify: usize,
    /// Whether results of earlier studies are used.
    pub memo: bool,
}

/// When to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// After so many trials that ran or were known.
    pub trials: Option<u32>,
    /// After so many seconds, trials under way are finished.
    pub seconds: Option<f64>,
}

/// What to do with a study that is in the folder already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earlier {
    /// It is an error.
    #[default]
    Refuse,
    /// Go on with it.
    Resume,
    /// Begin anew; it is kept beside the new one.
    Restart,
}

/// What came of a search.
#[derive(Debug)]
pub struct Searched {
    /// Everything.
    pub study: StudyReport,
    /// Names of the files.
    pub files: StudyFiles,
    /// The user stopped it.
    pub interrupted: bool,
}

/// Runs trials somewhere.
trait Pool {
    /// Takes a trial.
    fn submit(&mut self, order: Order) -> Result<(), SearchError>;
    /// The next finished trial, waiting for some time.
    fn next(&mut self, wait: Duration) -> Result<Option<Reply>, SearchError>;
}

/// Trials whose outcome may be waited for: more than run at once, so that all processors are busy, but the same for
/// every number of jobs up to this, so that a study is the same on a laptop and on a server.
const LEAST_LAG: usize = 4;

/// Searches.
///
/// # Errors
/// What is wrong with the space, the folder or the journal, before anything runs; and a disk that is full later.
pub fn search(request: &Request, progress: &mut dyn SearchProgress) -> Result<Searched, SessionError> {
    let plan = plan(&request.space, request.cluster.as_deref(), &request.estimators)?;
    let jobs = request.jobs.unwrap_or_else(|| local::processors().len()).max(1);
    let lag = jobs.max(LEAST_LAG);
    let header = begin::header(request, &plan);
    let folder = OutputFolder::take(&request.out, request.existing)?;
    let files = StudyFiles::of(&folder.path);
    let (journal, kept) = begin::open_journal(&files, &header, request.earlier, progress)?;
    let pool: Box<dyn Pool> = match &request.ray {
        Some(address) => Box::new(ray::Ray::start(address, &plan, &files)?),
        None => Box::new(local::Local::start(jobs, &plan, &files)?),
    };
    let mut study = Study::new(
        Arc::clone(&plan.space),
        plan.machines.clone(),
        Arc::clone(&plan.feasible),
        strategy(&request.strategy, &plan, request.seed, lag)?,
        lag as u32,
    );
    if !request.prune {
        study.without_pruning();
    }
    let memo = begin::memo(request, progress)?;
    let mut drive = Drive::new(&plan, study, pool, journal);
    drive.lag = lag;
    drive.memo = memo;
    drive.stop_hopeless = request.prune;
    if let Some(kept) = kept {
        drive.earlier_seconds = kept.seconds;
        drive.kept = kept.entries;
    }
    drive.listen();
    let ended = drive
        .run(request.budget, progress)
        .and_then(|ended| drive.verify(request.verify, progress).map(|()| ended));
    let notes = match &ended {
        Ok(_) => drive.measure_nearest_miss(progress),
        Err(_) => Vec::new(),
    };
    let circumstances = Circumstances {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        space: request.space.display().to_string(),
        cluster: request.cluster.clone().unwrap_or_default(),
        strategy: request.strategy.to_string(),
        seed: request.seed,
        directory: plan.directory.display().to_string(),
        seconds: drive.seconds(),
        known_at: drive.known_at.clone(),
        ended: match &ended {
            Ok(reason) => (*reason).to_owned(),
            Err(error) => error.to_string(),
        },
        notes,
    };
    let report = summary::report(&drive.study, &circumstances);
    let interrupted = drive.interrupted.load(Ordering::Relaxed);
    drop(drive);
    let written = files.write(&report);
    // What stopped the study matters more than that its table could not be written either.
    ended?;
    written?;
    Ok(Searched { study: report, files, interrupted })
}
