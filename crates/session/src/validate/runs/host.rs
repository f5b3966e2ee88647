//! The one number that no row states: how fast its host is.
//!
//! For each source the host's time per launch is fitted on a random half of its rows and judged on the other half, both
//! ways, so that every row is judged once and by a number that it had no part in. The fit minimises the mean absolute
//! logarithm of prediction over measurement, with a row's part bounded so that no outlier decides. A time per launch, and
//! not a factor on the recorded host time, because it does not depend on how busy the recording machine was.

use std::collections::BTreeMap;

use serde::Serialize;
use trompe_base::{Duration, Rng};
use trompe_measure::runs::score::{groups, orderings};
use trompe_measure::runs::{Compared, Group, Ordering, RunRow};

use super::predict::Traced;
use super::{compared, sample};
use crate::estimators::Pricer;
use crate::{Choices, HostChoice};

/// Rows of a source below which nothing is fitted.
const FEWEST: usize = 8;
/// Microseconds per launch at which every row is simulated; between them the step is taken to be linear.
const GRID: [u64; 7] = [4, 12, 20, 30, 40, 52, 70];
/// Steps of the search between two of them.
const BETWEEN: u32 = 8;
/// Largest part of a row in the fitted error.
const MOST: f64 = 0.5;

/// Errors of a source with the fitted time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostFit {
    /// Source.
    pub source: String,
    /// Microseconds per launch for both halves, each fitted on the other.
    pub launch_us: [f64; 2],
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
        let seconds = |row: &Row<'_>, launch_us: f64| {
            let host = HostChoice::Fixed(Duration::from_secs_f64(launch_us * 1e-6));
            let choices = Choices { host, ..Choices::default() };
            row.1.predict(&choices, self.pricer).ok()
        };
        let mut curves = Vec::new();
        for row in rows {
            let curve: Option<Vec<f64>> =
                GRID.iter().map(|us| Some(seconds(row, *us as f64)?.seconds)).collect();
            curves.push((curve?, row.2.measured));
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        sample::shuffle(&mut order, &mut Rng::new(self.seed));
        let (first, second) = order.split_at(order.len() / 2);
        let fitted = |half: &[usize]| fit(&half.iter().map(|at| &curves[*at]).collect::<Vec<_>>());
        let launch_us = [fitted(second), fitted(first)];
        let mut judged = Vec::new();
        for (half, launch_us) in [(first, launch_us[0]), (second, launch_us[1])] {
            for row in half.iter().map(|at| rows[*at]) {
                let outcome = seconds(row, launch_us)?;
                judged.push(compared(row.0, &row.1, &outcome, noise.get(&row.0.line).copied()));
            }
        }
        judged.sort_by_key(|row| row.line);
        Some(HostFit {
            source: source.to_owned(),
            launch_us,
            groups: groups(&judged),
            ordering: orderings(&judged),
            rows: judged,
        })
    }
}

/// The microseconds with the smallest error over `rows`: each a curve of seconds at [`GRID`], and the measured seconds.
fn fit(rows: &[&(Vec<f64>, f64)]) -> f64 {
    let mut best = (f64::INFINITY, 0.0);
    for pair in 0..GRID.len() - 1 {
        for step in 0..=BETWEEN {
            let share = f64::from(step) / f64::from(BETWEEN);
            let error = rows.iter().map(|(curve, measured)| {
                let seconds = curve[pair] + (curve[pair + 1] - curve[pair]) * share;
                (seconds / measured).ln().abs().min(MOST)
            });
            let error = error.sum::<f64>();
            if error < best.0 {
                let [low, high] = [GRID[pair], GRID[pair + 1]].map(|us| us as f64);
                best = (error, low + (high - low) * share);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that takes `slope` seconds per microsecond of a launch, and took `measured`.
    fn row(slope: f64, measured: f64) -> (Vec<f64>, f64) {
        (GRID.map(|us| slope * us as f64).to_vec(), measured)
    }

    #[test]
    fn the_time_of_host_bound_rows_is_found_and_others_do_not_move_it() {
        let device = (vec![3.0; GRID.len()], 2.7);
        let found = fit(&[&row(0.02, 0.7), &device, &row(0.02, 0.7)]);
        assert!((found - 35.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn one_outlier_does_not_decide() {
        let found = fit(&[&row(0.02, 0.9), &row(0.02, 0.9), &row(0.02, 9.0)]);
        assert!((found - 45.0).abs() < 2.0, "{found}");
    }
}
