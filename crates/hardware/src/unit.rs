//! Newtypes for the physical quantities of a sheet; all are serialised as a bare number in the base unit.

use std::fmt;

use serde::{Deserialize, Serialize};
use trompe_base::{Bytes, Duration, Flops};

macro_rules! quantity {
    ($($(#[$doc:meta])* $name:ident, $unit:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub f64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
                let mut value = self.0;
                let mut prefix = 0;
                while value >= 1000.0 && prefix + 1 < PREFIXES.len() {
                    value /= 1000.0;
                    prefix += 1;
                }
                write!(f, "{value:.2} {}{}", PREFIXES[prefix], $unit)
            }
        }
    )*};
}

quantity! {
    /// Bytes per second.
    BytesPerSecond, "B/s";
    /// Floating-point (or integer) operations per second; a multiply-add counts as two.
    FlopsPerSecond, "FLOP/s";
    /// Cycles per second.
    Hertz, "Hz";
    /// Watts.
    Watts, "W";
}

impl BytesPerSecond {
    /// The time in which `bytes` pass at this rate.
    #[must_use]
    pub fn time_for(self, bytes: Bytes) -> Duration {
        Duration::from_secs_f64(bytes.as_f64() / self.0)
    }
}

impl FlopsPerSecond {
    /// The time in which `flops` are done at this rate.
    #[must_use]
    pub fn time_for(self, flops: Flops) -> Duration {
        Duration::from_secs_f64(flops.as_f64() / self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_time() {
        assert_eq!(BytesPerSecond(3.35e12).to_string(), "3.35 TB/s");
        assert_eq!(Hertz(1.98e9).to_string(), "1.98 GHz");
        assert_eq!(BytesPerSecond(1e9).time_for(Bytes(1_000)), Duration::from_micros(1));
        assert_eq!(FlopsPerSecond(1e12).time_for(Flops(1_000_000)), Duration::from_micros(1));
    }
}
