//! Learning from a user's measurements.

use std::path::PathBuf;

use trompe_estimate::features::Family;
use trompe_estimate::forest::Combination;
use trompe_measure::train::{self, Contradiction, Learning};

use super::{Data, write};
use crate::{SessionError, clock};

/// What to learn from and how.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// Tables of measurements.
    pub data: Data,
    /// The file to write.
    pub out: PathBuf,
    /// What the model is called in methods; the file's name when absent.
    pub name: Option<String>,
    /// A random forest instead of gradient boosting.
    pub forest: bool,
    /// Stand alone instead of correcting the built-in models.
    pub replace: bool,
    /// Only this family.
    pub family: Option<Family>,
}

/// What came of it.
#[derive(Debug)]
pub struct Fitted {
    /// Per family.
    pub learned: Vec<Learning>,
    /// Operations that are known exactly.
    pub exact: usize,
    /// Rows that contradict each other, worst first.
    pub contradictions: Vec<Contradiction>,
    /// Rows that were left out, with the reasons.
    pub left_out: Vec<String>,
    /// Rows of the `dev` split that were not used.
    pub held_out: usize,
    /// Bytes of the file.
    pub bytes: usize,
}

/// Learns and writes the file.
///
/// # Errors
/// When a table cannot be used, nothing can be learned, or the file cannot be written.
pub fn fit(request: &FitRequest) -> Result<Fitted, SessionError> {
    let read = request.data.read()?;
    let stem = request.out.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let options = train::Options {
        name: request.name.clone().or(stem).unwrap_or_else(|| "mine".to_owned()),
        date: clock::today(),
        combination: if request.forest { Combination::Mean } else { Combination::Sum },
        replace: request.replace,
        family: request.family,
    };
    let samples = read.samples();
    let outcome = train::learn(&samples, &read.sources, &options)
        .map_err(|error| SessionError::NothingToLearn { reason: error.to_string() })?;
    if outcome.bundle.table.is_empty() {
        let reason = if outcome.held_out > 0 {
            format!("all {} rows are of the `dev` split, which is for validation", outcome.held_out)
        } else {
            "no row is a single operation that was measured long enough".to_owned()
        };
        return Err(SessionError::NothingToLearn { reason });
    }
    let bytes = outcome.bundle.to_bytes();
    write(&request.out, &bytes)?;
    Ok(Fitted {
        learned: outcome.learned,
        exact: outcome.bundle.table.len(),
        contradictions: outcome.contradictions,
        left_out: read.left_out(),
        held_out: outcome.held_out,
        bytes: bytes.len(),
    })
}
