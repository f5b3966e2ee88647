//! What differs from rank to rank and from run to run: chance, and machines that are slower than their sheet says.
//!
//! Chance multiplies each kernel's, each host gap's and each collective's time by a number of a log-normal distribution
//! with mean 1. The number depends on the seed, the rank and the place in the program alone, not on the order in which
//! the replay comes to it, so two replays that differ in one price see the same chances everywhere else.

use std::sync::Arc;

use trompe_base::{Rank, Rng};

/// Chance and stragglers; the default is none of both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variation {
    /// Which of the many possible runs.
    pub seed: u64,
    /// How much times vary by chance.
    pub jitter: Jitter,
    /// Ranks whose machines are not as fast as their sheets say.
    pub stragglers: Vec<Straggler>,
}

/// Spread of times: the standard deviation of their logarithm, roughly the relative standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// Of kernels and copies.
    pub kernel: f64,
    /// Of the host's time between calls.
    pub host: f64,
    /// Of collectives.
    pub link: f64,
}

/// A rank with its own speeds: 1 is what the sheets say, 0.8 takes a quarter longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Straggler {
    /// The rank.
    pub rank: Rank,
    /// Speed of its device.
    pub gpu: f64,
    /// Speed of its host.
    pub host: f64,
    /// Speed of its network adapter; counts for collectives that leave the node.
    pub nic: f64,
}

impl Variation {
    /// Whether equal ranks may differ in time.
    #[must_use]
    pub fn tells_ranks_apart(&self) -> bool {
        self.jitter != Jitter::default() || !self.stragglers.is_empty()
    }

    pub(crate) fn has_slow_links(&self) -> bool {
        self.stragglers.iter().any(|straggler| straggler.nic != 1.0)
    }

    /// The slowest adapter among `members`.
    pub(crate) fn slowest_link(&self, members: &[Rank]) -> f64 {
        let members = self.stragglers.iter().filter(|straggler| members.contains(&straggler.rank));
        members.map(|straggler| straggler.nic).fold(1.0, f64::min)
    }

    /// The factor of one collective.
    pub(crate) fn link_factor(&self, point: u32, number: u64) -> f64 {
        if self.jitter.link == 0.0 {
            return 1.0;
        }
        let mut rng = Rng::new(mixed(self.seed ^ LINK, u64::from(point), number));
        (self.jitter.link * rng.normal() - self.jitter.link.powi(2) / 2.0).exp()
    }
}

const LINK: u64 = 0x6c69_6e6b;
const HOST: u64 = 0x686f_7374;
const KERNEL: u64 = 0x6b65_726e;

/// A number that depends on all three and looks random.
fn mixed(seed: u64, a: u64, b: u64) -> u64 {
    Rng::new(Rng::new(Rng::new(seed).next_u64() ^ a).next_u64() ^ b).next_u64()
}

/// As many equally likely values stand for a distribution.
const VALUES: usize = 4_096;

/// Factors of all ranks.
#[derive(Debug)]
pub(crate) struct Chances<'a> {
    variation: &'a Variation,
    kernel: Option<Arc<[f64]>>,
    host: Option<Arc<[f64]>>,
}

impl<'a> Chances<'a> {
    pub(crate) fn new(variation: &'a Variation) -> Self {
        let table = |sigma: f64| {
            (sigma != 0.0).then(|| {
                let value =
                    |i| (sigma * quantile((i as f64 + 0.5) / VALUES as f64) - sigma * sigma / 2.0).exp();
                (0..VALUES).map(value).collect()
            })
        };
        Self { variation, kernel: table(variation.jitter.kernel), host: table(variation.jitter.host) }
    }

    /// The factors of one rank.
    pub(crate) fn of_rank(&self, rank: Rank) -> Chance {
        let found = self.variation.stragglers.iter().rev().find(|straggler| straggler.rank == rank);
        let seed = self.variation.seed;
        Chance {
            gpu: found.map_or(1.0, |straggler| 1.0 / straggler.gpu),
            host: found.map_or(1.0, |straggler| 1.0 / straggler.host),
            kernel_key: mixed(seed ^ KERNEL, u64::from(rank.0), 0),
            host_key: mixed(seed ^ HOST, u64::from(rank.0), 0),
            kernels: self.kernel.clone(),
            hosts: self.host.clone(),
        }
    }
}

