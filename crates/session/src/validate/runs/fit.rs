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
//!
//! A clock is a property of the GPU, not of a table: where several sources ran on one, it is also fitted on all of them,
//! each weighing the same, and each source is judged by the clock of the *others*.

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
/// Device-bound rows below which a source has no say in the clock of a GPU.
const FEWEST_OF_SOURCE: usize = 4;
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
    /// What the numbers were fitted on.
    pub on: FittedOn,
    /// The numbers: of both halves, each fitted on the other; of the other sources, the same one twice.
    pub values: [f64; 2],
    /// Errors.
    pub groups: Vec<Group>,
    /// Order.
    pub orderings: Vec<Ordering>,
    /// Every row.
    pub rows: Vec<Compared>,
}

/// The rows that a number was fitted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FittedOn {
    /// The other half of the source's rows.
    OtherHalf,
    /// The other sources' rows of that GPU.
    OtherSources,
}

impl Fit {
    /// How its numbers came to be, for people.
    #[must_use]
    pub fn how(&self) -> String {
        match self.on {
            FittedOn::OtherHalf => format!(
                "{:.3} and {:.3}, each fitted on the half of the rows that it is not judged by",
                self.values[0], self.values[1]
            ),
            FittedOn::OtherSources => {
                format!(
                    "{:.3}, fitted on the other sources of this GPU, each weighing the same",
                    self.values[0]
                )
            }
        }
    }
}

impl SharedClock {
    /// One line for people.
    #[must_use]
    pub fn text(&self) -> String {
        let sources: Vec<String> =
            self.sources.iter().map(|(name, rows)| format!("{name} ({rows} rows)")).collect();
        format!(
            "{}: {} of {:.3} fits the device-bound rows of {}",
            self.gpu,
            Fitted::SustainedClock.text(),
            self.value,
            sources.join(", ")
        )
    }
}

/// The clock that all sources of a GPU together say it sustains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedClock {
    /// GPU, by the name of its sheet.
    pub gpu: String,
    /// Share of the highest clock.
    pub value: f64,
    /// Sources with their device-bound rows.
    pub sources: BTreeMap<String, usize>,
}

/// Fits.
pub(super) struct Fitter<'a> {
    pub(super) pricer: &'a Pricer,
    pub(super) seed: u64,
    /// The host's time while a clock is fitted.
    pub(super) host: HostChoice,
}

