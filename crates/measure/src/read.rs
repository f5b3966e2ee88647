//! From files to samples.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::row::{Row, Schema};
use crate::sources::Sources;
use crate::{Sample, kernels};

/// A file that cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// It cannot be opened or read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Its columns are those of no kind of table.
    #[error(
        "`{}` has the columns {found}, which are not those of a table of measurements: {needed}", path.display()
    )]
    OtherColumns {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: String,
        /// What a table needs, in words.
        needed: String,
    },
    /// No row of it can be used.
    #[error("no row of `{}` can be used: {reason}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The commonest reason.
        reason: String,
    },
}

/// Rows of a file that were left out, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Reason, rows, first line.
    pub reasons: BTreeMap<String, (u64, u64)>,
}

impl Left {
    /// Counts a row.
    pub fn add(&mut self, reason: impl Into<String>, line: u64) {
        self.reasons.entry(reason.into()).or_insert((0, line)).0 += 1;
    }

    /// Rows left out.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.reasons.values().map(|(count, _)| count).sum()
    }

    /// The commonest reason: what is wrong with a file of which no row can be used.
    #[must_use]
    pub fn commonest(&self) -> String {
        let most = self.reasons.iter().max_by_key(|(_, (count, _))| *count);
        most.map_or_else(|| "it has no rows".to_owned(), |(reason, _)| reason.clone())
    }

    /// One line of text per reason; the commonest first.
    #[must_use]
    pub fn lines(&self, file: &str) -> Vec<String> {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(reason, (count, _))| (std::cmp::Reverse(*count), reason.as_str()));
        let line = |(reason, (count, line)): (&String, &(u64, u64))| {
            let rows = if *count == 1 { "row" } else { "rows" };
            format!("{file}: {count} {rows} left out (first: line {line}): {reason}")
        };
        reasons.into_iter().map(line).collect()
    }
}

/// The samples of one file.
#[derive(Debug)]
pub struct Samples {
    /// The file.
    pub path: PathBuf,
    /// What kind of table it is.
    pub schema: Schema,
    /// Samples in the order of the file.
    pub samples: Vec<Sample>,
    /// What was left out.
    pub left: Left,
}

/// Reads the table at `path` (CSV, plain or gzip); rows of devices that `sources` does not know, with times that are
/// not positive or shapes that are not complete are counted in [`Samples::left`].
///
/// # Errors
/// When the file cannot be read, has other columns, or no row can be used.
pub fn read(path: &Path, sources: &Sources) -> Result<Samples, MeasureError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(open(path)?);
    let headers = reader.headers().map_err(|error| unreadable(path, &error))?.clone();
    let schema = kind(&headers, path)?;
    let (mut samples, mut left) = (Vec::new(), Left::default());
    let mut record = csv::StringRecord::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(unreadable(path, &error)),
        }
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != headers.len() {
            left.add("another number of cells than columns", line);
            continue;
        }
        match sample(schema, &Row::new(&headers, &record), sources, line) {
            Ok(mut found) => samples.append(&mut found),
            Err(reason) => left.add(reason, line),
        }
    }
    if samples.is_empty() {
        return Err(MeasureError::Empty { path: path.to_owned(), reason: left.commonest() });
    }
    Ok(Samples { path: path.to_owned(), schema, samples, left })
}

/// The text of the file at `path`, unpacked when it is gzip by its first bytes, whatever its name.
///
/// # Errors
/// When it cannot be opened or is empty.
pub fn open(path: &Path) -> Result<Box<dyn Read>, MeasureError> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let failed =
        |error: std::io::Error| MeasureError::Unreadable { path: path.to_owned(), reason: error.to_string() };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let start = file.fill_buf().map_err(failed)?;
    if start.is_empty() {
        return Err(MeasureError::Empty { path: path.to_owned(), reason: "the file is empty".to_owned() });
    }
    Ok(if start.starts_with(&GZIP) {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    })
}

/// Why the text of `path`, opened by [`open`], cannot be read on.
#[must_use]
pub fn unreadable(path: &Path, error: &csv::Error) -> MeasureError {
    let at = error.position().map_or(String::new(), |position| format!(" near line {}", position.line()));
    let reason = match error.kind() {
        csv::ErrorKind::Io(error) => format!("its compressed data are cut off or damaged ({error})"),
        csv::ErrorKind::Utf8 { .. } => format!("it is no text{at}"),
        _ => error.to_string(),
    };
    MeasureError::Unreadable { path: path.to_owned(), reason }
}

/// The kind of a table with the columns `headers`.
///
/// # Errors
/// When they are those of no kind.
pub fn kind(headers: &csv::StringRecord, path: &Path) -> Result<Schema, MeasureError> {
    if headers.iter().all(str::is_empty) {
        return Err(MeasureError::Empty { path: path.to_owned(), reason: "the file is empty".to_owned() });
    }
    Schema::of(headers).ok_or_else(|| MeasureError::OtherColumns {
        path: path.to_owned(),
        found: headers.iter().map(|header| format!("`{header}`")).collect::<Vec<_>>().join(", "),
        needed: "one of matrix products, for example, needs `gpu`, `dtype`, `m`, `n`, `k`, `time_us`"
            .to_owned(),
    })
}

/// The samples of one row with the columns `headers`.
///
/// # Errors
/// Why there is none.
pub fn read_row(
    headers: &csv::StringRecord,
    record: &csv::StringRecord,
    sources: &Sources,
) -> Result<Vec<Sample>, String> {
    let schema = Schema::of(headers).ok_or_else(|| {
        let needed =
            Schema::ALL.iter().map(|(schema, columns)| format!("{}: {}", schema.name(), columns.join(", ")));
        format!("it needs the columns of one kind of operation ({})", needed.collect::<Vec<_>>().join("; "))
    })?;
    sample(schema, &Row::new(headers, record), sources, record.position().map_or(0, csv::Position::line))
}

/// The samples of one row, or why there is none.
fn sample(schema: Schema, row: &Row<'_>, sources: &Sources, line: u64) -> Result<Vec<Sample>, String> {
    let gpu = row.text("gpu");
    let device = sources.device(gpu).ok_or_else(|| format!("no sheet knows the GPU `{gpu}`"))?;
    let found = kernels::operations(schema, row)?;
    let mut samples = Vec::new();
    for kernels::Found { operations, label, microseconds, cache_write } in found {
        if !(microseconds.is_finite() && microseconds > 0.0) {
            return Err("a time that is not positive".to_owned());
        }
        let source = sources.source(row.text("source"), schema.name());
        samples.push(Sample {
            operations,
            device: std::sync::Arc::clone(&device),
            gpu: gpu.to_owned(),
            conditions: trompe_estimate::features::Conditions {
                library: source.library,
                clocks: source.clocks,
                cache_write,
            },
            seconds: microseconds * 1e-6,
            launch: source.launch_us * 1e-6,
            learnable: microseconds >= source.shortest_us && !source.only_compared,
            source: row.text("source").to_owned(),
            split: row.text("split").to_owned(),
            shape_in_train: match row.text("shape_in_train") {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            },
            label,
            line,
        });
    }
    Ok(samples)
}
