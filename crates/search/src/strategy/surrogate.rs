//! `auto`: a model of what was seen so far chooses what to try next.
//!
//! Spaces of configurations are small enough to look at every point, and a trial takes seconds. So a Gaussian process
//! is fitted to the logarithms of the losses, a second one says how probably a point fits at all, and the point with
//! the largest expected improvement times that probability is next (Jones et al. 1998; Gelbart et al. 2014). The
//! first points are spread over the space. Points on their way count as if they had the expected loss.

use std::collections::BTreeSet;

use trompe_base::Rng;

use super::gaussian::Process;
use super::{Ask, Setting, Strategy};
use crate::outcome::is_result;

/// Points before the model is asked, for each dimension, and at least.
const FIRST_PER_DIMENSION: usize = 2;
const FIRST: usize = 12;
/// New observations after which length scales are chosen again.
const REFIT: usize = 8;
/// Length scales that are tried then.
const TRIES: usize = 24;
/// The most observations of a model: the best and the newest ones.
const MOST_OBSERVATIONS: usize = 220;
/// The most candidates that are looked at.
const MOST_CANDIDATES: usize = 3000;
const NOISE: f64 = 1e-3;
/// Chance of a point anywhere instead of the model's choice: a wrong model must not starve the rest of the space.
const ANYWHERE: f64 = 0.05;

/// See the module.
#[derive(Debug)]
pub(super) struct Surrogate {
    setting: Setting,
    rng: Rng,
    vectors: Vec<Vec<f64>>,
    /// Positions among the feasible points that were not asked, in random order.
    left: Vec<u32>,
    open: Vec<(u64, u32)>,
    seen: Vec<(u32, f64)>,
    scales: Vec<f64>,
    fitted_at: usize,
    next: u64,
}

impl Surrogate {
    pub(super) fn new(setting: Setting) -> Self {
        let mut rng = Rng::new(setting.seed);
        let vectors: Vec<Vec<f64>> =
            setting.feasible.points.iter().map(|point| setting.encoding.vector(point)).collect();
        let mut left: Vec<u32> = (0..vectors.len() as u32).collect();
        rng.shuffle(&mut left);
        let scales = vec![0.5; setting.encoding.dimensions()];
        Self {
            setting,
            rng,
            vectors,
            left,
            open: Vec::new(),
            seen: Vec::new(),
            scales,
            fitted_at: 0,
            next: 0,
        }
    }

    fn first(&self) -> usize {
        FIRST.max(FIRST_PER_DIMENSION * self.setting.encoding.dimensions())
    }

    /// A point far from all that were asked, of a few random ones.
    fn spread(&mut self) -> Option<usize> {
        const LOOKED_AT: usize = 64;
        let asked: Vec<u32> = self
            .seen
            .iter()
            .map(|(point, _)| *point)
            .chain(self.open.iter().map(|(_, point)| *point))
            .collect();
        let distance = |point: u32| {
            let own = &self.vectors[point as usize];
            let to = |other: &u32| {
                let other = &self.vectors[*other as usize];
                own.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
            };
            asked.iter().map(to).fold(f64::INFINITY, f64::min)
        };
        let count = self.left.len().min(LOOKED_AT);
        (0..count).max_by(|a, b| distance(self.left[*a]).total_cmp(&distance(self.left[*b])).then(b.cmp(a)))
    }

    /// The point that the model likes best.
    fn modelled(&mut self) -> Option<usize> {
        let results: Vec<(u32, f64)> = self.kept(is_result);
        if results.len() < 3 {
            return self.spread();
        }
        let inputs: Vec<Vec<f64>> =
            results.iter().map(|(point, _)| self.vectors[*point as usize].clone()).collect();
        let outputs: Vec<f64> = results.iter().map(|(_, loss)| *loss).collect();
        if self.seen.len() >= self.fitted_at + REFIT || self.fitted_at == 0 {
            self.fitted_at = self.seen.len();
            self.choose_scales(&inputs, &outputs);
        }
        let model = Process::fit(&inputs, &outputs, &self.scales, NOISE)?;
        let best = outputs.iter().copied().fold(f64::INFINITY, f64::min);
        let model = self.with_open(model, inputs, outputs);
        let fits = self.fits_model();
        let candidates = self.candidates(&results);
        let mut choice: Option<(f64, usize)> = None;
        for at in candidates {
            let vector = &self.vectors[self.left[at] as usize];
            let (mean, deviation) = model.at(vector);
            let probability = fits.as_ref().map_or(1.0, |fits| fits.mean_at(vector).clamp(0.01, 1.0));
            let value = expected_improvement(best, mean, deviation) * probability;
            if choice.is_none_or(|(most, _)| value > most) {
                choice = Some((value, at));
            }
        }
        choice.map(|(_, at)| at)
    }

    /// The best and the newest observations.
    fn kept(&self, keep: impl Fn(f64) -> bool) -> Vec<(u32, f64)> {
        let mut list: Vec<(u32, f64)> = self.seen.iter().copied().filter(|(_, loss)| keep(*loss)).collect();
        if list.len() > MOST_OBSERVATIONS {
            let newest = list.split_off(list.len() - MOST_OBSERVATIONS / 4);
            list.sort_by(|a, b| a.1.total_cmp(&b.1));
            list.truncate(MOST_OBSERVATIONS - newest.len());
            list.extend(newest);
        }
        list
    }

