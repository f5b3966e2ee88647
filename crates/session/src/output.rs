//! The output folder: whose it is, who writes to it, and what lies where in it.
//!
//! A folder made by trompe holds a mark ([`MARK`]). Only such a folder, an empty one, or one that the user insists
//! on is written to, and only files of our own names are replaced in it. The mark is locked while a run writes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::{SessionError, disk, traces};

/// The file that marks a folder as made by trompe.
pub const MARK: &str = ".trompe-output";

/// What to do when the output folder exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Replace it when trompe made it, refuse otherwise.
    #[default]
    Replace,
    /// Leave it and write to `DIR-2`, `DIR-3`, ….
    Keep,
    /// Write to it whoever made it; files of other names stay.
    Force,
}

/// An output folder that belongs to this process until it is dropped.
#[derive(Debug)]
pub struct OutputFolder {
    /// The folder, absolute.
    pub path: PathBuf,
    /// Holds the lock.
    _mark: File,
}

/// Names inside an output folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The page for people.
    pub report_html: PathBuf,
    /// The same as data.
    pub report_json: PathBuf,
    /// A simulated step for Perfetto.
    pub timeline: PathBuf,
    /// The job trace.
    pub job_trace: PathBuf,
    /// The cluster that was simulated.
    pub cluster: PathBuf,
    /// The traces of the job's processes.
    pub workers: PathBuf,
}

impl Layout {
    /// The names in `folder`.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self {
            report_html: folder.join("report.html"),
            report_json: folder.join("report.json"),
            timeline: folder.join("timeline.json"),
            job_trace: folder.join("job.trace"),
            cluster: folder.join("cluster.json"),
            workers: folder.join("workers"),
        }
    }

    fn files(&self) -> [&Path; 5] {
        [&self.report_html, &self.report_json, &self.timeline, &self.job_trace, &self.cluster]
    }
}

impl OutputFolder {
    /// Takes `path` for writing; nothing in it is replaced yet.
    ///
    /// # Errors
    /// When it is a file, belongs to somebody else, is in use, or cannot be written to.
    pub fn take(path: &Path, existing: Existing) -> Result<Self, SessionError> {
        let path = std::path::absolute(path).map_err(|source| SessionError::writing(path, source))?;
        if existing != Existing::Keep {
            return Self::take_one(path, existing);
        }
        let mut name = path.clone().into_os_string();
        let mut number = 1_u32;
        loop {
            let candidate = PathBuf::from(&name);
            if is_free(&candidate) {
                return Self::take_one(candidate, Existing::Replace);
            }
            number += 1;
            name = path.clone().into_os_string();
            name.push(format!("-{number}"));
        }
    }

    fn take_one(path: PathBuf, existing: Existing) -> Result<Self, SessionError> {
        if path.exists() && !path.is_dir() {
            return Err(SessionError::OutputIsFile { path });
        }
        if existing != Existing::Force && !is_free(&path) && !path.join(MARK).is_file() {
            return Err(SessionError::ForeignOutput { path });
        }
        fs::create_dir_all(&path).map_err(|source| SessionError::writing(&path, source))?;
        let name = path.join(MARK);
        let mark = File::options().create(true).truncate(false).write(true).open(&name);
        let mark = mark.map_err(|source| SessionError::writing(&path, source))?;
        match mark.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SessionError::OutputBusy { path }),
            // A file system without locks: two runs at once are the user's business.
            Err(TryLockError::Error(_)) => {}
        }
        write_mark(&mark).map_err(|source| SessionError::writing(&name, source))?;
        Ok(Self { path, _mark: mark })
    }

    /// Names inside the folder.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout::of(&self.path)
    }

    /// Removes what an earlier run left and makes the folder for the worker traces.
    ///
    /// # Errors
    /// When something cannot be removed or made.
    pub fn clear(&self) -> Result<(), SessionError> {
        let layout = self.layout();
        for path in layout.files() {
            forgive_missing(fs::remove_file(path)).map_err(|source| SessionError::writing(path, source))?;
        }
        // Only what a run makes there: a forced folder may hold a `workers` of its owner's.
        let workers = &layout.workers;
        let own = [workers.join("node.json"), workers.join("bin/nvidia-smi")];
        let checked = traces::checked_files(workers)?;
        for path in own.iter().chain(&traces::worker_files(workers)?).chain(&checked) {
            forgive_missing(fs::remove_file(path)).map_err(|source| SessionError::writing(path, source))?;
        }
        fs::create_dir_all(workers).map_err(|source| SessionError::writing(workers, source))
    }

    /// Removes the worker traces of an attempt that is made again.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn clear_workers(&self) -> Result<(), SessionError> {
        let workers = self.layout().workers;
        for path in traces::worker_files(&workers)?.into_iter().chain(traces::checked_files(&workers)?) {
            forgive_missing(fs::remove_file(&path)).map_err(|source| SessionError::writing(&path, source))?;
        }
        Ok(())
    }

    /// Whether there is room for a small trace.
    ///
    /// # Errors
    /// When there is not.
    pub fn check_room(&self) -> Result<(), SessionError> {
        const LEAST_MIB: u64 = 64;
        match disk::free_mib(&self.path) {
            Some(free_mib) if free_mib < LEAST_MIB => {
                Err(SessionError::DiskFull { path: self.path.clone(), free_mib })
            }
            _ => Ok(()),
        }
    }
}

