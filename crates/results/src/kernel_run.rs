//! One kernel on the cores of an NPU: where its cycles went.
//!
//! Cycles are those of the device's clock. *Per core* numbers are means over all cores that ran; a *share* is of the
//! makespan times the cores (and vector lanes) that could have been used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A simulated kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelRun {
    /// Version of trompe that wrote it.
    pub trompe_version: String,
    /// Name of the program.
    pub program: String,
    /// Name of the device.
    pub device: String,
    /// Name of the cycle profile.
    pub profile: String,
    /// Where the profile's numbers come from.
    pub profile_source: String,
    /// Whether no data was touched.
    pub timing_only: bool,
    /// Cores that ran.
    pub cores: u32,
    /// Clock of the cores in MHz.
    pub clock_mhz: f64,
    /// Cycles from the start to the end of the last task.
    pub cycles: u64,
    /// The same in seconds.
    pub seconds: f64,
    /// Tasks that pipes did.
    pub tasks: u64,
    /// Instructions that control actors executed.
    pub instructions: u64,
    /// What the matrix units did, by element type.
    pub matrix: Vec<MatrixUse>,
    /// Bytes moved by path.
    pub paths: Vec<PathUse>,
    /// How pipes spent their time, in the order of a core.
    pub pipes: Vec<PipeTotal>,
    /// How full the memories of a core are.
    pub memories: Vec<MemoryUse>,
    /// Tasks on the critical path.
    pub critical_tasks: u64,
    /// The critical path by instruction, longest first.
    pub critical_path: Vec<CriticalInstruction>,
    /// What the program printed.
    pub prints: Vec<String>,
}

/// Multiply-adds of one element type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixUse {
    /// Element type of the operands.
    pub dtype: String,
    /// Multiply-adds.
    pub multiply_adds: u64,
    /// Multiply-adds per cycle and core.
    pub per_cycle: f64,
    /// What a core can do.
    pub peak_per_cycle: f64,
    /// Achieved over peak.
    pub share: f64,
}

/// Bytes on one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathUse {
    /// For example `gm to l1`.
    pub path: String,
    /// Bytes.
    pub bytes: u64,
    /// Bytes per cycle and core.
    pub per_cycle: f64,
    /// What the pipes of a core can move.
    pub peak_per_cycle: f64,
    /// Achieved over peak.
    pub share: f64,
}

/// A pipe, over all cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipeTotal {
    /// For example `cube.MTE2`.
    pub pipe: String,
    /// Tasks done.
    pub tasks: u64,
    /// Cycles at work.
    pub busy_cycles: u64,
    /// Share of the makespan at work.
    pub busy_share: f64,
    /// Cycles in waits for events, flags and phases.
    pub waiting_cycles: u64,
    /// What it waited for, longest first.
    pub waits: Vec<Wait>,
    /// Share at work in equal parts of the makespan, one after the other.
    pub activity: Vec<f64>,
}

/// Waiting for one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// What for, for example `loaded from MTE2`.
    pub what: String,
    /// Cycles.
    pub cycles: u64,
}

/// A memory of a core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// For example `ub`.
    pub memory: String,
    /// Bytes that the program's tensors take.
    pub used_bytes: u64,
    /// Bytes that it has.
    pub capacity_bytes: u64,
}

/// An instruction's tasks on the critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalInstruction {
    /// For example ``cube[12] `mmad` (kernel.py:8)``.
    pub instruction: String,
    /// Tasks.
    pub tasks: u64,
    /// Cycles.
    pub cycles: u64,
    /// Share of the makespan.
    pub share: f64,
}
