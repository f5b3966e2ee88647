//! The journal of a study: one line of JSON per finished trial, appended the moment it is known.
//!
//! A study that was interrupted is taken up again by asking for the same points and answering from the journal. The
//! first line says what the study is of; when that has changed, the journal is of another study. A last line that is
//! cut (power failure, full disk) is left out; everything before it counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trompe_results::study::TrialOrigin;

use crate::{Outcome, Point};

/// What a study is of. Two studies with equal headers have the same trials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of trompe.
    pub trompe_version: String,
    /// Digest of the space file.
    pub space: String,
    /// Digest of the code that the job runs.
    pub code: String,
    /// The cluster as the user named it, and a digest of what that means.
    pub cluster: String,
    /// Digest of the estimators that price kernels, where they are not the built-in ones.
    #[serde(default)]
    pub estimators: String,
    /// Strategy.
    pub strategy: String,
    /// Seed.
    pub seed: u64,
}

impl Header {
    /// What differs, in words.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            (self.trompe_version == other.trompe_version, "the version of trompe"),
            (self.space == other.space, "the space file"),
            (self.code == other.code, "the script or the code beside it"),
            (self.cluster == other.cluster, "the cluster"),
            (self.estimators == other.estimators, "the estimators"),
            (self.strategy == other.strategy, "the strategy"),
            (self.seed == other.seed, "the seed"),
        ];
        parts.into_iter().filter(|(same, _)| !same).map(|(_, name)| name).collect()
    }
}

/// A finished trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its point.
    pub point: Point,
    /// How it ended.
    pub outcome: Outcome,
    /// Where that comes from.
    pub origin: TrialOrigin,
    /// Real seconds of the study at which it was known.
    pub at_seconds: f64,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// What an earlier session left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// What it was of.
    pub header: Header,
    /// Its trials by point.
    pub entries: BTreeMap<Point, Entry>,
    /// Real seconds it took.
    pub seconds: f64,
    /// Bytes of whole lines.
    length: u64,
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line in it makes no sense.
    #[error("line {line} of `{}` is no line of a journal: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

/// Reads a journal; `None` when there is none, or nothing whole in it.
///
/// # Errors
/// When it cannot be read, or a line other than the last makes no sense.
pub fn read(path: &Path) -> Result<Option<Kept>, JournalError> {
    let failed = |source| JournalError::File { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut reader = BufReader::new(file);
    let mut kept: Option<Kept> = None;
    let mut number = 0;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let length = reader.read_until(b'\n', &mut bytes).map_err(failed)?;
        if length == 0 || bytes.last() != Some(&b'\n') {
            return Ok(kept);
        }
        number += 1;
        let damaged = |error: serde_json::Error| JournalError::Damaged {
            path: path.to_owned(),
            line: number,
            reason: error.to_string(),
        };
        match &mut kept {
            None => {
                let header = serde_json::from_slice(&bytes).map_err(damaged)?;
                kept = Some(Kept { header, length: length as u64, ..Kept::default() });
            }
            Some(kept) => {
                let entry: Entry = serde_json::from_slice(&bytes).map_err(damaged)?;
                kept.length += length as u64;
                kept.seconds = kept.seconds.max(entry.at_seconds);
                kept.entries.insert(entry.point.clone(), entry);
            }
        }
    }
}

impl Journal {
    /// Begins a journal anew.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self, JournalError> {
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let file = File::create(path).map_err(failed)?;
        let mut journal = Self { path: path.to_owned(), file };
        journal.line(header)?;
        Ok(journal)
    }

    /// Goes on with a journal that was read; a cut last line goes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn resume(path: &Path, kept: &Kept) -> Result<Self, JournalError> {
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let mut file = File::options().write(true).open(path).map_err(failed)?;
        file.set_len(kept.length).and_then(|()| file.seek(io::SeekFrom::End(0))).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a trial; it is on its way to the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written (a full disk): what was written before stays whole.
    pub fn add(&mut self, entry: &Entry) -> Result<(), JournalError> {
        self.line(entry)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(value).expect("plain data has a JSON form");
        line.push(b'\n');
        let end = self.file.stream_position();
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(|source| {
            if let Ok(end) = end {
                let _ = self.file.set_len(end);
                let _ = self.file.seek(io::SeekFrom::Start(end));
            }
            JournalError::File { path: self.path.clone(), source }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: u16) -> Entry {
        Entry {
            point: Point(vec![value]),
            outcome: Outcome::failed(vec!["boom".to_owned()]),
            origin: TrialOrigin::Executed,
            at_seconds: f64::from(value),
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert_eq!(read(&path).unwrap(), None);
        let header = Header { seed: 3, ..Header::default() };
        let mut journal = Journal::create(&path, &header).unwrap();
        journal.add(&entry(1)).unwrap();
        journal.add(&entry(2)).unwrap();
        drop(journal);
        let kept = read(&path).unwrap().unwrap();
        assert_eq!((kept.entries.len(), kept.seconds), (2, 2.0));
        assert_eq!(kept.header, header);
        // A line that was cut is left out, and overwritten when the study goes on.
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"point\":[3],\"out").unwrap();
        let kept = read(&path).unwrap().unwrap();
        assert_eq!(kept.entries.len(), 2);
        let mut journal = Journal::resume(&path, &kept).unwrap();
        journal.add(&entry(4)).unwrap();
        assert_eq!(
            read(&path).unwrap().unwrap().entries.keys().map(|point| point.0[0]).collect::<Vec<_>>(),
            [1, 2, 4]
        );
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        Journal::create(&path, &Header::default()).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"nonsense\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().starts_with("line 2 of"));
    }

    #[test]
    fn a_full_disk_is_an_error_and_loses_nothing() {
        let journal = Journal {
            path: "/dev/full".into(),
            file: File::options().write(true).open("/dev/full").unwrap(),
        };
        let error = { journal }.add(&entry(1)).unwrap_err();
        assert!(
            matches!(&error, JournalError::File { source, .. } if source.kind() == io::ErrorKind::StorageFull),
            "{error}"
        );
    }

    #[test]
    fn headers_say_what_changed() {
        let header = Header::default();
        let other = Header { code: "x".into(), seed: 1, ..Header::default() };
        assert_eq!(header.differences(&other), ["the script or the code beside it", "the seed"]);
    }
}
