//! `trompe profile`: measure on a machine with a real GPU, and learn from it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use trompe_session::calibration::{self, Request};
use trompe_session::env;
use trompe_session::profile::{self, RecordRequest, Recording, SweepRequest};

use crate::commands;

const EXAMPLES: &str = "\
Examples:
  trompe profile --gpu                          # about 2,000 shapes in 10 minutes; goes on when interrupted
  trompe profile -- python train.py             # three steps of your own job, recorded while it runs
  trompe profile --stop -- torchrun --nproc-per-node 8 train.py
  python -m trompe.profile --out sweep          # the sweep without this program (pip install ./python)
Both need a real GPU and PyTorch, and write traces of PyTorch's profiler to `--out`, which then become your calibration.";

/// Measure on a machine with a real GPU, and learn from it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProfileArguments {
    /// Sweep over the shapes that training jobs have.
    #[arg(long, conflicts_with = "command")]
    gpu: bool,
    /// Folder for what is measured.
    #[arg(long, value_name = "DIR", default_value = "trompe-profile")]
    out: PathBuf,
    /// Folder of the calibration; your own one when not given.
    #[arg(long, value_name = "DIR")]
    calibration: Option<PathBuf>,
    /// Measure only; learn nothing.
    #[arg(long)]
    no_calibrate: bool,
    /// Of `--gpu`: the interpreter that has PyTorch; the first one on PATH when not given.
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Of `--gpu`: time for the sweep, in seconds or as 90s, 10m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = seconds)]
    budget: u32,
    /// Of `--gpu`: cuda, or cpu to try the code.
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: String,
    /// Of `--gpu`: a few tiny cases of each family, to try the code.
    #[arg(long)]
    small: bool,
    /// Of a command: optimizer steps that are left out as warm-up.
    #[arg(long, value_name = "N", default_value_t = 3)]
    skip: u32,
    /// Of a command: steps to record.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Of a command: end it when they are recorded.
    #[arg(long)]
    stop: bool,
    /// Of a command: record all of it, for short ones without an optimizer.
    #[arg(long)]
    whole: bool,
    /// The command whose kernels are recorded.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn seconds(text: &str) -> Result<u32, String> {
    let (number, factor) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let parsed = number.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    parsed
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| "write whole seconds (600, 90s) or minutes (10m)".to_owned())
}

pub(crate) fn run(arguments: ProfileArguments) -> anyhow::Result<ExitCode> {
    if env::get(env::TROMPE_CONFIG).is_some() && !arguments.no_calibrate && arguments.device == "cuda" {
        anyhow::bail!(
            "the GPU here is the one that `trompe run` pretends, whose kernels take no time, so there is nothing to learn; \
             run this on a machine with a GPU, or with `--no-calibrate` to try the code"
        );
    }
    let status = if arguments.gpu {
        let mut more: Vec<OsString> = vec![
            "--budget".into(),
            arguments.budget.to_string().into(),
            "--device".into(),
            arguments.device.clone().into(),
        ];
        more.extend(arguments.small.then(|| "--small".into()));
        let request =
            SweepRequest { python: arguments.python.clone(), out: arguments.out.clone(), arguments: more };
        profile::sweep(&request)?
    } else if arguments.command.is_empty() {
        anyhow::bail!(
            "give `--gpu` for a sweep, or a command to record: `trompe profile -- python train.py`"
        );
    } else {
        let recording = Recording {
            out: arguments.out.clone(),
            skip: arguments.skip,
            steps: arguments.steps,
            seconds: 60,
            stop: arguments.stop,
            whole: arguments.whole,
        };
        profile::record(&RecordRequest { command: arguments.command.clone(), recording })?
    };
    let code = status.code().unwrap_or(1);
    // 3: the sweep's time was over before all of it was measured.
    let usable = code == 0 || arguments.gpu && code == 3;
    if usable && !arguments.no_calibrate && arguments.device == "cuda" {
        learn(&arguments.out, arguments.calibration.as_deref())?;
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn learn(out: &Path, calibration: Option<&Path>) -> anyhow::Result<()> {
    let traces = profile::traces(out)?;
    if traces.is_empty() {
        anyhow::bail!("`{}` holds no trace: nothing was recorded", out.display());
    }
    let Some(folder) = calibration.map(Path::to_owned).or_else(calibration::own_folder) else {
        anyhow::bail!("neither HOME nor XDG_DATA_HOME is set; name a folder with `--calibration DIR`");
    };
    let request = Request { traces, tables: Vec::new(), checks: Vec::new(), gpu: None, out: folder };
    commands::print(&commands::calibrate::kernels(&calibration::kernels(&request)?))
}
