//! The two numbers that rows do not state: how fast a host is, and which clock a GPU sustains under load.
//!
//! A number is fitted on a random half of the rows and judged on the other half, both ways, so that every row is judged
//! once and by a number that it had no part in. The fit minimises the mean absolute logarithm of prediction over
//! measurement, with a row's part bounded so that no outlier decides. The value of the first table counts as much as
//! one more row that it fits: a few rows whose own errors happen to agree do not move it. Only one number is fitted at
//! a time:
//!
//! * the host's **time per launch**, one for each source. A time, and not a factor on the recorded host time, because it
//!   does not depend on how busy the recording machine was;
//! * the **sustained clock** as a share of the highest one, for each source and GPU, by which kernels that arithmetic
//!   bounds take longer. Kernels are benchmarked in short bursts; a step of large products draws more power than that.

use std::collections::BTreeMap;

use serde::Serialize;
use trompe_base::{Duration, Rng};
use trompe_measure::runs::score::{groups, orderings};
use trompe_measure::runs::{Compared, Group, Ordering, RunRow};

use super::compared;
use super::predict::{Outcome, Traced};
use crate::estimators::Pricer;
use crate::{Choices, HostChoice};

/// Rows below which nothing is fitted.
const FEWEST: usize = 8;
/// Steps of the search between two points of a grid.
const BETWEEN: u32 = 8;
/// Largest part of a row in the fitted error.
const MOST: f64 = 0.5;

/// What is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fitted {
    /// Microseconds of the host per launch.
    LaunchMicroseconds,
    /// Share of the highest clock.
    SustainedClock,
}

impl Fitted {
    /// Numbers at which every row is simulated; between them the step is taken to be linear.
    const fn grid(self) -> [f64; 7] {
        match self {
            Self::LaunchMicroseconds => [4.0, 12.0, 20.0, 30.0, 40.0, 52.0, 70.0],
            Self::SustainedClock => [0.65, 0.7, 0.75, 0.8, 0.86, 0.93, 1.0],
        }
    }

    /// What it is, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::LaunchMicroseconds => "the host's time per launch, in us",
            Self::SustainedClock => "the sustained share of the highest clock",
        }
    }
}

/// Errors of a source with a fitted number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Source.
    pub source: String,
    /// GPU, where the number is one of it.
    pub gpu: String,
    /// What was fitted.
    pub what: Fitted,
    /// The numbers of both halves, each fitted on the other.
    pub values: [f64; 2],
    /// Errors.
    pub groups: Vec<Group>,
    /// Order.
    pub orderings: Vec<Ordering>,
    /// Every row.
    pub rows: Vec<Compared>,
}

/// Fits.
pub(super) struct Fitter<'a> {
    pub(super) pricer: &'a Pricer,
    pub(super) seed: u64,
    /// The host's time while a clock is fitted.
    pub(super) host: HostChoice,
}

type Row<'a> = (&'a RunRow, Traced, Compared);

