//! The environment that a launcher gives to a rank.

use std::ffi::OsString;
use std::path::PathBuf;

use trompe_base::Rank;

use super::{Launcher, World};
use crate::env;

/// Where the ranks that exist meet, and who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Port of the store, on this machine.
    pub port: u16,
    /// Folder through which the ranks exchange what their communicators carry.
    pub board: PathBuf,
    /// The ranks that exist.
    pub present: Vec<Rank>,
}

/// Names of the variables that differ from rank to rank, or from one attempt at the job to the next.
#[must_use]
pub fn private_variables(world: &World) -> Vec<&'static str> {
    let meeting = Meeting { port: 0, board: PathBuf::new(), present: Vec::new() };
    let first = variables(world, Rank(0), &meeting);
    let others = [1, world.per_node, world.size - 1].map(|rank| rank.min(world.size - 1));
    let others = others.map(|rank| variables(world, Rank(rank), &meeting));
    let differs = |name: &str, value: &OsString| {
        others.iter().any(|other| other.iter().find(|(own, _)| *own == name).is_none_or(|(_, v)| v != value))
    };
    let ours = |name: &str| name.starts_with("TROMPE_") || name == "MASTER_PORT";
    first.iter().filter(|(name, value)| ours(name) || differs(name, value)).map(|(name, _)| *name).collect()
}

/// The variables of one rank, beside those of the emulation.
#[must_use]
pub fn variables(world: &World, rank: Rank, meeting: &Meeting) -> Vec<(&'static str, OsString)> {
    let (size, per_node, nodes) = (world.size, world.per_node, world.nodes());
    let (node, local) = (rank.0 / per_node, rank.0 % per_node);
    let on_node = per_node.min(size - node * per_node);
    let text = |number: u32| OsString::from(number.to_string());
    let present: Vec<String> = meeting.present.iter().map(Rank::to_string).collect();
    let mut variables = vec![
        ("MASTER_ADDR", OsString::from("127.0.0.1")),
        ("MASTER_PORT", OsString::from(meeting.port.to_string())),
        // PyTorch's ranks are then clients of the store at this address; otherwise the first would serve one itself.
        ("TORCHELASTIC_USE_AGENT_STORE", OsString::from("True")),
        (env::TROMPE_BOARD, meeting.board.clone().into()),
        (env::TROMPE_RANK, text(rank.0)),
        (env::TROMPE_RANKS, OsString::from(present.join(","))),
        (env::TROMPE_STORE, OsString::from(format!("127.0.0.1:{}", meeting.port))),
        (env::TROMPE_WORLD_SIZE, text(size)),
    ];
    match world.launcher {
        Launcher::Torchrun { .. } => variables.extend([
            (env::RANK, text(rank.0)),
            (env::WORLD_SIZE, text(size)),
            ("LOCAL_RANK", text(local)),
            (env::LOCAL_WORLD_SIZE, text(on_node)),
            ("GROUP_RANK", text(node)),
            ("GROUP_WORLD_SIZE", text(nodes)),
            ("ROLE_RANK", text(rank.0)),
            ("ROLE_WORLD_SIZE", text(size)),
            ("ROLE_NAME", OsString::from("default")),
            ("TORCHELASTIC_RESTART_COUNT", text(0)),
            ("TORCHELASTIC_MAX_RESTARTS", text(0)),
            ("TORCHELASTIC_RUN_ID", OsString::from("trompe")),
            ("TORCH_NCCL_ASYNC_ERROR_HANDLING", text(1)),
        ]),
        Launcher::DeepSpeed { .. } => {
            let devices: Vec<String> = (0..on_node).map(|device| device.to_string()).collect();
            variables.extend([
                (env::RANK, text(rank.0)),
                (env::WORLD_SIZE, text(size)),
                ("LOCAL_RANK", text(local)),
                ("LOCAL_SIZE", text(on_node)),
                ("CROSS_RANK", text(node)),
                ("CROSS_SIZE", text(nodes)),
                (env::CUDA_VISIBLE_DEVICES, OsString::from(devices.join(","))),
            ]);
        }
        Launcher::Mpi => variables.extend([
            ("OMPI_COMM_WORLD_RANK", text(rank.0)),
            ("OMPI_COMM_WORLD_SIZE", text(size)),
            ("OMPI_COMM_WORLD_LOCAL_RANK", text(local)),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", text(on_node)),
            ("OMPI_COMM_WORLD_NODE_RANK", text(local)),
            ("PMI_RANK", text(rank.0)),
            ("PMI_SIZE", text(size)),
            ("MPI_LOCALRANKID", text(local)),
            ("MPI_LOCALNRANKS", text(on_node)),
        ]),
        Launcher::Slurm => variables.extend([
            ("SLURM_PROCID", text(rank.0)),
            ("SLURM_NTASKS", text(size)),
            ("SLURM_NPROCS", text(size)),
            ("SLURM_STEP_NUM_TASKS", text(size)),
            ("SLURM_LOCALID", text(local)),
            ("SLURM_NODEID", text(node)),
            ("SLURM_NNODES", text(nodes)),
            ("SLURM_JOB_NUM_NODES", text(nodes)),
            ("SLURM_NTASKS_PER_NODE", text(per_node)),
            ("SLURM_TASKS_PER_NODE", OsString::from(format!("{per_node}(x{nodes})"))),
            ("SLURM_JOB_ID", text(1)),
            ("SLURM_JOBID", text(1)),
            ("SLURM_NODELIST", OsString::from("localhost")),
            ("SLURM_JOB_NODELIST", OsString::from("localhost")),
            ("SLURMD_NODENAME", OsString::from("localhost")),
        ]),
        Launcher::Environment => {
            variables.extend([(env::RANK, text(rank.0)), (env::WORLD_SIZE, text(size))]);
            if env::get("LOCAL_RANK").is_none() || world.own_rank != Some(rank.0) {
                variables.push(("LOCAL_RANK", text(local)));
            }
        }
    }
    // As torchrun does it: otherwise each rank would start a thread per core.
    if env::get(env::OMP_NUM_THREADS).is_none() && per_node > 1 {
        variables.push((env::OMP_NUM_THREADS, text(1)));
    }
    variables
}
