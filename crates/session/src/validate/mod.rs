//! `trompe validate`: predictions against measurements, one table of errors per source, device and family.
//!
//! Kernels are compared row by row under the row's own conditions (clocks, library, launch cost inside); rows of the
//! `train` split are used for nothing but the noise. Whole runs ([`runs`]) are emulated, simulated and compared.

mod collectives;
mod page;
mod plot;
pub mod runs;
mod runs_page;

use std::path::PathBuf;

use serde::Serialize;
use trompe_base::Rng;
use trompe_estimate::Physics;
use trompe_measure::{Sample, errors};

use crate::estimate::{Data, contradicting, stack};
use crate::estimators::EstimatorChoice;
use crate::{Progress, SessionError};

pub use page::page;
pub use runs::environment::make as make_environment;
pub use runs::{Fit, Fits, Fitted, FittedOn, MemoryCompared, RunErrors, RunsRequest, SharedClock};
pub use runs_page::{PUBLISHED, Published};
pub use trompe_measure::errors::{Group, Worst};
pub use trompe_measure::runs::{Compared as RunCompared, Group as RunGroup, Ordering as RunOrdering};

/// What to compare with what.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Tables of kernel measurements.
    pub kernels: Vec<PathBuf>,
    /// A table of collective measurements.
    pub collectives: Option<PathBuf>,
    /// Rows per file, chosen at random; all when absent.
    pub limit: Option<usize>,
    /// Seed of the choice.
    pub seed: u64,
    /// Sheets of devices that the catalogue does not know.
    pub sheets: Vec<PathBuf>,
    /// What predicts kernels.
    pub estimators: EstimatorChoice,
    /// Whole runs.
    pub whole: RunsRequest,
}

/// Errors, and what was not compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Validation {
    /// Version of trompe.
    pub trompe_version: String,
    /// Families by device, over all that was measured of them: kernels first, then collectives.
    pub summary: Vec<Group>,
    /// Kernels by group.
    pub kernels: Vec<Group>,
    /// Collectives by group.
    pub collectives: Vec<Group>,
    /// Whole runs.
    pub runs: Option<RunErrors>,
    /// Rows that were not compared, and why.
    pub left_out: Vec<String>,
}

/// Compares.
///
/// # Errors
/// When a file cannot be used or no row of it can be compared.
pub fn validate(request: &Request, progress: &mut dyn Progress) -> Result<Validation, SessionError> {
    let mut validation =
        Validation { trompe_version: env!("CARGO_PKG_VERSION").to_owned(), ..Validation::default() };
    if !request.kernels.is_empty() {
        let data = Data { files: request.kernels.clone(), sheets: request.sheets.clone() };
        let read = data.read()?;
        validation.left_out = read.left_out();
        let stack = stack(&request.estimators)?;
        let physics = Physics::new();
        let all = read.samples();
        let mut rows: Vec<(&Sample, errors::Compared)> = Vec::new();
        for file in &read.files {
            let mut held: Vec<&Sample> =
                file.samples.iter().filter(|sample| sample.split != "train").collect();
            if held.is_empty() {
                let trained = "all rows were trained on (split `train`)";
                validation.left_out.push(format!("{}: {trained}", file.path.display()));
            }
            choose(&mut held, request.limit, request.seed);
            rows.extend(held.into_iter().map(|sample| (sample, errors::compare(sample, &stack, &physics))));
        }
        validation.kernels = errors::groups(&rows, &all);
        validation.summary = errors::summary(&rows, &all);
        validation.left_out.extend(contradicting(rows.iter().map(|row| row.0)));
    }
    if let Some(path) = &request.collectives {
        let mut compared = collectives::compare(path, request)?;
        validation.collectives = compared.groups;
        validation.summary.append(&mut compared.summary);
        validation.left_out.append(&mut compared.left_out);
    }
    if request.whole.runs.is_some() || request.whole.goldens.is_some() {
        let found = runs::compare(request, &mut validation.left_out, progress)?;
        if found.rows.is_empty() && found.memory.is_empty() {
            let reason = validation.left_out.pop().unwrap_or_else(|| "no rows".to_owned());
            return Err(SessionError::NothingToCompare { reason });
        }
        validation.runs = Some(found);
    }
    if validation.summary.is_empty() && validation.runs.is_none() {
        let reason = validation.left_out.pop().unwrap_or_else(|| "no rows".to_owned());
        return Err(SessionError::NothingToCompare { reason });
    }
    Ok(validation)
}

/// Keeps `limit` of `rows` at random, in their order.
fn choose<T>(rows: &mut Vec<T>, limit: Option<usize>, seed: u64) {
    let Some(limit) = limit.filter(|limit| *limit < rows.len()) else { return };
    let mut random = Rng::new(seed);
    let (mut wanted, mut left) = (limit, rows.len());
    // Selection sampling (Knuth, volume 2, algorithm S).
    rows.retain(|_| {
        let take = random.below(left as u64) < wanted as u64;
        left -= 1;
        wanted -= usize::from(take);
        take
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_asked_size_and_keeps_the_order() {
        let check = |limit: Option<usize>, expect: usize| {
            let mut rows: Vec<u32> = (0..100).collect();
            choose(&mut rows, limit, 3);
            assert_eq!(rows.len(), expect);
            assert!(rows.is_sorted());
        };
        check(None, 100);
        check(Some(17), 17);
        check(Some(500), 100);
        check(Some(0), 0);
    }
}
