//! Fits the constants of a [`crate::Term`] to measured times.
//!
//! The cost is linear in its constants, so they are found by least squares of the relative error with constants that may
//! not be negative, re-weighted so that outliers count by their size and not its square. No randomness.

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
    /// How much it counts.
    pub weight: f64,
}

/// Constants and how well they fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// One constant per feature.
    pub constants: [f64; FEATURES],
    /// Measured over predicted time at the 5th percentile.
    pub low: f64,
    /// The same at the 95th.
    pub high: f64,
}

/// Below this relative error a residual counts by its square.
const SOFT: f64 = 0.02;

/// The constants that fit `samples` best; `None` without samples.
#[must_use]
pub fn fit(samples: &[Sample]) -> Option<Fitted> {
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
    let mut ratios: Vec<f64> =
        samples.iter().map(|sample| sample.time / predict(&constants, sample).max(1e-9)).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
    Some(Fitted { constants, low: at(0.05).min(1.0), high: at(0.95).max(1.0) })
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
                samples.push(Sample { features, time, weight: 1.0 });
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
        assert!((found.low - 1.0).abs() < 0.02 && (found.high - 1.0).abs() < 0.02, "{found:?}");
        assert_eq!(fit(&[]), None);
    }
}
