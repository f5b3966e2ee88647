//! All-to-all of unequal parts (all-to-all-v): the slowest wire decides.
//!
//! Every pair's bytes go over the wires of that pair; the operation is over when the wire with the most to do is done. It is
//! priced as the all-to-all of equal parts whose slowest wire has as much to do: that one's constants were fitted, and an
//! all-to-all-v of equal parts costs exactly what an all-to-all costs. What a rank keeps for itself costs nothing.

use trompe_base::Bytes;

use crate::demand::Demand;
use crate::fabric::{Fabric, Wire};
use crate::model::{Estimate, NetworkModel};
use crate::operation::Operation;
use crate::tuner::Algorithm;

/// Bytes from each of some devices to each other: `bytes[a][b]` from the `a`-th to the `b`-th.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs(Vec<Vec<u64>>);

/// Why a table of bytes is none of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "row {row} has {found} numbers of bytes for {devices} devices; give one row per sender with one number per receiver"
)]
pub struct NotSquare {
    /// Which row, from 0.
    pub row: usize,
    /// Its numbers.
    pub found: usize,
    /// Rows.
    pub devices: usize,
}

impl Pairs {
    /// The table, when it has as many columns as rows.
    ///
    /// # Errors
    /// When it has not.
    pub fn new(bytes: Vec<Vec<u64>>) -> Result<Self, NotSquare> {
        let devices = bytes.len();
        match bytes.iter().enumerate().find(|(_, row)| row.len() != devices) {
            Some((row, found)) => Err(NotSquare { row, found: found.len(), devices }),
            None => Ok(Self(bytes)),
        }
    }

    /// The same bytes between all.
    #[must_use]
    pub fn equal(devices: usize, bytes: u64) -> Self {
        Self(vec![vec![bytes; devices]; devices])
    }

    /// Devices.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.0.len()
    }

    /// Bytes that one device sends to others on average.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let sent: f64 = self.each().map(|(.., bytes)| bytes).sum();
        sent / self.0.len().max(1) as f64
    }

    /// Sender, receiver and bytes of each pair of two different ones.
    fn each(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let row = |(from, row): (usize, &Vec<u64>)| {
            let pair = move |(to, &bytes): (usize, &u64)| (from, to, bytes as f64);
            row.iter().enumerate().map(pair).collect::<Vec<_>>()
        };
        self.0.iter().enumerate().flat_map(row).filter(|(from, to, _)| from != to)
    }
}

impl Fabric {
    /// The bytes that `pairs` put on each wire; `devices` are global numbers.
    #[must_use]
    pub fn demand_of_pairs(&self, devices: &[u32], pairs: &Pairs) -> Demand {
        let mut all = Demand::new();
        for (from, to, bytes) in pairs.each().filter(|(.., bytes)| *bytes > 0.0) {
            let ends = [devices[from], devices[to]];
            let one = self.demand(Operation::SendReceive, bytes, Algorithm::Direct, &ends);
            for (wire, bytes) in one {
                *all.entry(wire).or_insert(0.0) += bytes;
            }
        }
        all
    }
}

