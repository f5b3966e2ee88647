//! Kernels of a step, and the kinds and methods they are sorted by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All launches per step of one kernel (same code, same family).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Short, demangled name for people.
    pub name: String,
    /// The symbol as the driver knows it.
    pub symbol: String,
    /// Kernel family as the estimator sees it ("gemm", "attention backward", …).
    pub family: String,
    /// The kind of work it counts for in the breakdown.
    pub kind: Kind,
    /// Launches per step.
    pub count: u64,
    /// Predicted seconds per step, all launches together.
    pub seconds: f64,
    /// Lower end of the interval of `seconds`.
    pub low: f64,
    /// Upper end of the interval of `seconds`.
    pub high: f64,
    /// `seconds` as a share of the summed kernel time of the step.
    pub share: f64,
    /// The method that most of `seconds` comes from.
    pub method: Method,
    /// What limits it on this device; `None` when the method does not say.
    pub bound: Option<Bound>,
    /// Floating-point operations per step; `None` when not known.
    pub flops: Option<f64>,
    /// Bytes moved to and from device memory per step; `None` when not known.
    pub bytes: Option<f64>,
    /// The operator or module that launches it most; `None` when the trace does not say.
    pub caller: Option<String>,
    /// What the user should know about this prediction.
    pub note: Option<String>,
}

/// The kinds of work that a step's time is divided into. The order is the order of precedence where kinds overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Matrix products.
    Gemm,
    /// Fused attention, forward and backward.
    Attention,
    /// Convolutions.
    Convolution,
    /// Normalisation layers (layer, batch, group and RMS norm) and softmax.
    Norm,
    /// Element-wise kernels, activations, dropout and casts.
    Elementwise,
    /// Sums, maxima and other reductions.
    Reduction,
    /// Embedding look-ups, gathers, scatters and their gradients.
    Embedding,
    /// Loss functions.
    Loss,
    /// Optimizer update and gradient clipping.
    Optimizer,
    /// Kernels of no other kind.
    #[default]
    Other,
    /// Copies and fills.
    Copy,
    /// Collectives and point-to-point transfers between devices.
    Communication,
    /// The device is idle: its next work waits for another rank.
    Bubble,
    /// The device is idle: the host has not launched its next work yet.
    HostBound,
}

impl Kind {
    /// Every kind in order.
    pub const ALL: [Self; 14] = [
        Self::Gemm,
        Self::Attention,
        Self::Convolution,
        Self::Norm,
        Self::Elementwise,
        Self::Reduction,
        Self::Embedding,
        Self::Loss,
        Self::Optimizer,
        Self::Other,
        Self::Copy,
        Self::Communication,
        Self::Bubble,
        Self::HostBound,
    ];

    /// The name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Gemm => "matrix products",
            Self::Attention => "attention",
            Self::Convolution => "convolution",
            Self::Norm => "normalisation",
            Self::Elementwise => "element-wise",
            Self::Reduction => "reductions",
            Self::Embedding => "embedding",
            Self::Loss => "loss",
            Self::Optimizer => "optimizer",
            Self::Other => "other kernels",
            Self::Copy => "copies",
            Self::Communication => "communication",
            Self::Bubble => "waiting for ranks",
            Self::HostBound => "waiting for the host",
        }
    }

    /// The name in `report.json` and `timeline.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Attention => "attention",
            Self::Convolution => "convolution",
            Self::Norm => "norm",
            Self::Elementwise => "elementwise",
            Self::Reduction => "reduction",
            Self::Embedding => "embedding",
            Self::Loss => "loss",
            Self::Optimizer => "optimizer",
            Self::Other => "other",
            Self::Copy => "copy",
            Self::Communication => "communication",
            Self::Bubble => "bubble",
            Self::HostBound => "host_bound",
        }
    }

    /// Whether the device does nothing in time of this kind.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Bubble | Self::HostBound)
    }
}

/// Which method said how long a kernel takes, most trustworthy first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Measured on this device with these shapes.
    Measured,
    /// A regression trained on measurements, inside the range it was trained on.
    Learned,
    /// The kernel's program was run cycle by cycle on a model of the device's cores.
    Simulated,
    /// A model from the device sheet, bounded by what the hardware can do.
    Physics,
    /// A rule of thumb, because the kernel or its sizes were not understood.
    #[default]
    Fallback,
}

impl Method {
    /// Every method, most trustworthy first.
    pub const ALL: [Self; 5] =
        [Self::Measured, Self::Learned, Self::Simulated, Self::Physics, Self::Fallback];

    /// The name in `report.json`, good for people too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Learned => "learned",
            Self::Simulated => "simulated",
            Self::Physics => "physics",
            Self::Fallback => "fallback",
        }
    }
}

/// What limits a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Traffic to device memory.
    Memory,
    /// The fixed cost of a launch.
    Launch,
    /// The links between devices.
    Network,
}

impl Bound {
    /// The name in `report.json`, good for people too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Launch => "launch",
            Self::Network => "network",
        }
    }
}
