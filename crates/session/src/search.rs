//! `trompe search`: studies whose trials are emulated runs.
//!
//! The space, strategies, rules and the study itself are `trompe-search`'s. Here is what they must not know: clusters by
//! name, the journal's place, processes that run trials, and the clock. A trial runs in a *worker* (`worker`), a
//! process of this same program that keeps the framework imported from one trial to the next; `local` keeps one
//! worker for each job slot, pinned to processors of its own, `ray` has them on a Ray cluster.

mod apply;
mod digest;
mod error;
mod external;
mod files;
mod local;
mod measure;
mod nevergrad;
mod order;
mod ray;
mod serve;
mod trial;
mod watch;
mod worker;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trompe_results::study::{Study as StudyReport, TrialOrigin, TrialStatus};
use trompe_results::{Note, Severity};
use trompe_search::encoding::Encoding;
use trompe_search::journal::{self, Entry, Header, Journal, Kept};
use trompe_search::memo::{Key, Memo};
use trompe_search::space::MachineFacts;
use trompe_search::strategy::{self, Setting, Strategy};
use trompe_search::study::{Asked, Proposal};
use trompe_search::summary::{self, Circumstances};
use trompe_search::{Feasible, Machines, Outcome, Space, Study};

use crate::clock::Stopwatch;
use crate::estimators::{self, EstimatorChoice};
use crate::output::{Existing, OutputFolder};
use crate::{SessionError, cache, disk};

pub use apply::{Application, apply};
pub use error::SearchError;
pub use files::StudyFiles;
pub use order::{Order, Reply};
pub use serve::serve;
pub use trompe_search::spaces::SPACES;
pub use trompe_search::strategy::Choice;
pub use watch::{SearchProgress, State};
pub use worker::work;

use measure::completed;

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

/// A space with everything that is known before a trial runs.
pub(crate) struct Plan {
    pub(crate) space: Arc<Space>,
    pub(crate) machines: Machines,
    pub(crate) feasible: Arc<Feasible>,
    /// Folder that the space file lies in.
    pub(crate) directory: PathBuf,
    /// What trials depend on beside their point.
    pub(crate) grounds: digest::Grounds,
    /// What prices kernels.
    pub(crate) estimators: EstimatorChoice,
}

/// Reads and checks a space.
pub(crate) fn plan(
    space_file: &Path,
    cluster: Option<&str>,
    choice: &EstimatorChoice,
) -> Result<Plan, SessionError> {
    let text = disk::read_text(space_file)?;
    let space = Space::read(&text).map_err(SearchError::Space)?;
    let machines =
        Machines::look_up(&space, cluster, || SessionError::from(SearchError::NoCluster), machine_facts)?;
    let feasible = Feasible::of(&space, &machines).map_err(SearchError::Empty)?;
    let absolute =
        std::path::absolute(space_file).map_err(|source| SessionError::reading(space_file, source))?;
    let folder = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let directory = match &space.job.directory {
        Some(directory) => folder.join(directory),
        None => folder.clone(),
    };
    if !directory.is_dir() {
        return Err(SearchError::NoDirectory { directory }.into());
    }
    measure::check(&space, &machines)?;
    let estimators = usable(choice)?;
    let grounds = digest::Grounds::of(&space, &folder, &directory, &estimators)?;
    Ok(Plan {
        space: Arc::new(space),
        machines,
        feasible: Arc::new(feasible),
        directory,
        grounds,
        estimators,
    })
}

/// The estimators with absolute paths, as workers run elsewhere, after a trial of whether they work.
fn usable(choice: &EstimatorChoice) -> Result<EstimatorChoice, SessionError> {
    if *choice == EstimatorChoice::default() {
        return Ok(EstimatorChoice::default());
    }
    let whole =
        |path: &PathBuf| std::path::absolute(path).map_err(|source| SessionError::reading(path, source));
    let all = |paths: &[PathBuf]| paths.iter().map(whole).collect::<Result<Vec<_>, _>>();
    let choice = EstimatorChoice {
        config: choice.config.as_ref().map(whole).transpose()?,
        models: all(&choice.models)?,
        oracle: all(&choice.oracle)?,
        calibration: choice.calibration.as_ref().map(whole).transpose()?,
        ..choice.clone()
    };
    estimators::stack(&choice)?;
    Ok(choice)
}

