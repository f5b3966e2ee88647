//! How much a calibration helps: errors on measurements that it was not made of, with and without it.

use std::collections::BTreeMap;

use trompe_estimate::{KernelEstimator, Stack};
use trompe_hardware::DeviceSheet;

use super::table::quantile;
use super::{Calibration, Observed};

/// Errors of one family, or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// The family; `all` for the sum.
    pub family: String,
    /// Operations.
    pub count: usize,
    /// Their measured time in seconds.
    pub seconds: f64,
    /// Error of the summed time, without and with the calibration.
    pub sum: [f64; 2],
    /// Median absolute error of a single operation, likewise.
    pub median: [f64; 2],
}

/// A comparison with measurements that were held out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Check {
    /// What was held out.
    pub what: String,
    /// All together, then by family, longest first.
    pub errors: Vec<Errors>,
    /// Share of the compared time that the calibration knew exactly.
    pub known: f64,
    /// Share of the held-out time whose operations are not known in full, which is not compared.
    pub unknown: f64,
}

/// Compares predictions without (`plain`) and with a calibration (its rows, then `corrected`) with `held`.
pub(super) fn check(
    what: &str,
    held: &[&Observed],
    device: &DeviceSheet,
    calibration: &Calibration,
    (plain, corrected): (&Stack, &Stack),
) -> Check {
    let mut families = BTreeMap::<&str, Vec<[f64; 3]>>::new();
    let (mut known, mut unknown, mut all) = (0.0, 0.0, 0.0);
    for one in held {
        all += one.seconds;
        if !one.exact {
            unknown += one.seconds;
            continue;
        }
        let before = plain.estimate(&one.descriptor, device).time.as_secs_f64();
        let found = calibration.find(&one.descriptor, (&one.kernel, one.launch), device);
        known += if found.is_some() { one.seconds } else { 0.0 };
        let after = found.unwrap_or_else(|| corrected.estimate(&one.descriptor, device)).time.as_secs_f64();
        families.entry(one.descriptor.family()).or_default().push([one.seconds, before, after]);
    }
    let together: Vec<[f64; 3]> = families.values().flatten().copied().collect();
    let mut errors: Vec<Errors> = families.iter().map(|(family, rows)| summed(family, rows)).collect();
    errors.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    if !together.is_empty() {
        errors.insert(0, summed("all", &together));
    }
    let compared = all - unknown;
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    Check { what: what.to_owned(), errors, known: share(known, compared), unknown: share(unknown, all) }
}

fn summed(family: &str, rows: &[[f64; 3]]) -> Errors {
    let sum = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>();
    let median = |at: usize| {
        let errors: Vec<f64> = rows.iter().map(|row| (row[at] / row[0] - 1.0).abs()).collect();
        quantile(&errors, 0.5)
    };
    Errors {
        family: family.to_owned(),
        count: rows.len(),
        seconds: sum(0),
        sum: [1, 2].map(|at| sum(at) / sum(0) - 1.0),
        median: [median(1), median(2)],
    }
}
