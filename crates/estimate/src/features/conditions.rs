//! How a measurement was taken: what a model must know to learn from sources that differ, and what it is told when it
//! predicts for a job.

use serde::{Deserialize, Serialize};

use super::Row;

pub(super) const NAMES: &[&str] = &["library", "free_clocks", "cache_write"];

/// Who launched the kernel: the same shape gets another kernel in another library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Library {
    /// PyTorch and what it calls (cuBLAS, cuDNN, its own kernels).
    #[default]
    PyTorch,
    /// TensorRT-LLM.
    TensorRt,
    /// Kernels of serving engines (vLLM, SGLang).
    Serving,
    /// Fused kernels of Megatron and Apex.
    Megatron,
    /// Direct calls of vendor libraries before CUDA 11.
    Legacy,
}

/// The device's clocks during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clocks {
    /// Held at their maximum.
    #[default]
    Locked,
    /// As the power limit lets them.
    Free,
}

/// How a measurement was taken. The default is what a prediction for a job is made for: PyTorch, highest clocks (what
/// a load does to them is a factor of its own), the kernel alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Conditions {
    /// Who launched it.
    pub library: Library,
    /// At which clocks.
    pub clocks: Clocks,
    /// The time contains the write of keys and values to a serving cache, as attention in serving engines does.
    pub cache_write: bool,
}

impl Conditions {
    pub(super) fn fill(&self, row: &mut Row) {
        row.push(f64::from(self.library as u8));
        row.flag(self.clocks == Clocks::Free);
        row.flag(self.cache_write);
    }
}
