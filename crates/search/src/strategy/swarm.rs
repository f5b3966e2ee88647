//! Particle swarm (Kennedy and Eberhart 1995) with the constants of SPSO 2011, as nevergrad's `PSO`.

use trompe_base::Rng;

use super::{Ask, Strategy};

/// Particles: fewer than nevergrad's 40, as budgets here are some hundred trials.
const PARTICLES: usize = 20;
/// 1 / (2 ln 2).
const INERTIA: f64 = 0.721_347_520_444_481_7;
/// 1/2 + ln 2.
const ATTRACTION: f64 = 1.193_147_180_559_945_4;

#[derive(Clone, Debug)]
struct Particle {
    at: Vec<f64>,
    speed: Vec<f64>,
    best: Vec<f64>,
    loss: f64,
    started: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Swarm {
    rng: Rng,
    particles: Vec<Particle>,
    best: Option<(f64, Vec<f64>)>,
    open: Vec<(u64, usize, Vec<f64>)>,
    next: u64,
}

impl Swarm {
    pub(super) fn new(dimensions: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let particle = |rng: &mut Rng| {
            let at: Vec<f64> = (0..dimensions).map(|_| rng.unit()).collect();
            let speed = at.iter().map(|x| rng.unit() - x).collect();
            Particle { best: at.clone(), at, speed, loss: f64::INFINITY, started: false }
        };
        let particles = (0..PARTICLES).map(|_| particle(&mut rng)).collect();
        Self { rng, particles, best: None, open: Vec::new(), next: 0 }
    }
}

impl Strategy for Swarm {
    fn ask(&mut self) -> Option<Ask> {
        let index = (self.next as usize) % PARTICLES;
        self.next += 1;
        let particle = &mut self.particles[index];
        if particle.started {
            for axis in 0..particle.at.len() {
                let own = self.rng.unit() * ATTRACTION * (particle.best[axis] - particle.at[axis]);
                let swarm = self.best.as_ref().map_or(0.0, |(_, best)| best[axis] - particle.at[axis]);
                let swarm = self.rng.unit() * ATTRACTION * swarm;
                particle.speed[axis] = INERTIA.mul_add(particle.speed[axis], own + swarm);
                let moved = particle.at[axis] + particle.speed[axis];
                if !(0.0..=1.0).contains(&moved) {
                    particle.speed[axis] *= -0.5;
                }
                particle.at[axis] = moved.clamp(0.0, 1.0);
            }
        }
        particle.started = true;
        let vector = particle.at.clone();
        self.open.push((self.next, index, vector.clone()));
        Some(Ask { id: self.next, vector })
    }

    fn tell(&mut self, id: u64, logarithm: f64) {
        let Some(at) = self.open.iter().position(|open| open.0 == id) else { return };
        let (_, index, vector) = self.open.swap_remove(at);
        let particle = &mut self.particles[index];
        if logarithm < particle.loss {
            particle.loss = logarithm;
            particle.best.clone_from(&vector);
        }
        if self.best.as_ref().is_none_or(|(loss, _)| logarithm < *loss) {
            self.best = Some((logarithm, vector));
        }
    }
}
