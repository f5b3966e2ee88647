//! What an operation asks of the wires while it runs, and how fast operations are that run together.
//!
//! An operation uses its wires evenly over its own time: `bytes / (time · capacity)` of each. Running together, each gets
//! its max-min fair rate in bytes on its busiest wire, and its other wires in proportion; what latency leaves unused, others
//! may have. An operation alone runs at its own speed.
//!
//! Shares are whole numbers of 2⁻²⁴, so that sums do not depend on their order: many equal operations slow each other
//! exactly as one operation that stands for all of them does.

use std::collections::BTreeMap;

use trompe_base::Duration;

use super::fair::{self, User};
use crate::fabric::Wire;

/// One part of a share.
const PARTS: f64 = 16_777_216.0;

/// The wires of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Share of its busiest wire that it uses at its own speed, in parts.
    busiest: f64,
    /// What it sends over each wire for one part on its busiest, in parts.
    wires: BTreeMap<Wire, f64>,
}

impl Load {
    /// The load of bytes by wire that take `time` when nothing is in their way; `capacity` in bytes per second.
    #[must_use]
    pub fn new(demand: &BTreeMap<Wire, f64>, time: Duration, capacity: impl Fn(Wire) -> f64) -> Self {
        let seconds = time.as_secs_f64().max(1e-12);
        let shares: BTreeMap<Wire, f64> =
            demand.iter().map(|(&wire, bytes)| (wire, bytes / (seconds * capacity(wire)))).collect();
        let busiest = shares.values().copied().fold(0.0, f64::max);
        if busiest <= 0.0 {
            return Self::default();
        }
        let parts = |share: f64| (share / busiest * PARTS).round().max(1.0);
        let wires = shares.into_iter().filter(|(_, share)| *share > 0.0);
        Self {
            busiest: (busiest.min(1.0) * PARTS).round().max(1.0),
            wires: wires.map(|(wire, share)| (wire, parts(share))).collect(),
        }
    }

    /// The load of the same bytes over `factor` times the time.
    #[must_use]
    pub fn over(mut self, factor: f64) -> Self {
        if self.busiest > 0.0 {
            self.busiest = (self.busiest / factor.max(1e-9)).round().clamp(1.0, PARTS);
        }
        self
    }

    /// Adds an operation like this one that runs whenever this one does.
    pub fn join(&mut self, like: &Self) {
        for (&wire, parts) in &like.wires {
            *self.wires.entry(wire).or_insert(0.0) += parts;
        }
    }

    /// Whether it uses no wire.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wires.is_empty()
    }

    /// The wires that it uses, ascending.
    pub fn wires(&self) -> impl Iterator<Item = Wire> {
        self.wires.keys().copied()
    }

    /// The wire that it uses most (the first of equals) and the share of it.
    #[must_use]
    pub fn busiest(&self) -> Option<(Wire, f64)> {
        let most = self.wires.values().copied().fold(0.0, f64::max);
        let wire = self.wires.iter().find(|(_, parts)| **parts >= most)?.0;
        Some((*wire, self.busiest / PARTS * most / PARTS))
    }

    /// Whether the two use a wire in common.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let (few, many) = if self.wires.len() < other.wires.len() { (self, other) } else { (other, self) };
        few.wires.keys().any(|wire| many.wires.contains_key(wire))
    }
}

/// The speeds of operations that are under way together, against each one's own speed: above 0, at most 1.
#[must_use]
pub fn speeds(loads: &[&Load]) -> Vec<f64> {
    let mut numbers: BTreeMap<Wire, usize> = BTreeMap::new();
    let users: Vec<User> = loads
        .iter()
        .map(|load| {
            let link = |(&wire, &parts): (&Wire, &f64)| {
                let next = numbers.len();
                (*numbers.entry(wire).or_insert(next), parts)
            };
            // A part on the busiest wire is a part of it; others in proportion.
            let links = load.wires.iter().map(link).collect();
            User { limit: load.busiest, links }
        })
        .collect();
    // `rate` parts on the busiest wire put `rate · parts / PARTS` parts on another.
    let capacities = vec![PARTS * PARTS; numbers.len()];
    let rates = fair::rates(&capacities, &users);
    loads
        .iter()
        .zip(rates)
        .map(|(load, rate)| if load.is_empty() { 1.0 } else { (rate / load.busiest).min(1.0) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation of 1 s that puts these bytes on wires of 100 bytes per second.
    fn load(bytes: &[(u32, f64)]) -> Load {
        let demand = bytes.iter().map(|&(wire, bytes)| (Wire::Out(wire), bytes)).collect();
        Load::new(&demand, Duration::from_secs_f64(1.0), |_| 100.0)
    }

    #[track_caller]
    fn check(loads: &[Load], expect: &[f64]) {
        let found = speeds(&loads.iter().collect::<Vec<_>>());
        let close = found.iter().zip(expect).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close && found.len() == expect.len(), "{found:?} for {expect:?}");
    }

    #[test]
    fn hand_computed() {
        let full = load(&[(0, 100.0)]);
        check(std::slice::from_ref(&full), &[1.0]);
        check(&[full.clone(), load(&[(1, 100.0)])], &[1.0, 1.0]);
        check(&[full.clone(), full.clone()], &[0.5, 0.5]);
        // 80 and 80 of 100.
        check(&[load(&[(0, 80.0)]), load(&[(0, 80.0)])], &[0.625, 0.625]);
        // A small user keeps what it uses: 100 - 10 remain.
        check(&[load(&[(0, 10.0)]), full.clone()], &[1.0, 0.9]);
        // What uses little because it is mostly latency hardly counts.
        check(&[load(&[(0, 20.0)]), load(&[(0, 20.0)])], &[1.0, 1.0]);
        // Busiest on wire 1, half of that on wire 0: at a fair 66.7 on wire 0 it sends 33.3 there.
        check(&[full.clone(), load(&[(0, 50.0), (1, 100.0)])], &[2.0 / 3.0, 2.0 / 3.0]);
        // Incast: three full senders into one receiver.
        let sender = |n: u32| load(&[(n, 100.0), (9, 100.0)]);
        check(&[sender(0), sender(1), sender(2)], &[1.0 / 3.0; 3]);
        // More than a wire carries is its own time already.
        check(&[load(&[(0, 300.0)])], &[1.0]);
        check(&[load(&[])], &[1.0]);
    }

    #[test]
    fn one_that_stands_for_many_is_slowed_like_many() {
        for (many, bytes) in [(2, 90.0), (3, 41.0), (7, 77.7), (64, 3.3)] {
            let each = load(&[(0, bytes), (1, bytes / 3.0)]);
            let mut all = each.clone();
            (1..many).for_each(|_| all.join(&each));
            let apart = vec![&each; many];
            assert_eq!(speeds(&apart), vec![speeds(&[&all])[0]; many], "{many} of {bytes}");
        }
    }
}
