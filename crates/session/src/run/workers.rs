//! The processes of a run: the command itself, or the ranks of a distributed job that run here.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use trompe_base::{Bytes, Rank};
use trompe_fatbin::SmArch;
use trompe_rendezvous::{Ranks, Server};
use trompe_results::{Note, Severity};

use crate::discovery::{Findings, Others, Scout, Unlike, lottery};
use crate::launch::{self, Emulation, Ended, Worker};
use crate::python::{self, Found, Torch};
use crate::run::met;
use crate::world::{self, Launch, Launcher, Meeting, WorkerCommand, World};
use crate::zygote::{NotForked, Script, Zygote};
use crate::{RankChoice, SessionError, env};

/// What to start, and what serves it while it runs.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) list: Vec<Worker>,
    job: Option<Job>,
    /// Of a command of one process: what its processes need if they turn out to be ranks or launchers.
    #[expect(dead_code, reason = "it serves as long as it lives")]
    alone: Option<Alone>,
    /// Why other ranks run than were to at first.
    chosen: Option<Note>,
    /// The process from which the ranks are forked.
    pub(super) zygote: Option<Zygote>,
    /// Why they are not.
    not_forked: Option<NotForked>,
}

/// What one run leaves for the next.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Whether there will be a next run.
    pub(crate) wanted: bool,
    /// An interpreter and its PyTorch, which need not be asked about again.
    pub(crate) torch: Option<(PathBuf, Torch)>,
    /// A PyTorch's folder, an architecture, and their kernel database.
    pub(crate) kernels: Option<(PathBuf, SmArch, PathBuf)>,
    zygote: Option<(Likeness, Zygote)>,
    /// What the prepared process of the run under way is like.
    likeness: Option<Likeness>,
}

/// Everything that two runs must have in common to be forked from one process.
#[derive(Debug, PartialEq, Eq)]
struct Likeness {
    script: (PathBuf, Vec<OsString>, bool, Option<OsString>),
    variables: Vec<(&'static str, OsString)>,
    /// The pretended node, which the prepared process has read.
    node: Vec<u8>,
    private: Vec<&'static str>,
}

impl Likeness {
    fn of(
        script: &Script,
        emulation: &Emulation,
        common: &[(&'static str, OsString)],
        private: &[&'static str],
    ) -> Self {
        let emulated = emulation.variables().into_iter().filter(|(name, _)| *name != env::TROMPE_TRACE_DIR);
        let first = script.argv.first().cloned();
        Self {
            script: (script.python.clone(), script.options.clone(), script.module, first),
            variables: emulated.chain(common.iter().cloned()).collect(),
            node: fs::read(&emulation.config).unwrap_or_default(),
            private: private.to_vec(),
        }
    }
}

#[derive(Debug)]
struct Job {
    world: World,
    cast: Cast,
    store: Server,
    program: PathBuf,
    arguments: Vec<OsString>,
    board: PathBuf,
}

/// Which ranks run, and what for.
#[derive(Clone, Debug, Default)]
struct Cast {
    /// They run to their ends.
    anchors: Vec<Rank>,
    /// They are compared with one of those, and stopped when they are the same.
    checks: Vec<Rank>,
    /// Nothing else is to be found out about which ranks to run.
    settled: bool,
}

impl Cast {
    /// All that run, ascending.
    fn all(&self) -> Vec<Rank> {
        let mut all: Vec<Rank> = self.anchors.iter().chain(&self.checks).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Whoever waits for a rank: through the store, or through the folder of messages.
struct Waiting<'a> {
    store: &'a Server,
    board: &'a Path,
}

impl Others for Waiting<'_> {
    fn gone(&self, rank: Rank) {
        let _ = fs::write(self.board.join(format!("gone-{rank}")), "");
        self.store.gone(rank);
    }

    fn is_needed(&self, rank: Rank) -> bool {
        self.store.is_needed(rank)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.board);
    }
}

/// What processes need that turn out to be ranks which the script starts itself.
#[derive(Debug)]
struct Alone {
    #[expect(dead_code, reason = "it serves as long as it lives")]
    store: Server,
    board: PathBuf,
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.board);
    }
}

/// What came of a launch.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) ended: Ended,
    pub(super) findings: Findings,
    /// The ranks with which the job must start again: those that run to their ends, and those that are compared.
    plan: Option<(Vec<Rank>, Vec<Rank>)>,
}

