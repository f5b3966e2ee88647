//! The `trompe` program: command line in, `session` calls, text out.
//!
//! What it is not: it decides nothing about a job. One file per command; [`terminal`] knows colours and widths, and
//! [`failure`] how errors look. Exit codes: of `run`, the job's own; otherwise 0, or 2 for what the user must mend.

mod arguments;
mod commands;
mod failure;
mod progress;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Run(arguments) => commands::run::run(*arguments),
        Command::Simulate(arguments) => commands::simulate::run(&arguments),
        Command::Calibrate(arguments) => commands::calibrate::run(*arguments),
        Command::Profile(arguments) => commands::profile::run(*arguments),
        Command::Search(arguments) => commands::search::run(*arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments.command),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Network(arguments) => commands::network::run(&arguments),
        Command::Estimate(arguments) => commands::estimate::run(arguments),
        Command::Validate(arguments) => commands::validate::run(&arguments),
        Command::Npu(arguments) => commands::npu::run(arguments),
        Command::Gpus(arguments) => commands::gpus::run(&arguments),
    };
    result.unwrap_or_else(|error| failure::show(&error))
}
