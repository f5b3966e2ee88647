//! The files of a study: its folder, what is written at its end, and reading it again.

use std::path::{Path, PathBuf};

use trompe_results::study::{STUDY_SCHEMA_VERSION, Study};

use super::SearchError;
use crate::{SessionError, disk};

/// Names inside a study's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyFiles {
    /// The page for people.
    pub html: PathBuf,
    /// Everything as data.
    pub json: PathBuf,
    /// The trials as a table.
    pub csv: PathBuf,
    /// The same table with types (Parquet).
    pub parquet: PathBuf,
    /// What was known so far, for going on.
    pub journal: PathBuf,
    /// Traces that trials share.
    pub traces: PathBuf,
    /// Folders of the workers.
    pub work: PathBuf,
}

impl StudyFiles {
    /// The names in `folder`.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self {
            html: folder.join("study.html"),
            json: folder.join("study.json"),
            csv: folder.join("trials.csv"),
            parquet: folder.join("trials.parquet"),
            journal: folder.join("study.journal"),
            traces: folder.join("traces"),
            work: folder.join("work"),
        }
    }

    /// Writes everything that a study says.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn write(&self, study: &Study) -> Result<(), SessionError> {
        let json = serde_json::to_vec_pretty(study).expect("plain data has a JSON form");
        disk::write(&self.json, &json)?;
        let table = trompe_report::study_table(study);
        disk::write(&self.csv, table.csv().as_bytes())?;
        let typed = trompe_search::parquet::table(&table.columns, &table.rows);
        let typed = typed.map_err(|error| SessionError::from(SearchError::Table(error.to_string())))?;
        disk::write(&self.parquet, &typed)?;
        disk::write(&self.html, trompe_report::study_html(study).as_bytes())
    }
}

/// Reads the study of a folder, or a `study.json`.
///
/// # Errors
/// When there is none, or it is of another version.
pub(super) fn read(path: &Path) -> Result<Study, SessionError> {
    let path = if path.is_dir() { StudyFiles::of(path).json } else { path.to_owned() };
    let no = |reason: String| SessionError::from(SearchError::NoStudy { path: path.clone(), reason });
    if !path.exists() {
        return Err(no("it does not exist".to_owned()));
    }
    let text = disk::read_text(&path)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| no(error.to_string()))?;
    let version = value.get("schema_version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(STUDY_SCHEMA_VERSION)) {
        return Err(no(format!("its version is {version:?}, this trompe reads {STUDY_SCHEMA_VERSION}")));
    }
    serde_json::from_value(value).map_err(|error| no(error.to_string()))
}