impl Workers {
    /// Prepares the processes of `launch`; `board` is a folder of theirs.
    pub(super) fn prepare(
        launch: &Launch,
        found: &Found,
        choice: &RankChoice,
        (verify, board): (u32, &Path),
    ) -> Result<Self, SessionError> {
        let Some(world) = &launch.world else {
            let arguments = launch.command.get(1..).unwrap_or_default().to_vec();
            let named = !matches!(choice, RankChoice::Auto | RankChoice::All);
            let is_module = arguments.first().is_some_and(|word| word == "-m");
            if named && python::is_python(found.program.as_os_str()) && !is_module {
                return Err(SessionError::NoRanks);
            }
            fs::create_dir_all(board).map_err(|source| SessionError::writing(board, source))?;
            let store = Server::start(Ranks::new(1, &[Rank(0)]));
            let store = store.map_err(|source| SessionError::NoStore { source })?;
            let launches = board.parent().unwrap_or(board).to_owned();
            let worker = Worker {
                program: found.program.clone(),
                arguments,
                variables: vec![
                    (env::TROMPE_BOARD, board.to_owned().into()),
                    (env::TROMPE_LAUNCH, launches.into()),
                    (env::TROMPE_STORE, OsString::from(format!("127.0.0.1:{}", store.port()))),
                ],
                rank: None,
                checks: false,
            };
            let alone = Some(Alone { store, board: board.to_owned() });
            return Ok(Self {
                list: vec![worker],
                job: None,
                alone,
                chosen: None,
                zygote: None,
                not_forked: None,
            });
        };
        let anchors = world.present(choice)?;
        let auto = *choice == RankChoice::Auto && world.own_rank.is_none();
        let checks = if auto { lottery(world.size, verify, &anchors) } else { Vec::new() };
        let cast = Cast { anchors, checks, settled: !auto };
        let (program, arguments) = program(&world.worker, found)?;
        Self::start((program, arguments), world.clone(), cast, board.to_owned())
    }

    /// Starts the store of a distributed job and says which processes to start.
    fn start(
        (program, arguments): (PathBuf, Vec<OsString>),
        world: World,
        cast: Cast,
        board: PathBuf,
    ) -> Result<Self, SessionError> {
        // Messages of an earlier run would be taken for this one's.
        let _ = fs::remove_dir_all(&board);
        fs::create_dir_all(&board).map_err(|source| SessionError::writing(&board, source))?;
        let present = cast.all();
        let store = Server::start(Ranks::new(world.size, &present));
        let store = store.map_err(|source| SessionError::NoStore { source })?;
        store.post_ids(&board);
        let meeting = Meeting { port: store.port(), board: board.clone(), present: present.clone() };
        let worker = |rank: &Rank| Worker {
            program: program.clone(),
            arguments: with_local_rank(&arguments, &world, *rank),
            variables: world::variables(&world, *rank, &meeting),
            rank: Some(*rank),
            checks: !cast.anchors.contains(rank),
        };
        let list = present.iter().map(worker).collect();
        let job = Job { world, cast, store, program, arguments, board };
        Ok(Self { list, job: Some(job), alone: None, chosen: None, zygote: None, not_forked: None })
    }

