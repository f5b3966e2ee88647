//! The processes of a run: the command itself, or the ranks of a distributed job that run here.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use trompe_base::Rank;
use trompe_rendezvous::{Ranks, Server};
use trompe_results::{Note, Severity};

use crate::launch::{Ended, Worker};
use crate::python::{self, Found};
use crate::world::{self, Launch, Launcher, Meeting, WorkerCommand, World};
use crate::{RankChoice, SessionError, env};

/// What to start, and what serves it while it runs.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) list: Vec<Worker>,
    job: Option<Job>,
}

#[derive(Debug)]
struct Job {
    world: World,
    present: Vec<Rank>,
    store: Server,
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
            let worker =
                Worker { program: found.program.clone(), arguments, variables: Vec::new(), rank: None };
            return match choice {
                RankChoice::Auto => Ok(Self { list: vec![worker], job: None }),
                _ => Err(SessionError::NoRanks),
            };
        };
        let present = world.present(choice)?;
        // Messages of an earlier run would be taken for this one's.
        let _ = fs::remove_dir_all(board);
        fs::create_dir_all(board).map_err(|source| SessionError::writing(board, source))?;
        let store = Server::start(Ranks::new(world.size, &present));
        let store = store.map_err(|source| SessionError::NoStore { source })?;
        let meeting = Meeting { port: store.port(), board: board.to_owned(), present: present.clone() };
        let (program, arguments) = program(&world.worker, found)?;
        let worker = |rank: &Rank| Worker {
            program: program.clone(),
            arguments: with_local_rank(&arguments, world, *rank),
            variables: world::variables(world, *rank, &meeting),
            rank: Some(*rank),
        };
        let list = present.iter().map(worker).collect();
        Ok(Self { list, job: Some(Job { world: world.clone(), present, store }) })
    }

    /// What the user should know about the ranks after they have ended.
    pub(super) fn notes(&self, ended: &Ended) -> Vec<Note> {
        let Some(job) = &self.job else { return Vec::new() };
        let mut notes = Vec::new();
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
