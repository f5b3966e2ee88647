//! How far predictions of whole runs are from measurements: by group, in their order, and in what choosing by them loses.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::errors::quantile;

/// Worst rows that a group names.
const WORST: usize = 5;

/// Share of a step in which the device waits for the host, from which on a row counts as host-bound.
pub const HOST_BOUND: f64 = 0.1;

/// Difference of two measurements, as a share of the smaller one, above which their order is no matter of noise.
pub const APART: f64 = 0.1;

/// One run against its prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// Name of the row in its table.
    pub id: String,
    /// Line of the file.
    pub line: u64,
    /// Where it comes from.
    pub source: String,
    /// The device as the table calls it.
    pub gpu: String,
    /// The configuration in short.
    pub what: String,
    /// How the job is spread.
    pub parallelism: String,
    /// What rows must share to be alternatives of each other: the same model on as many devices.
    pub alternatives: String,
    /// What they must share besides for the choice between them to be a choice: the same batch.
    pub batch: u64,
    /// Measured seconds per step.
    pub measured: f64,
    /// Predicted seconds per step.
    pub predicted: f64,
    /// Low end of the interval.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// Seconds by a roofline: the arithmetic of the fullest rank at peak, stretched by the pipeline's bubble.
    pub roofline: f64,
    /// Share of the predicted step in which the device waits for the host.
    pub host_share: f64,
    /// Nearest other measurement of the same configuration, as a share of this one.
    pub noise: Option<f64>,
    /// What the row does not state and was assumed.
    pub assumed: Vec<String>,
}

impl Compared {
    /// Prediction over measurement, less one.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// Whether the host is what the step waits for, by the prediction.
    #[must_use]
    pub fn host_bound(&self) -> bool {
        self.host_share > HOST_BOUND
    }

    /// What is likely behind a large error.
    #[must_use]
    pub fn reason(&self) -> String {
        if self.noise.is_some_and(|noise| noise > 0.5 * self.error().abs()) {
            let noise = self.noise.unwrap_or_default() * 100.0;
            return format!("another run of the same configuration differs by {noise:.0} %");
        }
        if (self.low..=self.high).contains(&self.measured) {
            return "inside the interval".to_owned();
        }
        for (factor, unit) in [(1e3, "milliseconds"), (1e6, "microseconds")] {
            if (0.2..5.0).contains(&(self.measured / self.predicted / factor)) {
                return format!(
                    "{factor:.0} times the prediction: is its time in {unit} instead of seconds?"
                );
            }
        }
        if self.measured < self.roofline {
            return "measured below the roofline: the row states another job than ran".to_owned();
        }
        if self.host_bound() {
            return format!(
                "host-bound ({:.0} % of the step): the row does not name the processor",
                self.host_share * 100.0
            );
        }
        match self.assumed.first() {
            Some(assumed) => format!("assumed: {assumed}"),
            None => "kernels or collectives are priced wrongly".to_owned(),
        }
    }
}

/// A row that is far off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// Name of the row.
    pub id: String,
    /// Line of the file.
    pub line: u64,
    /// The configuration in short.
    pub what: String,
    /// Measured seconds.
    pub measured: f64,
    /// Predicted seconds.
    pub predicted: f64,
    /// Signed error as a share.
    pub error: f64,
    /// What is likely behind it.
    pub reason: String,
}

/// Errors of the rows of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// By what the rows are grouped ("all", "bound", "parallelism").
    pub by: &'static str,
    /// Source.
    pub source: String,
    /// Device.
    pub gpu: String,
    /// The group's own name.
    pub label: String,
    /// Rows.
    pub rows: u64,
    /// Median absolute error as a share.
    pub median: f64,
    /// 90 % quantile of the absolute error.
    pub p90: f64,
    /// Median signed error.
    pub bias: f64,
    /// Share of measurements inside the interval, meant to be 0.8.
    pub inside: f64,
    /// Median absolute error of a roofline.
    pub roofline_median: f64,
    /// Median difference of other runs of the same configurations; `None` without any.
    pub noise: Option<f64>,
    /// The worst rows.
    pub worst: Vec<Worst>,
    /// Measured and predicted seconds of every row.
    pub points: Vec<[f64; 2]>,
}

