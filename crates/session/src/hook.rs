//! The Python parts of this program, unpacked into the cache under names made from their content: the hook of jobs, the
//! package that writes NPU kernels and measures GPUs, what records a job on a real GPU, and the training scripts that
//! validation emulates.

use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry, File, include_dir};
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::{SessionError, disk};

static HOOK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../python/trompe_hook");
static BUILDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../python/trompe");
static RECORDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../python/trompe_recorder");
static JOBS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../frameworks/jobs");

/// Unpacks the hook into `cache` (files that are there already are left as they are) and returns the folder to put
/// in front of `PYTHONPATH`. The package `trompe` lies in it too, so that a job can import it.
///
/// # Errors
/// When the cache cannot be written to.
pub fn unpack(cache: &Path) -> Result<PathBuf, SessionError> {
    unpack_as(&[(&HOOK, ""), (&BUILDER, "trompe")], cache, "hook")
}

/// The same for the package `trompe` alone, which writes NPU kernels and measures GPUs.
///
/// # Errors
/// When the cache cannot be written to.
pub fn unpack_builder(cache: &Path) -> Result<PathBuf, SessionError> {
    unpack_as(&[(&BUILDER, "trompe")], cache, "builder")
}

/// The same for what records the kernels of a job on a real GPU.
///
/// # Errors
/// When the cache cannot be written to.
pub fn unpack_recorder(cache: &Path) -> Result<PathBuf, SessionError> {
    unpack_as(&[(&RECORDER, "")], cache, "recorder")
}

/// The same for the training scripts that validation emulates.
///
/// # Errors
/// When the cache cannot be written to.
pub fn unpack_jobs(cache: &Path) -> Result<PathBuf, SessionError> {
    unpack_as(&[(&JOBS, "")], cache, "jobs")
}

/// Unpacks each folder into the place beside it inside of a folder in `cache` that is named after `name` and the content.
fn unpack_as(
    folders: &[(&'static Dir<'static>, &str)],
    cache: &Path,
    name: &str,
) -> Result<PathBuf, SessionError> {
    let files: Vec<(PathBuf, &File<'_>)> = folders
        .iter()
        .flat_map(|(folder, inside)| {
            files(folder).into_iter().map(|file| (Path::new(inside).join(file.path()), file))
        })
        .collect();
    let mut hasher = SipHasher13::new();
    for (path, file) in &files {
        hasher.write(path.as_os_str().as_encoded_bytes());
        hasher.write_usize(file.contents().len());
        hasher.write(file.contents());
    }
    let folder = cache.join(format!("{name}-{:016x}", hasher.finish128().h1));
    for (path, file) in files {
        let path = folder.join(path);
        if fs::read(&path).is_ok_and(|content| content == file.contents()) {
            continue;
        }
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(|source| SessionError::writing(parent, source))?;
        disk::write(&path, file.contents())?;
    }
    Ok(folder)
}

/// All files of the hook in order of path, without what Python left behind.
fn files<'a>(folder: &'a Dir<'a>) -> Vec<&'a File<'a>> {
    let mut found = Vec::new();
    for entry in folder.entries() {
        match entry {
            DirEntry::Dir(inner) if inner.path().ends_with("__pycache__") => {}
            DirEntry::Dir(inner) => found.extend(files(inner)),
            DirEntry::File(file) if file.path().extension().is_some_and(|end| end == "so") => {}
            DirEntry::File(file) => found.push(file),
        }
    }
    found.sort_by_key(|file| file.path());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacking_is_repeatable_and_mends_damage() {
        let cache = tempfile::tempdir().unwrap();
        let folder = unpack(cache.path()).unwrap();
        let start = folder.join("sitecustomize.py");
        let content = fs::read(&start).unwrap();
        fs::write(&start, "damaged").unwrap();
        assert_eq!(unpack(cache.path()).unwrap(), folder);
        assert_eq!(fs::read(&start).unwrap(), content);
    }
}