impl Fitter<'_> {
    /// All that have enough rows: times of launches where rows wait for the host, clocks where they do not.
    pub(super) fn all(&self, rows: &[Row<'_>], noise: &BTreeMap<u64, f64>) -> Vec<Fit> {
        let mut found = Vec::new();
        let mut sources = BTreeMap::<&str, Vec<&Row<'_>>>::new();
        let mut devices = BTreeMap::<(&str, &str), Vec<&Row<'_>>>::new();
        for row in rows {
            sources.entry(&row.0.source).or_default().push(row);
            devices.entry((&row.0.source, &row.0.gpu)).or_default().push(row);
        }
        let waiting = |rows: &[&Row<'_>]| rows.iter().filter(|row| row.2.host_bound()).count();
        for (source, rows) in sources {
            if rows.len() >= FEWEST && waiting(&rows) > 0 {
                found.extend(self.one((source, "", Fitted::LaunchMicroseconds), &rows, noise));
            }
        }
        for ((source, gpu), rows) in devices {
            if rows.len() >= FEWEST && 2 * waiting(&rows) < rows.len() {
                found.extend(self.one((source, gpu, Fitted::SustainedClock), &rows, noise));
            }
        }
        found
    }

    fn outcome(&self, row: &Row<'_>, what: Fitted, value: f64) -> Option<Outcome> {
        let (host, clock) = match what {
            Fitted::LaunchMicroseconds => (HostChoice::Fixed(Duration::from_secs_f64(value * 1e-6)), None),
            Fitted::SustainedClock => (self.host.clone(), Some(value)),
        };
        row.1.predict(&Choices { host, ..Choices::default() }, self.pricer, clock).ok()
    }

    fn one(
        &self,
        (source, gpu, what): (&str, &str, Fitted),
        rows: &[&Row<'_>],
        noise: &BTreeMap<u64, f64>,
    ) -> Option<Fit> {
        let grid = what.grid();
        let mut curves = Vec::new();
        for row in rows {
            let curve: Option<Vec<f64>> =
                grid.iter().map(|value| Some(self.outcome(row, what, *value)?.seconds)).collect();
            curves.push((curve?, row.2.measured));
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        Rng::new(self.seed).shuffle(&mut order);
        let (first, second) = order.split_at(order.len() / 2);
        let start = match (what, &self.host) {
            (Fitted::SustainedClock, _) => Some(1.0),
            (Fitted::LaunchMicroseconds, HostChoice::Fixed(each)) => Some(each.as_secs_f64() * 1e6),
            (Fitted::LaunchMicroseconds, _) => None,
        };
        let fitted =
            |half: &[usize]| fit(&grid, &half.iter().map(|at| &curves[*at]).collect::<Vec<_>>(), start);
        let values = [fitted(second), fitted(first)];
        let mut judged = Vec::new();
        for (half, value) in [(first, values[0]), (second, values[1])] {
            for row in half.iter().map(|at| rows[*at]) {
                let outcome = self.outcome(row, what, value)?;
                judged.push(compared(row.0, &row.1, &outcome, noise.get(&row.0.line).copied()));
            }
        }
        judged.sort_by_key(|row| row.line);
        Some(Fit {
            source: source.to_owned(),
            gpu: gpu.to_owned(),
            what,
            values,
            groups: groups(&judged),
            orderings: orderings(&judged),
            rows: judged,
        })
    }
}

/// The number with the smallest error over `rows`: each a curve of seconds over `grid`, and the measured seconds; the
/// distance from `start` counts as the error of one more row.
fn fit(grid: &[f64; 7], rows: &[&(Vec<f64>, f64)], start: Option<f64>) -> f64 {
    let mut best = (f64::INFINITY, grid[0]);
    for pair in 0..grid.len() - 1 {
        for step in 0..=BETWEEN {
            let share = f64::from(step) / f64::from(BETWEEN);
            let error = rows.iter().map(|(curve, measured)| {
                let seconds = curve[pair] + (curve[pair + 1] - curve[pair]) * share;
                (seconds / measured).ln().abs().min(MOST)
            });
            let value = grid[pair] + (grid[pair + 1] - grid[pair]) * share;
            let away = start.map_or(0.0, |start| (value / start).ln().abs().min(MOST));
            let error = error.sum::<f64>() + away;
            if error < best.0 {
                best = (error, value);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: [f64; 7] = Fitted::LaunchMicroseconds.grid();

    /// A row that takes `slope` seconds per microsecond of a launch, and took `measured`.
    fn row(slope: f64, measured: f64) -> (Vec<f64>, f64) {
        (GRID.map(|us| slope * us).to_vec(), measured)
    }

    #[test]
    fn the_time_of_host_bound_rows_is_found_and_others_do_not_move_it() {
        let device = (vec![3.0; GRID.len()], 2.7);
        let found = fit(&GRID, &[&row(0.02, 0.7), &device, &row(0.02, 0.7)], None);
        assert!((found - 35.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn one_outlier_does_not_decide() {
        let found = fit(&GRID, &[&row(0.02, 0.9), &row(0.02, 0.9), &row(0.02, 9.0)], None);
        assert!((found - 45.0).abs() < 2.0, "{found}");
    }

    #[test]
    fn what_one_row_alone_says_does_not_move_the_start() {
        let check = |rows: &[&(Vec<f64>, f64)], expect: f64| {
            let found = fit(&GRID, rows, Some(40.0));
            assert!((found - expect).abs() < 1.0, "{found} instead of {expect}");
        };
        let device = (vec![3.0; GRID.len()], 2.7);
        // A row that waits for the host in half of its time.
        let half = (GRID.map(|us| 0.5 + 0.0125 * us).to_vec(), 1.1);
        check(&[&half, &device], 40.0);
        check(&[&half, &half, &half], 48.0);
    }
}
