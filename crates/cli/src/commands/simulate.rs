//! `trompe simulate`.

use std::process::ExitCode;

use trompe_session::simulate::{self, Request};

use crate::arguments::SimulateArguments;
use crate::commands;
use crate::progress::Shown;

pub(crate) fn run(arguments: &SimulateArguments) -> anyhow::Result<ExitCode> {
    let request = Request {
        trace: arguments.trace.clone(),
        cluster: arguments.cluster.clone(),
        npu_profile: arguments.npu_profile.clone(),
        choices: (&arguments.model).into(),
        estimators: arguments.estimators.clone().into(),
        out: arguments.out.clone(),
        existing: arguments.existing.into(),
    };
    let mut progress = Shown::new();
    let simulated = simulate::simulate(&request, &mut progress)?;
    progress.clear();
    commands::show(&simulated.prediction, simulated.written.as_ref())?;
    Ok(ExitCode::SUCCESS)
}