type Row<'a> = (&'a RunRow, Traced, Compared);
/// Seconds over the grid of a number, and the measured seconds.
type Curve = (Vec<f64>, f64);

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

    /// The clock of every GPU that several sources ran on, and each of these judged by that of the others.
    pub(super) fn clocks(
        &self,
        rows: &[Row<'_>],
        noise: &BTreeMap<u64, f64>,
    ) -> (Vec<SharedClock>, Vec<Fit>) {
        let what = Fitted::SustainedClock;
        let mut devices = BTreeMap::<String, BTreeMap<&str, Vec<(&Row<'_>, Curve)>>>::new();
        for row in rows.iter().filter(|row| !row.2.host_bound()) {
            if let (Some(device), Some(curve)) = (row.1.device(), self.curve(row, what)) {
                devices.entry(device).or_default().entry(&row.0.source).or_default().push((row, curve));
            }
        }
        let (mut clocks, mut fits) = (Vec::new(), Vec::new());
        for (gpu, mut sources) in devices {
            sources.retain(|_, rows| rows.len() >= FEWEST_OF_SOURCE);
            if sources.len() < 2 {
                continue;
            }
            let without = |left: Option<&str>| {
                let others = sources.iter().filter(|(name, _)| Some(**name) != left);
                let weighed = others
                    .flat_map(|(_, rows)| rows.iter().map(|(_, curve)| (curve, 1.0 / rows.len() as f64)));
                fit(&what.grid(), &weighed.collect::<Vec<_>>(), None)
            };
            for (source, rows) in &sources {
                let value = without(Some(source));
                let rows: Vec<&Row<'_>> = rows.iter().map(|(row, _)| *row).collect();
                let found = Fit {
                    source: (*source).to_owned(),
                    gpu: gpu.clone(),
                    what,
                    on: FittedOn::OtherSources,
                    values: [value; 2],
                    groups: Vec::new(),
                    orderings: Vec::new(),
                    rows: Vec::new(),
                };
                fits.extend(self.judge(found, &[(rows, value)], noise));
            }
            clocks.push(SharedClock {
                gpu,
                value: without(None),
                sources: sources.iter().map(|(name, rows)| ((*name).to_owned(), rows.len())).collect(),
            });
        }
        (clocks, fits)
    }

    /// Seconds of a row over the grid, and those measured.
    fn curve(&self, row: &Row<'_>, what: Fitted) -> Option<Curve> {
        let curve: Option<Vec<f64>> =
            what.grid().iter().map(|value| Some(self.outcome(row, what, *value)?.seconds)).collect();
        Some((curve?, row.2.measured))
    }

    /// `fit` with its rows, each simulated with the number of its part.
    fn judge(&self, mut fit: Fit, parts: &[(Vec<&Row<'_>>, f64)], noise: &BTreeMap<u64, f64>) -> Option<Fit> {
        for (rows, value) in parts {
            for row in rows {
                let outcome = self.outcome(row, fit.what, *value)?;
                fit.rows.push(compared(row.0, &row.1, &outcome, noise.get(&row.0.line).copied()));
            }
        }
        fit.rows.sort_by_key(|row| row.line);
        fit.groups = groups(&fit.rows);
        fit.orderings = orderings(&fit.rows);
        Some(fit)
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
        let curves: Option<Vec<Curve>> = rows.iter().map(|row| self.curve(row, what)).collect();
        let curves = curves?;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        Rng::new(self.seed).shuffle(&mut order);
        let (first, second) = order.split_at(order.len() / 2);
        let start = match (what, &self.host) {
            (Fitted::SustainedClock, _) => Some(1.0),
            (Fitted::LaunchMicroseconds, HostChoice::Fixed(each)) => Some(each.as_secs_f64() * 1e6),
            (Fitted::LaunchMicroseconds, _) => None,
        };
        let fitted = |half: &[usize]| {
            fit(&what.grid(), &half.iter().map(|at| (&curves[*at], 1.0)).collect::<Vec<_>>(), start)
        };
        let values = [fitted(second), fitted(first)];
        let part = |half: &[usize]| half.iter().map(|at| rows[*at]).collect::<Vec<_>>();
        let found = Fit {
            source: source.to_owned(),
            gpu: gpu.to_owned(),
            what,
            on: FittedOn::OtherHalf,
            values,
            groups: Vec::new(),
            orderings: Vec::new(),
            rows: Vec::new(),
        };
        self.judge(found, &[(part(first), values[0]), (part(second), values[1])], noise)
    }
}

/// The number with the smallest error over `rows`, each with its weight; the distance from `start` counts as the error of
/// one more row.
fn fit(grid: &[f64; 7], rows: &[(&Curve, f64)], start: Option<f64>) -> f64 {
    let mut best = (f64::INFINITY, grid[0]);
    for pair in 0..grid.len() - 1 {
        for step in 0..=BETWEEN {
            let share = f64::from(step) / f64::from(BETWEEN);
            let error = rows.iter().map(|((curve, measured), weight)| {
                let seconds = curve[pair] + (curve[pair + 1] - curve[pair]) * share;
                weight * (seconds / measured).ln().abs().min(MOST)
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
    fn row(slope: f64, measured: f64) -> Curve {
        (GRID.map(|us| slope * us).to_vec(), measured)
    }

    fn evenly(rows: &[&Curve], start: Option<f64>) -> f64 {
        fit(&GRID, &rows.iter().map(|row| (*row, 1.0)).collect::<Vec<_>>(), start)
    }

    #[test]
    fn the_time_of_host_bound_rows_is_found_and_others_do_not_move_it() {
        let device = (vec![3.0; GRID.len()], 2.7);
        let found = evenly(&[&row(0.02, 0.7), &device, &row(0.02, 0.7)], None);
        assert!((found - 35.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn one_outlier_does_not_decide() {
        let found = evenly(&[&row(0.02, 0.9), &row(0.02, 0.9), &row(0.02, 9.0)], None);
        assert!((found - 45.0).abs() < 2.0, "{found}");
    }

    #[test]
    fn a_source_of_many_rows_weighs_as_much_as_one_of_few() {
        let (many, few) = (row(0.02, 0.6), row(0.02, 1.0));
        let rows: Vec<(&Curve, f64)> = std::iter::repeat_n((&many, 0.1), 9).chain([(&few, 1.0)]).collect();
        let found = fit(&GRID, &rows, None);
        assert!((found - 50.0).abs() < 1.0, "{found}");
    }

    #[test]
    fn what_one_row_alone_says_does_not_move_the_start() {
        let check = |rows: &[&Curve], expect: f64| {
            let found = evenly(rows, Some(40.0));
            assert!((found - expect).abs() < 1.0, "{found} instead of {expect}");
        };
        let device = (vec![3.0; GRID.len()], 2.7);
        // A row that waits for the host in half of its time.
        let half = (GRID.map(|us| 0.5 + 0.0125 * us).to_vec(), 1.1);
        check(&[&half, &device], 40.0);
        check(&[&half, &half, &half], 48.0);
    }
}