    /// Prepares the process from which the ranks are forked: when there are several, or when it is kept for further
    /// runs.
    pub(super) fn prefork(&mut self, emulation: &Emulation, kept: &mut Kept) {
        if !kept.wanted && (self.job.is_none() || self.list.len() < 2) {
            return;
        }
        let Some(first) = self.list.first() else { return };
        let private = match &self.job {
            Some(job) => world::private_variables(&job.world),
            None => first.variables.iter().map(|(name, _)| *name).collect(),
        };
        let common: Vec<_> =
            first.variables.iter().filter(|(name, _)| !private.contains(name)).cloned().collect();
        let (program, arguments) = match &self.job {
            Some(job) => (&job.program, &job.arguments),
            None => (&first.program, &first.arguments),
        };
        let zygote = Script::of(program, arguments).and_then(|script| {
            if !python::is_python(program.as_os_str()) {
                return Err(NotForked(format!("`{}` is not Python", program.display())));
            }
            let likeness = Likeness::of(&script, emulation, &common, &private);
            let alike = kept.zygote.take().filter(|(own, _)| *own == likeness);
            if let Some((_, mut zygote)) = alike
                && zygote.is_alive()
            {
                return Ok((likeness, zygote));
            }
            Ok((likeness, Zygote::start(script, emulation, &common, &private)?))
        });
        match zygote {
            Ok((likeness, zygote)) => {
                self.zygote = Some(zygote);
                kept.likeness = Some(likeness);
            }
            Err(reason) => self.not_forked = Some(reason),
        }
    }

    /// Leaves the prepared process to the next run.
    pub(super) fn keep(&mut self, kept: &mut Kept) {
        if kept.wanted {
            kept.zygote = kept.likeness.take().zip(self.zygote.take());
        }
    }

    /// Runs them. `again`: whether the job may be started again with other ranks.
    pub(super) fn launch(&mut self, emulation: &Emulation, again: bool) -> Result<Launched, SessionError> {
        let Self { list, job, zygote, .. } = self;
        let traces = emulation.traces.clone().unwrap_or_default();
        let Some(job) = job else {
            met::clear(&traces);
            let ended = launch::run(list, emulation, zygote.as_mut(), &mut met::Meeting(&traces))?;
            return Ok(Launched { ended, findings: Findings::default(), plan: None });
        };
        let waiting = Waiting { store: &job.store, board: &job.board };
        let cast = (job.cast.anchors.as_slice(), job.cast.checks.as_slice());
        let mut scout = Scout::new(job.world.size, &traces, waiting, cast, job.cast.settled || !again);
        let mut ended = launch::run(list, emulation, zygote.as_mut(), &mut scout)?;
        if ended.failed.is_none() && ended.interrupted_by.is_none() && scout.is_undecided() {
            ended.stopped = true;
        }
        let plan = scout.plan().filter(|_| ended.stopped);
        Ok(Launched { ended, findings: scout.conclude(), plan })
    }

    /// The same job with other ranks: with those of a plan, or when those that ran could not go on without others.
    pub(super) fn again(&mut self, launched: &Launched) -> Result<Option<Self>, SessionError> {
        let Some(job) = &self.job else { return Ok(None) };
        let (cast, why) = match &launched.plan {
            Some((anchors, checks)) => {
                let cast = Cast { anchors: anchors.clone(), checks: checks.clone(), settled: true };
                (cast, "The groups of the first ranks show that others may differ".to_owned())
            }
            None => {
                let wanted = job.store.wanted();
                let anchors = enough(job.world.size, &job.cast.anchors, &wanted);
                if anchors == job.cast.anchors && job.cast.checks.is_empty() || wanted.is_empty() {
                    return Ok(None);
                }
                let (rank, other) = wanted[0];
                let cast = Cast { anchors, checks: Vec::new(), settled: true };
                (cast, format!("Rank {rank} cannot go on without rank {other}"))
            }
        };
        let present = cast.all();
        let list: Vec<String> = present.iter().map(Rank::to_string).collect();
        // The old folder goes when the old job is dropped.
        let number = job.board.extension().and_then(|end| end.to_str()?.parse::<u32>().ok()).unwrap_or(1);
        let board = job.board.with_extension((number + 1).to_string());
        let command = (job.program.clone(), job.arguments.clone());
        let mut more = Self::start(command, job.world.clone(), cast, board)?;
        (more.zygote, more.not_forked) = (self.zygote.take(), self.not_forked.take());
        more.chosen = Some(Note {
            severity: Severity::Info,
            code: "ranks-chosen".to_owned(),
            text: format!("{why}, so the job was started again with ranks {}.", list.join(", ")),
            action: Some(format!("pass `--ranks {}` to start with them", list.join(","))),
        });
        Ok(Some(more))
    }

