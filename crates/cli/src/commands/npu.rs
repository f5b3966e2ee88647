//! `trompe npu`: kernels on simulated NPUs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use trompe_session::npu::{self, JobRequest, Options, Request, Target, TuneRequest};

use crate::commands;

#[derive(Debug, Args)]
pub(crate) struct NpuArguments {
    #[command(subcommand)]
    command: NpuCommand,
}

#[derive(Debug, Subcommand)]
enum NpuCommand {
    /// Run a kernel: its results, its cycles, and where they went.
    Run(RunArguments),
    /// Check a program against a device without running it.
    Validate(TargetArguments),
    /// Write the trace of a job made of kernels, for `trompe simulate`.
    Job(JobArguments),
    /// Run variants of a kernel timing-only and rank them by makespan.
    Tune(TuneArguments),
}

#[derive(Debug, Args)]
struct TargetArguments {
    /// Program file (.json), or a Python script (.py) that is called with the name of the file to write.
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
    /// Device: ascend-910b, ascend-950 or another name, or a .toml file.
    #[arg(long, value_name = "NAME", default_value = "ascend-950")]
    device: String,
    /// Cycle model: reference, calibrated, or a .toml file.
    #[arg(long, value_name = "NAME", default_value = "calibrated")]
    profile: String,
    /// Value of a keyword of the script, or of a variable of a JSON program.
    #[arg(long = "set", value_name = "NAME=V", value_parser = value)]
    values: Vec<(String, i64)>,
}

#[derive(Debug, Args)]
struct JobArguments {
    /// Job file (.json), or a Python script (.py) that is called with the name of the file to write.
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// Cluster that it is meant for; `trompe simulate --cluster` takes another one.
    #[arg(long, value_name = "SPEC", default_value = "atlas-800t-a2")]
    cluster: String,
    /// Cycle model: reference, calibrated, or a .toml file.
    #[arg(long, value_name = "NAME", default_value = "calibrated")]
    profile: String,
    /// Value of a keyword of the script.
    #[arg(long = "set", value_name = "NAME=V", value_parser = value)]
    values: Vec<(String, i64)>,
    /// The trace to write.
    #[arg(long, value_name = "FILE", default_value = "job.trace")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Content of an input tensor.
    #[arg(long = "in", value_name = "NAME=FILE.npy", value_parser = pair)]
    inputs: Vec<(String, PathBuf)>,
    /// Folder for the output tensors, one .npy each, and for report.html and report.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// File for the timeline (Chrome, Perfetto).
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// Only cycles: no data is touched.
    #[arg(long)]
    timing_only: bool,
    /// Reproduce another simulator's known differences: `reference`.
    #[arg(long, value_name = "WHAT", value_parser = ["reference"])]
    compat: Option<String>,
    /// Threads; the results do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Instructions a lane may execute.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    budget: u64,
}

#[derive(Debug, Args)]
struct TuneArguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Values of a parameter: of the script's keyword, or of the variable of a JSON program.
    #[arg(long = "param", value_name = "NAME=V,V,…", value_parser = values, required = true)]
    parameters: Vec<(String, Vec<i64>)>,
    /// What is tried: grid (every combination), auto, cma, oneplusone, pso, twopointsde or random; grid when there
    /// are at most 512 combinations, else auto.
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// Most variants that are run; all for grid, else 64 when not given.
    #[arg(long, value_name = "N")]
    budget: Option<usize>,
    /// Seed of the strategy: the same seed runs the same variants.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

fn pair(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').ok_or("write it as NAME=file.npy")?;
    Ok((name.to_owned(), file.into()))
}

fn value(text: &str) -> Result<(String, i64), String> {
    let (name, number) = text.split_once('=').ok_or("write it as NAME=64")?;
    Ok((name.to_owned(), number.parse().map_err(|_| format!("`{number}` is no whole number"))?))
}

fn values(text: &str) -> Result<(String, Vec<i64>), String> {
    let (name, list) = text.split_once('=').ok_or("write it as NAME=64,128")?;
    let values: Result<Vec<i64>, _> = list.split(',').map(str::parse).collect();
    Ok((name.to_owned(), values.map_err(|_| format!("`{list}` is no list of whole numbers"))?))
}

impl From<TargetArguments> for Target {
    fn from(arguments: TargetArguments) -> Self {
        let TargetArguments { program, device, profile, values } = arguments;
        Self { program, device, profile, values }
    }
}

pub(crate) fn run(arguments: NpuArguments) -> anyhow::Result<ExitCode> {
    let text = match arguments.command {
        NpuCommand::Run(arguments) => {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let options = Options {
                timing_only: arguments.timing_only,
                compat: arguments.compat.is_some(),
                budget: arguments.budget,
                threads: arguments.threads.unwrap_or(cores),
                ..Options::default()
            };
            let RunArguments { target, inputs, out, trace, .. } = arguments;
            npu::run(&Request { target: target.into(), inputs, out, trace, options })?
        }
        NpuCommand::Validate(target) => format!("{} is valid\n", npu::validate(&target.into())?),
        NpuCommand::Job(arguments) => {
            let JobArguments { job, cluster, profile, values, out } = arguments;
            npu::job(&JobRequest { job, values, cluster, profile, out })?
        }
        NpuCommand::Tune(arguments) => {
            let TuneArguments { target, parameters, strategy, budget, seed } = arguments;
            npu::tune(&TuneRequest { target: target.into(), parameters, strategy, budget, seed })?
        }
    };
    commands::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
