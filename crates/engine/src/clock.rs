//! Clocks: periods in ticks, from frequencies or from integer ratios that are brought to whole ticks together.

use trompe_base::{Duration, SimTime};

use crate::error::SetupError;

/// A clock: a period in ticks; its edges are the multiples of the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    period: u64,
}

impl Clock {
    /// A clock of `megahertz`, its period rounded to the nearest picosecond.
    ///
    /// # Errors
    /// When the period would be less than a picosecond, or beyond a `u64`, or the frequency is not a number.
    pub fn from_megahertz(name: &str, megahertz: f64) -> Result<Self, SetupError> {
        let period = (1e6 / megahertz).round();
        if !(1.0..9e18).contains(&period) {
            let problem = "the period is not within 1 ps and 100 days; give a frequency in MHz";
            return Err(SetupError::Clock { clock: name.to_owned(), problem });
        }
        Ok(Self { period: period as u64 })
    }

    /// A clock with a period of `period`.
    ///
    /// # Errors
    /// When the period is zero.
    pub fn from_period(name: &str, period: Duration) -> Result<Self, SetupError> {
        if period.is_zero() {
            let problem = "the period is zero; give at least one picosecond";
            return Err(SetupError::Clock { clock: name.to_owned(), problem });
        }
        Ok(Self { period: period.as_picos() })
    }

    /// The time between two edges.
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_picos(self.period)
    }

    /// The number of edges after tick 0 up to and including `now`.
    #[must_use]
    pub const fn cycle(self, now: SimTime) -> u64 {
        now.as_picos() / self.period
    }

    /// The time from `now` to the edge `cycles` cycles after the next edge at or after `now`.
    #[must_use]
    pub const fn until_edge(self, now: SimTime, cycles: u64) -> Duration {
        let past = now.as_picos() % self.period;
        let to_next = if past == 0 { 0 } else { self.period - past };
        Duration::from_picos(to_next.saturating_add(cycles.saturating_mul(self.period)))
    }
}

/// Clocks whose periods are integer ratios of each other.
///
/// The root's period is the least number of ticks that makes every clock's period whole, times what
/// [`ClockTree::resolve`] is asked to multiply by.
///
/// ```
/// use trompe_engine::ClockTree;
/// let mut tree = ClockTree::new();
/// let half = tree.derive("half", tree.root(), 2, 1)?; // one of its cycles takes two of the root's
/// let two_thirds = tree.derive("two_thirds", tree.root(), 3, 2)?;
/// let clocks = tree.resolve(1);
/// let periods = [tree.root(), half, two_thirds].map(|clock| clocks[clock.0].period().as_picos());
/// assert_eq!(periods, [2, 4, 3]);
/// # Ok::<(), trompe_engine::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClockTree {
    /// Period of each clock in root periods, as a reduced fraction.
    periods: Vec<(u64, u64)>,
}

/// A clock of a [`ClockTree`]: an index into what [`ClockTree::resolve`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockIndex(pub usize);

impl Default for ClockTree {
    fn default() -> Self {
        Self::new()
    }
}

impl ClockTree {
    /// A tree of the root alone.
    #[must_use]
    pub fn new() -> Self {
        Self { periods: vec![(1, 1)] }
    }

    /// The root.
    #[must_use]
    pub const fn root(&self) -> ClockIndex {
        ClockIndex(0)
    }

    /// A clock of which `den` cycles take as long as `num` cycles of `parent`.
    ///
    /// # Errors
    /// When a part of the ratio is zero, or the ratios multiply up beyond a `u64`.
    pub fn derive(
        &mut self,
        name: &str,
        parent: ClockIndex,
        num: u64,
        den: u64,
    ) -> Result<ClockIndex, SetupError> {
        let error = |problem| SetupError::Clock { clock: name.to_owned(), problem };
        if num == 0 || den == 0 {
            return Err(error("a ratio needs two numbers above zero"));
        }
        let (a, b) = self.periods[parent.0];
        let overflow = || error("the ratios multiply up beyond 64 bits; use smaller numbers");
        let (num, den) = (a.checked_mul(num).ok_or_else(overflow)?, b.checked_mul(den).ok_or_else(overflow)?);
        let divisor = gcd(num, den);
        self.periods.push((num / divisor, den / divisor));
        Ok(ClockIndex(self.periods.len() - 1))
    }

    /// The root period in ticks that makes every period whole.
    #[must_use]
    pub fn norm(&self) -> u64 {
        self.periods.iter().fold(1, |lcm, &(_, den)| lcm / gcd(lcm, den) * den)
    }

    /// The clocks by index, with a root period of `multiple` times [`Self::norm`] ticks.
    #[must_use]
    pub fn resolve(&self, multiple: u64) -> Vec<Clock> {
        let root = self.norm() * multiple;
        self.periods.iter().map(|&(num, den)| Clock { period: root / den * num }).collect()
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_brought_to_whole_ticks() {
        let mut tree = ClockTree::new();
        let half = tree.derive("half", tree.root(), 2, 1).unwrap();
        let two_thirds = tree.derive("two_thirds", tree.root(), 3, 2).unwrap();
        tree.derive("third", half, 3, 2).unwrap();
        tree.derive("ninths", two_thirds, 3, 2).unwrap();
        assert_eq!(tree.norm(), 4);
        let periods: Vec<u64> = tree.resolve(1).iter().map(|clock| clock.period).collect();
        assert_eq!(periods, [4, 8, 6, 12, 9]);
    }

    #[test]
    fn frequencies_become_periods_in_picoseconds() {
        let check =
            |megahertz, ticks| assert_eq!(Clock::from_megahertz("c", megahertz).unwrap().period, ticks);
        check(333.3333, 3000);
        check(400.0, 2500);
        check(666.666, 1500);
        assert!(Clock::from_megahertz("c", 0.0).is_err());
        assert!(Clock::from_megahertz("c", f64::NAN).is_err());
        assert!(Clock::from_megahertz("c", -5.0).is_err());
    }

    #[test]
    fn edges_are_multiples_of_the_period() {
        let clock = Clock { period: 10 };
        let check = |now, cycles, delay| {
            assert_eq!(
                clock.until_edge(SimTime::from_picos(now), cycles).as_picos(),
                delay,
                "{now} {cycles}"
            );
        };
        check(0, 0, 0);
        check(0, 1, 10);
        check(3, 0, 7);
        check(3, 2, 27);
        check(10, 1, 10);
    }
}
