//! Where the libraries that stand in for CUDA's are.

use std::path::{Path, PathBuf};

use crate::{SessionError, env};

/// The library that is preloaded into every process of the job.
pub const PRELOADED: &str = "libtrompe_shim.so";

/// The emulated libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Libraries {
    /// The folder with one library per name that programs ask for (`libcudart.so.13`, …).
    pub folder: PathBuf,
    /// The library that they all lead to.
    pub preloaded: PathBuf,
}

/// Finds the libraries: `$TROMPE_LIB`, else `trompe-lib` beside this program, else `../lib/trompe` from it.
///
/// # Errors
/// When no such folder holds the preloaded library.
pub fn find() -> Result<Libraries, SessionError> {
    let candidates = match env::path(env::TROMPE_LIB) {
        Some(folder) => vec![folder],
        None => beside_program(),
    };
    candidates
        .iter()
        .find_map(|folder| libraries(folder))
        .ok_or(SessionError::NoLibraries { looked_in: candidates })
}

fn beside_program() -> Vec<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let folder = program.ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    vec![folder.join("trompe-lib"), folder.join("../lib/trompe")]
}

fn libraries(folder: &Path) -> Option<Libraries> {
    let folder = folder.canonicalize().ok()?;
    let preloaded = folder.join(PRELOADED);
    preloaded.is_file().then_some(Libraries { folder, preloaded })
}
