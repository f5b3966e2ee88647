//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use trompe_session::calibration::CalibrationChoice;
use trompe_session::estimators::Clock;
use trompe_session::{
    HostChoice, JitterChoice, NetworkSource, RankChoice, Routing, StepChoice, StragglerChoice,
};

/// Predicts what a deep-learning training job will do on a GPU cluster, without any GPU.
#[derive(Debug, Parser)]
#[command(name = "trompe", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a training command on pretended GPUs and predict its step time and memory.
    Run(Box<RunArguments>),
    /// Simulate a kept trace again, on other hardware or with another host model.
    Simulate(SimulateArguments),
    /// Find the best configuration of a script: which parallelism, which batch, which hardware.
    Search(Box<crate::commands::search::SearchArguments>),
    /// Look into traces.
    Trace(TraceArguments),
    /// Print the report of an output folder again.
    Report(ReportArguments),
    /// Check the installation: what was found, what is missing, how to mend it.
    Doctor(DoctorArguments),
    /// List the devices and nodes that can be simulated.
    Gpus(GpusArguments),
    /// Explain and fit the times of collectives.
    Network(crate::commands::network::NetworkArguments),
    /// Estimate kernel times: predict, explain, compare with measurements, learn from your own.
    Estimate(crate::commands::estimate::EstimateArguments),
    /// Learn from measurements of a real GPU or cluster: kernels, collectives, the speed of its hosts.
    Calibrate(Box<crate::commands::calibrate::CalibrateArguments>),
    /// Measure on a machine with a real GPU, and learn from it.
    Profile(Box<crate::commands::profile::ProfileArguments>),
    /// Compare predictions with public or your own measurements and show the errors.
    Validate(crate::commands::validate::ValidateArguments),
    /// Simulate NPU kernels cycle by cycle: run, validate, tune.
    Npu(crate::commands::npu::NpuArguments),
}

const RUN_EXAMPLES: &str = "\
Examples:
  trompe run -- python train.py --batch 8
  trompe run --cluster a100-80 --out a100 -- python train.py
  trompe run --cluster dgx-h100:4 -- torchrun --nproc-per-node 8 train.py
  trompe run --host scale=0.6 --steps skip=3 -- ./train.sh

The job's output folder then holds report.html, report.json, timeline.json (for Perfetto), job.trace and workers/.
trompe's exit code is that of the command; 2 when the command could not be started.";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArguments {
    /// Device, node or cluster to pretend: a name of `trompe gpus`, with counts as in `dgx-h100:4` or `h100-sxm:8x4`, or
    /// a .toml file.
    #[arg(long, value_name = "SPEC", default_value = "h100-sxm")]
    pub(crate) cluster: String,
    /// Folder for the report and the trace.
    #[arg(long, value_name = "DIR", default_value = "trompe-out")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) estimators: JobEstimatorArguments,
    /// Where the steps are: N (so many equal steps), skip=K (leave out the first K as warm-up), or marker=NAME (each NVTX
    /// range NAME is a step); found without help when not given.
    #[arg(long, value_name = "STEPS", default_value = "auto", hide_default_value = true)]
    pub(crate) steps: StepChoice,
    /// Which ranks of a distributed job run here: auto (those that differ, found while they run), all, or numbers such as
    /// 0,5,8-11. The others are answered for and taken to do the same as the one in the most similar place that runs.
    #[arg(long, value_name = "RANKS", default_value = "auto", hide_default_value = true)]
    pub(crate) ranks: RankChoice,
    /// With `--ranks auto`: how many further ranks, picked by a seeded lottery, are compared with the one that they are taken
    /// to equal.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) verify: u32,
    /// How choices in values that nobody computes are made up, such as the experts of tokens: balanced, uniform, zipf:S
    /// or dirichlet:A; all but the first take a seed at their end, as in zipf:1.2:7.
    #[arg(long, value_name = "POLICY")]
    pub(crate) routing: Option<Routing>,
    /// Run the job N times with different seeds of a drawn routing, and tell how the step time is spread.
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) samples: u64,
    /// Start each rank as a process of its own instead of forking them from one that has imported the framework.
    #[arg(long)]
    pub(crate) no_prefork: bool,
    /// Record device calls only, not the framework operators and shapes around them.
    #[arg(long)]
    pub(crate) no_record_ops: bool,
    #[command(flatten)]
    pub(crate) existing: ExistingArguments,
    /// The command to run, as you would without trompe.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// How a trace is simulated.
