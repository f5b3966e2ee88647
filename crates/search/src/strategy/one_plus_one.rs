//! The (1+1) evolution strategy: a step from the best point, larger after success and smaller after failure.
//!
//! Factors as in nevergrad's `OnePlusOne`: the step doubles after an improvement (or a tie) and shrinks to 0.84 of
//! itself otherwise, which balances at one success in five. It never gets smaller than a value of a knob is wide.

use trompe_base::Rng;

use super::{Ask, Strategy, reflect};

const SUCCESS: f64 = 2.0;
const FAILURE: f64 = 0.84;
const LEAST: f64 = 0.05;
const MOST: f64 = 0.5;

/// See the module.
#[derive(Debug)]
pub(super) struct OnePlusOne {
    rng: Rng,
    best: Vec<f64>,
    loss: f64,
    step: f64,
    open: Vec<Ask>,
    next: u64,
}

impl OnePlusOne {
    pub(super) fn new(dimensions: usize, seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            best: vec![0.5; dimensions],
            loss: f64::INFINITY,
            step: 0.3,
            open: Vec::new(),
            next: 0,
        }
    }
}

impl Strategy for OnePlusOne {
    fn ask(&mut self) -> Option<Ask> {
        let first = self.next == 0;
        self.next += 1;
        let vector = self.best.clone();
        let vector = if first {
            vector
        } else {
            vector.iter().map(|x| reflect(self.step.mul_add(self.rng.normal(), *x))).collect()
        };
        let ask = Ask { id: self.next, vector };
        self.open.push(ask.clone());
        Some(ask)
    }

    fn tell(&mut self, id: u64, logarithm: f64) {
        let Some(at) = self.open.iter().position(|ask| ask.id == id) else { return };
        let ask = self.open.swap_remove(at);
        if logarithm <= self.loss {
            self.loss = logarithm;
            self.best = ask.vector;
            self.step = (self.step * SUCCESS).min(MOST);
        } else {
            self.step = (self.step * FAILURE).max(LEAST);
        }
    }
}