    /// The model with the expected loss at points that are on their way.
    fn with_open(&self, model: Process, mut inputs: Vec<Vec<f64>>, mut outputs: Vec<f64>) -> Process {
        if self.open.is_empty() {
            return model;
        }
        for (_, point) in &self.open {
            let vector = self.vectors[*point as usize].clone();
            outputs.push(model.mean_at(&vector));
            inputs.push(vector);
        }
        Process::fit(&inputs, &outputs, &self.scales, NOISE).unwrap_or(model)
    }

    /// How probably a point fits; `None` when everything did.
    fn fits_model(&self) -> Option<Process> {
        let seen = &self.seen[self.seen.len().saturating_sub(MOST_OBSERVATIONS)..];
        if seen.iter().all(|(_, loss)| is_result(*loss)) {
            return None;
        }
        let inputs: Vec<Vec<f64>> =
            seen.iter().map(|(point, _)| self.vectors[*point as usize].clone()).collect();
        let outputs: Vec<f64> = seen.iter().map(|(_, loss)| f64::from(u8::from(is_result(*loss)))).collect();
        let scales = vec![0.5; self.scales.len()];
        Process::fit(&inputs, &outputs, &scales, 1e-2)
    }

    /// Positions in `left` that are looked at: all, or a random part and everything near the best.
    fn candidates(&mut self, results: &[(u32, f64)]) -> Vec<usize> {
        if self.left.len() <= MOST_CANDIDATES {
            return (0..self.left.len()).collect();
        }
        let best = results.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(point, _)| *point);
        let near = best.map(|best| {
            let point = &self.setting.feasible.points[best as usize];
            let left = self.left.iter().enumerate();
            let like = |other: &u32| {
                let other = &self.setting.feasible.points[*other as usize];
                point.0.iter().zip(&other.0).filter(|(a, b)| a != b).count() <= 2
            };
            left.filter(|(_, other)| like(other))
                .map(|(at, _)| at)
                .take(MOST_CANDIDATES)
                .collect::<BTreeSet<_>>()
        });
        let mut chosen = near.unwrap_or_default();
        while chosen.len() < MOST_CANDIDATES {
            chosen.insert(self.rng.below(self.left.len() as u64) as usize);
        }
        chosen.into_iter().collect()
    }

    /// The length scales, of the present ones and some random ones, that explain the observations best.
    fn choose_scales(&mut self, inputs: &[Vec<f64>], outputs: &[f64]) {
        const MOST: usize = 120;
        let from = inputs.len().saturating_sub(MOST);
        let (inputs, outputs) = (&inputs[from..], &outputs[from..]);
        let evidence = |scales: &[f64]| {
            Process::fit(inputs, outputs, scales, NOISE).map_or(f64::NEG_INFINITY, |model| model.evidence)
        };
        let mut best = evidence(&self.scales);
        for attempt in 0..TRIES {
            let scales: Vec<f64> = if attempt % 2 == 0 {
                // Somewhere between a tenth of the cube's side and ten times it: a dimension without influence.
                self.scales.iter().map(|_| 10_f64.powf(2.0_f64.mul_add(self.rng.unit(), -1.0))).collect()
            } else {
                self.scales
                    .iter()
                    .map(|scale| (scale * (0.5 * self.rng.normal()).exp()).clamp(0.05, 10.0))
                    .collect()
            };
            let found = evidence(&scales);
            if found > best {
                best = found;
                self.scales = scales;
            }
        }
    }
}

/// Expected improvement below `best` of a normal variable.
fn expected_improvement(best: f64, mean: f64, deviation: f64) -> f64 {
    let gain = (best - mean) / deviation;
    let density = (-0.5 * gain * gain).exp() / std::f64::consts::TAU.sqrt();
    // Far below the best, both terms vanish; a tiny slope keeps the order of the means.
    let value = deviation * gain.mul_add(normal_share(gain), density);
    value.max(0.0) + 1e-12 * (-mean).exp().min(1e6)
}

/// Share of a standard normal variable below `x` (Abramowitz and Stegun 26.2.17, error below 1e-7).
fn normal_share(x: f64) -> f64 {
    let t = 1.0 / 0.231_641_9_f64.mul_add(x.abs(), 1.0);
    let series = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt() * series;
    if x >= 0.0 { 1.0 - tail } else { tail }
}

impl Strategy for Surrogate {
    fn ask(&mut self) -> Option<Ask> {
        if self.left.is_empty() {
            return None;
        }
        let early = self.seen.len() + self.open.len() < self.first();
        let at = if early || self.rng.unit() < ANYWHERE { self.spread() } else { self.modelled() };
        let point = self.left.swap_remove(at.unwrap_or(0));
        self.next += 1;
        self.open.push((self.next, point));
        Some(Ask { id: self.next, vector: self.vectors[point as usize].clone() })
    }

    fn tell(&mut self, id: u64, logarithm: f64) {
        let Some(at) = self.open.iter().position(|open| open.0 == id) else { return };
        let (_, point) = self.open.remove(at);
        self.seen.push((point, logarithm));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn improvement_is_expected_where_it_is_likely() {
        assert!((normal_share(0.0) - 0.5).abs() < 1e-6 && (normal_share(1.96) - 0.975).abs() < 1e-4);
        assert!(expected_improvement(1.0, 0.5, 0.1) > expected_improvement(1.0, 0.9, 0.1));
        assert!(expected_improvement(1.0, 1.2, 0.5) > expected_improvement(1.0, 1.2, 0.1));
        assert!((expected_improvement(1.0, 0.0, 1e-6) - 1.0).abs() < 1e-6);
    }
}
