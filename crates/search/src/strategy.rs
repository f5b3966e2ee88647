//! Strategies: which point to try next.
//!
//! A strategy is asked for vectors in the unit cube ([`crate::encoding`]) and told the logarithm of the loss of each, in
//! any order; it may be asked again before it was told. Everything it does follows from its seed and from what it was
//! told. Names are those of nevergrad, whose own implementations can be used too (`session` runs them); these here
//! need no Python.
//!
//! Why own ones: no Rust library offers these methods behind ask and tell. `covariance` is the `cmaes` crate.

mod covariance;
mod differential;
mod gaussian;
mod grid;
mod one_plus_one;
mod random;
mod surrogate;
mod swarm;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::encoding::Encoding;
use crate::{Feasible, Space};

/// Chooses vectors of the unit cube.
pub trait Strategy: Send {
    /// The next vector to try; `None` when there is nothing left that it would try.
    fn ask(&mut self) -> Option<Ask>;
    /// What became of one: the logarithm of its loss (see [`crate::outcome::Outcome::logarithm`]).
    fn tell(&mut self, id: u64, logarithm: f64);
}

/// A vector to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Name of the question, for the answer.
    pub id: u64,
    /// The vector.
    pub vector: Vec<f64>,
}

/// A choice of strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// A model of what was seen so far: `surrogate`.
    #[default]
    Auto,
    /// CMA-ES.
    Cma,
    /// (1+1) evolution strategy with the one-fifth rule.
    OnePlusOne,
    /// Particle swarm.
    Pso,
    /// Differential evolution with two-point crossover.
    TwoPointsDe,
    /// Every point once, in random order.
    Random,
    /// Every point once, those that rules tell others from first.
    Grid,
    /// An optimizer of nevergrad, by its name there.
    Nevergrad(String),
}

impl Choice {
    /// The strategies of this crate.
    pub const OWN: [(&str, Self); 7] = [
        ("auto", Self::Auto),
        ("cma", Self::Cma),
        ("oneplusone", Self::OnePlusOne),
        ("pso", Self::Pso),
        ("twopointsde", Self::TwoPointsDe),
        ("random", Self::Random),
        ("grid", Self::Grid),
    ];
}

/// A strategy that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no strategy `{0}`; choose auto, cma, oneplusone, pso, twopointsde, random, grid, or one of nevergrad's \
     as in nevergrad:CMA"
)]
pub struct BadChoice(pub String);

impl FromStr for Choice {
    type Err = BadChoice;

    fn from_str(text: &str) -> Result<Self, BadChoice> {
        if let Some(name) = text.strip_prefix("nevergrad:").filter(|name| !name.is_empty()) {
            return Ok(Self::Nevergrad(name.to_owned()));
        }
        let lower = text.to_ascii_lowercase();
        let own = Self::OWN.into_iter().find(|(name, _)| *name == lower);
        own.map(|(_, choice)| choice).ok_or_else(|| BadChoice(text.to_owned()))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nevergrad(name) => write!(f, "nevergrad:{name}"),
            own => {
                let name = Self::OWN.iter().find(|(_, choice)| choice == own).map_or("", |(name, _)| name);
                f.write_str(name)
            }
        }
    }
}

/// What a strategy is made from.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How points are written.
    pub encoding: Encoding,
    /// The points there are.
    pub feasible: Arc<Feasible>,
    /// Seed.
    pub seed: u64,
}

/// Makes a strategy of this crate; `None` for one of nevergrad's.
#[must_use]
pub fn make(choice: &Choice, space: &Space, setting: &Setting) -> Option<Box<dyn Strategy>> {
    let dimensions = setting.encoding.dimensions();
    Some(match choice {
        Choice::Auto => Box::new(surrogate::Surrogate::new(setting.clone())),
        Choice::Cma => Box::new(covariance::Covariance::new(dimensions, setting.seed)),
        Choice::OnePlusOne => Box::new(one_plus_one::OnePlusOne::new(dimensions, setting.seed)),
        Choice::Pso => Box::new(swarm::Swarm::new(dimensions, setting.seed)),
        Choice::TwoPointsDe => Box::new(differential::TwoPoints::new(dimensions, setting.seed)),
        Choice::Random => Box::new(random::Random::new(setting)),
        Choice::Grid => Box::new(grid::Grid::new(space, setting)),
        Choice::Nevergrad(_) => return None,
    })
}

/// Folds a number into `0..=1` by reflection at both ends.
fn reflect(x: f64) -> f64 {
    let x = x.rem_euclid(2.0);
    if x > 1.0 { 2.0 - x } else { x }
}

#[cfg(test)]
mod tests;
