//! Free space and small file helpers.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::SessionError;

/// Space in MiB that an unprivileged process may still take on the disk of `path`, or of its nearest existing
/// parent; `None` when the system does not say.
#[must_use]
pub fn free_mib(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let stat = nix::sys::statvfs::statvfs(existing).ok()?;
    Some((stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64) >> 20)
}

/// Writes a whole file: first beside it, then renamed, so that a reader sees the old file or the new one.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write(path: &Path, content: &[u8]) -> Result<(), SessionError> {
    write_with(path, |file| file.write_all(content))
}

/// Like [`write()`], with the content made by `fill`.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut fs::File) -> std::io::Result<()>,
) -> Result<(), SessionError> {
    let draft = draft(path);
    let result =
        fs::File::create(&draft).and_then(|mut file| fill(&mut file)).and_then(|()| fs::rename(&draft, path));
    result.map_err(|source| {
        let _ = fs::remove_file(&draft);
        SessionError::writing(path, source)
    })
}

fn draft(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Reads a whole file as text.
///
/// # Errors
/// When it cannot be read.
pub fn read_text(path: &Path) -> Result<String, SessionError> {
    fs::read_to_string(path).map_err(|source| SessionError::reading(path, source))
}
