//! One file per command.

pub(crate) mod calibrate;
pub(crate) mod doctor;
pub(crate) mod estimate;
pub(crate) mod gpus;
pub(crate) mod network;
pub(crate) mod npu;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod simulate;
pub(crate) mod trace;
pub(crate) mod validate;
pub(crate) mod validate_runs;

use std::io::Write;
use std::path::Path;

use trompe_session::estimators::EstimatorChoice;
use trompe_session::output::{Existing, Layout};
use trompe_session::{Choices, Prediction};

use crate::arguments::{
    EstimatorArguments, ExistingArguments, JobEstimatorArguments, ModelArguments, Switch,
};
use crate::terminal;

impl From<ExistingArguments> for Existing {
    fn from(arguments: ExistingArguments) -> Self {
        match (arguments.keep, arguments.force) {
            (true, _) => Self::Keep,
            (_, true) => Self::Force,
            _ => Self::Replace,
        }
    }
}

impl From<EstimatorArguments> for EstimatorChoice {
    fn from(arguments: EstimatorArguments) -> Self {
        let EstimatorArguments { estimators: config, models, physics } = arguments;
        Self { config, models, physics, ..Self::default() }
    }
}

impl From<JobEstimatorArguments> for EstimatorChoice {
    fn from(arguments: JobEstimatorArguments) -> Self {
        Self {
            oracle: arguments.oracle,
            clock: arguments.clock,
            calibration: arguments.calibration.folder(),
            ..arguments.estimators.into()
        }
    }
}

impl From<&ModelArguments> for Choices {
    fn from(arguments: &ModelArguments) -> Self {
        Self {
            host: arguments.host.clone(),
            samples_per_step: arguments.samples_per_step,
            tokens_per_step: arguments.tokens_per_step,
            contention: arguments.contention == Switch::On,
            jitter: arguments.jitter,
            stragglers: arguments.stragglers.clone(),
            seed: arguments.seed,
            repeat: arguments.repeat,
            network: arguments.network.clone(),
            ..Self::default()
        }
    }
}

/// Prints a report, and the names of the files that hold more.
fn show(prediction: &Prediction, written: Option<&Layout>) -> anyhow::Result<()> {
    let mut text = format!("\n{}", trompe_report::text(&prediction.report, terminal::style()));
    if let Some(layout) = written {
        text.push('\n');
        for path in [&layout.report_html, &layout.report_json, &layout.timeline] {
            text.push_str(&format!("{}\n", nearby(path).display()));
        }
    }
    print(&text)
}

/// Writes to standard output; a reader that has gone away (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A path relative to the current folder where it lies below it.
fn nearby(path: &Path) -> &Path {
    std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}
