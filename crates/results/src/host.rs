//! How the time of the host program was modelled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The model of the host program's time, and the machine it was taken on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostModel {
    /// The model.
    pub mode: HostMode,
    /// The processor of the machine that ran the emulation; `None` when its name could not be read.
    pub recorded_on: Option<String>,
    /// The host sheet that was simulated.
    #[serde(default)]
    pub simulated_on: String,
    /// Factor on the recorded host time (1 when the recording machine stands for the real host).
    pub scale: f64,
    /// Fixed nanoseconds between two calls, when `mode` is `fixed`.
    pub fixed_nanoseconds: Option<f64>,
    /// Host seconds per step that were simulated.
    pub seconds_per_step: f64,
    /// Recorded device calls per step.
    pub calls_per_step: f64,
    /// Where the cost of the real driver and library calls comes from.
    pub call_cost_source: String,
    /// The emulator's own nanoseconds per call that were taken off the recorded time.
    pub emulator_nanoseconds_per_call: Option<f64>,
}

/// Ways to model host time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostMode {
    /// The recorded gaps between calls, less the emulator's own cost, plus the cost of the real calls.
    #[default]
    Measured,
    /// The same gap between every two calls.
    Fixed,
    /// `measured` times a factor.
    Scale,
    /// `measured` times the ratio of single-thread speeds of the recording machine and a named host.
    Named,
    /// The host takes no time: the device's own limit.
    Off,
}

impl HostMode {
    /// The name on the command line and in `report.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Fixed => "fixed",
            Self::Scale => "scale",
            Self::Named => "named",
            Self::Off => "off",
        }
    }
}
