//! Tasks of the workspace that `cargo` alone cannot do: `cargo xtask <task>`.
//!
//! One file per task.

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod arrows;
mod bench;
mod coverage;
mod dist;
mod tidy;

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
    /// Check the rules of ARCHITECTURE.md and STYLE.md that a program can check.
    Tidy,
    /// Print which functions of the CUDA libraries are there, and what a call of each does.
    Coverage,
    /// Run benchmarks: ratios against named baselines in one run.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let done = match Arguments::parse().task {
        Task::Dist(arguments) => dist::run(&arguments),
        Task::Tidy => tidy::run(root),
        Task::Coverage => coverage::run(),
        Task::Bench(arguments) => bench::run(root, &arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
