//! What was run, on which simulated machines, with which software.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The command that was run and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The user's command, argument by argument.
    pub command: Vec<String>,
    /// Its working directory.
    pub directory: String,
    /// Exit code of the job; `None` when it was ended by a signal or only a trace was simulated.
    pub exit_code: Option<i32>,
    /// Real seconds that the emulated run took; `None` when only a trace was simulated.
    pub emulation_seconds: Option<f64>,
    /// Real seconds that collating, estimating and simulating took.
    pub simulation_seconds: Option<f64>,
    /// Records in the traces of all emulated ranks.
    pub records: u64,
    /// Where the traces are kept, relative to the report.
    pub trace: Option<String>,
}

/// The simulated machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// The name that the user gave ("h100-sxm", "dgx-h100:4", a file).
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Devices in each node.
    pub devices_per_node: u32,
    /// Product name of the device.
    pub device: String,
    /// How devices are connected inside and between nodes, in words.
    pub interconnect: String,
}

/// The device sheet that was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Name of the sheet ("h100-sxm5-80").
    pub sheet: String,
    /// Product name.
    pub name: String,
    /// The numbers that the prediction used.
    pub facts: Vec<Fact>,
}

/// A number with its unit and source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// What the number is.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Where it comes from.
    pub source: String,
}

/// The software that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Software {
    /// Version of Python; `None` when the job was no Python program.
    pub python: Option<String>,
    /// Version of PyTorch; `None` when the job did not load it.
    pub torch: Option<String>,
    /// CUDA version that PyTorch was built for.
    pub cuda: Option<String>,
    /// Operating system and kernel.
    pub system: Option<String>,
    /// Further packages that decide which kernels run, with their versions.
    pub packages: Vec<NamedValue>,
    /// Environment variables that change what the frameworks and libraries do.
    pub environment: Vec<NamedValue>,
}

/// A name and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}