/// Factors on one rank's times.
#[derive(Debug)]
pub(crate) struct Chance {
    gpu: f64,
    host: f64,
    kernel_key: u64,
    host_key: u64,
    kernels: Option<Arc<[f64]>>,
    hosts: Option<Arc<[f64]>>,
}

impl Chance {
    /// Picoseconds of an operation that `row` of the template's events launches.
    #[inline]
    pub(crate) fn operation(&self, time: u64, row: u32, operation: u32) -> u64 {
        match &self.kernels {
            None if self.gpu == 1.0 => time,
            None => (time as f64 * self.gpu) as u64,
            Some(table) => {
                let key = self.kernel_key ^ (u64::from(row) << 32 | u64::from(operation));
                (time as f64 * self.gpu * draw(table, key)) as u64
            }
        }
    }

    /// Picoseconds of the host before `row` of the template's events.
    #[inline]
    pub(crate) fn host(&self, time: u64, row: u32) -> u64 {
        match &self.hosts {
            None if self.host == 1.0 => time,
            None => (time as f64 * self.host) as u64,
            Some(table) => (time as f64 * self.host * draw(table, self.host_key ^ u64::from(row))) as u64,
        }
    }
}

#[inline]
fn draw(table: &[f64], key: u64) -> f64 {
    table[Rng::new(key).next_u64() as usize % VALUES]
}

/// The quantile of the standard normal distribution (Acklam's rational approximation, relative error below 1.2e-9).
fn quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    const LOW: f64 = 0.024_25;
    let polynomial = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    };
    if p < LOW {
        tail(p)
    } else if p > 1.0 - LOW {
        -tail(1.0 - p)
    } else {
        let (q, r) = (p - 0.5, (p - 0.5).powi(2));
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let check = |p: f64, z: f64| assert!((quantile(p) - z).abs() < 1e-6, "{p} {}", quantile(p));
        check(0.5, 0.0);
        check(0.975, 1.959_963_985);
        check(0.01, -2.326_347_874);
        check(0.9, 1.281_551_566);
    }

    #[test]
    fn factors_have_mean_one_and_the_spread_asked_for() {
        let jitter = Jitter { kernel: 0.1, host: 0.3, link: 0.2 };
        let variation = Variation { seed: 3, jitter, stragglers: Vec::new() };
        let chance = Chances::new(&variation).of_rank(Rank(5));
        let check = |name: &str, sigma: f64, draw: &dyn Fn(u32) -> f64| {
            let values: Vec<f64> = (0..40_000).map(draw).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let squares = values.iter().map(|value| (value.ln() + sigma * sigma / 2.0).powi(2));
            let spread = (squares.sum::<f64>() / values.len() as f64).sqrt();
            assert!(
                (mean - 1.0).abs() < 0.01 && (spread / sigma - 1.0).abs() < 0.02,
                "{name}: {mean} {spread}"
            );
        };
        check("kernels", 0.1, &|row| chance.operation(1 << 40, row, 7) as f64 / (1u64 << 40) as f64);
        check("hosts", 0.3, &|row| chance.host(1 << 40, row) as f64 / (1u64 << 40) as f64);
        check("links", 0.2, &|row| variation.link_factor(9, u64::from(row)));
    }

    #[test]
    fn a_slow_rank_is_slow_by_its_factor_and_others_are_not() {
        let straggler = Straggler { rank: Rank(3), gpu: 0.5, host: 0.25, nic: 0.8 };
        let variation = Variation { stragglers: vec![straggler], ..Variation::default() };
        let chances = Chances::new(&variation);
        let (slow, other) = (chances.of_rank(Rank(3)), chances.of_rank(Rank(4)));
        assert_eq!((slow.operation(100, 0, 0), slow.host(100, 0)), (200, 400));
        assert_eq!((other.operation(100, 0, 0), other.host(100, 0)), (100, 100));
        assert_eq!(variation.slowest_link(&[Rank(3), Rank(4)]), 0.8);
        assert_eq!(variation.slowest_link(&[Rank(4)]), 1.0);
    }
}
