//! `trompe report`.

use std::process::ExitCode;

use trompe_session::reports;

use crate::arguments::ReportArguments;
use crate::{commands, terminal};

pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let report = reports::read(&arguments.path)?;
    commands::print(&trompe_report::text(&report, terminal::style()))?;
    Ok(ExitCode::SUCCESS)
}
