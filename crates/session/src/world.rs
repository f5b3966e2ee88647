//! Distributed jobs: whose launcher the command is, how many ranks it would start, and which of them run here.
//!
//! trompe takes the launcher's place. It reads the launcher's own arguments, gives each rank the environment that the
//! launcher would have given it, starts only some ranks, and the rest is answered for: by the store
//! (`trompe-rendezvous`), by the preloaded library and by the Python hook, which are told through the environment
//! which ranks exist.

mod deepspeed;
mod environment;
mod mpi;
mod ranks;
mod torchrun;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use trompe_base::Rank;
use trompe_hardware::ClusterSheet;

use crate::{SessionError, env, python};

pub use environment::{Meeting, private_variables, variables};
pub use ranks::{BadRankChoice, RankChoice};

/// What a command line starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The command without launchers that need not be installed here (`mpirun`, `srun`): its first word is looked for.
    pub command: Vec<OsString>,
    /// The distributed job; `None` for a command of one process.
    pub world: Option<World>,
}

/// A distributed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Number of ranks.
    pub size: u32,
    /// Ranks per node.
    pub per_node: u32,
    /// What each rank runs.
    pub worker: WorkerCommand,
    /// Whose environment the ranks expect.
    pub launcher: Launcher,
    /// The rank that the command's own environment names, when it is not a launcher's.
    pub own_rank: Option<u32>,
}

/// What each rank runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerCommand {
    /// The job's Python with these arguments.
    Python(Vec<OsString>),
    /// A program with its arguments.
    Program(Vec<OsString>),
}

/// Launchers whose place trompe takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `torchrun`, `python -m torch.distributed.run` or `…launch`.
    Torchrun {
        /// The rank in its node is also given as an argument (`torch.distributed.launch` without `--use-env`).
        local_rank_argument: bool,
    },
    /// `deepspeed`.
    DeepSpeed {
        /// The rank in its node is also given as an argument (without `--no_local_rank`).
        local_rank_argument: bool,
    },
    /// `mpirun`, `mpiexec`.
    Mpi,
    /// `srun`.
    Slurm,
    /// None: the environment of the command names the rank.
    Environment,
}

impl World {
    /// Number of nodes that the ranks fill.
    #[must_use]
    pub const fn nodes(&self) -> u32 {
        self.size.div_ceil(self.per_node)
    }

    /// The ranks that run here.
    ///
    /// # Errors
    /// When a chosen rank does not exist.
    pub fn present(&self, choice: &RankChoice) -> Result<Vec<Rank>, SessionError> {
        match (choice, self.own_rank) {
            (RankChoice::Auto, Some(rank)) => Ok(vec![Rank(rank)]),
            _ => choice.of(self.size),
        }
    }
}

/// Reads a command line.
///
/// # Errors
/// When a launcher's arguments make no sense, or its ranks do not fit the cluster.
pub fn read(command: &[OsString], cluster: &ClusterSheet) -> Result<Launch, SessionError> {
    let (own, mpi) = mpi::read(command, cluster)?;
    let named = match torchrun::read(own, cluster)? {
        Some(world) => Some(world),
        None => deepspeed::read(own, cluster)?,
    };
    let world = match named.or(mpi) {
        Some(world) => Some(world),
        None => from_environment(own)?,
    };
    if let Some(world) = &world {
        fits(world, cluster)?;
    }
    let mut command = own.to_vec();
    let own_launcher =
        world.as_ref().is_some_and(|world| matches!(world.launcher, Launcher::DeepSpeed { .. }));
    let path = env::get(env::PATH).unwrap_or_default();
    if own_launcher && own.first().is_some_and(|first| python::which(first, &path).is_none()) {
        // The launcher need not be installed.
        command.splice(..1, [OsString::from("python")]);
    }
    Ok(Launch { command, world })
}

/// A job whose launcher was met on the way: `per_node` ranks on each of `nodes` nodes, or of all that the cluster has.
///
/// # Errors
/// When the ranks do not fit the cluster.
pub fn met(
    command: &[OsString],
    per_node: u32,
    nodes: Option<u32>,
    cluster: &ClusterSheet,
) -> Result<Launch, SessionError> {
    let size = nodes.unwrap_or(cluster.node_count).saturating_mul(per_node);
    let worker = WorkerCommand::Program(command.to_vec());
    let launcher = Launcher::Torchrun { local_rank_argument: false };
    let world = World { size, per_node, worker, launcher, own_rank: None };
    fits(&world, cluster)?;
    Ok(Launch { command: command.to_vec(), world: (size > 1).then_some(world) })
}

/// A job that was started by hand as one rank of many.
fn from_environment(command: &[OsString]) -> Result<Option<World>, SessionError> {
    let number = |name| -> Result<Option<u32>, SessionError> {
        let Some(text) = env::get(name) else { return Ok(None) };
        let text = text.to_string_lossy();
        let read = text.trim().parse().map_err(|_| SessionError::BadLaunch {
            reason: format!("the environment variable {name} is `{text}`, which is no number"),
        });
        read.map(Some)
    };
    let (Some(size), Some(rank)) = (number(env::WORLD_SIZE)?, number(env::RANK)?) else { return Ok(None) };
    if size < 2 {
        return Ok(None);
    }
    if rank >= size {
        return Err(SessionError::BadLaunch {
            reason: format!("the environment names rank {rank} of only {size}"),
        });
    }
    let per_node = number(env::LOCAL_WORLD_SIZE)?.filter(|n| *n > 0).unwrap_or(size);
    let worker = WorkerCommand::Program(command.to_vec());
    Ok(Some(World { size, per_node, worker, launcher: Launcher::Environment, own_rank: Some(rank) }))
}

fn fits(world: &World, cluster: &ClusterSheet) -> Result<(), SessionError> {
    let devices = cluster.device_count();
    let too_many = world.launcher != Launcher::Environment && world.per_node > cluster.node.device_count;
    if world.size > devices || too_many {
        return Err(SessionError::WorldTooLarge {
            size: world.size,
            per_node: world.per_node,
            cluster: cluster.name.clone(),
            devices,
            devices_per_node: cluster.node.device_count,
        });
    }
    Ok(())
}

/// The last part of a word of the command, for comparing with the names of launchers.
fn name_of(word: &OsStr) -> &str {
    Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
