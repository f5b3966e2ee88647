//! One accelerator: what CUDA and NVML report about it and the rates that bound a kernel.

use serde::{Deserialize, Serialize};
use trompe_base::{Bytes, DType};

use crate::{BytesPerSecond, FlopsPerSecond, Hertz, Watts};

/// All that trompe knows about one kind of device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSheet {
    /// The sheet's own name, as a user gives it (`h100-sxm5-80`).
    pub name: String,
    /// Other names a user may give.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The name that `cudaGetDeviceProperties` and NVML report (`NVIDIA H100 80GB HBM3`).
    pub marketing_name: String,
    /// The node sheet that this device usually sits in; a bare device name takes host and links from it.
    pub home: String,
    /// Multiprocessors, their limits and their clocks.
    pub compute: Compute,
    /// Device memory and the caches before it.
    pub memory: Memory,
    /// Dense peak rates.
    pub peaks: Peaks,
    /// Links out of the device.
    pub interconnect: Interconnect,
    /// Board power.
    pub power: Power,
    /// What the CUDA software takes on such a device.
    pub runtime: Runtime,
    /// An NPU: the name under which the kernel simulator knows its cores. It runs no CUDA; where this sheet asks for
    /// multiprocessors it has cores, and numbers that only CUDA asks for say so in their source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npu: Option<String>,
}

/// Multiprocessors, their limits and their clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// Major compute capability.
    pub capability_major: u32,
    /// Minor compute capability.
    pub capability_minor: u32,
    /// Number of streaming multiprocessors.
    pub sm_count: u32,
    /// fp32 lanes ("CUDA cores") per multiprocessor.
    pub fp32_lanes_per_sm: u32,
    /// Threads per warp.
    pub warp_size: u32,
    /// Largest number of threads in a block.
    pub max_threads_per_block: u32,
    /// Largest number of resident threads per multiprocessor.
    pub max_threads_per_sm: u32,
    /// Largest number of resident blocks per multiprocessor.
    pub max_blocks_per_sm: u32,
    /// 32-bit registers per block.
    pub registers_per_block: u32,
    /// 32-bit registers per multiprocessor.
    pub registers_per_sm: u32,
    /// Shared memory per block without opting in.
    pub shared_per_block: Bytes,
    /// Shared memory per block after opting in.
    pub shared_per_block_optin: Bytes,
    /// Shared memory per multiprocessor.
    pub shared_per_sm: Bytes,
    /// Shared memory that the driver takes from each block.
    pub shared_reserved_per_block: Bytes,
    /// Number of copy engines (`asyncEngineCount`).
    pub copy_engines: u32,
    /// Base clock where the vendor states one.
    #[serde(default)]
    pub base_clock: Option<Hertz>,
    /// Highest clock of the multiprocessors; `cudaDeviceProp::clockRate`.
    pub boost_clock: Hertz,
    /// The clock at which the vendor states the tensor peaks.
    pub tensor_clock: Hertz,
    /// Share of the highest clock that is sustained under load, where it was measured: the time of large products at held
    /// clocks over that at free ones. Kernel benchmarks run at the highest clock; the factor is no part of kernel times,
    /// and of a job's only when asked for (`--clock sheet`).
    #[serde(default)]
    pub sustained_clock: Option<f64>,
}

/// Device memory and the caches before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Capacity as it is sold.
    pub marketing_capacity: Bytes,
    /// What `cudaMemGetInfo` calls total, and `cudaDeviceProp::totalGlobalMem`.
    pub total: Bytes,
    /// What NVML and `nvidia-smi` call total; contains the driver's reserve.
    pub nvml_total: Bytes,
    /// Peak bandwidth.
    pub bandwidth: BytesPerSecond,
    /// Share of [`Self::bandwidth`] that everything that runs at once reaches together.
    #[serde(default = "concurrent_share")]
    pub concurrent_share: f64,
    /// The part of a shortage of bandwidth that collectives are spared when kernels run beside them: 1, they are never
    /// slowed; 0, all are slowed in proportion.
    #[serde(default = "collective_priority")]
    pub collective_priority: f64,
    /// Width of the memory bus in bits.
    pub bus_width: u32,
    /// Memory clock as CUDA reports it; two transfers per cycle.
    pub clock: Hertz,
    /// Level-2 cache.
    pub l2: Bytes,
    /// Whether error correction is on (`ECCEnabled`).
    pub ecc: bool,
}

/// For sheets that say nothing: what those that do say.
const fn concurrent_share() -> f64 {
    0.91
}

