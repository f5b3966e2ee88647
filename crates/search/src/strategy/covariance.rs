//! CMA-ES (Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772) as the `cmaes` crate has it.
//!
//! That crate calls its objective itself. Ask and tell are made from it by replay: since it is deterministic, running
//! it again from its seed with the losses that are known so far gives the next generation's vectors. That costs
//! microseconds per generation, nothing beside a trial.

use cmaes::{CMAESOptions, DVector};
use trompe_base::Rng;

use super::{Ask, Strategy, reflect};

/// First step: a third of the cube's side, as is usual for a bounded box.
const STEP: f64 = 0.3;

/// See the module.
#[derive(Debug)]
pub(super) struct Covariance {
    dimensions: usize,
    seed: u64,
    /// How often it has started anew because it had converged.
    restarts: u64,
    /// Losses of the generations that are complete.
    losses: Vec<f64>,
    generation: Vec<Member>,
    /// Vectors for those who ask while a generation is not complete.
    spare: Rng,
    best: Option<(f64, Vec<f64>)>,
    open: Vec<Ask>,
    next: u64,
}

#[derive(Debug)]
struct Member {
    vector: Vec<f64>,
    id: Option<u64>,
    loss: Option<f64>,
}

impl Covariance {
    pub(super) fn new(dimensions: usize, seed: u64) -> Self {
        let mut new = Self {
            dimensions,
            seed,
            restarts: 0,
            losses: Vec::new(),
            generation: Vec::new(),
            spare: Rng::new(seed ^ 0x5eed),
            best: None,
            open: Vec::new(),
            next: 0,
        };
        new.begin_generation();
        new
    }

    /// The vectors that follow the known losses.
    fn begin_generation(&mut self) {
        loop {
            let vectors = self.replay();
            if !vectors.is_empty() {
                let member = |vector| Member { vector, id: None, loss: None };
                self.generation = vectors.into_iter().map(member).collect();
                return;
            }
            self.restarts += 1;
            self.losses.clear();
        }
    }

    /// Runs the optimizer with the known losses; what it asks for after them. Nothing when it has converged.
    fn replay(&self) -> Vec<Vec<f64>> {
        let mut asked = Vec::new();
        let mut calls = 0;
        let objective = |vector: &DVector<f64>| {
            let known = self.losses.get(calls).copied();
            calls += 1;
            known.unwrap_or_else(|| {
                asked.push(vector.iter().copied().map(reflect).collect());
                0.0
            })
        };
        // Every restart begins somewhere else.
        let mut place = Rng::new(self.seed.wrapping_add(self.restarts));
        let mean: Vec<f64> =
            (0..self.dimensions).map(|_| if self.restarts == 0 { 0.5 } else { place.unit() }).collect();
        let options = CMAESOptions::new(mean, STEP).seed(self.seed.wrapping_add(self.restarts));
        let Ok(mut optimizer) = options.build(objective) else { return Vec::new() };
        loop {
            let before = optimizer.function_evals();
            if before > self.losses.len() {
                break;
            }
            if optimizer.next().is_some() && optimizer.function_evals() <= self.losses.len() {
                break;
            }
        }
        drop(optimizer);
        asked
    }
}

impl Strategy for Covariance {
    fn ask(&mut self) -> Option<Ask> {
        self.next += 1;
        let id = self.next;
        if let Some(member) = self.generation.iter_mut().find(|member| member.id.is_none()) {
            member.id = Some(id);
            return Some(Ask { id, vector: member.vector.clone() });
        }
        // The generation is on its way: a look around the best so far, which teaches the optimizer nothing.
        let centre = self.best.as_ref().map_or_else(|| vec![0.5; self.dimensions], |(_, best)| best.clone());
        let vector = centre.iter().map(|x| reflect(STEP.mul_add(self.spare.normal(), *x))).collect();
        let ask = Ask { id, vector };
        self.open.push(ask.clone());
        Some(ask)
    }

    fn tell(&mut self, id: u64, logarithm: f64) {
        let spare = self.open.iter().position(|ask| ask.id == id).map(|at| self.open.swap_remove(at).vector);
        let member = self.generation.iter_mut().find(|member| member.id == Some(id));
        let vector = match (member, spare) {
            (Some(member), _) => {
                member.loss = Some(logarithm);
                member.vector.clone()
            }
            (None, Some(vector)) => vector,
            (None, None) => return,
        };
        if self.best.as_ref().is_none_or(|(loss, _)| logarithm < *loss) {
            self.best = Some((logarithm, vector));
        }
        let told: Option<Vec<f64>> = self.generation.iter().map(|member| member.loss).collect();
        if let Some(told) = told {
            self.losses.extend(told);
            self.begin_generation();
        }
    }
}
