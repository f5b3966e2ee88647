//! How far the prediction rests on measurements, and what was not understood.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Method;

/// What the prediction rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Kernel time of a step by the method that predicted it; every method has its row.
    pub methods: Vec<MethodShare>,
    /// At which clock kernels near the arithmetic peak are priced; absent when all are at the highest one.
    pub sustained_clock: Option<SustainedClock>,
    /// Share of the step's kernels whose operator and input shapes are known.
    pub kernels_with_shapes_share: Option<f64>,
    /// Kernels that no model understood, longest first, each with the rule it was charged by.
    pub unknown_kernels: Vec<UnknownKernel>,
    /// Calls that the emulator refused with the library's own error code.
    pub unsupported_calls: Vec<CallSeen>,
    /// Calls that the emulator accepted without doing anything.
    pub accepted_calls: Vec<CallSeen>,
}

/// Kernels that draw so much power that the device lowers its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SustainedClock {
    /// The lowest clock that a kernel is priced at, as a share of the highest one.
    pub lowest_share: f64,
    /// Kernel time at less than the highest clock, as a share of the summed kernel time of the step.
    pub kernel_time_share: f64,
}

/// Kernel time that one method predicted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MethodShare {
    /// The method.
    pub method: Method,
    /// Kernels and copies per step.
    pub count: u64,
    /// Summed kernel seconds per step.
    pub seconds: f64,
    /// `seconds` as a share of the summed kernel time of the step.
    pub share: f64,
}

/// A kernel that no model understood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownKernel {
    /// Short, demangled name.
    pub name: String,
    /// Launches per step.
    pub count: u64,
    /// Seconds per step that it was charged with.
    pub seconds: f64,
    /// The rule it was charged by.
    pub rule: String,
}

/// A library function that was called but is not emulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallSeen {
    /// The library ("libcudart", "libcudnn", …).
    pub library: String,
    /// The function.
    pub symbol: String,
    /// Calls in the whole run, all emulated ranks together.
    pub count: u64,
    /// What that means for the job or the prediction.
    pub effect: String,
}