/// The same.
const fn collective_priority() -> f64 {
    0.5
}

/// Dense peak rates without sparsity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peaks {
    /// Rates of the ordinary lanes.
    pub vector: Rates,
    /// Rates of the tensor cores with fp32 accumulation (int32 for int8).
    pub tensor: Rates,
}

/// A rate per data type; `None` where the unit cannot do it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub struct Rates {
    #[serde(default)]
    pub fp64: Option<FlopsPerSecond>,
    #[serde(default)]
    pub fp32: Option<FlopsPerSecond>,
    #[serde(default)]
    pub tf32: Option<FlopsPerSecond>,
    #[serde(default)]
    pub fp16: Option<FlopsPerSecond>,
    #[serde(default)]
    pub bf16: Option<FlopsPerSecond>,
    #[serde(default)]
    pub fp8: Option<FlopsPerSecond>,
    #[serde(default)]
    pub int8: Option<FlopsPerSecond>,
}

/// Links out of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interconnect {
    /// Number of NVLink links; 0 without NVLink.
    pub nvlink_links: u32,
    /// Bandwidth of all NVLink links together, one direction.
    pub nvlink_bandwidth: BytesPerSecond,
    /// PCIe generation.
    pub pcie_generation: u32,
    /// PCIe lanes.
    pub pcie_lanes: u32,
    /// PCIe bandwidth after line coding, one direction.
    pub pcie_bandwidth: BytesPerSecond,
}

/// Board power.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Board power limit.
    pub board: Watts,
}

/// What the CUDA software takes on such a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// Device memory of one process's CUDA context with lazily loaded modules.
    pub context: Bytes,
}

/// The generations of devices whose kernels differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// Compute capability 7.0.
    Volta,
    /// Compute capability 7.5.
    Turing,
    /// Compute capability 8.0 (A100).
    Ampere,
    /// Compute capability 8.6 (A40, RTX 3090).
    AmpereGraphics,
    /// Compute capability 8.9.
    Ada,
    /// Compute capability 9.0.
    Hopper,
    /// Compute capability 10.x (B200).
    Blackwell,
    /// Compute capability 12.x (RTX PRO 6000).
    BlackwellGraphics,
}

impl DeviceSheet {
    /// The generation, from the compute capability; unknown ones count as the newest generation below them.
    #[must_use]
    pub const fn architecture(&self) -> Architecture {
        match (self.compute.capability_major, self.compute.capability_minor) {
            (..=6, _) | (7, ..=4) => Architecture::Volta,
            (7, _) => Architecture::Turing,
            (8, ..=5) => Architecture::Ampere,
            (8, ..=8) => Architecture::AmpereGraphics,
            (8, _) => Architecture::Ada,
            (9, _) => Architecture::Hopper,
            (10 | 11, _) => Architecture::Blackwell,
            _ => Architecture::BlackwellGraphics,
        }
    }

    /// The dense peak of a matrix product with operands of type `dtype`: tensor cores where they can, lanes otherwise.
    ///
    /// A type that neither unit does (say fp8 before Ada) runs at the rate of the next wider type.
    #[must_use]
    pub fn matrix_peak(&self, dtype: DType) -> FlopsPerSecond {
        let tensor = &self.peaks.tensor;
        let found = match dtype {
            DType::F64 | DType::C128 => tensor.fp64,
            DType::F32 | DType::C64 => None,
            DType::Tf32 => tensor.tf32,
            DType::F16 => tensor.fp16,
            DType::Bf16 => tensor.bf16,
            DType::F8E4M3 | DType::F8E5M2 => tensor.fp8.or(tensor.bf16).or(tensor.fp16),
            DType::I8 | DType::U8 | DType::Bool => tensor.int8.or(tensor.fp16),
            DType::I64 | DType::I32 | DType::I16 => None,
        };
        found.unwrap_or_else(|| self.vector_peak(dtype))
    }

    /// The dense peak of the ordinary lanes for `dtype`; types without an entry run at the fp32 rate.
    #[must_use]
    pub fn vector_peak(&self, dtype: DType) -> FlopsPerSecond {
        let vector = &self.peaks.vector;
        let found = match dtype {
            DType::F64 | DType::C128 => vector.fp64,
            DType::F16 => vector.fp16,
            DType::Bf16 => vector.bf16,
            _ => None,
        };
        found.or(vector.fp32).unwrap_or(FlopsPerSecond(
            2.0 * f64::from(self.compute.sm_count * self.compute.fp32_lanes_per_sm)
                * self.compute.boost_clock.0,
        ))
    }
}
