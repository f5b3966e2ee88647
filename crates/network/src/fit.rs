//! Fits the constants of a [`crate::Term`] to measured times.
//!
//! The cost is linear in its constants, so they are found by least squares of the relative error with constants that may
//! not be negative, re-weighted so that outliers count by their size and not its square. What is left is told by number of
//! ranks and power of two of the bytes ([`Bend`]): the median of measured over predicted.
//!
//! The interval is that of sizes and systems that were not seen: the whole fit is repeated without every fourth power of two
//! in turn and, where several systems were measured, without each system in turn; the quantiles are those of the rows left
//! out (cross-conformal prediction: Vovk, 2015; with whole groups left out and each weighing the same: Dunn, Wasserman and
//! Ramdas, 2022), one row wider at each end. No randomness.

use std::collections::{BTreeMap, BTreeSet};

use crate::constants::Bend;

/// How many constants a term has.
const FEATURES: usize = 5;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// What the constants are multiplied by: 1, steps, GB on the wire, GB of a rank's own part, root of GB on
    /// the wire.
    pub features: [f64; FEATURES],
    /// Microseconds.
    pub time: f64,
    /// How much it counts for the constants.
    pub weight: f64,
    /// How much it counts for the interval.
    pub share: f64,
    /// Ranks that took part.
    pub ranks: u32,
    /// Bytes of the operation.
    pub bytes: f64,
    /// Which system it was measured on; any number that tells systems apart.
    pub system: u32,
    /// Whether it tells the time of the device alone. Where some rows of a number of ranks do, only they tell what the
    /// constants leave.
    pub pure: bool,
}

/// Constants and how well they fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// One constant per feature.
    pub constants: [f64; FEATURES],
    /// What they leave.
    pub bends: Vec<Bend>,
    /// Measured over predicted time at the 5th percentile.
    pub low: f64,
    /// The same at the 95th.
    pub high: f64,
}

/// Below this relative error a residual counts by its square.
const SOFT: f64 = 0.02;

/// Every which power of two is left out in turn.
const FOLDS: i32 = 4;
/// The most that a bend changes a time, either way.
const MOST: f64 = 2.0;
/// Interval of a fit that could not be tried on sizes that it had not seen: assumed, as wide as the widest of those that
/// could.
const UNTRIED: (f64, f64) = (0.6, 1.7);

/// The constants that fit `samples` best; `None` without samples.
#[must_use]
pub fn fit(samples: &[Sample]) -> Option<Fitted> {
    let (constants, bends) = constants(samples)?;
    let mut ratios: Vec<(f64, f64)> = Vec::new();
    let is_in = |sample: &Sample, fold: i32| octave(sample.bytes).rem_euclid(FOLDS) == fold;
    let systems: BTreeSet<u32> = samples.iter().map(|sample| sample.system).collect();
    // Each row is left out once with its size, and once with its size and its system.
    let alone = (0..FOLDS).map(|fold| (fold, None));
    let both = systems.iter().flat_map(|&system| (0..FOLDS).map(move |fold| (fold, Some(system))));
    for (fold, system) in alone.chain(both.filter(|_| systems.len() > 1)) {
        let out: Vec<Sample> = samples
            .iter()
            .filter(|sample| is_in(sample, fold) && system.is_none_or(|system| sample.system == system))
            .copied()
            .collect();
        let rest: Vec<Sample> = samples
            .iter()
            .filter(|sample| !is_in(sample, fold) && system != Some(sample.system))
            .copied()
            .collect();
        // Without rows on both sides there is nothing to try.
        if out.is_empty() || rest.len() < 2 * FEATURES {
            continue;
        }
        let Some(tried) = self::constants(&rest) else { continue };
        for sample in &out {
            let ratio = sample.time / bent(&tried.0, &tried.1, sample).max(1e-9);
            ratios.push((ratio, sample.share));
        }
    }
    let (low, high) = if ratios.len() < 10 { UNTRIED } else { ends(&mut ratios) };
    Some(Fitted { constants, bends, low, high })
}

/// The 5th and 95th percentile of weighted values, one value further out each; 1 lies between them.
fn ends(ratios: &mut [(f64, f64)]) -> (f64, f64) {
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = ratios.iter().map(|ratio| ratio.1).sum();
    let at = |share: f64| {
        let mut sum = 0.0;
        ratios.iter().position(|ratio| {
            sum += ratio.1;
            sum >= share * total
        })
    };
    let last = ratios.len() - 1;
    let (low, high) = (at(0.05).unwrap_or(0), at(0.95).unwrap_or(last));
    (ratios[low.saturating_sub(1)].0.min(1.0), ratios[(high + 1).min(last)].0.max(1.0))
}

