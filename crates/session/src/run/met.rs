//! A launcher that the command came to on its way (`accelerate launch`, a shell script that ends in `torchrun`).
//!
//! The Python hook stops such a launcher when it would start its ranks and writes down what it would have started
//! (`trompe_hook/launchers.py`). The command is ended then, and its ranks are started in its place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use trompe_base::Rank;
use trompe_hardware::ClusterSheet;

use crate::SessionError;
use crate::launch::{LauncherSettings, Watch, Wish};
use crate::python::{Found, How};
use crate::world::{self, Launch};

/// Name of the file.
const FILE: &str = "launch.json";

/// What the launcher would have started.
#[derive(Debug, Deserialize)]
struct Asked {
    command: Vec<String>,
    /// Ranks of a node; a command without it is a launcher's own, to be read.
    per_node: Option<u32>,
    nodes: Option<u32>,
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    python: PathBuf,
}

/// A job in place of the command.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) launch: Launch,
    pub(super) found: Found,
    pub(super) settings: LauncherSettings,
}

/// Forgets what an earlier run was asked.
pub(super) fn clear(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(FILE));
}

/// What a launcher has asked for, if one has.
///
/// # Errors
/// When its ranks do not fit the cluster.
pub(super) fn read(folder: &Path, cluster: &ClusterSheet) -> Result<Option<Met>, SessionError> {
    let path = folder.join(FILE);
    let Ok(text) = std::fs::read(&path) else { return Ok(None) };
    clear(folder);
    let asked: Asked = serde_json::from_slice(&text).map_err(|error| SessionError::BadLaunch {
        reason: format!("a launcher says what it starts in a way that is not understood: {error}"),
    })?;
    let command: Vec<OsString> = asked.command.into_iter().map(OsString::from).collect();
    let launch = match asked.per_node {
        Some(per_node) => world::met(&command, per_node, asked.nodes, cluster)?,
        None => world::read(&command, cluster)?,
    };
    let found = Found { program: asked.python.clone(), python: asked.python, how: How::Named };
    let variables = asked.environment.into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(Some(Met {
        launch,
        found,
        settings: LauncherSettings { variables, directory: Some(asked.directory) },
    }))
}

/// Ends the command when a launcher has asked.
#[derive(Debug)]
pub(super) struct Meeting<'a>(pub(super) &'a Path);

impl Watch for Meeting<'_> {
    fn look(&mut self, _: &[Rank]) -> Wish {
        if self.0.join(FILE).exists() { Wish::StopAll } else { Wish::GoOn }
    }

    fn gone(&mut self, _: Rank) {}
}

#[cfg(test)]
mod tests {
    use trompe_hardware::resolve;

    use super::*;
    use crate::disk;

    #[test]
    fn a_launcher_is_taken_at_its_word() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = resolve("dgx-h100:4").unwrap();
        assert!(read(folder.path(), &cluster).unwrap().is_none());
        let ask = |text: &str| disk::write(&folder.path().join(FILE), text.as_bytes()).unwrap();
        let rest =
            r#""environment": {"ACCELERATE_MIXED_PRECISION": "bf16"}, "directory": "/x", "python": "/p""#;
        ask(&format!(r#"{{"command": ["/p", "-u", "t.py"], "per_node": 8, "nodes": null, {rest}}}"#));
        assert_eq!(Meeting(folder.path()).look(&[]), Wish::StopAll);
        let met = read(folder.path(), &cluster).unwrap().unwrap();
        assert_eq!(met.launch.world.map(|world| (world.size, world.per_node)), Some((32, 8)));
        assert_eq!(met.settings.variables, [("ACCELERATE_MIXED_PRECISION".to_owned(), "bf16".into())]);
        assert!(read(folder.path(), &cluster).unwrap().is_none(), "it is read once");
        ask(&format!(r#"{{"command": ["deepspeed", "--num_gpus", "4", "t.py"], {rest}}}"#));
        let met = read(folder.path(), &cluster).unwrap().unwrap();
        assert_eq!(met.launch.world.map(|world| world.size), Some(16));
        ask(&format!(r#"{{"command": ["/p", "t.py"], "per_node": 16, "nodes": 1, {rest}}}"#));
        assert!(read(folder.path(), &cluster).unwrap_err().to_string().contains("16 per node"));
    }
}