fn machine_facts(cluster: &str) -> Result<MachineFacts, SessionError> {
    let sheet = trompe_hardware::resolve(cluster)?;
    Ok(MachineFacts {
        cluster: cluster.to_owned(),
        gpu: sheet.device().name.clone(),
        gpus: sheet.device_count(),
        gpus_per_node: sheet.node.device_count,
        nodes: sheet.node_count,
        memory_bytes: sheet.device().memory.total.0,
    })
}

/// Makes the strategy, of this program or of nevergrad.
pub(crate) fn strategy(
    choice: &Choice,
    plan: &Plan,
    seed: u64,
    width: usize,
) -> Result<Box<dyn Strategy>, SearchError> {
    let encoding = Encoding::of(&plan.space);
    if let Choice::Nevergrad(name) = choice {
        let dimensions = encoding.dimensions();
        return Ok(Box::new(nevergrad::Nevergrad::start(name, dimensions, seed, width, &plan.directory)?));
    }
    let setting = Setting { encoding, feasible: Arc::clone(&plan.feasible), seed };
    let made = strategy::make(choice, &plan.space, &setting);
    Ok(made.expect("every strategy but nevergrad's is made there"))
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
    let header = header(request, &plan);
    let folder = OutputFolder::take(&request.out, request.existing)?;
    let files = StudyFiles::of(&folder.path);
    let (journal, kept) = open_journal(&files, &header, request.earlier, progress)?;
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
    let memo = memo(request, progress)?;
    let mut drive = Drive {
        plan: &plan,
        study,
        pool,
        journal,
        earlier_seconds: kept.as_ref().map_or(0.0, |kept| kept.seconds),
        kept: kept.map(|kept| kept.entries).unwrap_or_default(),
        memo,
        watch: Stopwatch::start(),
        known_at: BTreeMap::new(),
        keys: BTreeMap::new(),
        ready: VecDeque::new(),
        under_way: 0,
        lag,
        stop_hopeless: request.prune,
        interrupted: Arc::new(AtomicBool::new(false)),
    };
    drive.listen();
    let ended = drive.run(request.budget, progress);
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

fn header(request: &Request, plan: &Plan) -> Header {
    let clusters: Vec<String> = plan
        .machines
        .all()
        .map(|facts| {
            let sheet = trompe_hardware::resolve(&facts.cluster).ok();
            let content = sheet.and_then(|sheet| serde_json::to_vec(&sheet).ok()).unwrap_or_default();
            format!("{} {}", facts.cluster, Key::of([content.as_slice()]).text())
        })
        .collect();
    Header {
        trompe_version: plan.grounds.program.clone(),
        space: format!("{:016x}", plan.space.digest),
        code: plan.grounds.code.clone(),
        cluster: clusters.join(", "),
        estimators: plan.grounds.estimators.clone(),
        strategy: request.strategy.to_string(),
        seed: request.seed,
    }
}

/// The journal, and what an earlier session left in it.
fn open_journal(
    files: &StudyFiles,
    header: &Header,
    earlier: Earlier,
    progress: &mut dyn SearchProgress,
) -> Result<(Journal, Option<Kept>), SessionError> {
    let failed = |error| SessionError::from(SearchError::from(error));
    let path = &files.journal;
    let found = match (journal::read(path), earlier) {
        (Ok(found), _) => found,
        (Err(_), Earlier::Restart) => None,
        (Err(error), _) => return Err(failed(error)),
    };
    match (found, earlier) {
        (Some(kept), Earlier::Resume) => {
            let changed = kept.header.differences(header);
            if !changed.is_empty() {
                let changed = changed.join(", ");
                return Err(SearchError::Changed { path: path.clone(), changed }.into());
            }
            progress.note(&format!("going on with {} trials of `{}`", kept.entries.len(), path.display()));
            Ok((Journal::resume(path, &kept).map_err(failed)?, Some(kept)))
        }
        (Some(kept), Earlier::Refuse) if !kept.entries.is_empty() => {
            Err(SearchError::StudyExists { path: path.clone(), trials: kept.entries.len() }.into())
        }
        (_, earlier) => {
            if earlier == Earlier::Restart && path.exists() {
                let aside = path.with_extension("journal.old");
                std::fs::rename(path, &aside).map_err(|source| SessionError::writing(&aside, source))?;
            }
            Ok((Journal::create(path, header).map_err(failed)?, None))
        }
    }
}

fn memo(request: &Request, progress: &mut dyn SearchProgress) -> Result<Option<Memo>, SessionError> {
    if !request.memo {
        return Ok(None);
    }
    let folder = cache::open()?.folder.join("search");
    match Memo::open(&folder) {
        Ok(memo) => Ok(Some(memo)),
        Err(error) => {
            progress.note(&format!(
                "results of earlier studies in `{}` cannot be used: {error}",
                folder.display()
            ));
            Ok(None)
        }
    }
}

/// A study under way with everything that it needs.
struct Drive<'a> {
    plan: &'a Plan,
    study: Study,
    pool: Box<dyn Pool>,
    journal: Journal,
    /// Trials of earlier sessions by point.
    kept: BTreeMap<trompe_search::Point, Entry>,
    memo: Option<Memo>,
    watch: Stopwatch,
    /// Seconds that earlier sessions took.
    earlier_seconds: f64,
    known_at: BTreeMap<u32, f64>,
    /// Under which key the result of a trial under way is kept.
    keys: BTreeMap<u32, Key>,
    /// Outcomes that are known without running, in the order in which they were asked for.
    ready: VecDeque<(u32, Outcome, TrialOrigin)>,
    under_way: usize,
    lag: usize,
    stop_hopeless: bool,
    interrupted: Arc<AtomicBool>,
}