/// The power of two at or below `bytes`.
fn octave(bytes: f64) -> i32 {
    (bytes.max(1.0).log2() + 1e-9).floor() as i32
}

fn constants(samples: &[Sample]) -> Option<([f64; FEATURES], Vec<Bend>)> {
    if samples.is_empty() {
        return None;
    }
    let mut constants = [0.0; FEATURES];
    let mut weights: Vec<f64> = samples.iter().map(|sample| sample.weight).collect();
    for _ in 0..20 {
        constants = least_squares(samples, &weights);
        for (weight, sample) in weights.iter_mut().zip(samples) {
            let error = (predict(&constants, sample) / sample.time - 1.0).abs();
            *weight = sample.weight * SOFT / error.max(SOFT);
        }
    }
    // Rounded as they are kept, so that what is left is what will be left.
    let constants = constants.map(|value| (value * 1e3).round() / 1e3);
    Some((constants, bends(&constants, samples)))
}

/// By ranks and power of two the weighted median of measured over predicted, at the mean size.
fn bends(constants: &[f64; FEATURES], samples: &[Sample]) -> Vec<Bend> {
    let mut groups: BTreeMap<(u32, i32), Vec<&Sample>> = BTreeMap::new();
    let pure: BTreeSet<u32> =
        samples.iter().filter(|sample| sample.pure).map(|sample| sample.ranks).collect();
    for sample in samples.iter().filter(|sample| sample.pure || !pure.contains(&sample.ranks)) {
        groups.entry((sample.ranks, octave(sample.bytes))).or_default().push(sample);
    }
    let mut bends: Vec<Bend> = Vec::new();
    for ((ranks, _), group) in groups {
        let ratio = |sample: &&Sample| sample.time / predict(constants, sample).max(1e-9);
        let mut ratios: Vec<(f64, f64)> = group.iter().map(|sample| (ratio(sample), sample.weight)).collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half: f64 = ratios.iter().map(|ratio| ratio.1).sum::<f64>() / 2.0;
        let mut sum = 0.0;
        let middle = ratios.iter().find(|ratio| {
            sum += ratio.1;
            sum >= half
        });
        let factor = middle.map_or(1.0, |ratio| ratio.0).clamp(1.0 / MOST, MOST);
        let size = group.iter().map(|sample| sample.bytes.max(1.0).log2()).sum::<f64>() / group.len() as f64;
        let round = |value: f64| (value * 1e3).round() / 1e3;
        let point = (round(size), round(factor));
        match bends.last_mut() {
            Some(bend) if bend.ranks == ranks => bend.points.push(point),
            _ => bends.push(Bend { ranks, points: vec![point] }),
        }
    }
    bends.iter_mut().for_each(smooth);
    bends
}

/// The most that a point may stand out from both of its neighbours: one bad run must not bend a whole octave.
const STANDS_OUT: f64 = 1.2;

fn smooth(bend: &mut Bend) {
    let raw = bend.points.clone();
    for (points, point) in raw.windows(3).zip(&mut bend.points[1..]) {
        let (before, after) = (points[0].1, points[2].1);
        point.1 = point.1.clamp(before.min(after) / STANDS_OUT, before.max(after) * STANDS_OUT);
    }
}

/// The prediction with its bend, as far as can be told without the features of other sizes.
fn bent(constants: &[f64; FEATURES], bends: &[Bend], sample: &Sample) -> f64 {
    let factor = Bend::nearest(bends, sample.ranks).map_or(1.0, |bend| bend.factor(sample.bytes));
    predict(constants, sample) * factor
}

fn predict(constants: &[f64; FEATURES], sample: &Sample) -> f64 {
    constants.iter().zip(sample.features).map(|(constant, feature)| constant * feature).sum()
}

/// Non-negative least squares by trying every set of constants that are not zero: there are thirty-one.
fn least_squares(samples: &[Sample], weights: &[f64]) -> [f64; FEATURES] {
    let mut normal = [[0.0; FEATURES]; FEATURES];
    let mut right = [0.0; FEATURES];
    let mut total = 0.0;
    for (sample, weight) in samples.iter().zip(weights) {
        let scaled = sample.features.map(|feature| feature / sample.time);
        for i in 0..FEATURES {
            for j in 0..FEATURES {
                normal[i][j] += weight * scaled[i] * scaled[j];
            }
            right[i] += weight * scaled[i];
        }
        total += weight;
    }
    let mut best = ([0.0; FEATURES], total);
    for set in 1_u32..1 << FEATURES {
        let Some(found) = solve(&normal, &right, set) else { continue };
        if found.iter().any(|&constant| constant < 0.0) {
            continue;
        }
        let mut error = total;
        for i in 0..FEATURES {
            error -= 2.0 * found[i] * right[i];
            for j in 0..FEATURES {
                error += found[i] * normal[i][j] * found[j];
            }
        }
        if error < best.1 * (1.0 - 1e-9) {
            best = (found, error);
        }
    }
    best.0
}

