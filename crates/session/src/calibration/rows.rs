//! The table of measured kernels: one row per operation, GPU and source.
//!
//! CSV with a header, so that a user can look at it, strike rows out and merge tables. `operation` is the descriptor as
//! JSON; a row without one is found by kernel name, grid and block alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trompe_hardware::DeviceSheet;
use trompe_measure::sources::Sources;
use trompe_trace::descriptor::Descriptor;

use crate::{SessionError, disk};

/// One measured operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the device's sheet.
    pub gpu: String,
    /// The kernel's or call's name for people.
    pub kernel: String,
    /// Blocks in x, y, z; `None` for calls of libraries.
    pub grid: Option<[u32; 3]>,
    /// Threads per block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// What it computes, where that is known in full.
    pub operation: Option<Descriptor>,
    /// Measurements.
    pub count: u64,
    /// Their median in microseconds.
    pub time_us: f64,
    /// Their 10 % quantile.
    pub low_us: f64,
    /// Their 90 % quantile.
    pub high_us: f64,
    /// Where they come from.
    pub source: String,
    /// The day they were added.
    pub date: String,
}

/// The row as it stands in the file.
#[derive(Debug, Serialize, Deserialize)]
struct Cells {
    gpu: String,
    family: String,
    kernel: String,
    grid: String,
    block: String,
    count: u64,
    time_us: f64,
    low_us: f64,
    high_us: f64,
    source: String,
    date: String,
    operation: String,
}

/// Columns that tell this table from others.
pub(super) const COLUMNS: [&str; 3] = ["kernel", "operation", "low_us"];

/// Sheets by name, each read once.
#[derive(Debug, Default)]
pub(super) struct Sheets {
    sources: Option<Sources>,
    known: BTreeMap<String, Arc<DeviceSheet>>,
}

impl Sheets {
    /// The device that a row calls `gpu`.
    pub(super) fn get(&mut self, gpu: &str) -> Result<Arc<DeviceSheet>, SessionError> {
        if let Some(sheet) = self.known.get(gpu) {
            return Ok(Arc::clone(sheet));
        }
        let sources = self.sources.get_or_insert_with(Sources::builtin);
        let sheet = match sources.device(gpu) {
            Some(sheet) => sheet,
            None if gpu.ends_with(".toml") => Arc::new(trompe_hardware::resolve(gpu)?.device().clone()),
            None => return Err(SessionError::UnknownGpu { gpu: gpu.to_owned() }),
        };
        self.known.insert(gpu.to_owned(), Arc::clone(&sheet));
        Ok(sheet)
    }
}

/// Reads the table at `path`; a file that is not there is an empty one.
pub(super) fn read(path: &Path) -> Result<Vec<Row>, SessionError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let damaged = |line: u64, reason: String| SessionError::Calibration {
        path: path.to_owned(),
        reason: format!("line {line}: {reason}"),
    };
    let mut reader = csv::Reader::from_reader(trompe_measure::open(path)?);
    let mut rows = Vec::new();
    for (at, cells) in reader.deserialize::<Cells>().enumerate() {
        let line = at as u64 + 2;
        let cells = cells.map_err(|error| damaged(line, error.to_string()))?;
        rows.push(cells.row().map_err(|reason| damaged(line, reason))?);
    }
    Ok(rows)
}

/// Writes the table, sorted.
pub(super) fn write(path: &Path, rows: &[Row]) -> Result<(), SessionError> {
    let mut cells: Vec<Cells> = rows.iter().map(Cells::of).collect();
    let order = |c: &Cells| {
        (
            c.gpu.clone(),
            c.family.clone(),
            c.kernel.clone(),
            c.operation.clone(),
            c.grid.clone(),
            c.block.clone(),
            c.source.clone(),
        )
    };
    cells.sort_by_cached_key(order);
    let mut writer = csv::Writer::from_writer(Vec::new());
    for cells in cells {
        writer.serialize(cells).map_err(|error| SessionError::Calibration {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
    }
    let bytes = writer.into_inner().map_err(|error| SessionError::writing(path, error.into_error()))?;
    disk::write(path, &bytes)
}

impl Cells {
    fn of(row: &Row) -> Self {
        let triple =
            |triple: Option<[u32; 3]>| triple.map_or(String::new(), |[x, y, z]| format!("{x}x{y}x{z}"));
        let json =
            |operation: &Descriptor| serde_json::to_string(operation).expect("plain data has a JSON form");
        Self {
            gpu: row.gpu.clone(),
            family: row.operation.as_ref().map_or("", Descriptor::family).to_owned(),
            kernel: row.kernel.clone(),
            grid: triple(row.grid),
            block: triple(row.block),
            count: row.count,
            time_us: row.time_us,
            low_us: row.low_us,
            high_us: row.high_us,
            source: row.source.clone(),
            date: row.date.clone(),
            operation: row.operation.as_ref().map_or(String::new(), json),
        }
    }

    fn row(self) -> Result<Row, String> {
        let triple = |text: &str| -> Result<Option<[u32; 3]>, String> {
            if text.is_empty() {
                return Ok(None);
            }
            let numbers: Result<Vec<u32>, _> = text.split('x').map(str::parse).collect();
            let numbers = numbers.ok().and_then(|numbers| <[u32; 3]>::try_from(numbers).ok());
            numbers.map(Some).ok_or_else(|| format!("`{text}` is no grid or block such as 64x1x1"))
        };
        if !(self.time_us.is_finite() && self.time_us > 0.0) {
            return Err("a time that is not positive".to_owned());
        }
        let operation = match self.operation.as_str() {
            "" => None,
            text => Some(
                serde_json::from_str(text)
                    .map_err(|error| format!("its operation cannot be read: {error}"))?,
            ),
        };
        Ok(Row {
            gpu: self.gpu,
            kernel: self.kernel,
            grid: triple(&self.grid)?,
            block: triple(&self.block)?,
            operation,
            count: self.count,
            time_us: self.time_us,
            low_us: self.low_us,
            high_us: self.high_us,
            source: self.source,
            date: self.date,
        })
    }
}

#[cfg(test)]
mod tests {
    use trompe_base::Bytes;
    use trompe_trace::descriptor::Set;

    use super::*;

    #[test]
    fn rows_survive_the_file_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernels.csv");
        let row = Row {
            gpu: "h100-sxm5-80".into(),
            kernel: "fill<float>, \"x\"".into(),
            grid: Some([1, 2, 3]),
            block: Some([32, 1, 1]),
            operation: Some(Descriptor::Set(Set { bytes: Bytes(64) })),
            count: 7,
            time_us: 1.5,
            low_us: 1.25,
            high_us: 2.0,
            source: "a.json".into(),
            date: "2026-11-30".into(),
        };
        let plain = Row { grid: None, block: None, operation: None, ..row.clone() };
        write(&path, &[row.clone(), plain.clone()]).unwrap();
        assert_eq!(read(&path).unwrap(), [plain, row]);
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to, expect) in [
            ("1x2x3", "1x2", "is no grid or block"),
            ("1.5", "-1", "not positive"),
            ("\"{\"\"set\"\"", "\"{\"\"sit\"\"", "cannot be read"),
        ] {
            assert!(text.contains(from), "{text}");
            std::fs::write(&path, text.replace(from, to)).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(expect) && error.contains("line "), "{error}");
        }
    }
}
