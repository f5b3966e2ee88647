//! The Python environment of validation jobs: PyTorch and Megatron-Core from the package index, without any NVIDIA
//! package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Progress, SessionError};

/// What [`make`] installs, exactly (`--no-deps`): a CUDA build of PyTorch, what it needs, and Megatron-Core.
pub const PACKAGES: [&str; 13] = [
    "torch==2.15.0",
    "filelock==4.3.1",
    "fsspec==2026.9.0",
    "Jinja2==3.1.6",
    "MarkupSafe==3.0.4",
    "mpmath==1.3.0",
    "networkx==3.6.1",
    "numpy==2.4.6",
    "packaging==26.4",
    "setuptools==84.2.1",
    "sympy==1.14.0",
    "typing_extensions==4.16.0",
    "megatron-core==0.16.1",
];

/// Prints what the jobs import, or fails where it is not there.
const PROBE: &str = "\
import importlib.metadata as m
print(' '.join(f'{name} {m.version(name)}' for name in ('torch', 'megatron-core')))
from importlib.util import find_spec as find
import sys
if find('transformer_engine') and find('transformer_engine_torch'):
    print('transformer-engine', m.version('transformer-engine'))
sys.exit(0 if find('megatron') and find('torch') else 3)";

/// An interpreter that can run the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Environment {
    pub(super) python: PathBuf,
    /// Frameworks with their versions.
    pub(super) software: String,
    /// TransformerEngine with its version, where it is there.
    pub(super) engine: Option<String>,
}

impl Environment {
    /// What a job runs with: only those over TransformerEngine depend on its version.
    pub(super) fn of(&self, engine: bool) -> String {
        match &self.engine {
            Some(own) if engine => format!("{} {own}", self.software),
            _ => self.software.clone(),
        }
    }
}

/// The folder of the environment that [`make`] makes.
fn folder(cache: &Path) -> PathBuf {
    cache.join("validate-environment")
}

/// The environment to use: `asked`, else the one that was made, else the `python3` on the path.
///
/// # Errors
/// When none has what is needed.
pub(super) fn find(asked: Option<&Path>, cache: &Path) -> Result<Environment, SessionError> {
    let own = folder(cache).join("bin/python");
    let candidates = match asked {
        Some(python) => vec![python.to_owned()],
        None => vec![own, PathBuf::from("python3")],
    };
    let mut reason = String::new();
    for python in candidates {
        match probe(&python) {
            Ok((software, engine)) => return Ok(Environment { python, software, engine }),
            Err(missing) => reason = format!("`{}` {missing}", python.display()),
        }
    }
    Err(SessionError::NoValidationEnvironment { reason })
}

/// The versions of PyTorch and Megatron-Core, and of TransformerEngine where it is there.
fn probe(python: &Path) -> Result<(String, Option<String>), String> {
    let output = Command::new(python).args(["-c", PROBE]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot be started: {error}"))?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        return Ok((lines.next().unwrap_or_default(), lines.next()));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or("has no Megatron-Core").trim();
    Err(format!("lacks PyTorch or Megatron-Core ({last})"))
}

/// Makes the environment in the user's cache: a virtual environment with [`PACKAGES`].
///
/// # Errors
/// When a step fails; the text is the last line of its output.
pub fn make(python: Option<&Path>, progress: &mut dyn Progress) -> Result<PathBuf, SessionError> {
    let cache = crate::cache::open()?.folder;
    let target = folder(&cache);
    let base = python.unwrap_or(Path::new("python3"));
    progress.note(&format!("making {} (downloads about 560 MB)", target.display()));
    call(Command::new(base).args(["-m", "venv", "--clear"]).arg(&target))?;
    let own = target.join("bin/python");
    let options =
        ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-cache-dir"];
    call(Command::new(&own).args(options).args(PACKAGES))?;
    probe(&own).map_err(|reason| SessionError::NoValidationEnvironment { reason })?;
    Ok(own)
}

fn call(command: &mut Command) -> Result<(), SessionError> {
    let output = command.stdin(Stdio::null()).output();
    let failed = |reason: String| SessionError::Command { command: words(command), reason };
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let reason = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed").to_owned();
    Err(failed(reason))
}

fn words(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().take(4).map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_without_the_frameworks_says_what_is_missing() {
        let error = find(Some(Path::new("/bin/false")), Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/bin/false") && error.contains("Megatron-Core"), "{error}");
        let error = find(Some(Path::new("/no/python")), Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("cannot be started"), "{error}");
    }
}
