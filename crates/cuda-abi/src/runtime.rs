//! Types and numbers of the CUDA runtime (`libcudart.so.13`, and `.12` where it differs).

mod error;
mod property;

pub use error::RuntimeError;
pub use property::{
    DeviceProperties, DeviceProperties12, FunctionAttributes, PointerAttributes, PointerAttributes12,
};

use crate::pointer::Plain;

/// Device handles travel as integers of pointer size.
pub type Address = u64;

/// `dim3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Dim3 {
    /// Along x.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

/// `cudaIpcMemHandle_t` and `cudaIpcEventHandle_t`, passed by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct IpcHandle {
    /// Opaque content.
    pub bytes: [u8; 64],
}

/// `cudaLaunchConfig_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LaunchConfig {
    /// Blocks in the grid.
    pub grid: Dim3,
    /// Threads in a block.
    pub block: Dim3,
    /// Dynamic shared memory per block in bytes.
    pub dynamic_shared_bytes: usize,
    /// Stream handle.
    pub stream: Address,
    /// `cudaLaunchAttribute *`.
    pub attributes: Address,
    /// Number of attributes.
    pub attribute_count: u32,
}

// SAFETY: only integers.
#[expect(unsafe_code, reason = "states a property of the layout")]
unsafe impl Plain for Dim3 {}
// SAFETY: only bytes.
#[expect(unsafe_code, reason = "states a property of the layout")]
unsafe impl Plain for IpcHandle {}
// SAFETY: only integers.
#[expect(unsafe_code, reason = "states a property of the layout")]
unsafe impl Plain for LaunchConfig {}
