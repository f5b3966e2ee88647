//! One allocation.

use trompe_base::DeviceIndex;

/// What kind of memory an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Device memory.
    Device {
        /// Its device.
        device: DeviceIndex,
    },
    /// Page-locked host memory that the library allocated.
    Pinned {
        /// Device that was current.
        device: DeviceIndex,
    },
    /// Unified memory.
    Managed {
        /// Device that was current.
        device: DeviceIndex,
    },
    /// The caller's memory, page-locked afterwards.
    Registered {
        /// Device that was current.
        device: DeviceIndex,
    },
}

/// One allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Length in bytes, as asked for.
    pub bytes: u64,
    /// What it is.
    pub kind: BlockKind,
    /// Number of the allocation, unique in the process (`CU_POINTER_ATTRIBUTE_BUFFER_ID`).
    pub id: u64,
}

impl BlockKind {
    /// The device it belongs to, or that was current.
    #[must_use]
    pub const fn device(&self) -> DeviceIndex {
        match *self {
            Self::Device { device }
            | Self::Pinned { device }
            | Self::Managed { device }
            | Self::Registered { device } => device,
        }
    }

    /// Device memory that `cudaFree` takes: device and managed allocations.
    #[must_use]
    pub const fn is_freed_as_device(&self) -> bool {
        matches!(self, Self::Device { .. } | Self::Managed { .. })
    }

    /// Page-locked memory that the library allocated.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        matches!(self, Self::Pinned { .. })
    }

    /// Page-locked memory of the caller.
    #[must_use]
    pub const fn is_registered(&self) -> bool {
        matches!(self, Self::Registered { .. })
    }
}
