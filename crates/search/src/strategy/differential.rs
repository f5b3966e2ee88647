//! Differential evolution (Storn and Price 1997), `curr-to-best/1` with two-point crossover, as nevergrad's
//! `TwoPointsDE`.

use trompe_base::Rng;

use super::{Ask, Strategy, reflect};

/// Individuals: fewer than nevergrad's 30, as budgets here are some hundred trials.
const POPULATION: usize = 20;
/// Weights of the difference and of the way to the best, as in nevergrad.
const DIFFERENCE: f64 = 0.8;
const TO_BEST: f64 = 0.8;

#[derive(Debug)]
struct Individual {
    at: Vec<f64>,
    loss: f64,
    asked: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct TwoPoints {
    rng: Rng,
    population: Vec<Individual>,
    open: Vec<(u64, usize, Vec<f64>)>,
    next: u64,
}

impl TwoPoints {
    pub(super) fn new(dimensions: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let individual = |rng: &mut Rng| Individual {
            at: (0..dimensions).map(|_| rng.unit()).collect(),
            loss: f64::INFINITY,
            asked: false,
        };
        let population = (0..POPULATION).map(|_| individual(&mut rng)).collect();
        Self { rng, population, open: Vec::new(), next: 0 }
    }

    /// Two others than `index`, different ones.
    fn others(&mut self, index: usize) -> (usize, usize) {
        let a = (index + 1 + self.rng.below(POPULATION as u64 - 1) as usize) % POPULATION;
        loop {
            let b = (index + 1 + self.rng.below(POPULATION as u64 - 1) as usize) % POPULATION;
            if b != a {
                return (a, b);
            }
        }
    }

    fn child(&mut self, index: usize) -> Vec<f64> {
        let (a, b) = self.others(index);
        let losses = self.population.iter().map(|one| one.loss);
        let best = losses.enumerate().min_by(|x, y| x.1.total_cmp(&y.1)).map_or(index, |(best, _)| best);
        let own = self.population[index].at.clone();
        let dimensions = own.len();
        let donor = (0..dimensions).map(|axis| {
            let of = |who: usize| self.population[who].at[axis];
            reflect(own[axis] + DIFFERENCE * (of(a) - of(b)) + TO_BEST * (of(best) - own[axis]))
        });
        let donor: Vec<f64> = donor.collect();
        let mut ends = [self.rng.below(dimensions as u64 + 1), self.rng.below(dimensions as u64 + 1)];
        ends.sort_unstable();
        // At least one value comes from the donor.
        let forced = self.rng.below(dimensions as u64);
        let inside = |axis: usize| (ends[0]..ends[1]).contains(&(axis as u64)) || axis as u64 == forced;
        (0..dimensions).map(|axis| if inside(axis) { donor[axis] } else { own[axis] }).collect()
    }
}

impl Strategy for TwoPoints {
    fn ask(&mut self) -> Option<Ask> {
        let index = (self.next as usize) % POPULATION;
        self.next += 1;
        let vector =
            if self.population[index].asked { self.child(index) } else { self.population[index].at.clone() };
        self.population[index].asked = true;
        self.open.push((self.next, index, vector.clone()));
        Some(Ask { id: self.next, vector })
    }

    fn tell(&mut self, id: u64, logarithm: f64) {
        let Some(at) = self.open.iter().position(|open| open.0 == id) else { return };
        let (_, index, vector) = self.open.swap_remove(at);
        let individual = &mut self.population[index];
        if logarithm <= individual.loss {
            individual.loss = logarithm;
            individual.at = vector;
        }
    }
}
