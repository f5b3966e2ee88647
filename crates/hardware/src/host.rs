//! The computer around the devices: processors, memory, and the cost of each call into the CUDA libraries.

use serde::{Deserialize, Serialize};
use trompe_base::{Bytes, Duration};

use crate::{BytesPerSecond, Hertz};

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSheet {
    /// The sheet's own name.
    pub name: String,
    /// Processor model as the vendor writes it.
    pub processor: String,
    /// Number of sockets.
    pub sockets: u32,
    /// Cores of one socket.
    pub cores_per_socket: u32,
    /// Highest single-core clock.
    pub boost_clock: Hertz,
    /// Main memory.
    pub memory: Bytes,
    /// Bandwidth of main memory, all sockets together.
    pub memory_bandwidth: BytesPerSecond,
    /// Rate of a copy between pageable host memory and a device (one thread stages it through a pinned buffer).
    pub pageable_copy_bandwidth: BytesPerSecond,
    /// Host time of each kind of call into the CUDA runtime.
    pub api: ApiCosts,
}

/// Host time of one call into the CUDA runtime on real hardware, without a profiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiCosts {
    /// `cudaLaunchKernel` and its kin.
    pub launch_kernel: Duration,
    /// `cudaMemcpyAsync`.
    pub memcpy_async: Duration,
    /// `cudaMemsetAsync`.
    pub memset_async: Duration,
    /// `cudaEventRecord`.
    pub event_record: Duration,
    /// `cudaEventQuery`.
    pub event_query: Duration,
    /// `cudaStreamWaitEvent`.
    pub stream_wait_event: Duration,
    /// `cudaStreamSynchronize` and its kin when the work is already done.
    pub synchronize: Duration,
    /// `cudaGraphLaunch` of a small graph.
    pub graph_launch: Duration,
    /// Any other call that only reads or sets state.
    pub other: Duration,
}
