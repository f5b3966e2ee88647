//! Digests of everything that the result of a trial depends on beside its point: this program, the preloaded library,
//! the job's code, and the packages of its Python.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use trompe_hardware::EmulatedNode;
use trompe_search::Space;
use trompe_search::memo::Key;

use super::order::{self, Order};
use crate::estimators::{self, EstimatorChoice};
use crate::{SessionError, env, install, python};

/// What all trials of a study depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grounds {
    /// Digest of trompe itself.
    pub(crate) program: String,
    /// Digest of the job's code and packages.
    pub(crate) code: String,
    /// Digest of what prices kernels; empty for the built-in estimators.
    pub(crate) estimators: String,
}

/// Files of the script's folder that are looked at; a folder with more is no folder of a script.
const MOST_FILES: usize = 4000;
/// Folders that hold no code of the job.
const LEFT_OUT: [&str; 4] = ["__pycache__", "node_modules", "site-packages", "trompe-search"];

impl Grounds {
    /// Digests for the jobs of `space`, which lies in `folder` and runs in `directory`.
    pub(crate) fn of(
        space: &Space,
        folder: &Path,
        directory: &Path,
        choice: &EstimatorChoice,
    ) -> Result<Self, SessionError> {
        let libraries = install::find()?;
        let program = std::env::current_exe().unwrap_or_default();
        let own = [&program, &libraries.preloaded].map(|path| fs::read(path).unwrap_or_default());
        let version =
            format!("{} {}", env!("CARGO_PKG_VERSION"), Key::of(own.iter().map(Vec::as_slice)).text());
        let mut files = BTreeSet::new();
        if space.trial.code.is_empty() {
            for script in scripts(space, directory) {
                let beside = script.parent().unwrap_or(directory).to_owned();
                files.insert(script);
                collect(&beside, &mut files);
            }
        }
        for name in &space.trial.code {
            let path = folder.join(name);
            if !path.exists() {
                let reason = format!("`{}` does not exist", path.display());
                return Err(super::SearchError::Trial { name: "code", reason }.into());
            }
            if path.is_dir() {
                collect(&path, &mut files);
            } else {
                files.insert(path);
            }
        }
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for file in &files {
            let name = file.strip_prefix(folder).unwrap_or(file);
            parts.push(name.as_os_str().as_encoded_bytes().to_vec());
            parts.push(fs::read(file).unwrap_or_default());
        }
        parts.extend(packages(space, directory).into_iter().map(String::into_bytes));
        let code = Key::of(parts.iter().map(Vec::as_slice)).text().to_owned();
        Ok(Self { program: version, code, estimators: estimators_digest(choice)? })
    }

    /// Name of a trial's result.
    pub(crate) fn key(&self, order: &Order) -> Key {
        let clusters = [Some(&order.cluster), order.emulated_on.as_ref()];
        let sheets: Vec<String> = clusters.into_iter().flatten().map(|name| sheet(name)).collect();
        order::key_of(&[
            "outcome",
            &self.program,
            &self.code,
            &self.estimators,
            &json(&order::essence(order)),
            &sheets.join("\n"),
        ])
    }

    /// What names a trial's traces beside their jobs: the same for all clusters on which a job sees the same node and as
    /// many ranks.
    pub(crate) fn trace_key(&self, order: &Order) -> Result<Key, SessionError> {
        let cluster = trompe_hardware::resolve(order.emulated_on.as_ref().unwrap_or(&order.cluster))?;
        let node = EmulatedNode::new(&cluster.node).to_json();
        let nodes = cluster.node_count.to_string();
        Ok(order::key_of(&[
            "trace",
            &self.program,
            &self.code,
            &json(&order::recording(order)),
            &node,
            &nodes,
        ]))
    }
}

/// What the estimators are, by the content of their files.
fn estimators_digest(choice: &EstimatorChoice) -> Result<String, SessionError> {
    if *choice == EstimatorChoice::default() {
        return Ok(String::new());
    }
    let mut parts = vec![format!("physics {} clock {:?}", choice.physics, choice.clock).into_bytes()];
    for file in estimators::files(choice)? {
        parts.push(fs::read(&file).map_err(|source| SessionError::reading(&file, source))?);
    }
    Ok(Key::of(parts.iter().map(Vec::as_slice)).text().to_owned())
}

fn json(order: &Order) -> String {
    serde_json::to_string(order).expect("plain data has a JSON form")
}

/// What a cluster's name means.
fn sheet(name: &str) -> String {
    trompe_hardware::resolve(name)
        .ok()
        .and_then(|sheet| serde_json::to_string(&sheet).ok())
        .unwrap_or_default()
}

/// Words of the command that are files of Python code.
fn scripts(space: &Space, directory: &Path) -> Vec<PathBuf> {
    let words = space.job.command.iter().map(|word| directory.join(&word.source));
    words.filter(|path| path.extension().is_some_and(|ending| ending == "py") && path.is_file()).collect()
}

/// The Python files below a folder.
fn collect(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let hidden = name.to_string_lossy().starts_with('.');
        if files.len() >= MOST_FILES || hidden || LEFT_OUT.iter().any(|left| name == *left) {
            continue;
        }
        match entry.file_type() {
            // A folder with an interpreter in it is a virtual environment, whose packages count by name.
            Ok(kind) if kind.is_dir() && !path.join("pyvenv.cfg").exists() => collect(&path, files),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|ending| ending == "py") => {
                files.insert(path);
            }
            _ => {}
        }
    }
}

/// Names and versions of the packages of the job's Python, by the folders that describe them.
fn packages(space: &Space, directory: &Path) -> Vec<String> {
    let words = space.job.command.iter();
    let command: Vec<OsString> = words.map(|word| OsString::from(&word.source)).collect();
    let path = env::get(env::PATH).unwrap_or_default();
    let Ok(found) = python::find(&absolute(command, directory), &path) else { return Vec::new() };
    let mut names = vec![found.python.display().to_string()];
    let Some(home) = found.python.parent().and_then(Path::parent) else { return names };
    let versions = fs::read_dir(home.join("lib")).into_iter().flatten().flatten();
    for version in versions {
        let packages = fs::read_dir(version.path().join("site-packages")).into_iter().flatten().flatten();
        names.extend(packages.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| {
            name.ends_with(".dist-info") || name.ends_with(".egg-link") || name.ends_with(".pth")
        }));
    }
    names.sort();
    names
}

/// A program that is given by a path relative to the job's directory.
fn absolute(mut command: Vec<OsString>, directory: &Path) -> Vec<OsString> {
    if let Some(first) = command.first_mut()
        && first.to_string_lossy().contains('/')
    {
        *first = directory.join(&*first).into_os_string();
    }
    command
}
