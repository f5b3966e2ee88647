//! `mpirun`, `mpiexec` and `srun`: how many ranks, and the command that each of them runs.

use std::ffi::OsString;

use trompe_hardware::ClusterSheet;

use super::{Launcher, WorkerCommand, World, name_of};
use crate::SessionError;

/// Options of Open MPI, MPICH and Slurm that have no value. Any other option takes the next word as its value, unless
/// that begins with `-`; `--name=value` is one word.
const FLAGS: [&str; 20] = [
    "--allow-run-as-root",
    "--bind-to-none",
    "--oversubscribe",
    "--display-map",
    "--display-allocation",
    "--report-bindings",
    "--tag-output",
    "--timestamp-output",
    "--quiet",
    "-q",
    "-v",
    "--verbose",
    "--exclusive",
    "--overlap",
    "--label",
    "-l",
    "--unbuffered",
    "-u",
    "--no-kill",
    "--export-all",
];

/// Options of Open MPI with two values.
const PAIRS: [&str; 3] = ["--mca", "-mca", "--gmca"];

/// The command without its launcher, and the job that the launcher starts; the command as it is when it has none.
///
/// # Errors
/// When the launcher is not told how many ranks to start, or no command.
pub(super) fn read<'a>(
    command: &'a [OsString],
    cluster: &ClusterSheet,
) -> Result<(&'a [OsString], Option<World>), SessionError> {
    let launcher = match command.first().map(|word| name_of(word)) {
        Some("mpirun" | "mpiexec" | "orterun" | "mpiexec.hydra") => Launcher::Mpi,
        Some("srun") => Launcher::Slurm,
        _ => return Ok((command, None)),
    };
    let name = name_of(&command[0]);
    let bad = |reason: String| SessionError::BadLaunch { reason };
    let mut counts = Counts::default();
    let mut at = 1;
    while let Some(word) = command.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-'))
    {
        at += 1;
        if word == "--" {
            break;
        }
        if FLAGS.contains(&word) {
            continue;
        }
        if PAIRS.contains(&word) {
            at += 2;
            continue;
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            // `-n8`
            None if word.len() > 2 && word.as_bytes()[1] != b'-' && word[2..].parse::<u32>().is_ok() => {
                (&word[..2], Some(&word[2..]))
            }
            None => {
                let next =
                    command.get(at).and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'));
                at += usize::from(next.is_some());
                (word, next)
            }
        };
        counts.set(option, value.unwrap_or_default(), launcher)?;
    }
    let own = command.get(at..).filter(|rest| !rest.is_empty());
    let own = own.ok_or_else(|| bad(format!("`{name}` is not told which command to run")))?;
    let per_node = counts.per_node.unwrap_or(cluster.node.device_count);
    let size =
        counts.size.or_else(|| counts.per_node.map(|n| n * counts.nodes.unwrap_or(cluster.node_count)));
    let size = match (size, launcher) {
        (Some(size), _) => size,
        // Slurm starts one task per node.
        (None, Launcher::Slurm) => counts.nodes.unwrap_or(1),
        (None, _) => return Err(bad(format!("`{name}` is not told how many ranks to start (`-n`)"))),
    };
    let world = World {
        size,
        per_node: per_node.min(size),
        worker: WorkerCommand::Program(own.to_vec()),
        launcher,
        own_rank: None,
    };
    Ok((own, (size > 1).then_some(world)))
}

#[derive(Debug, Default)]
struct Counts {
    size: Option<u32>,
    per_node: Option<u32>,
    nodes: Option<u32>,
}

impl Counts {
    fn set(&mut self, option: &str, value: &str, launcher: Launcher) -> Result<(), SessionError> {
        let slurm = launcher == Launcher::Slurm;
        let field = match option {
            "-n" | "-np" | "--np" | "--n" | "-c" if !slurm => &mut self.size,
            "-n" | "--ntasks" if slurm => &mut self.size,
            "-npernode" | "--npernode" | "-N" | "-ppn" | "--ppn" if !slurm => &mut self.per_node,
            "--ntasks-per-node" if slurm => &mut self.per_node,
            "-N" | "--nodes" if slurm => &mut self.nodes,
            _ => return Ok(()),
        };
        let number = value.parse().ok().filter(|number| *number > 0);
        *field = Some(number.ok_or_else(|| SessionError::BadLaunch {
            reason: format!("`{option} {value}` is no number of ranks or nodes"),
        })?);
        Ok(())
    }
}
