//! Records of a continuous integration: the exact command line of a job, its environment, and what was measured.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::{Left, MeasureError, open};

/// One record (a line of JSON).
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Golden {
    /// Line of the file, from 1.
    #[serde(skip)]
    pub line: u64,
    /// Name of the record.
    pub id: Value,
    /// The test.
    pub test_case: String,
    /// The device.
    pub gpu: String,
    /// Devices of the job.
    pub n_gpus: u64,
    /// Devices per node.
    #[serde(default)]
    pub gpus_per_node: Option<u64>,
    /// Generation of the software.
    #[serde(default)]
    pub environment: String,
    /// Environment variables of the job.
    #[serde(default)]
    pub env_vars: BTreeMap<String, Value>,
    /// Arguments of the program by name (`--num-layers`).
    pub model_args: BTreeMap<String, Value>,
    /// Peak of the framework's allocator on the last rank, in bytes.
    #[serde(default)]
    pub peak_allocated_bytes: Option<u64>,
}

impl Golden {
    /// The argument called `name`, as text; an argument without a value is "true".
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<String> {
        self.model_args.get(name).map(text)
    }

    /// Its name as text.
    #[must_use]
    pub fn name(&self) -> String {
        text(&self.id)
    }
}

/// A value as a command line has it.
#[must_use]
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads records (one JSON object per line, plain or gzip); records that cannot be used are counted.
///
/// # Errors
/// When the file cannot be read or no record can be used.
pub fn read(path: &Path) -> Result<(Vec<Golden>, Left), MeasureError> {
    let failed =
        |error: std::io::Error| MeasureError::Unreadable { path: path.to_owned(), reason: error.to_string() };
    let (mut records, mut left) = (Vec::new(), Left::default());
    for (at, line) in BufReader::new(open(path)?).lines().enumerate() {
        let (text, line) = (line.map_err(failed)?, at as u64 + 1);
        if text.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Golden>(&text) {
            Err(error) => {
                // Without the column, which differs from record to record.
                let what = error.to_string();
                let what = what.split(" at line").next().unwrap_or_default();
                left.add(format!("it is no complete record of a job: {what}"), line);
            }
            Ok(record) if record.peak_allocated_bytes.is_none_or(|bytes| bytes == 0) => {
                left.add("it states no peak memory", line);
            }
            Ok(record) => records.push(Golden { line, ..record }),
        }
    }
    if records.is_empty() {
        let reason = left.lines("it").into_iter().next().unwrap_or_else(|| "it is empty".to_owned());
        return Err(MeasureError::Empty { path: path.to_owned(), reason });
    }
    Ok((records, left))
}
