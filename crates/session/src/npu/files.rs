//! Reads programs, jobs and sheets from files, and what Python scripts write.
//!
//! A script is called as `python3 SCRIPT OUT.json NAME=VALUE…` and writes the file. It finds `trompe.npu`: this program
//! carries that package and puts it at the end of the script's `PYTHONPATH`, so that a checkout or an installed one
//! that stands there is taken first.

use std::path::Path;
use std::process::Command;

use trompe_npu::tune::{self, Choice};
use trompe_npu::{Device, Profile, Program};

use super::{Target, refused};
use crate::{SessionError, cache, env, hook};

/// The device and the profile that `target` names.
pub(super) fn sheets(target: &Target) -> Result<(Device, Profile), SessionError> {
    let device = if is_file(&target.device) {
        Device::from_toml(&target.device, &read_named(&target.device)?)
    } else {
        Device::named(&target.device)
    };
    let device = device.map_err(refused)?;
    let profile = profile(&target.profile, &device)?;
    Ok((device, profile))
}

/// The profile called `name`, or in the file of that name.
pub(super) fn profile(name: &str, device: &Device) -> Result<Profile, SessionError> {
    let profile = if is_file(name) {
        Profile::from_toml(name, &read_named(name)?)
    } else {
        Profile::named(name, device)
    };
    profile.map_err(refused)
}

/// Whether a name means a TOML file.
pub(super) fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

pub(super) fn read_named(name: &str) -> Result<String, SessionError> {
    std::fs::read_to_string(name).map_err(|error| unreadable(Path::new(name), &error))
}

/// Reads a program with these values.
pub(super) fn load(path: &Path, values: &Choice) -> Result<Program, SessionError> {
    let program = Program::from_json(&text(path, values)?).map_err(refused)?;
    if is_script(path) {
        return Ok(program);
    }
    tune::with_values(&program, values).map_err(|name| {
        refused(format!(
            "`{}` has no `create_var` called `{name}`; name one of its variables",
            path.display()
        ))
    })
}

/// The text of a file, or what a script writes with these values.
pub(super) fn text(path: &Path, values: &Choice) -> Result<String, SessionError> {
    if !is_script(path) {
        return std::fs::read_to_string(path).map_err(|error| unreadable(path, &error));
    }
    if !path.is_file() {
        return Err(refused(format!("cannot read `{}`: there is no such file", path.display())));
    }
    let folder = tempfile::Builder::new().prefix("trompe-npu-").tempdir();
    let folder = folder.map_err(|error| refused(format!("cannot make a temporary folder: {error}")))?;
    let place = folder.path().join("out.json");
    let values = values.iter().map(|(name, value)| format!("{name}={value}"));
    let mut command = Command::new("python3");
    command.arg(path).arg(&place).args(values).env(env::PYTHONPATH, python_path()?);
    let output = command.output().map_err(|error| refused(format!("cannot run python3: {error}")))?;
    if !output.status.success() {
        let last = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or("").to_owned();
        return Err(refused(format!("`{}` failed: {last}", path.display())));
    }
    std::fs::read_to_string(&place).map_err(|error| {
        refused(format!("`{}` wrote no file: {error}; end it with `trompe.npu.main(kernel)`", path.display()))
    })
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// The user's `PYTHONPATH`, then our package.
fn python_path() -> Result<std::ffi::OsString, SessionError> {
    let package = hook::unpack_builder(&cache::open()?.folder)?;
    let users = env::get(env::PYTHONPATH).unwrap_or_default();
    let parts = std::env::split_paths(&users).filter(|part| !part.as_os_str().is_empty());
    std::env::join_paths(parts.chain([package])).map_err(|error| refused(format!("PYTHONPATH: {error}")))
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> SessionError {
    refused(format!("cannot read `{}`: {error}", path.display()))
}