/// What rows are grouped by: its name, and a row's value of it.
type Key<'a> = (&'static str, &'a dyn Fn(&Compared) -> String);

/// Groups of `rows`: by source and device over all, by what bounds them, by how they are spread.
#[must_use]
pub fn groups(rows: &[Compared]) -> Vec<Group> {
    let bound = |row: &Compared| if row.host_bound() { "host-bound" } else { "device-bound" }.to_owned();
    let spread = |row: &Compared| {
        let parts = row.parallelism.split(' ').filter(|part| !part.starts_with("DP"));
        let text = parts.collect::<Vec<_>>().join(" ");
        if text.is_empty() { "data parallel alone".to_owned() } else { text }
    };
    let mut found = Vec::new();
    let keys: [Key<'_>; 3] = [("all", &|_| "all".to_owned()), ("bound", &bound), ("parallelism", &spread)];
    for (by, key) in keys {
        let mut groups = BTreeMap::<(String, String, String), Vec<&Compared>>::new();
        for row in rows {
            groups.entry((row.source.clone(), row.gpu.clone(), key(row))).or_default().push(row);
        }
        found.extend(groups.into_iter().map(|(key, rows)| group(by, key, rows)));
    }
    found
}

fn group(
    by: &'static str,
    (source, gpu, label): (String, String, String),
    mut rows: Vec<&Compared>,
) -> Group {
    let sorted = |value: &dyn Fn(&Compared) -> f64| {
        let mut all: Vec<f64> = rows.iter().map(|row| value(row)).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let absolute = sorted(&|row| row.error().abs());
    let mut noise: Vec<f64> = rows.iter().filter_map(|row| row.noise).collect();
    noise.sort_by(f64::total_cmp);
    let inside = rows.iter().filter(|row| (row.low..=row.high).contains(&row.measured)).count();
    let (bias, rooflines) =
        (sorted(&Compared::error), sorted(&|row| (row.roofline / row.measured - 1.0).abs()));
    let points = rows.iter().map(|row| [row.measured, row.predicted]).collect();
    rows.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()).then(a.line.cmp(&b.line)));
    Group {
        by,
        source,
        gpu,
        label,
        rows: rows.len() as u64,
        median: quantile(&absolute, 0.5),
        p90: quantile(&absolute, 0.9),
        bias: quantile(&bias, 0.5),
        inside: inside as f64 / rows.len().max(1) as f64,
        roofline_median: quantile(&rooflines, 0.5),
        noise: (!noise.is_empty()).then(|| quantile(&noise, 0.5)),
        worst: rows.iter().take(WORST).map(|row| worst(row)).collect(),
        points,
    }
}

fn worst(row: &Compared) -> Worst {
    Worst {
        id: row.id.clone(),
        line: row.line,
        what: row.what.clone(),
        measured: row.measured,
        predicted: row.predicted,
        error: row.error(),
        reason: row.reason(),
    }
}

/// Whether predictions put configurations in the right order, and what choosing by them loses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ordering {
    /// Source.
    pub source: String,
    /// Pairs of alternatives (the same model on as many devices), by time per sequence.
    pub pairs: u64,
    /// Share of them in the right order.
    pub right: f64,
    /// Pairs whose measurements differ by more than [`APART`].
    pub pairs_apart: u64,
    /// Share of those in the right order.
    pub right_apart: f64,
    /// Kendall's tau over all rows of the source, by time per sequence.
    pub tau: f64,
    /// Sets of at least two alternatives with the same batch.
    pub choices: u64,
    /// Share of the sets where the fastest one by prediction is the fastest one.
    pub best_found: f64,
    /// Mean of what the chosen one takes over the fastest one, less one.
    pub regret: f64,
    /// The largest such loss.
    pub regret_most: f64,
}

/// The order of each source's rows.
#[must_use]
pub fn orderings(rows: &[Compared]) -> Vec<Ordering> {
    let mut sources = BTreeMap::<&str, Vec<&Compared>>::new();
    for row in rows {
        sources.entry(&row.source).or_default().push(row);
    }
    sources.into_iter().map(|(source, rows)| ordering(source, &rows)).collect()
}

