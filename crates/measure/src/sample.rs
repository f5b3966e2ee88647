//! One measurement.

use std::sync::Arc;

use trompe_estimate::features::Conditions;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

/// One measured time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What was measured: one operation, or several that one time covers (a forward and a backward pass).
    pub operations: Vec<Descriptor>,
    /// On which device.
    pub device: Arc<DeviceSheet>,
    /// The device as the table calls it.
    pub gpu: String,
    /// How.
    pub conditions: Conditions,
    /// Measured time in seconds, as the table states it.
    pub seconds: f64,
    /// Launch cost that the time contains, in seconds.
    pub launch: f64,
    /// Whether the time is long enough to learn the kernel from.
    pub learnable: bool,
    /// Source as the table states it; empty when it does not.
    pub source: String,
    /// `train` or `dev`; empty when the table does not split.
    pub split: String,
    /// Whether the shape occurs among the training rows; `None` when the table does not say.
    pub shape_in_train: Option<bool>,
    /// What to group by in tables of errors: element type, direction, size.
    pub label: String,
    /// Line of the file, from 1.
    pub line: u64,
}

impl Sample {
    /// Seconds of the kernels alone; at least a tenth of what was measured.
    #[must_use]
    pub fn kernel_seconds(&self) -> f64 {
        (self.seconds - self.launch).max(self.seconds * 0.1)
    }

    /// The first part of the source: `aiconfigurator` of `aiconfigurator/vllm-0.24.0`.
    #[must_use]
    pub fn origin(&self) -> &str {
        let origin = self.source.split('/').next().unwrap_or_default();
        if origin.is_empty() { "your rows" } else { origin }
    }

    /// The family of what was measured.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.operations.first().map_or("other", Descriptor::family)
    }
}
