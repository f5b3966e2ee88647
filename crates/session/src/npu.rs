//! NPU kernels: reads program files, sheets and arrays, runs them, and writes what came out; makes job traces of them.
//!
//! `files` reads what a user names, `job` turns the description of a job into a job trace, `prices` simulates the
//! kernels of one, `tune` looks for the fastest variant of a kernel.

mod files;
mod job;
mod prices;
mod tune;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use trompe_npu::Options;
use trompe_npu::npy;
use trompe_npu::tune::Choice;
use trompe_report::kernel_run;

use crate::{SessionError, disk};

use files::{load, sheets, unreadable};
pub use job::{JobRequest, job};
pub(crate) use prices::{PROFILE, of_job, set_profile};
pub use tune::{TuneRequest, tune};

/// What is common to all commands.
#[derive(Clone, Debug)]
pub struct Target {
    /// Program: `.json`, or `.py` that writes one.
    pub program: PathBuf,
    /// Name of a device, or a TOML file.
    pub device: String,
    /// Name of a profile, or a TOML file.
    pub profile: String,
    /// Values of the script's keywords, or of a JSON program's variables.
    pub values: Choice,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Request {
    /// What runs where.
    pub target: Target,
    /// Input tensors and their `.npy` files.
    pub inputs: Vec<(String, PathBuf)>,
    /// Folder for output tensors and the report.
    pub out: Option<PathBuf>,
    /// File for the timeline.
    pub trace: Option<PathBuf>,
    /// How.
    pub options: Options,
}

/// Runs a kernel and writes its outputs, report and timeline; gives the summary as text.
///
/// # Errors
/// When a file cannot be read or written, or the kernel fails.
pub fn run(request: &Request) -> Result<String, SessionError> {
    let (device, profile) = sheets(&request.target)?;
    let program = load(&request.target.program, &request.target.values)?;
    let mut inputs = BTreeMap::new();
    for (name, path) in &request.inputs {
        let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
        inputs.insert(name.clone(), npy::read(name, &bytes).map_err(refused)?);
    }
    let outcome = trompe_npu::run(&program, &device, &profile, &inputs, &request.options).map_err(refused)?;
    let summary = trompe_npu::summary::of(&outcome);
    if let Some(folder) = &request.out {
        std::fs::create_dir_all(folder).map_err(|source| SessionError::writing(folder, source))?;
        for output in outcome.outputs.iter().chain(&outcome.dumps) {
            disk::write(&folder.join(format!("{}.npy", output.name)), &npy::write(&output.content))?;
        }
        let json = serde_json::to_vec_pretty(&summary).expect("plain data has a JSON form");
        disk::write(&folder.join("report.json"), &json)?;
        disk::write(&folder.join("report.html"), kernel_run::html(&summary).as_bytes())?;
    }
    if let Some(path) = &request.trace {
        disk::write(path, trompe_npu::chrome::timeline(&outcome).as_bytes())?;
    }
    Ok(kernel_run::text(&summary))
}

/// Checks a program against a device without running it; gives its name.
///
/// # Errors
/// When it makes no sense.
pub fn validate(target: &Target) -> Result<String, SessionError> {
    let (device, _) = sheets(target)?;
    let program = load(&target.program, &target.values)?;
    trompe_npu::validate(&program, &device).map_err(refused)?;
    Ok(program.name)
}

fn refused(error: impl ToString) -> SessionError {
    SessionError::Npu(error.to_string())
}
