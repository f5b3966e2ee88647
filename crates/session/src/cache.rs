//! The user's cache folder: kernel databases, the unpacked Python hook, compiled observers.

use std::fs;
use std::path::PathBuf;

use crate::{SessionError, env};

/// A cache folder that exists and can be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The folder.
    pub folder: PathBuf,
    /// Why it is not where the user's cache should be.
    pub instead_of: Option<(PathBuf, String)>,
}

/// Where the cache should be: `$XDG_CACHE_HOME/trompe`, else `$HOME/.cache/trompe`.
#[must_use]
pub fn wanted() -> Option<PathBuf> {
    let base =
        env::path(env::XDG_CACHE_HOME).or_else(|| env::path(env::HOME).map(|home| home.join(".cache")))?;
    Some(base.join("trompe"))
}

/// The cache folder, made when it is not there; a folder for temporary files takes its place when it cannot be used.
///
/// # Errors
/// When neither can be written to.
pub fn open() -> Result<Cache, SessionError> {
    let (wanted, reason) = match wanted() {
        Some(wanted) => match usable(&wanted) {
            Ok(()) => return Ok(Cache { folder: wanted, instead_of: None }),
            Err(error) => (wanted, error.to_string()),
        },
        None => (PathBuf::from("$HOME/.cache/trompe"), "neither HOME nor XDG_CACHE_HOME is set".to_owned()),
    };
    let folder = std::env::temp_dir().join(format!("trompe-cache-{}", nix::unistd::getuid()));
    usable(&folder).map_err(|source| SessionError::writing(&folder, source))?;
    Ok(Cache { folder, instead_of: Some((wanted, reason)) })
}

fn usable(folder: &std::path::Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let trial = folder.join(format!(".trial.{}", std::process::id()));
    fs::write(&trial, b"trompe")?;
    fs::remove_file(&trial)
}
