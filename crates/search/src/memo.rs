//! Results on disk that studies share: what ran once with the same job, code and cluster does not run again.
//!
//! A result is a small JSON file whose name is a digest of everything that it depends on. Files are written beside and
//! renamed, so several studies may use one folder. What cannot be read counts as not there.

use std::fmt::Write as _;
use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::Outcome;

/// Name of a result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// The digest of parts, each with its length, so that no two lists of parts run together.
    #[must_use]
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = SipHasher13::new();
        for part in parts {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
        let mut text = String::new();
        let _ = write!(text, "{:032x}", hasher.finish128().as_u128());
        Self(text)
    }

    /// The digest as text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Memo {
    folder: PathBuf,
}

impl Memo {
    /// The memo in `folder`, which is made.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(&key.0[..2]).join(&key.0[2..]).with_extension("json")
    }

    /// A result.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Outcome> {
        serde_json::from_slice(&fs::read(self.path(key)).ok()?).ok()
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// When it cannot be written.
    ///
    /// # Panics
    /// Never: an outcome has a JSON form.
    pub fn put(&self, key: &Key, outcome: &Outcome) -> io::Result<()> {
        let path = self.path(key);
        let draft = path.with_extension(format!("{}.part", std::process::id()));
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        let content = serde_json::to_vec(outcome).expect("plain data has a JSON form");
        let result = fs::write(&draft, content).and_then(|()| fs::rename(&draft, &path));
        result.inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_by_everything_they_depend_on() {
        let folder = tempfile::tempdir().unwrap();
        let memo = Memo::open(&folder.path().join("memo")).unwrap();
        let key = |parts: &[&str]| Key::of(parts.iter().map(|part| part.as_bytes()));
        let outcome = Outcome::failed(vec!["x".into()]);
        memo.put(&key(&["a", "b"]), &outcome).unwrap();
        assert_eq!(memo.get(&key(&["a", "b"])), Some(outcome));
        assert_eq!(memo.get(&key(&["ab", ""])), None);
        assert_eq!(memo.get(&key(&["a"])), None);
    }
}
