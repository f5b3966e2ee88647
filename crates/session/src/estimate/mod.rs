//! `trompe estimate`: tables of features for trainers, model files, learning from a user's measurements, errors of
//! predictions, one operation explained, tables of predictions.

mod explain;
mod fit;
mod predict;
mod tables;

use std::path::{Path, PathBuf};

use trompe_estimate::Stack;
use trompe_measure::sources::Sources;
use trompe_measure::train::{Contradiction, contradictions};
use trompe_measure::{Sample, Samples, errors};

use crate::SessionError;
use crate::estimators::{self, EstimatorChoice};

pub use trompe_estimate::features::Family;
pub use trompe_measure::train::CONTRADICTION;

pub use explain::{Explained, Operation, explain};
pub use fit::{FitRequest, Fitted, fit};
pub use predict::{Predicted, predict};
pub use tables::{RowCounts, pack, write_tables};

/// Tables of measurements.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// CSV files, plain or gzip.
    pub files: Vec<PathBuf>,
    /// Device sheets of GPUs that the catalogue does not know.
    pub sheets: Vec<PathBuf>,
}

/// Tables as they were read.
#[derive(Debug)]
pub struct Read {
    /// What is known about sources and devices.
    pub sources: Sources,
    /// Files.
    pub files: Vec<Samples>,
}

impl Data {
    /// Reads the tables.
    ///
    /// # Errors
    /// When a sheet or a table cannot be used.
    pub fn read(&self) -> Result<Read, SessionError> {
        let sources = sources(&self.sheets)?;
        let files =
            self.files.iter().map(|path| trompe_measure::read(path, &sources)).collect::<Result<_, _>>()?;
        Ok(Read { sources, files })
    }
}

impl Read {
    /// All samples of all files, in order.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        self.files.iter().flat_map(|file| file.samples.iter().cloned()).collect()
    }

    /// Rows that were left out, one line per file and reason.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        self.files.iter().flat_map(|file| file.left.lines(&file.path.display().to_string())).collect()
    }
}

/// What is known about sources, with the devices of `sheets`.
pub(crate) fn sources(sheets: &[PathBuf]) -> Result<Sources, SessionError> {
    let mut sources = Sources::builtin();
    for sheet in sheets {
        let cluster = trompe_hardware::resolve(&sheet.display().to_string())?;
        sources.add(cluster.device().clone());
    }
    Ok(sources)
}

/// Which rows are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Rows held out from training, and rows of tables that do not split.
    Dev,
    /// Training rows.
    Train,
    /// All rows.
    All,
}

impl Split {
    /// Whether it holds `sample`.
    #[must_use]
    pub fn takes(self, sample: &Sample) -> bool {
        match self {
            Self::Dev => sample.split != "train",
            Self::Train => sample.split == "train",
            Self::All => true,
        }
    }
}

/// The estimator of `choice` with access to its parts.
pub(crate) fn stack(choice: &EstimatorChoice) -> Result<Stack, SessionError> {
    estimators::stack(choice)
}

/// Errors of the estimator that `choice` describes on the rows of `data`.
///
/// # Errors
/// When a file cannot be used.
pub fn evaluate(
    data: &Data,
    choice: &EstimatorChoice,
    split: Split,
) -> Result<(Read, Vec<errors::Group>), SessionError> {
    let read = data.read()?;
    let stack = stack(choice)?;
    let all = read.samples();
    let physics = trompe_estimate::Physics::new();
    let rows: Vec<(&Sample, errors::Compared)> = all
        .iter()
        .filter(|sample| split.takes(sample))
        .map(|sample| (sample, errors::compare(sample, &stack, &physics)))
        .collect();
    if rows.is_empty() {
        let reason = match split {
            Split::Train => "no row is of the split `train`".to_owned(),
            _ => "all rows are of the split `train`, which was trained on (`--split train` shows them)"
                .to_owned(),
        };
        return Err(SessionError::NothingToCompare { reason });
    }
    let groups = errors::groups(&rows, &all);
    Ok((read, groups))
}

/// A line about measurements of one source that contradict each other, when there are any: one source, one operation,
/// times that differ by more than [`CONTRADICTION`]. All of them stay in the comparison.
pub fn contradicting<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<String> {
    let mut sources = std::collections::BTreeMap::<&str, Vec<&Sample>>::new();
    for sample in samples.filter(|sample| sample.operations.len() == 1) {
        sources.entry(&sample.source).or_default().push(sample);
    }
    let found = sources.values().map(|samples| contradictions(samples));
    let found: Vec<Contradiction> = found.flatten().collect();
    let worst = found.iter().max_by(|a, b| {
        let ratio = |c: &Contradiction| c.seconds[1] / c.seconds[0];
        ratio(a).total_cmp(&ratio(b))
    })?;
    Some(format!(
        "{} operations were measured several times by one source with times that differ by more than {:.0} %; each row \
         is compared by itself; the furthest apart: {} on {}, {:.2} us (line {}) and {:.2} us (line {})",
        found.len(),
        (CONTRADICTION - 1.0) * 100.0,
        worst.what,
        worst.gpu,
        worst.seconds[0] * 1e6,
        worst.lines[0],
        worst.seconds[1] * 1e6,
        worst.lines[1]
    ))
}

/// Reads a file whole.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, SessionError> {
    std::fs::read(path).map_err(|error| SessionError::reading(path, error))
}

/// Writes a file whole.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), SessionError> {
    std::fs::write(path, bytes).map_err(|error| SessionError::writing(path, error))
}

/// Writes `bytes` to the file `path`.
///
/// # Errors
/// When that is impossible.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), SessionError> {
    write(path, bytes)
}

/// The cards of a file's models, or of the built-in ones, as Markdown, and what it knows exactly.
///
/// # Errors
/// When the file cannot be used.
pub fn card(path: Option<&Path>) -> Result<String, SessionError> {
    let Some(path) = path else {
        let learned = trompe_estimate::Learned::builtin();
        let models = learned.models().iter().map(trompe_estimate::model::Model::markdown);
        return Ok(models.collect::<Vec<_>>().join("\n"));
    };
    let bundle = estimators::bundle(path)?;
    let mut parts: Vec<String> = bundle.models.iter().map(trompe_estimate::model::Model::markdown).collect();
    if !bundle.table.is_empty() {
        let without = if bundle.models.is_empty() {
            format!(", no model: a family needs at least {} rows", trompe_measure::train::FEWEST)
        } else {
            String::new()
        };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        parts.insert(0, format!("# {name}\n\n{} operations known exactly{without}.\n", bundle.table.len()));
    }
    Ok(parts.join("\n"))
}