impl Drive<'_> {
    /// Lets `Ctrl-C` end the study in an orderly way.
    fn listen(&self) {
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // A second one ends the program: the journal has everything.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&self.interrupted));
            let _ = signal_hook::flag::register(signal, Arc::clone(&self.interrupted));
        }
    }

    fn seconds(&self) -> f64 {
        self.earlier_seconds + self.watch.elapsed().as_secs_f64()
    }

    /// Runs trials until the budget is spent or nothing is left; why it ended.
    fn run(
        &mut self,
        budget: Budget,
        progress: &mut dyn SearchProgress,
    ) -> Result<&'static str, SessionError> {
        const GLANCE: Duration = Duration::from_millis(200);
        let mut ended = "every point of the space is known";
        let mut asking = true;
        loop {
            while asking && self.under_way + self.ready.len() < self.lag {
                if let Some(reason) = self.spent(budget) {
                    (ended, asking) = (reason, false);
                    break;
                }
                match self.study.ask().map_err(SearchError::from)? {
                    Asked::Run(proposal) => self.begin(&proposal)?,
                    Asked::Wait => break,
                    Asked::Done => asking = false,
                }
            }
            progress.state(&self.state(budget));
            if let Some((number, outcome, origin)) = self.ready.pop_front() {
                self.known_at.entry(number).or_insert_with(|| self.watch.elapsed().as_secs_f64());
                self.study.tell(number, outcome, origin).map_err(SearchError::from)?;
                continue;
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok("it was interrupted");
            }
            if self.under_way == 0 {
                if asking {
                    continue;
                }
                return Ok(ended);
            }
            if let Some(reply) = self.pool.next(GLANCE)? {
                self.under_way -= 1;
                self.finish(reply)?;
            }
        }
    }

    /// Why no further trial begins.
    fn spent(&self, budget: Budget) -> Option<&'static str> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Some("it was interrupted");
        }
        if budget.trials.is_some_and(|most| self.study.proposals() >= most as usize) {
            return Some("the budget of trials is spent");
        }
        if budget.seconds.is_some_and(|most| self.watch.elapsed().as_secs_f64() >= most) {
            return Some("the time is up");
        }
        None
    }

    /// Answers a proposal from the journal or the memo, or has it run.
    fn begin(&mut self, proposal: &Proposal) -> Result<(), SessionError> {
        let number = proposal.number;
        if let Some(entry) = self.kept.remove(&proposal.point) {
            self.known_at.insert(number, entry.at_seconds);
            self.ready.push_back((number, entry.outcome, entry.origin));
            return Ok(());
        }
        let order = self.order(proposal)?;
        let key = self.plan.grounds.key(&order);
        if let Some(outcome) = self.memo.as_ref().and_then(|memo| memo.get(&key)) {
            let outcome = completed(outcome, &self.plan.space, &proposal.values, self.facts(proposal));
            self.write(number, &outcome, TrialOrigin::Cached)?;
            self.ready.push_back((number, outcome, TrialOrigin::Cached));
            return Ok(());
        }
        self.keys.insert(number, key);
        self.pool.submit(order)?;
        self.under_way += 1;
        Ok(())
    }

    fn facts(&self, proposal: &Proposal) -> &MachineFacts {
        self.plan.machines.of(&proposal.point)
    }

    fn order(&self, proposal: &Proposal) -> Result<Order, SessionError> {
        let mut order = order::of(self.plan, proposal)?;
        if !self.stop_hopeless {
            order.best_seconds = None;
        }
        Ok(order)
    }

    /// A trial has ended.
    fn finish(&mut self, reply: Reply) -> Result<(), SessionError> {
        let number = reply.number;
        let trial = &self.study.trials()[number as usize];
        let facts = self.plan.machines.of(&trial.point);
        if let (Some(memo), Some(key)) = (&self.memo, self.keys.remove(&number))
            && reply.is_lasting()
        {
            // A memo that cannot be written costs time later, not this study.
            let _ = memo.put(&key, &reply.outcome);
        }
        let outcome = completed(reply.outcome, &self.plan.space, &trial.values, facts);
        self.write(number, &outcome, reply.origin)?;
        self.study.tell(number, outcome, reply.origin).map_err(SearchError::from)?;
        Ok(())
    }

    /// Writes a finished trial to the journal.
    fn write(&mut self, number: u32, outcome: &Outcome, origin: TrialOrigin) -> Result<(), SessionError> {
        let at_seconds = self.seconds();
        self.known_at.insert(number, at_seconds);
        let point = self.study.trials()[number as usize].point.clone();
        let entry = Entry { point, outcome: outcome.clone(), origin, at_seconds };
        self.journal.add(&entry).map_err(SearchError::from)?;
        Ok(())
    }

    fn state(&self, budget: Budget) -> State {
        watch::state(&self.study, budget, self.seconds(), self.under_way)
    }

    /// When everything is out of memory: how much the trials that came nearest really need.
    fn measure_nearest_miss(&mut self, progress: &mut dyn SearchProgress) -> Vec<Note> {
        const LOOKED_AT: usize = 2;
        if self.study.best().is_some() || self.interrupted.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let ran_out = self.study.trials().iter().filter_map(|trial| {
            let outcome = trial.outcome.as_ref()?;
            let ran = trial.origin != TrialOrigin::Pruned && outcome.status == TrialStatus::OutOfMemory;
            ran.then_some((outcome.missing_bytes.unwrap_or(u64::MAX), trial.number))
        });
        let mut nearest: Vec<(u64, u32)> = ran_out.collect();
        nearest.sort_unstable();
        let mut notes = Vec::new();
        for (_, number) in nearest.into_iter().take(LOOKED_AT) {
            progress.note(&format!("nothing fits; measuring what trial {number} needs"));
            let trial = &self.study.trials()[number as usize];
            let Ok(job) = self.plan.space.job.resolve(&trial.values) else { continue };
            let proposal = Proposal {
                number,
                point: trial.point.clone(),
                values: trial.values.clone(),
                job,
                best_seconds: None,
            };
            let Ok(mut order) = self.order(&proposal) else { continue };
            order.unlimited = true;
            if self.pool.submit(order).is_err() {
                continue;
            }
            let reply = loop {
                match self.pool.next(Duration::from_millis(200)) {
                    Ok(None) if !self.interrupted.load(Ordering::Relaxed) => {}
                    Ok(reply) => break reply,
                    Err(_) => break None,
                }
            };
            let Some(missing) = reply.and_then(|reply| reply.outcome.missing_bytes) else { continue };
            let text = self.study.text(&self.study.trials()[number as usize].point);
            let gib = missing as f64 / f64::from(1 << 30);
            notes.push(Note {
                severity: Severity::Info,
                code: "nearest-miss".to_owned(),
                text: format!("Trial {number} ({text}) would fit with {gib:.1} GiB more on each device."),
                action: None,
            });
        }
        notes
    }
}