/// Solves the equations of the constants in `set` (a bit each), the others zero; `None` when they are not independent.
fn solve(normal: &[[f64; FEATURES]; FEATURES], right: &[f64; FEATURES], set: u32) -> Option<[f64; FEATURES]> {
    let chosen: Vec<usize> = (0..FEATURES).filter(|i| set >> i & 1 == 1).collect();
    // Scaled to a unit diagonal, so that one threshold serves for every unit.
    let scale = |i: usize| normal[i][i].sqrt();
    if chosen.iter().any(|&i| normal[i][i] <= 0.0) {
        return None;
    }
    let mut rows: Vec<Vec<f64>> = chosen
        .iter()
        .map(|&i| {
            let mut row: Vec<f64> = chosen.iter().map(|&j| normal[i][j] / (scale(i) * scale(j))).collect();
            row.push(right[i] / scale(i));
            row
        })
        .collect();
    let size = chosen.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        if rows[column][column].abs() < 1e-9 {
            return None;
        }
        let pivot_row = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(place, _)| *place != column) {
            let factor = row[column] / pivot_row[column];
            for (value, pivot) in row.iter_mut().zip(&pivot_row) {
                *value -= factor * pivot;
            }
        }
    }
    let mut result = [0.0; FEATURES];
    for (row, &i) in chosen.iter().enumerate() {
        result[i] = rows[row][size] / rows[row][row] / scale(i);
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(constants: [f64; FEATURES]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for ranks in [2.0, 4.0, 8.0] {
            for power in 9..30 {
                let gigabytes = f64::from(1 << power) * 1e-9;
                let wire = gigabytes * (ranks - 1.0) / ranks;
                let features = [1.0, ranks - 1.0, wire, gigabytes / ranks, wire.sqrt()];
                let time = constants.iter().zip(features).map(|(c, f)| c * f).sum();
                let (ranks, bytes) = (ranks as u32, gigabytes * 1e9);
                samples.push(Sample {
                    features,
                    time,
                    weight: 1.0,
                    share: 1.0,
                    ranks,
                    bytes,
                    system: 0,
                    pure: true,
                });
            }
        }
        samples
    }

    #[test]
    fn finds_the_constants_again() {
        let check = |constants: [f64; FEATURES]| {
            let found = fit(&samples(constants)).unwrap().constants;
            for (found, wanted) in found.iter().zip(constants) {
                assert!((found - wanted).abs() <= 1e-5 * wanted.max(1.0), "{found} for {wanted}");
            }
        };
        check([6.0, 0.7, 4000.0, 2000.0, 150.0]);
        check([6.0, 0.0, 4000.0, 0.0, 0.0]);
        check([0.0, 3.0, 10_000.0, 0.0, 40.0]);
    }

    #[test]
    fn outliers_do_not_matter_and_widen_nothing_but_the_tail() {
        let mut rows = samples([6.0, 0.7, 4000.0, 2000.0, 0.0]);
        rows[5].time *= 4.0;
        rows[40].time *= 0.2;
        let found = fit(&rows).unwrap();
        assert!((found.constants[2] - 4000.0).abs() < 80.0, "{found:?}");
        assert!((found.low - 1.0).abs() < 0.15 && (found.high - 1.0).abs() < 0.15, "{found:?}");
        assert_eq!(fit(&[]), None);
    }

    #[test]
    fn what_the_constants_leave_is_told_by_size() {
        // A step of 30 % at 1 MiB that no sum of base and rate can follow.
        let mut rows = samples([6.0, 0.7, 4000.0, 2000.0, 0.0]);
        rows.iter_mut().filter(|row| row.bytes > 1e6).for_each(|row| row.time *= 1.3);
        let found = fit(&rows).unwrap();
        for row in &rows {
            let error = bent(&found.constants, &found.bends, row) / row.time - 1.0;
            assert!(error.abs() < 0.01, "{error} of {row:?}");
        }
        assert!(
            found.low < 0.95 || found.high > 1.05,
            "the step was not seen when it was left out: {found:?}"
        );
    }
}
