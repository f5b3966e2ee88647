//! Simulated time: integer picoseconds, so that sums are exact and ordering is total.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A point in simulated time: picoseconds since the start of the simulation (range: about 213 days).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimTime(u64);

/// A length of simulated time in picoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

impl SimTime {
    /// The start of the simulation.
    pub const ZERO: Self = Self(0);
    /// A time later than every reachable one; used for "no event is scheduled".
    pub const MAX: Self = Self(u64::MAX);

    /// The point `ps` picoseconds after the start.
    #[must_use]
    pub const fn from_picos(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, rounded to the nearest `f64`.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The time since `earlier`; zero when `earlier` is later than `self`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A duration of `ps` picoseconds.
    #[must_use]
    pub const fn from_picos(ps: u64) -> Self {
        Self(ps)
    }

    /// A duration of `ns` nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    /// A duration of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000_000))
    }

    /// A duration of `secs` seconds, rounded to the nearest picosecond; negative and NaN become zero.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        // `as` saturates: NaN and negatives become 0, values past the range become `u64::MAX`.
        Self((secs * 1e12).round() as u64)
    }

    /// The length in picoseconds.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// The length in seconds, rounded to the nearest `f64`.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The length in microseconds, rounded to the nearest `f64`.
    #[must_use]
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Whether the length is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The length times `factor`, rounded to the nearest picosecond.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }

    /// `self - other`, or zero where `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for SimTime {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.checked_add(rhs.0).expect("simulated time overflows u64 picoseconds (213 days)"))
    }
}

impl AddAssign<Duration> for SimTime {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.checked_add(rhs.0).expect("a duration overflows u64 picoseconds (213 days)"))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.checked_sub(rhs.0).expect("a duration would be negative"))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        Self(self.0.checked_mul(rhs).expect("a duration overflows u64 picoseconds (213 days)"))
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |a, b| a + b)
    }
}

/// Writes `secs` with three significant digits and the largest fitting unit.
fn write_seconds(f: &mut fmt::Formatter<'_>, secs: f64) -> fmt::Result {
    let (value, unit) = match secs {
        0.0 => (0.0, "s"),
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "us"),
        s if s >= 1e-9 => (s * 1e9, "ns"),
        s => (s * 1e12, "ps"),
    };
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    write!(f, "{value:.decimals$} {unit}")
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, self.as_secs_f64())
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, self.as_secs_f64())
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}ps", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_picks_the_largest_fitting_unit() {
        let check = |ps, expect: &str| assert_eq!(Duration::from_picos(ps).to_string(), expect);
        check(0, "0.00 s");
        check(999, "999 ps");
        check(1_500, "1.50 ns");
        check(12_340_000, "12.3 us");
        check(1_000_000_000_000, "1.00 s");
    }

    #[test]
    fn seconds_round_trip_to_the_picosecond() {
        assert_eq!(Duration::from_secs_f64(0.123_456_789_012).as_picos(), 123_456_789_012);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }
}
