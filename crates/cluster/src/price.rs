//! What device operations cost, as the replay takes it: one price per distinct operation, not per launch.

use trompe_base::Duration;

/// A duration with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// The expected duration.
    pub time: Duration,
    /// The lower end of the interval.
    pub low: Duration,
    /// The upper end of the interval.
    pub high: Duration,
}

impl Price {
    /// A price without uncertainty.
    #[must_use]
    pub const fn exact(time: Duration) -> Self {
        Self { time, low: time, high: time }
    }

    /// The duration to use when every price is taken at `bound`.
    #[must_use]
    pub const fn at(self, bound: Bound) -> Duration {
        match bound {
            Bound::Expected => self.time,
            Bound::Low => self.low,
            Bound::High => self.high,
        }
    }
}

/// Which end of every price's interval a replay uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// The expected durations.
    #[default]
    Expected,
    /// All operations as fast as they may be.
    Low,
    /// All operations as slow as they may be.
    High,
}

/// The price of each operation of each template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// `templates[t][o]` is the price of row `o` of template `t`'s operations.
    pub templates: Vec<Vec<Price>>,
}