#[derive(Debug, Args)]
pub(crate) struct ModelArguments {
    /// How the host program's time passes: measured (recorded on this machine), scale=F (recorded, times F), fixed=T
    /// (T for each launch, as in fixed=44us), the name of a host (its sheet's single-thread speed against this machine's)
    /// or its .toml file, or off.
    #[arg(long, value_name = "MODEL", default_value = "measured")]
    pub(crate) host: HostChoice,
    /// Whether what runs at once on a device slows each other: kernels, collectives and copies share multiprocessors and
    /// bandwidth.
    #[arg(long, value_name = "SWITCH", default_value = "on")]
    pub(crate) contention: Switch,
    /// How much times vary by chance: on, off, or spreads as in kernel=0.02,host=0.1,link=0.03.
    #[arg(long, value_name = "SPREADS", default_value = "off")]
    pub(crate) jitter: JitterChoice,
    /// A rank or node that is slow, with the speeds of its parts as in rank=37,gpu=0.8 or node=4,nic=0.5, or a .toml file;
    /// may be given several times.
    #[arg(long = "straggler", value_name = "SPEC")]
    pub(crate) stragglers: Vec<StragglerChoice>,
    /// Seed of chance.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Replay so many times with other seeds, for the distribution of the step time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repeat: u32,
    /// Where the times of collectives come from, when not from the built-in constants and the sheet's links: a file that
    /// `trompe network fit` wrote, astra-sim=PROGRAM (ASTRA-sim's analytical back end), topology=FILE (output of
    /// `nvidia-smi topo -m`, NCCL's topology XML, ASTRA-sim's network YAML or JSON), or a topology and a file with a comma
    /// between.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) network: Option<NetworkSource>,
    /// Samples that one step processes on one rank, when the trace does not show it.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) samples_per_step: Option<f64>,
    /// Tokens that one step processes on one rank, when the trace does not show it.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) tokens_per_step: Option<f64>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// What prices kernels.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Kernel times")]
pub(crate) struct EstimatorArguments {
    /// A TOML file that replaces the estimators of some families: by a table, a model, a Python function or a program.
    #[arg(long, value_name = "FILE")]
    pub(crate) estimators: Option<PathBuf>,
    /// A model of `trompe estimate fit`, asked before the built-in ones; may be given several times.
    #[arg(long = "model", value_name = "FILE")]
    pub(crate) models: Vec<PathBuf>,
    /// Physics-bounded models alone, no learned ones.
    #[arg(long)]
    pub(crate) physics: bool,
}

/// What else a job's kernels take their times from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Kernel times")]
pub(crate) struct JobEstimatorArguments {
    #[command(flatten)]
    pub(crate) estimators: EstimatorArguments,
    /// A profiler trace (Kineto JSON) of the same job on a real GPU: its kernel times replace predictions, so that what is
    /// left of the error is not the kernels'. May be given several times.
    #[arg(long, value_name = "TRACE")]
    pub(crate) oracle: Vec<PathBuf>,
    /// Share of the highest clock that the GPU sustains under load, for example 0.9, or `sheet` for what the GPU's sheet
    /// states: kernels that arithmetic near the peak bounds take so much longer.
    #[arg(long, value_name = "SHARE", default_value = "sheet")]
    pub(crate) clock: Clock,
    /// What `trompe calibrate` learned: own (your own folder, when there is one), off, or a folder.
    #[arg(long, value_name = "DIR", default_value = "own", hide_default_value = true)]
    pub(crate) calibration: CalibrationChoice,
}

/// What to do when the output folder exists.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ExistingArguments {
    /// Keep an earlier report: write to DIR-2, DIR-3, … when DIR exists.
    #[arg(long, conflicts_with = "force")]
    pub(crate) keep: bool,
    /// Write to DIR even if it was not made by trompe; files of other names stay.
    #[arg(long)]
    pub(crate) force: bool,
}

const SIMULATE_EXAMPLES: &str = "\
Examples:
  trompe simulate trompe-out --cluster a100-80
  trompe simulate trompe-out --host off
  trompe simulate trompe-out --straggler rank=37,gpu=0.8 --jitter on --repeat 20
  trompe simulate trompe-out --cluster b200 --out b200";