    /// Whether the processes are ranks of a distributed job.
    pub(super) const fn are_ranks(&self) -> bool {
        self.job.is_some()
    }

    /// Why other ranks run than were to at first.
    pub(super) const fn chosen(&self) -> Option<&Note> {
        self.chosen.as_ref()
    }

    /// What the user should know about the ranks after they have ended.
    pub(super) fn notes(&self, ended: &Ended, findings: &Findings) -> Vec<Note> {
        let Some(job) = &self.job else { return Vec::new() };
        let mut notes: Vec<Note> = self.chosen.iter().cloned().collect();
        notes.extend(self.not_forked.as_ref().map(|reason| Note {
            severity: Severity::Info,
            code: "not-forked".to_owned(),
            text: format!(
                "Each rank was started as a process of its own, which costs it the time and memory of importing the \
                 framework: {reason}."
            ),
            action: None,
        }));
        if let Some(rank) = ended.failed {
            let others = if self.list.len() > 1 { "; the other ranks were stopped" } else { "" };
            notes.push(Note {
                severity: Severity::Error,
                code: "rank-failed".to_owned(),
                text: format!(
                    "Rank {rank} of {} ended with exit code {}{others}.",
                    job.world.size,
                    ended.exit_code()
                ),
                action: Some("its own message is above".to_owned()),
            });
        }
        let cut = ended.failed.is_some() || ended.interrupted_by.is_some();
        notes.extend(told(job, findings, cut));
        let assumed = job.store.assumed();
        if let Some(first) = assumed.first() {
            notes.push(Note {
                severity: Severity::Warning,
                code: "assumed-keys".to_owned(),
                text: format!(
                    "Ranks waited for {} values that only absent ranks would have given (the first: `{first}`); \
                     made-up ones were used.",
                    assumed.len()
                ),
                action: Some("let more ranks run, for example with `--ranks 0,1,…`".to_owned()),
            });
        }
        notes
    }
}

/// How many ranks ran, were compared, and are assumed. `cut`: they were stopped.
fn told(job: &Job, findings: &Findings, cut: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    let how = if cut { "ran until the job was stopped" } else { "ran to the end" };
    let compared = findings.checked.len();
    if !job.cast.checks.is_empty() || compared > 0 {
        let ran = job.cast.all().len() - compared;
        let assumed = job.world.size as usize - job.cast.all().len();
        let pairs: Vec<String> =
            findings.checked.iter().take(8).map(|(rank, like)| format!("{rank} as {like}")).collect();
        let more = if compared > pairs.len() { ", …" } else { "" };
        let pairs =
            if pairs.is_empty() { String::new() } else { format!(" (rank {}{more})", pairs.join(", ")) };
        notes.push(Note {
            severity: Severity::Info,
            code: "ranks".to_owned(),
            text: format!(
                "Of {} ranks {ran} {how}, {compared} did the same operations in the same memory as \
                 one of those over two steps{pairs}, and {assumed} are assumed to.",
                job.world.size
            ),
            action: (assumed > 0).then(|| "pass `--verify N` to compare N others".to_owned()),
        });
    }
    for difference in &findings.differences {
        let (rank, like) = (difference.rank, difference.like);
        let what = match difference.what {
            Unlike::Operation { number, own, other } => format!(
                "does not do what rank {like} does: its operation {number} is {own}, there it is {other} or has other sizes"
            ),
            Unlike::Memory { own, other } => format!(
                "does what rank {like} does, but its peak memory is {}, there it is {}",
                Bytes(own),
                Bytes(other)
            ),
        };
        notes.push(Note {
            severity: Severity::Warning,
            code: "rank-differs".to_owned(),
            text: format!("Rank {rank} {what}. Ranks near it that did not run may differ too."),
            action: Some("let more of them run with `--ranks`".to_owned()),
        });
    }
    notes
}

