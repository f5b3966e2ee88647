//! What was varied: contention on devices, chance, slow machines, and what that makes of the step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What operations that run at once on a device cost each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionEffect {
    /// Whether it is part of the prediction.
    pub on: bool,
    /// Step seconds with it.
    pub with_seconds: f64,
    /// Step seconds without it.
    pub without_seconds: f64,
    /// The model in words, with its parameters.
    pub model: String,
}

/// Chance and slow machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variation {
    /// The first seed; repetition `i` uses `seed + i`.
    pub seed: u64,
    /// Relative spread of kernel times.
    pub kernel_jitter: f64,
    /// Relative spread of host times.
    pub host_jitter: f64,
    /// Relative spread of collective times.
    pub link_jitter: f64,
    /// Ranks with speeds of their own.
    pub stragglers: Vec<Straggler>,
    /// Step seconds without any of it.
    pub plain_seconds: f64,
    /// The distribution of the step time over the repetitions.
    pub repeats: Repeats,
}

/// A rank whose machine is not as fast as its sheet says; 1 is as fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Straggler {
    /// The rank.
    pub rank: u32,
    /// Speed of its device.
    pub gpu: f64,
    /// Speed of its host.
    pub host: f64,
    /// Speed of its network adapter.
    pub nic: f64,
}

/// A distribution of step times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Number of repetitions.
    pub count: u32,
    /// Mean step seconds.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Tenth percentile.
    pub low: f64,
    /// Ninetieth percentile.
    pub high: f64,
    /// Every repetition, ascending.
    pub seconds: Vec<f64>,
}

impl Repeats {
    /// Describes these step times.
    #[must_use]
    pub fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let count = seconds.len();
        let at = |share: f64| {
            // Linear between the two nearest.
            let place = share * count.saturating_sub(1) as f64;
            let (low, rest) = (place as usize, place.fract());
            let value = |i: usize| seconds.get(i).or(seconds.last()).copied().unwrap_or(0.0);
            value(low) + (value(low + 1) - value(low)) * rest
        };
        Self {
            count: count as u32,
            mean: seconds.iter().sum::<f64>() / count.max(1) as f64,
            median: at(0.5),
            low: at(0.1),
            high: at(0.9),
            seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let repeats = Repeats::of((0..11).rev().map(f64::from).collect());
        assert_eq!((repeats.low, repeats.median, repeats.high, repeats.mean), (1.0, 5.0, 9.0, 5.0));
        assert_eq!(Repeats::of(vec![3.0]).high, 3.0);
        assert_eq!(Repeats::of(Vec::new()), Repeats::default());
    }
}
