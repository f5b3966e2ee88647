//! Reports that were written before.

use std::path::Path;

use trompe_results::{Report, SCHEMA_VERSION};

use crate::output::Layout;
use crate::{SessionError, disk};

/// Reads the report of an output folder, or a `report.json`.
///
/// # Errors
/// When there is none, or it is of another version.
pub fn read(path: &Path) -> Result<Report, SessionError> {
    let path = if path.is_dir() { Layout::of(path).report_json } else { path.to_owned() };
    if !path.exists() {
        return Err(SessionError::NoTrace { reason: "there is no `report.json`".to_owned(), path });
    }
    let text = disk::read_text(&path)?;
    let damaged = |reason: String| SessionError::Damaged { path: path.clone(), reason };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    let version = value.get("schema_version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(SCHEMA_VERSION)) {
        let found = version.map_or("none".to_owned(), |version| version.to_string());
        let reason = format!("it has report version {found}, this trompe reads {SCHEMA_VERSION}");
        return Err(SessionError::OtherVersion { path, reason });
    }
    serde_json::from_value(value).map_err(|error| damaged(error.to_string()))
}
