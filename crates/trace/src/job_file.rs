//! The job trace on disk: one file, written whole, read whole.
//!
//! ```text
//! magic 8 · version u32 · reserved u32 · body length u64 · checksum u64 · body (postcard of a JobTrace)
//! ```
//! All integers are little-endian. The checksum (SipHash-1-3 with a zero key) covers the body, so that a damaged file
//! is refused instead of being simulated. A file is written beside its place and renamed, so that a reader never sees
//! half of one. Equal job traces give equal bytes.

use std::hash::Hasher as _;
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;

use crate::job::JobTrace;

/// Version of the header and of every type in [`crate::job`] and [`crate::descriptor`].
///
/// 3 added [`Descriptor::NpuKernel`](crate::descriptor::Descriptor::NpuKernel); a file of version 2 is one of version 3
/// without it. 4 added [`Descriptor::Recorded`](crate::descriptor::Descriptor::Recorded) in the same way,
/// 5 [`Descriptor::Compiled`](crate::descriptor::Descriptor::Compiled), and 6 the hand-overs between threads
/// ([`Action::Give`](crate::job::Action::Give), [`Action::Take`](crate::job::Action::Take)).
pub const JOB_VERSION: u32 = 6;

/// The oldest version that still reads.
const OLDEST: u32 = 2;

const MAGIC: [u8; 8] = *b"TROMPE\x00J";
const HEADER: usize = 32;

/// Why a job trace was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobFileError {
    /// The file could not be read.
    #[error("cannot read the job trace `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file could not be written.
    #[error("cannot write the job trace `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It does not begin like a job trace.
    #[error("`{}` is not a job trace; it begins with {found:02x?}", path.display())]
    NotAJob {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// It was written by another version.
    #[error(
        "`{}` has job trace format {found}, this trompe reads formats {OLDEST} to {JOB_VERSION}; run the job again with this version",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It was cut or changed.
    #[error("the job trace `{}` is damaged ({reason}); run the job again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not add up.
        reason: String,
    },
}

/// Writes a job trace to `path`, replacing what is there.
///
/// # Errors
/// When the file cannot be written.
pub fn save(job: &JobTrace, path: &Path) -> Result<(), JobFileError> {
    let failed = |source| JobFileError::Write { path: path.to_owned(), source };
    let bytes = to_bytes(job).map_err(|e| failed(std::io::Error::other(e)))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let draft = path.with_file_name(name);
    let written = std::fs::write(&draft, bytes).and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|source| {
        let _ = std::fs::remove_file(&draft);
        failed(source)
    })
}

/// Reads a job trace.
///
/// # Errors
/// When the file cannot be read or is not a whole job trace of this version.
pub fn load(path: &Path) -> Result<JobTrace, JobFileError> {
    let bytes = std::fs::read(path).map_err(|source| JobFileError::Read { path: path.to_owned(), source })?;
    from_bytes(&bytes, path)
}

/// The content of a job trace file.
///
/// # Errors
/// Never for a job trace that fits into memory twice.
pub fn to_bytes(job: &JobTrace) -> Result<Vec<u8>, postcard::Error> {
    let mut bytes = postcard::to_extend(job, vec![0; HEADER])?;
    let (length, sum) = ((bytes.len() - HEADER) as u64, checksum(&bytes[HEADER..]));
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&JOB_VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

/// Takes a file's content; `path` is used in errors only.
///
/// # Errors
/// When `bytes` is not a whole job trace of this version.
pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<JobTrace, JobFileError> {
    let damaged = |reason: String| JobFileError::Damaged { path: path.to_owned(), reason };
    if !bytes.starts_with(&MAGIC) {
        let found = bytes[..bytes.len().min(8)].to_vec();
        return Err(JobFileError::NotAJob { path: path.to_owned(), found });
    }
    let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(damaged(format!("{} bytes, the header alone has {HEADER}", bytes.len())));
    };
    let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if !(OLDEST..=JOB_VERSION).contains(&found) {
        return Err(JobFileError::Version { path: path.to_owned(), found });
    }
    if header[16..24] != (body.len() as u64).to_le_bytes() {
        return Err(damaged(format!("{} bytes follow the header, it promises another number", body.len())));
    }
    if header[24..32] != checksum(body).to_le_bytes() {
        return Err(damaged("the checksum does not match".to_owned()));
    }
    postcard::from_bytes(body).map_err(|error| damaged(error.to_string()))
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::job::{Note, RankTemplate, Severity};

    fn job() -> JobTrace {
        let note = Note { severity: Severity::Warning, text: "text".into(), hint: None };
        JobTrace { templates: vec![RankTemplate::default()], notes: vec![note], ..Default::default() }
    }

    fn check(change: impl FnOnce(&mut Vec<u8>), message: &str) {
        let mut bytes = to_bytes(&job()).unwrap();
        change(&mut bytes);
        let error = from_bytes(&bytes, Path::new("a/job")).unwrap_err().to_string();
        assert!(error.contains("`a/job`") && error.contains(message), "{error}");
    }

    #[test]
    fn a_job_comes_back_from_disk() {
        let folder = std::env::temp_dir().join(format!("trompe-job-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("job.trompe");
        save(&job(), &path).unwrap();
        assert_eq!(load(&path).unwrap(), job());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "the draft is gone");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("cannot read the job trace"));
        assert!(save(&job(), &path).unwrap_err().to_string().contains("cannot write the job trace"));
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        check(|b| b[0] = b'X', "is not a job trace");
        check(|b| b[8] = 99, "job trace format 99");
        check(|b| b.truncate(20), "the header alone has 32");
        check(|b| b.truncate(40), "promises another number");
        check(|b| *b.last_mut().unwrap() ^= 1, "checksum");
    }

    #[test]
    fn the_version_before_is_read() {
        let mut bytes = to_bytes(&job()).unwrap();
        bytes[8] = OLDEST as u8;
        assert_eq!(from_bytes(&bytes, Path::new("a/job")).unwrap(), job());
        check(|b| b[8] = OLDEST as u8 - 1, "job trace format 1");
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in 0usize..60, value: u8) {
            let mut bytes = to_bytes(&job()).unwrap();
            let at = at % bytes.len();
            let same = bytes[at] == value;
            bytes[at] = value;
            let back = from_bytes(&bytes, Path::new("x"));
            prop_assert!(same || back.is_err() || at == 8 || (12..16).contains(&at));
        }
    }
}
