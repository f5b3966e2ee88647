//! The one number that no row states: how fast its host is.
//!
//! For each source a factor on the emulated host time is fitted on a random half of its rows and judged on the other
//! half, both ways, so that every row is judged once and by a factor that it had no part in. The fit minimises the mean
//! absolute logarithm of prediction over measurement, with a row's part bounded so that no outlier decides.

use std::collections::BTreeMap;

use serde::Serialize;
use trompe_base::Rng;
use trompe_measure::runs::score::{groups, orderings};
use trompe_measure::runs::{Compared, Group, Ordering, RunRow};

use super::predict::Traced;
use super::{compared, sample};
use crate::estimators::Pricer;
use crate::{Choices, HostChoice};

/// Rows of a source below which nothing is fitted.
const FEWEST: usize = 8;
/// Factors at which every row is simulated; between them the step is taken to be linear.
const FACTORS: [f64; 7] = [0.15, 0.3, 0.45, 0.6, 0.8, 1.1, 1.6];
/// Steps of the search between two of them.
const BETWEEN: u32 = 8;
/// Largest part of a row in the fitted error.
const MOST: f64 = 0.5;

/// Errors of a source with the fitted factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostFit {
    /// Source.
    pub source: String,
    /// Factors of both halves, each fitted on the other.
    pub factors: [f64; 2],
    /// Errors.
    pub groups: Vec<Group>,
    /// Order.
    pub ordering: Vec<Ordering>,
    /// Every row.
    pub rows: Vec<Compared>,
}

/// Fits.
pub(super) struct Fit<'a> {
    pub(super) pricer: &'a Pricer,
    pub(super) seed: u64,
}

type Row<'a> = (&'a RunRow, Traced, Compared);

impl Fit<'_> {
    /// All sources with enough rows.
    pub(super) fn all(&self, rows: &[Row<'_>], noise: &BTreeMap<u64, f64>) -> Vec<HostFit> {
        let mut sources = BTreeMap::<&str, Vec<&Row<'_>>>::new();
        for row in rows {
            sources.entry(&row.0.source).or_default().push(row);
        }
        let enough = sources.into_iter().filter(|(_, rows)| rows.len() >= FEWEST);
        enough.filter_map(|(source, rows)| self.one(source, &rows, noise)).collect()
    }

    fn one(&self, source: &str, rows: &[&Row<'_>], noise: &BTreeMap<u64, f64>) -> Option<HostFit> {
        let seconds = |row: &Row<'_>, factor: f64| {
            let choices = Choices { host: HostChoice::Scale(factor), ..Choices::default() };
            row.1.predict(&choices, self.pricer).ok()
        };
        let mut curves = Vec::new();
        for row in rows {
            let curve: Option<Vec<f64>> = FACTORS.iter().map(|f| Some(seconds(row, *f)?.seconds)).collect();
            curves.push((curve?, row.2.measured));
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        sample::shuffle(&mut order, &mut Rng::new(self.seed));
        let (first, second) = order.split_at(order.len() / 2);
        let fitted = |half: &[usize]| fit(&half.iter().map(|at| &curves[*at]).collect::<Vec<_>>());
        let factors = [fitted(second), fitted(first)];
        let mut judged = Vec::new();
        for (half, factor) in [(first, factors[0]), (second, factors[1])] {
            for row in half.iter().map(|at| rows[*at]) {
                let outcome = seconds(row, factor)?;
                judged.push(compared(row.0, &row.1, &outcome, noise.get(&row.0.line).copied()));
            }
        }
        judged.sort_by_key(|row| row.line);
        Some(HostFit {
            source: source.to_owned(),
            factors,
            groups: groups(&judged),
            ordering: orderings(&judged),
            rows: judged,
        })
    }
}

/// The factor with the smallest error over `rows`: each a curve of seconds at [`FACTORS`], and the measured seconds.
fn fit(rows: &[&(Vec<f64>, f64)]) -> f64 {
    let mut best = (f64::INFINITY, 1.0);
    for pair in 0..FACTORS.len() - 1 {
        for step in 0..=BETWEEN {
            let share = f64::from(step) / f64::from(BETWEEN);
            let error = rows.iter().map(|(curve, measured)| {
                let seconds = curve[pair] + (curve[pair + 1] - curve[pair]) * share;
                (seconds / measured).ln().abs().min(MOST)
            });
            let error = error.sum::<f64>();
            if error < best.0 {
                best = (error, FACTORS[pair] + (FACTORS[pair + 1] - FACTORS[pair]) * share);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_of_host_bound_rows_is_found_and_others_do_not_move_it() {
        // Host-bound rows take two seconds per unit of the factor and ran at 0.7; device-bound ones take three always.
        let host = (FACTORS.map(|f| 2.0 * f).to_vec(), 1.4);
        let device = (vec![3.0; FACTORS.len()], 2.7);
        let found = fit(&[&host, &device, &host]);
        assert!((found - 0.7).abs() < 1e-9, "{found}");
    }

    #[test]
    fn one_outlier_does_not_decide() {
        let row = (FACTORS.map(|f| 2.0 * f).to_vec(), 0.9);
        let outlier = (FACTORS.map(|f| 2.0 * f).to_vec(), 3.2);
        let found = fit(&[&row, &row, &outlier]);
        assert!((found - 0.45).abs() < 1e-9, "{found}");
    }
}
