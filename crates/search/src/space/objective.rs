//! What is sought: one number or several.

use std::collections::BTreeMap;

use trompe_results::study::Metrics;

/// A number of a trial that is to be small or large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objective {
    /// Seconds of a step.
    StepTime,
    /// Tokens per second and device.
    TokensPerSecondPerGpu,
    /// Money for a million tokens.
    CostPerMillionTokens,
    /// Model FLOPs utilisation.
    Mfu,
    /// Bytes of the fullest device.
    Memory,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Less.
    Least,
    /// More.
    Most,
}

impl Objective {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::StepTime, Self::TokensPerSecondPerGpu, Self::CostPerMillionTokens, Self::Mfu, Self::Memory];

    /// Its name in a space file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StepTime => "step_time",
            Self::TokensPerSecondPerGpu => "tokens_per_second_per_gpu",
            Self::CostPerMillionTokens => "cost_per_million_tokens",
            Self::Mfu => "mfu",
            Self::Memory => "memory",
        }
    }

    /// Which way is better.
    #[must_use]
    pub const fn goal(self) -> Goal {
        match self {
            Self::StepTime | Self::CostPerMillionTokens | Self::Memory => Goal::Least,
            Self::TokensPerSecondPerGpu | Self::Mfu => Goal::Most,
        }
    }

    /// Its value in a trial; `None` when the trial does not tell.
    #[must_use]
    pub const fn of(self, metrics: &Metrics) -> Option<f64> {
        match self {
            Self::StepTime => Some(metrics.step_seconds),
            Self::TokensPerSecondPerGpu => metrics.tokens_per_second_per_gpu,
            Self::CostPerMillionTokens => metrics.cost_per_million_tokens,
            Self::Mfu => metrics.mfu,
            Self::Memory => Some(metrics.memory_bytes as f64),
        }
    }

    /// Its value as a loss: positive, less is better.
    #[must_use]
    pub fn loss(self, metrics: &Metrics) -> Option<f64> {
        let value = self.of(metrics).filter(|value| value.is_finite() && *value > 0.0)?;
        Some(match self.goal() {
            Goal::Least => value,
            Goal::Most => 1.0 / value,
        })
    }
}

/// One loss of several objectives: the product of their losses, which no choice of units changes.
#[must_use]
pub fn loss(objectives: &[Objective], metrics: &Metrics) -> Option<f64> {
    objectives.iter().map(|objective| objective.loss(metrics)).product()
}

/// What an acceptable point must keep below.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes of the fullest device.
    pub memory_bytes: Option<u64>,
    /// Seconds of a step.
    pub step_seconds: Option<f64>,
}

/// Prices per device and hour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// For every device that has none of its own.
    pub default: Option<f64>,
    /// By the name of the device, or of the cluster's node.
    pub by_name: BTreeMap<String, f64>,
}

impl Prices {
    /// The price of a device and hour on a cluster.
    #[must_use]
    pub fn of(&self, facts: &super::MachineFacts) -> Option<f64> {
        let node = facts.cluster.split(':').next().unwrap_or_default();
        let own = [facts.cluster.as_str(), node, facts.gpu.as_str()];
        own.iter().find_map(|name| self.by_name.get(*name)).copied().or(self.default)
    }

    /// Whether any price is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.default.is_none() && self.by_name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_get_smaller_as_things_get_better() {
        let metrics =
            Metrics { step_seconds: 2.0, tokens_per_second_per_gpu: Some(4.0), ..Metrics::default() };
        assert_eq!(Objective::StepTime.loss(&metrics), Some(2.0));
        assert_eq!(Objective::TokensPerSecondPerGpu.loss(&metrics), Some(0.25));
        assert_eq!(loss(&[Objective::StepTime, Objective::TokensPerSecondPerGpu], &metrics), Some(0.5));
        assert_eq!(loss(&[Objective::StepTime, Objective::Mfu], &metrics), None);
    }

    #[test]
    fn the_price_of_the_closest_name_counts() {
        let prices = Prices { default: Some(1.0), by_name: BTreeMap::from([("dgx-h100".into(), 3.0)]) };
        let facts =
            |cluster: &str| super::super::MachineFacts { cluster: cluster.into(), ..Default::default() };
        assert_eq!(prices.of(&facts("dgx-h100:4")), Some(3.0));
        assert_eq!(prices.of(&facts("dgx-a100:4")), Some(1.0));
    }
}