impl NetworkModel {
    /// The price of an all-to-all in which the pairs of `devices` (global numbers) exchange different numbers of bytes, and the
    /// wire that decides, with the share of that time in which it is busy.
    ///
    /// # Panics
    /// When there are not as many devices as rows.
    #[must_use]
    pub fn estimate_pairs(&self, devices: &[u32], pairs: &Pairs) -> (Estimate, Option<(Wire, f64)>) {
        assert_eq!(devices.len(), pairs.devices(), "a row for each device");
        let count = devices.len() as u64;
        let (others, all) = (count.saturating_sub(1).max(1) as f64, count.max(1) as f64);
        // What each sends when all send the same, the part that it keeps included.
        let even = pairs.mean() / others * all;
        let slowest = |pairs: &Pairs| {
            let demand = self.fabric().demand_of_pairs(devices, pairs);
            let seconds = |(wire, bytes): (&Wire, &f64)| (*wire, bytes / self.capacity(*wire));
            // The first of equals.
            demand.iter().map(seconds).fold(None, |most: Option<(Wire, f64)>, one| match most {
                Some(most) if most.1 >= one.1 => Some(most),
                _ => Some(one),
            })
        };
        const UNIT: u64 = 1 << 20;
        let (found, unit) = (slowest(pairs), slowest(&Pairs::equal(devices.len(), UNIT)));
        let bytes = match (found, unit) {
            (Some((_, seconds)), Some((_, unit))) => seconds / unit * UNIT as f64 * all,
            _ => even,
        };
        let estimate = self.estimate(Operation::AllToAll, Bytes(bytes.round() as u64), devices);
        let share = |(wire, seconds): (Wire, f64)| (wire, seconds / estimate.time.as_secs_f64());
        (estimate, found.map(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(spec: &str) -> NetworkModel {
        NetworkModel::of_cluster(&trompe_hardware::resolve(spec).unwrap())
    }

    #[test]
    fn equal_parts_cost_what_an_all_to_all_costs() {
        for (spec, devices) in [("dgx-h100", 8), ("dgx-h100:2", 16), ("dgx-v100", 8), ("a40-pairs", 4)] {
            let (model, devices) = (model(spec), (0..devices).collect::<Vec<u32>>());
            for part in [0, 512, 64 << 10, 4 << 20, 100_000_000] {
                let (found, _) = model.estimate_pairs(&devices, &Pairs::equal(devices.len(), part));
                let bytes = Bytes(part * devices.len() as u64);
                let expect = model.estimate(Operation::AllToAll, bytes, &devices);
                let apart = found.time.as_secs_f64() / expect.time.as_secs_f64() - 1.0;
                assert!(apart.abs() < 1e-3, "{spec} {part}: {} for {}", found.time, expect.time);
            }
        }
    }

    #[test]
    fn the_slowest_wire_decides() {
        let model = model("dgx-h100:2");
        let devices: Vec<u32> = (0..16).collect();
        let time = |change: &dyn Fn(&mut Vec<Vec<u64>>)| {
            let mut bytes = vec![vec![8 << 20; 16]; 16];
            change(&mut bytes);
            let (estimate, wire) = model.estimate_pairs(&devices, &Pairs::new(bytes).unwrap());
            let (wire, share) = wire.unwrap();
            assert!(share > 0.0 && share <= 1.0, "{wire} is busy {share} of the time");
            (estimate.time.as_secs_f64(), wire)
        };
        let (equal, _) = time(&|_| {});
        // One receiver gets twice as much from everybody: its adapter has twice as much to take in.
        let (hot, wire) = time(&|bytes| bytes.iter_mut().for_each(|row| row[3] *= 2));
        assert!(hot > 1.5 * equal && hot < 2.1 * equal, "{hot} for {equal}");
        assert_eq!(wire, Wire::AdapterIn(0, 3));
        // One pair with as much as all others of a sender together.
        let (pair, wire) = time(&|bytes| bytes[2][9] *= 15);
        assert!(pair > 1.5 * equal, "{pair} for {equal}");
        assert_eq!(wire, Wire::AdapterOut(0, 2));
        // What stays inside the nodes does not wait for adapters; what nobody sends costs the start.
        let (near, _) = time(&|bytes| {
            for (a, row) in bytes.iter_mut().enumerate() {
                row.iter_mut().enumerate().filter(|(b, _)| a / 8 != b / 8).for_each(|(_, bytes)| *bytes = 0);
            }
        });
        assert!(near < 0.5 * equal, "{near} for {equal}");
        let nothing = model.estimate_pairs(&devices, &Pairs::equal(16, 0)).0;
        assert!(nothing.time.as_secs_f64() > 0.0 && nothing.time.as_secs_f64() < near);
        // What a rank keeps costs nothing.
        let (kept, _) = time(&|bytes| (0..16).for_each(|own| bytes[own][own] = 1 << 40));
        assert!((kept - equal).abs() < 1e-9);
    }

    #[test]
    fn a_table_has_a_row_for_each() {
        assert_eq!(Pairs::new(vec![vec![1, 2], vec![3]]), Err(NotSquare { row: 1, found: 1, devices: 2 }));
        assert_eq!(Pairs::new(vec![vec![0, 6], vec![2, 9]]).unwrap().mean(), 4.0);
    }
}