fn program(worker: &WorkerCommand, found: &Found) -> Result<(PathBuf, Vec<OsString>), SessionError> {
    match worker {
        WorkerCommand::Python(arguments) => Ok((found.python.clone(), arguments.clone())),
        WorkerCommand::Program(words) => {
            let path = env::get(env::PATH).unwrap_or_default();
            let name = words.first().cloned().unwrap_or_default();
            let program = python::which(&name, &path).ok_or_else(|| SessionError::Command {
                command: name.to_string_lossy().into_owned(),
                reason: "there is no such program".to_owned(),
            })?;
            Ok((program, words.get(1..).unwrap_or_default().to_vec()))
        }
    }
}

/// The ranks to run when some of `present` want others.
///
/// Ranks that wait for each other's objects are neighbours in a pipeline, so whichever of the two ends says it first, the ranks at
/// that distance from the first one are one pipeline, of all stages; it is enough. Otherwise the wanted ones are added.
fn enough(size: u32, present: &[Rank], wanted: &[(Rank, Rank)]) -> Vec<Rank> {
    const LONGEST: u32 = 64;
    let ends = wanted.iter().filter(|(rank, _)| rank.0 == 0 || rank.0 + 1 == size);
    let distance = ends.map(|(rank, other)| rank.0.abs_diff(other.0)).min();
    if let Some(distance) = distance.filter(|n| *n > 0 && size.is_multiple_of(*n) && size / n <= LONGEST) {
        let pipeline: Vec<Rank> = (0..size).step_by(distance as usize).map(Rank).collect();
        if !pipeline.iter().all(|rank| present.contains(rank)) {
            return pipeline;
        }
    }
    let mut ranks: Vec<Rank> =
        present.iter().copied().chain(wanted.iter().map(|(_, other)| *other)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The old launcher of PyTorch and that of DeepSpeed also give the rank in the node as the script's first argument.
fn with_local_rank(arguments: &[OsString], world: &World, rank: Rank) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    let name = match world.launcher {
        Launcher::Torchrun { local_rank_argument: true } => "--local-rank",
        Launcher::DeepSpeed { local_rank_argument: true } => "--local_rank",
        _ => return arguments,
    };
    let script = arguments.iter().position(|word| !word.to_string_lossy().starts_with('-'));
    let at = script.map_or(arguments.len(), |at| at + 1);
    arguments.insert(at, format!("{name}={}", rank.0 % world.per_node).into());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(present: &[u32], wanted: &[(u32, u32)], expect: &[u32]) {
        let present: Vec<Rank> = present.iter().copied().map(Rank).collect();
        let wanted: Vec<_> = wanted.iter().map(|(rank, other)| (Rank(*rank), Rank(*other))).collect();
        let found: Vec<u32> = enough(32, &present, &wanted).iter().map(|rank| rank.0).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn wanted_ranks_run_in_the_next_attempt() {
        check(&[0, 31], &[], &[0, 31]);
        check(&[0, 31], &[(0, 8), (31, 23)], &[0, 8, 16, 24]);
        // Whoever says it first.
        check(&[0, 31], &[(31, 23)], &[0, 8, 16, 24]);
        check(&[0, 31], &[(0, 24), (31, 23)], &[0, 8, 16, 24]);
        check(&[0, 31], &[(0, 5)], &[0, 5, 31]);
        check(&[0, 8, 16, 24], &[(0, 8), (8, 9)], &[0, 8, 9, 16, 24]);
    }
}