/// Whether there is nothing, or an empty folder, at `path`.
fn is_free(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        // Below a file nothing can be made either; creating it says so.
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

fn write_mark(mut mark: &File) -> io::Result<()> {
    use io::Write;
    const TEXT: &[u8] = b"This folder was made by trompe, which replaces its files in the next run.\n";
    mark.set_len(0)?;
    mark.write_all(TEXT)
}

fn forgive_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(path: &Path, existing: Existing) -> Result<PathBuf, String> {
        OutputFolder::take(path, existing)
            .map(|folder| folder.path.clone())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn new_empty_and_own_folders_are_taken() {
        let root = tempfile::tempdir().unwrap();
        let new = root.path().join("a/b");
        assert_eq!(take(&new, Existing::Replace), Ok(new.clone()));
        assert_eq!(take(&new, Existing::Replace), Ok(new), "a second time");
        let empty = root.path().join("empty");
        fs::create_dir(&empty).unwrap();
        assert_eq!(take(&empty, Existing::Replace), Ok(empty));
    }

    #[test]
    fn foreign_folders_are_refused_and_never_emptied() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("workers")).unwrap();
        let theirs = ["thesis.tex", "workers/names.txt"].map(|name| root.path().join(name));
        theirs.iter().for_each(|path| fs::write(path, "text").unwrap());
        let error = OutputFolder::take(root.path(), Existing::Replace).unwrap_err();
        assert!(error.hint().unwrap().contains("--force"), "{error}");
        let forced = OutputFolder::take(root.path(), Existing::Force).unwrap();
        forced.clear().unwrap();
        theirs.iter().for_each(|path| assert_eq!(fs::read_to_string(path).unwrap(), "text"));
    }

    #[test]
    fn a_file_and_a_busy_folder_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(take(&file, Existing::Force).unwrap_err().contains("not a folder"));
        let busy = root.path().join("busy");
        let _held = OutputFolder::take(&busy, Existing::Replace).unwrap();
        assert!(take(&busy, Existing::Replace).unwrap_err().contains("another trompe"));
    }

    #[test]
    fn keeping_counts_up() {
        let root = tempfile::tempdir().unwrap();
        let first = root.path().join("out");
        assert_eq!(take(&first, Existing::Keep), Ok(first.clone()));
        assert_eq!(take(&first, Existing::Keep), Ok(root.path().join("out-2")));
        assert_eq!(take(&first, Existing::Keep), Ok(root.path().join("out-3")));
    }

    #[test]
    fn clearing_removes_the_earlier_run() {
        let root = tempfile::tempdir().unwrap();
        let folder = OutputFolder::take(&root.path().join("out"), Existing::Replace).unwrap();
        folder.clear().unwrap();
        let layout = folder.layout();
        fs::write(layout.workers.join("1.trompe"), "").unwrap();
        fs::write(&layout.report_json, "{}").unwrap();
        folder.clear().unwrap();
        assert!(!layout.report_json.exists() && fs::read_dir(layout.workers).unwrap().next().is_none());
    }
}