#[derive(Debug, Args)]
#[command(after_help = SIMULATE_EXAMPLES)]
pub(crate) struct SimulateArguments {
    /// Output folder of a run, or a job.trace.
    #[arg(value_name = "DIR")]
    pub(crate) trace: PathBuf,
    /// Simulate on this device, node or cluster instead of the recorded one.
    #[arg(long, value_name = "SPEC")]
    pub(crate) cluster: Option<String>,
    /// Cycle model of NPU kernels: reference, calibrated, or a .toml file; as the trace says when not given.
    #[arg(long, value_name = "NAME")]
    pub(crate) npu_profile: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) estimators: JobEstimatorArguments,
    /// Folder for the new report; only printed when not given.
    #[arg(long, value_name = "DIR2")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) existing: ExistingArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Print the records of a trace in order of time.
    Show(ShowArguments),
    /// Print sums over a trace.
    Stats(StatsArguments),
    /// Write a job trace in another tool's format.
    Export(Box<ExportArguments>),
    /// Make a job trace of another tool's traces.
    Import(ImportArguments),
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  trompe trace import chakra --cluster dgx-h100 --out job.trace
  trompe trace import et.0.json.gz et.1.json.gz --cluster h100-sxm:2 --out job.trace
  trompe simulate job.trace --cluster dgx-b200
Reads Chakra's protobuf files (NAME.RANK.et) and JSON, and what PyTorch's ExecutionTraceObserver writes; plain or gzip.";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArguments {
    /// One execution trace per rank in order of rank, or a folder with NAME.RANK.et.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Members of groups, as in ASTRA-sim's comm_group.json; the file of that name beside the traces when not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    /// The device, node or cluster that they were recorded on.
    #[arg(long, value_name = "SPEC")]
    pub(crate) cluster: String,
    /// Where the job trace goes.
    #[arg(long, value_name = "FILE", default_value = "job.trace")]
    pub(crate) out: PathBuf,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  trompe trace export trompe-out --chakra chakra
  trompe trace export trompe-out --chakra chakra --cluster dgx-h100:4 --host off
DIR then holds job.RANK.et for every rank and comm_group.json. ASTRA-sim reads them with
--workload-configuration=DIR/job --comm-group-configuration=DIR/comm_group.json.";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArguments {
    /// Output folder of a run, or a job.trace.
    #[arg(value_name = "DIR")]
    pub(crate) trace: PathBuf,
    /// Write Chakra execution traces (protobuf, one per rank) into this folder.
    #[arg(long, value_name = "DIR2", required = true)]
    pub(crate) chakra: PathBuf,
    /// With the times of this device, node or cluster instead of the recorded one.
    #[arg(long, value_name = "SPEC")]
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
    #[command(flatten)]
    pub(crate) estimators: JobEstimatorArguments,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  trompe trace show trompe-out --kind gemm --limit 20
  trompe trace show trompe-out/job.trace | less
Columns of a worker trace: time and length in microseconds, thread, kind, what happened (indented by operator).";

#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArguments {
    /// A .trompe or job.trace file, or the output folder of a run (its worker traces).
    pub(crate) path: PathBuf,
    /// Stop after so many lines.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Only records of this kind.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// A .trompe or job.trace file, or the output folder of a run (all of its traces).
    pub(crate) path: PathBuf,
    /// Rows of each table.
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Output folder, or a report.json.
    #[arg(value_name = "DIR", default_value = "trompe-out")]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// The Python interpreter of the job; the first one on PATH when not given.
    #[arg(long, value_name = "PYTHON")]
    pub(crate) python: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GpusArguments {
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("it must be a positive number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_varies_is_read() {
        let line = "trompe simulate out --contention off --jitter kernel=0.05 --straggler rank=1,gpu=0.5 \
                    --straggler slow.toml --seed 3 --repeat 20 --host epyc-9654-x2";
        let parsed = Arguments::parse_from(line.split_whitespace());
        let Command::Simulate(simulate) = parsed.command else { panic!("{parsed:?}") };
        let model = simulate.model;
        assert_eq!((model.contention, model.seed, model.repeat), (Switch::Off, 3, 20));
        assert_eq!((model.jitter.0.kernel, model.stragglers.len()), (0.05, 2));
        assert_eq!(model.host, HostChoice::Named("epyc-9654-x2".into()));
        for wrong in
            ["--repeat 0", "--jitter fast", "--straggler gpu=0.5", "--contention maybe", "--host nobody"]
        {
            let line = format!("trompe simulate out {wrong}");
            assert!(Arguments::try_parse_from(line.split_whitespace()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_follows_the_dashes_is_the_command() {
        let parsed =
            Arguments::parse_from(["trompe", "run", "--host", "off", "--", "python", "x.py", "--host", "a"]);
        let Command::Run(run) = parsed.command else { panic!("{parsed:?}") };
        assert_eq!(run.model.host, HostChoice::Off);
        assert_eq!(run.command, ["python", "x.py", "--host", "a"]);
    }
}
