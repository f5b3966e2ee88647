//! NPU kernels: reads program files, sheets and arrays, runs them, and writes what came out.
//!
//! A program is JSON, or a Python script that writes one: it is called as `python3 SCRIPT OUT.json NAME=VALUE…`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use trompe_npu::Options;
use trompe_npu::tune::{self, Choice};
use trompe_npu::{Device, Profile, Program, npy};

use crate::{SessionError, disk};

/// What is common to all commands.
#[derive(Clone, Debug)]
pub struct Target {
    /// Program: `.json`, or `.py` that writes one.
    pub program: PathBuf,
    /// Name of a device, or a TOML file.
    pub device: String,
    /// Name of a profile, or a TOML file.
    pub profile: String,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Request {
    /// What runs where.
    pub target: Target,
    /// Input tensors and their `.npy` files.
    pub inputs: Vec<(String, PathBuf)>,
    /// Folder for output tensors.
    pub out: Option<PathBuf>,
    /// File for the timeline.
    pub trace: Option<PathBuf>,
    /// How.
    pub options: Options,
}

/// Runs a kernel and writes its outputs and timeline; gives the summary as text.
///
/// # Errors
/// When a file cannot be read or written, or the kernel fails.
pub fn run(request: &Request) -> Result<String, SessionError> {
    let (device, profile) = sheets(&request.target)?;
    let program = load(&request.target.program, &Choice::new())?;
    let mut inputs = BTreeMap::new();
    for (name, path) in &request.inputs {
        let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
        inputs.insert(name.clone(), npy::read(name, &bytes).map_err(refused)?);
    }
    let outcome = trompe_npu::run(&program, &device, &profile, &inputs, &request.options).map_err(refused)?;
    if let Some(folder) = &request.out {
        std::fs::create_dir_all(folder).map_err(|source| SessionError::writing(folder, source))?;
        for output in outcome.outputs.iter().chain(&outcome.dumps) {
            disk::write(&folder.join(format!("{}.npy", output.name)), &npy::write(&output.content))?;
        }
    }
    if let Some(path) = &request.trace {
        disk::write(path, trompe_npu::chrome::timeline(&outcome).as_bytes())?;
    }
    Ok(trompe_npu::summary::text(&outcome))
}

/// Checks a program against a device without running it; gives its name.
///
/// # Errors
/// When it makes no sense.
pub fn validate(target: &Target) -> Result<String, SessionError> {
    let (device, _) = sheets(target)?;
    let program = load(&target.program, &Choice::new())?;
    trompe_npu::validate(&program, &device).map_err(refused)?;
    Ok(program.name)
}

/// Runs every combination of parameters timing-only; gives a table, fastest first.
///
/// # Errors
/// When a file cannot be read or a parameter is not the program's.
pub fn tune(target: &Target, parameters: &[(String, Vec<i64>)]) -> Result<String, SessionError> {
    let (device, profile) = sheets(target)?;
    let mut variants = Vec::new();
    for choice in tune::grid(parameters) {
        let program = load(&target.program, &choice)?;
        variants.push((choice, program));
    }
    let ranked = tune::rank(variants, &device, &profile);
    let best = ranked.first().and_then(|variant| variant.result.as_ref().ok().copied());
    let mut text = String::new();
    for (place, variant) in ranked.iter().enumerate() {
        let names: Vec<String> =
            variant.choice.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let result = match (&variant.result, best) {
            (Ok(makespan), Some(best)) => {
                let micros = *makespan as f64 / device.clock_mhz;
                format!("{makespan:>12} cycles {micros:>12.3} µs  {:>6.2} x", *makespan as f64 / best as f64)
            }
            (Ok(makespan), None) => format!("{makespan:>12} cycles"),
            (Err(error), _) => format!("does not run: {error}"),
        };
        text.push_str(&format!("{:>3}  {result}  {}\n", place + 1, names.join(" ")));
    }
    Ok(text)
}

fn sheets(target: &Target) -> Result<(Device, Profile), SessionError> {
    let is_file = |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "toml");
    let read =
        |name: &str| std::fs::read_to_string(name).map_err(|error| unreadable(Path::new(name), &error));
    let device = if is_file(&target.device) {
        Device::from_toml(&target.device, &read(&target.device)?)
    } else {
        Device::named(&target.device)
    };
    let device = device.map_err(refused)?;
    let profile = if is_file(&target.profile) {
        Profile::from_toml(&target.profile, &read(&target.profile)?)
    } else {
        Profile::named(&target.profile, &device)
    };
    Ok((device, profile.map_err(refused)?))
}

/// Reads a program with these parameters.
fn load(path: &Path, choice: &Choice) -> Result<Program, SessionError> {
    let script = path.extension().is_some_and(|extension| extension == "py");
    if !script {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let program = Program::from_json(&text).map_err(refused)?;
        return tune::with_values(&program, choice).map_err(|name| {
            refused(format!(
                "`{}` has no `create_var` called `{name}`; name one of its variables",
                path.display()
            ))
        });
    }
    let place = std::env::temp_dir().join(format!("trompe-npu-{}.json", std::process::id()));
    let values = choice.iter().map(|(name, value)| format!("{name}={value}"));
    let output = Command::new("python3").arg(path).arg(&place).args(values).output();
    let output = output.map_err(|error| refused(format!("cannot run python3: {error}")))?;
    if !output.status.success() {
        let last = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or("").to_owned();
        return Err(refused(format!("`{}` failed: {last}", path.display())));
    }
    let text = std::fs::read_to_string(&place).map_err(|error| unreadable(path, &error));
    // The file is ours; that it cannot be removed harms nobody.
    drop(std::fs::remove_file(&place));
    Program::from_json(&text?).map_err(refused)
}

fn unreadable(path: &Path, error: &std::io::Error) -> SessionError {
    refused(format!("cannot read `{}`: {error}", path.display()))
}

fn refused(error: impl ToString) -> SessionError {
    SessionError::Npu(error.to_string())
}
