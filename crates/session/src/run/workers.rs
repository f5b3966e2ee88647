//! The processes of a run: the command itself, or the ranks of a distributed job that run here.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use trompe_base::Rank;
use trompe_rendezvous::{Ranks, Server};
use trompe_results::{Note, Severity};

use crate::launch::{Emulation, Ended, Worker};
use crate::python::{self, Found};
use crate::world::{self, Launch, Launcher, Meeting, WorkerCommand, World};
use crate::zygote::{NotForked, Script, Zygote};
use crate::{RankChoice, SessionError, env};

/// What to start, and what serves it while it runs.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) list: Vec<Worker>,
    job: Option<Job>,
    /// Why other ranks run than were to at first.
    chosen: Option<Note>,
    /// The process from which the ranks are forked.
    pub(super) zygote: Option<Zygote>,
    /// Why they are not.
    not_forked: Option<NotForked>,
}

#[derive(Debug)]
struct Job {
    world: World,
    present: Vec<Rank>,
    store: Server,
    program: PathBuf,
    arguments: Vec<OsString>,
    board: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.board);
    }
}

impl Workers {
    /// Prepares the processes of `launch`; `board` is a folder of theirs.
    pub(super) fn prepare(
        launch: &Launch,
        found: &Found,
        choice: &RankChoice,
        board: &Path,
    ) -> Result<Self, SessionError> {
        let Some(world) = &launch.world else {
            let arguments = launch.command.get(1..).unwrap_or_default().to_vec();
            let worker = Worker {
                program: found.program.clone(),
                arguments,
                variables: Vec::new(),
                rank: None,
                checks: false,
            };
            return match choice {
                RankChoice::Auto => {
                    Ok(Self { list: vec![worker], job: None, chosen: None, zygote: None, not_forked: None })
                }
                _ => Err(SessionError::NoRanks),
            };
        };
        let present = world.present(choice)?;
        let (program, arguments) = program(&world.worker, found)?;
        Self::start((program, arguments), world.clone(), present, board.to_owned())
    }

    /// Starts the store of a distributed job and says which processes to start.
    fn start(
        (program, arguments): (PathBuf, Vec<OsString>),
        world: World,
        present: Vec<Rank>,
        board: PathBuf,
    ) -> Result<Self, SessionError> {
        // Messages of an earlier run would be taken for this one's.
        let _ = fs::remove_dir_all(&board);
        fs::create_dir_all(&board).map_err(|source| SessionError::writing(&board, source))?;
        let store = Server::start(Ranks::new(world.size, &present));
        let store = store.map_err(|source| SessionError::NoStore { source })?;
        let meeting = Meeting { port: store.port(), board: board.clone(), present: present.clone() };
        let worker = |rank: &Rank| Worker {
            program: program.clone(),
            arguments: with_local_rank(&arguments, &world, *rank),
            variables: world::variables(&world, *rank, &meeting),
            rank: Some(*rank),
            checks: false,
        };
        let list = present.iter().map(worker).collect();
        let job = Job { world, present, store, program, arguments, board };
        Ok(Self { list, job: Some(job), chosen: None, zygote: None, not_forked: None })
    }

    /// Prepares the process from which the ranks are forked, when there are several.
    pub(super) fn prefork(&mut self, emulation: &Emulation) {
        let Some(job) = self.job.as_ref().filter(|_| self.list.len() > 1) else { return };
        let Some(first) = self.list.first() else { return };
        let private = world::private_variables(&job.world);
        let common: Vec<_> =
            first.variables.iter().filter(|(name, _)| !private.contains(name)).cloned().collect();
        let zygote = Script::of(&job.program, &job.arguments).and_then(|script| {
            match python::is_python(job.program.as_os_str()) {
                true => Zygote::start(script, emulation, &common, &private),
                false => Err(NotForked(format!("`{}` is not Python", job.program.display()))),
            }
        });
        match zygote {
            Ok(zygote) => self.zygote = Some(zygote),
            Err(reason) => self.not_forked = Some(reason),
        }
    }

    /// The same job with more ranks, when those that ran could not go on without others.
    pub(super) fn with_wanted(&mut self) -> Result<Option<Self>, SessionError> {
        let Some(job) = &self.job else { return Ok(None) };
        let wanted = job.store.wanted();
        let present = enough(job.world.size, &job.present, &wanted);
        if present == job.present {
            return Ok(None);
        }
        // The old folder goes when the old job is dropped.
        let board = job.board.with_extension(present.len().to_string());
        let command = (job.program.clone(), job.arguments.clone());
        let mut more = Self::start(command, job.world.clone(), present.clone(), board)?;
        (more.zygote, more.not_forked) = (self.zygote.take(), self.not_forked.take());
        let list: Vec<String> = present.iter().map(Rank::to_string).collect();
        let (rank, other) = wanted[0];
        more.chosen = Some(Note {
            severity: Severity::Info,
            code: "ranks-chosen".to_owned(),
            text: format!(
                "Rank {rank} cannot go on without rank {other}, so the job was started again with ranks {}.",
                list.join(", ")
            ),
            action: Some(format!("pass `--ranks {}` to start with them", list.join(","))),
        });
        Ok(Some(more))
    }

    /// Why other ranks run than were to at first.
    pub(super) const fn chosen(&self) -> Option<&Note> {
        self.chosen.as_ref()
    }

    /// What the user should know about the ranks after they have ended.
    pub(super) fn notes(&self, ended: &Ended) -> Vec<Note> {
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
            let others = if job.present.len() > 1 { "; the other ranks were stopped" } else { "" };
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
/// Ranks that wait for each other's objects are neighbours in a pipeline. When the first rank wants one, the ranks at
/// that distance from each other are one pipeline, of all stages; it is enough. Otherwise the wanted ones are added.
fn enough(size: u32, present: &[Rank], wanted: &[(Rank, Rank)]) -> Vec<Rank> {
    const LONGEST: u32 = 64;
    let distance = wanted.iter().filter(|(rank, _)| rank.0 == 0).map(|(_, other)| other.0).min();
    if let Some(distance) = distance.filter(|n| *n > 0 && size.is_multiple_of(*n) && size / n <= LONGEST) {
        let pipeline: Vec<Rank> = (0..size).step_by(distance as usize).map(Rank).collect();
        if pipeline != present {
            return pipeline;
        }
    }
    let mut ranks: Vec<Rank> =
        present.iter().copied().chain(wanted.iter().map(|(_, other)| *other)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The old launcher of PyTorch also gives the rank in the node as the script's first argument.
fn with_local_rank(arguments: &[OsString], world: &World, rank: Rank) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    if world.launcher == (Launcher::Torchrun { local_rank_argument: true }) {
        let script = arguments.iter().position(|word| !word.to_string_lossy().starts_with('-'));
        let at = script.map_or(arguments.len(), |at| at + 1);
        arguments.insert(at, format!("--local-rank={}", rank.0 % world.per_node).into());
    }
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
        check(&[0, 31], &[(31, 23)], &[0, 23, 31]);
        check(&[0, 31], &[(0, 5)], &[0, 5, 31]);
        check(&[0, 8, 16, 24], &[(0, 8), (8, 9)], &[0, 8, 9, 16, 24]);
    }
}
