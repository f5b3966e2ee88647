//! Types and numbers of the CUDA driver (`libcuda.so.1`).

mod error;

pub use error::DriverError;

use crate::pointer::Plain;
use crate::runtime::{Address, Dim3};

/// `CUlaunchConfig`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DriverLaunchConfig {
    /// Blocks in the grid.
    pub grid: Dim3,
    /// Threads in a block.
    pub block: Dim3,
    /// Dynamic shared memory per block in bytes.
    pub shared_bytes: u32,
    /// Stream handle.
    pub stream: Address,
    /// `CUlaunchAttribute *`.
    pub attributes: Address,
    /// Number of attributes.
    pub attribute_count: u32,
}

/// `CUmemAllocationProp`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AllocationProperties {
    /// `CUmemAllocationType`.
    pub kind: i32,
    /// `CUmemAllocationHandleType` bits.
    pub handle_types: i32,
    /// `CUmemLocationType`: 1 is a device.
    pub location_type: i32,
    /// Number of the device or node.
    pub location_id: i32,
    /// Windows only.
    pub metadata: Address,
    /// Compression, RDMA, usage.
    pub flags: [u8; 8],
}

// SAFETY: only integers.
#[expect(unsafe_code, reason = "states a property of the layout")]
unsafe impl Plain for DriverLaunchConfig {}
// SAFETY: only integers.
#[expect(unsafe_code, reason = "states a property of the layout")]
unsafe impl Plain for AllocationProperties {}
