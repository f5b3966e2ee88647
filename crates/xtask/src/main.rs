//! Tasks of the workspace that `cargo` alone cannot do: `cargo xtask <task>`.
//!
//! One file per task.

use clap::{Parser, Subcommand};

mod dist;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the workspace")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the preloaded library and the thin libraries that stand in for CUDA's.
    Dist(dist::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Dist(arguments) => dist::run(&arguments),
    }
}
