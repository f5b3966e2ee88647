//! Where a rank's time goes, counted while it passes.
//!
//! At every moment the device does work of some kinds, or none. Each moment counts for the first kind in the order of
//! [`Kind`]; an idle moment is a bubble while a collective on the device waits for other ranks, and the host's fault
//! otherwise. So the kinds' times add up to the whole, always.

use trompe_base::Duration;
use trompe_results::Kind;

/// Number of kinds.
pub(crate) const KINDS: usize = Kind::ALL.len();

/// Picoseconds by kind and what is derived from the same moments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    /// By kind, in the order of [`Kind::ALL`].
    pub(crate) kinds: [u64; KINDS],
    /// At least one collective transfers.
    pub(crate) communication: u64,
}

impl Times {
    /// What was added since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut kinds = self.kinds;
        for (time, before) in kinds.iter_mut().zip(earlier.kinds) {
            *time -= before;
        }
        Self { kinds, communication: self.communication - earlier.communication }
    }

    /// The time of one kind.
    pub(crate) fn of(&self, kind: Kind) -> Duration {
        Duration::from_picos(self.kinds[kind as usize])
    }
}

/// The running count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    times: Times,
    /// How many operations of each kind run.
    running: [u32; KINDS],
    /// Bit `k`: kind `k` runs.
    mask: u32,
    /// Collectives on the device that wait for other ranks.
    waiting: u32,
    since: u64,
}

impl Account {
    /// An operation begins at `now`.
    pub(crate) fn begin(&mut self, kind: Kind, now: u64) {
        self.settle(now);
        self.running[kind as usize] += 1;
        self.mask |= 1 << kind as u32;
    }

    /// An operation ends at `now`.
    pub(crate) fn end(&mut self, kind: Kind, now: u64) {
        self.settle(now);
        let running = &mut self.running[kind as usize];
        *running -= 1;
        if *running == 0 {
            self.mask &= !(1 << kind as u32);
        }
    }

    /// A collective begins to wait for other ranks.
    pub(crate) fn begin_waiting(&mut self, now: u64) {
        self.settle(now);
        self.waiting += 1;
    }

    /// A collective has waited for other ranks.
    pub(crate) fn end_waiting(&mut self, now: u64) {
        self.settle(now);
        self.waiting -= 1;
    }

    /// The times up to `now`.
    pub(crate) fn at(&mut self, now: u64) -> &Times {
        self.settle(now);
        &self.times
    }

    fn settle(&mut self, now: u64) {
        let passed = now - self.since;
        if passed == 0 {
            return;
        }
        self.since = now;
        let kind = if self.mask != 0 {
            self.mask.trailing_zeros() as usize
        } else if self.waiting > 0 {
            Kind::Bubble as usize
        } else {
            Kind::HostBound as usize
        };
        self.times.kinds[kind] += passed;
        if self.running[Kind::Communication as usize] > 0 {
            self.times.communication += passed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_counts_once_for_the_first_kind() {
        let mut account = Account::default();
        account.begin(Kind::Communication, 10); // 0..10 idle
        account.begin(Kind::Gemm, 14);
        account.end(Kind::Gemm, 20);
        account.end(Kind::Communication, 25);
        account.begin_waiting(30);
        account.end_waiting(37);
        let times = account.at(40).clone();
        assert_eq!(times.of(Kind::Gemm).as_picos(), 6);
        assert_eq!(times.of(Kind::Communication).as_picos(), 9);
        assert_eq!(times.communication, 15);
        assert_eq!(times.of(Kind::Bubble).as_picos(), 7);
        assert_eq!(times.of(Kind::HostBound).as_picos(), 18);
        assert_eq!(times.kinds.iter().sum::<u64>(), 40);
    }

    #[test]
    fn the_order_of_kinds_is_their_number() {
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
        }
    }
}
