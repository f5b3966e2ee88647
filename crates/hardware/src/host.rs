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
    /// Speed of one thread against the `generic` host's: the boost clock times instructions per cycle, or a measurement.
    #[serde(default = "one")]
    pub single_thread: f64,
    /// Main memory.
    pub memory: Bytes,
    /// Bandwidth of main memory, all sockets together.
    pub memory_bandwidth: BytesPerSecond,
    /// Rate of a copy between pageable host memory and a device (one thread stages it through a pinned buffer).
    pub pageable_copy_bandwidth: BytesPerSecond,
    /// Host time of each kind of call into the CUDA runtime.
    pub api: ApiCosts,
}

/// For sheets that say nothing.
const fn one() -> f64 {
    1.0
}

impl HostSheet {
    /// Whether `processor`, as an operating system names it, is this host's.
    #[must_use]
    pub fn has_processor(&self, processor: &str) -> bool {
        let words = |text: &str| -> Vec<String> {
            let plain = text.to_ascii_lowercase().replace("(r)", " ").replace("(tm)", " ");
            plain.split_whitespace().map(str::to_owned).collect()
        };
        let found = words(processor);
        let own = words(&self.processor);
        !own.is_empty()
            && self.processor.contains(|c: char| c.is_ascii_digit())
            && own.iter().all(|word| found.contains(word))
    }
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