fn ordering(source: &str, rows: &[&Compared]) -> Ordering {
    let per_sequence = |row: &Compared, seconds: f64| seconds / row.batch.max(1) as f64;
    let mut found = Ordering { source: source.to_owned(), ..Ordering::default() };
    let (mut right, mut right_apart, mut concordant, mut all) = (0_u64, 0_u64, 0_i64, 0_i64);
    for (at, a) in rows.iter().enumerate() {
        for b in &rows[at + 1..] {
            let measured = [per_sequence(a, a.measured), per_sequence(b, b.measured)];
            let predicted = [per_sequence(a, a.predicted), per_sequence(b, b.predicted)];
            let agree = (measured[0] < measured[1]) == (predicted[0] < predicted[1]);
            concordant += if agree { 1 } else { -1 };
            all += 1;
            if a.alternatives != b.alternatives {
                continue;
            }
            found.pairs += 1;
            right += u64::from(agree);
            let apart = measured[0].max(measured[1]) > (1.0 + APART) * measured[0].min(measured[1]);
            found.pairs_apart += u64::from(apart);
            right_apart += u64::from(apart && agree);
        }
    }
    let share = |part: u64, whole: u64| if whole == 0 { f64::NAN } else { part as f64 / whole as f64 };
    found.right = share(right, found.pairs);
    found.right_apart = share(right_apart, found.pairs_apart);
    found.tau = if all == 0 { f64::NAN } else { concordant as f64 / all as f64 };
    let mut sets = BTreeMap::<(&str, u64), Vec<&Compared>>::new();
    for row in rows {
        sets.entry((&row.alternatives, row.batch)).or_default().push(row);
    }
    let mut losses = Vec::new();
    for set in sets.into_values().filter(|set| set.len() > 1) {
        let fastest = set.iter().map(|row| row.measured).fold(f64::INFINITY, f64::min);
        if let Some(chosen) = set.iter().min_by(|a, b| a.predicted.total_cmp(&b.predicted)) {
            losses.push(chosen.measured / fastest - 1.0);
        }
    }
    found.choices = losses.len() as u64;
    found.best_found = share(losses.iter().filter(|loss| **loss == 0.0).count() as u64, found.choices);
    found.regret = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
    found.regret_most = losses.iter().copied().fold(0.0, f64::max);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_another_unit_are_recognised() {
        let check = |measured: f64, expect: &str| {
            let reason = row("a", measured, 1.05).reason();
            assert!(reason.contains(expect), "{reason}");
        };
        check(1079.0, "in milliseconds");
        check(1_079_000.0, "in microseconds");
        check(2.1, "priced wrongly");
    }

    fn row(alternatives: &str, measured: f64, predicted: f64) -> Compared {
        Compared {
            source: "s".to_owned(),
            alternatives: alternatives.to_owned(),
            batch: 8,
            measured,
            predicted,
            low: predicted,
            high: predicted,
            ..Compared::default()
        }
    }

    #[test]
    fn the_order_of_alternatives_is_counted() {
        // Three alternatives, the two slow ones nearly equal and swapped by the prediction; another model apart.
        let rows = [row("a", 1.0, 1.2), row("a", 2.0, 2.3), row("a", 2.1, 2.2), row("b", 9.0, 9.0)];
        let found = &orderings(&rows)[0];
        assert_eq!((found.pairs, found.pairs_apart), (3, 2));
        assert!((found.right - 2.0 / 3.0).abs() < 1e-12);
        assert!((found.right_apart - 1.0).abs() < 1e-12);
        assert!((found.tau - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!((found.choices, found.regret), (1, 0.0));
    }

    #[test]
    fn choosing_the_wrong_one_costs_what_it_takes_longer() {
        let found = &orderings(&[row("a", 1.0, 3.0), row("a", 1.5, 2.0)])[0];
        assert!((found.regret - 0.5).abs() < 1e-12);
        assert!(found.best_found.abs() < 1e-12);
    }

    #[test]
    fn host_bound_rows_are_apart() {
        let host = Compared { host_share: 0.5, ..row("a", 1.0, 1.1) };
        let found = groups(&[host, row("a", 2.0, 1.9)]);
        let labels: Vec<&str> =
            found.iter().filter(|group| group.by == "bound").map(|group| group.label.as_str()).collect();
        assert_eq!(labels, ["device-bound", "host-bound"]);
        assert_eq!(found[0].rows, 2);
        assert!((found[0].bias - 0.1).abs() < 1e-9);
    }
}
