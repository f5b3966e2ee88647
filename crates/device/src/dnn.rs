//! cuDNN: descriptors that remember what they were told, and the device operations that they describe.
//!
//! Two interfaces share one handle table. The *backend* interface ([`backend`]) is a generic store: a descriptor of
//! some kind with numbered attributes, where descriptors nest; an execution plan holds the whole operation graph, and
//! [`graph`] reads from it the one operation that a cost model prices: a convolution, attention, a matrix product, or
//! else a graph with its bytes. The *legacy* interface ([`legacy`], [`recurrent`]) has a struct per descriptor.
//!
//! What it is not: it chooses no real kernel. Two engines exist for every graph: number 0 uses tensor cores, number 1
//! does not; frameworks that forbid TF32 filter the first one out by its numerical note, and so say which they mean.

pub mod attention;
pub mod backend;
pub mod convolution;
pub mod graph;
pub mod legacy;
pub mod recurrent;
mod tensor;
pub mod workspace;

use std::sync::Arc;

use trompe_base::DType;
use trompe_trace::descriptor::{Attention, Convolution, Gemm};

use crate::handle::{HandleTable, Kind, NotLive};
pub use tensor::Tensor;

/// The element type with the `cudnnDataType_t` number; `None` for packed and sub-byte types.
#[must_use]
pub const fn dtype(number: i32) -> Option<DType> {
    Some(match number {
        0 => DType::F32,
        1 => DType::F64,
        2 => DType::F16,
        3 => DType::I8,
        4 => DType::I32,
        6 => DType::U8,
        9 => DType::Bf16,
        10 => DType::I64,
        11 | 22 => DType::Bool,
        12 => DType::F8E4M3,
        13 => DType::F8E5M2,
        20 => DType::C64,
        21 => DType::C128,
        _ => return None,
    })
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnnError {
    /// A handle is dead, of another kind, or a number makes no sense.
    #[error("bad parameter")]
    BadParameter,
    /// A descriptor was used before it was finalized.
    #[error("descriptor is not finalized")]
    NotFinalized,
    /// A buffer is smaller than what was asked to go into it.
    #[error("buffer too small")]
    SizeInsufficient,
    /// Nothing here can say what the call means.
    #[error("not supported")]
    NotSupported,
}

impl From<NotLive> for DnnError {
    fn from(_: NotLive) -> Self {
        Self::BadParameter
    }
}

/// What a plan or call does on the device.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A convolution or a gradient of one, perhaps with fused element-wise steps.
    Convolution(Convolution),
    /// Fused attention.
    Attention(Attention),
    /// One matrix product, perhaps with fused element-wise steps.
    Gemm(Gemm),
    /// Anything else.
    Graph(Graph),
}

/// An operation graph known by its tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Bytes read, each tensor once.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Operations and shapes, for people.
    pub detail: String,
}

/// One object behind a descriptor handle.
#[derive(Clone, Debug)]
enum Object {
    Backend(Arc<backend::Descriptor>),
    Legacy(legacy::Descriptor),
}

/// A library handle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Library {
    /// Stream handle that calls run on.
    pub stream: u64,
}

/// All cuDNN state of a process.
#[derive(Debug)]
pub struct Dnn {
    libraries: HandleTable<Library>,
    objects: HandleTable<Object>,
    device: DeviceTraits,
}

/// What the device can do, as far as it decides what a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTraits {
    /// Compute capability times ten: 90 for Hopper.
    pub compute_capability: u32,
}

impl DeviceTraits {
    /// Whether fp32 products may run on tensor cores as TF32 (Ampere and later).
    #[must_use]
    pub const fn has_tf32(self) -> bool {
        self.compute_capability >= 80
    }
}

impl Dnn {
    /// No handles yet.
    #[must_use]
    pub const fn new(device: DeviceTraits) -> Self {
        Self {
            libraries: HandleTable::new(Kind::Dnn),
            objects: HandleTable::new(Kind::DnnDescriptor),
            device,
        }
    }

    /// Creates a library handle.
    pub fn create(&mut self) -> u64 {
        self.libraries.insert(Library::default()).0
    }

    /// Destroys a library handle.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy(&mut self, handle: u64) -> Result<(), DnnError> {
        self.libraries.remove(handle)?;
        Ok(())
    }

    /// A library handle's state.
    ///
    /// # Errors
    /// When it is not live.
    pub fn library(&self, handle: u64) -> Result<Library, DnnError> {
        Ok(*self.libraries.get(handle)?)
    }

    /// Sets the stream of a library handle.
    ///
    /// # Errors
    /// When it is not live.
    pub fn set_stream(&mut self, handle: u64, stream: u64) -> Result<(), DnnError> {
        self.libraries.get_mut(handle)?.stream = stream;
        Ok(())
    }

    /// Destroys any descriptor.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy_descriptor(&mut self, handle: u64) -> Result<(), DnnError> {
        self.objects.remove(handle)?;
        Ok(())
    }

    /// What the device can do.
    #[must_use]
    pub const fn device(&self) -> DeviceTraits {
        self.device
    }
}

#[cfg(test)]
mod garbage;
#[cfg(test)]
mod tests;
