//! What can go wrong on the emulated device, in terms that each library turns into a code of its own.

use trompe_cuda_abi::driver::DriverError;
use trompe_cuda_abi::pointer::NullPointer;
use trompe_cuda_abi::runtime::RuntimeError;
use trompe_device::graph::CaptureError;
use trompe_device::handle::NotLive;
use trompe_device::memory::MemoryError;

/// A failure, before a library names it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no device is emulated")]
    NoDevice,
    #[error("there is no device {0}")]
    InvalidDevice(i32),
    #[error("a required pointer is null")]
    NullPointer,
    #[error("an argument makes no sense")]
    InvalidValue,
    #[error(transparent)]
    NotLive(#[from] NotLive),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Runtime and driver share their numbers since CUDA 11, so a runtime code stands for both.
    #[error("{0:?}")]
    Cuda(RuntimeError),
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        Self::Cuda(match error {
            CaptureError::IllegalState => RuntimeError::ILLEGAL_STATE,
            CaptureError::Unmatched => RuntimeError::STREAM_CAPTURE_UNMATCHED,
            CaptureError::Invalidated => RuntimeError::STREAM_CAPTURE_INVALIDATED,
            CaptureError::Unjoined => RuntimeError::STREAM_CAPTURE_UNJOINED,
            CaptureError::Merge => RuntimeError::STREAM_CAPTURE_MERGE,
            CaptureError::NotLive(_) => RuntimeError::INVALID_VALUE,
        })
    }
}

impl From<NullPointer> for Failure {
    fn from(_: NullPointer) -> Self {
        Self::NullPointer
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        Self::Cuda(error)
    }
}

impl From<Failure> for RuntimeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoDevice => Self::NO_DEVICE,
            Failure::InvalidDevice(_) => Self::INVALID_DEVICE,
            Failure::NotLive(_) => Self::INVALID_RESOURCE_HANDLE,
            Failure::Memory(MemoryError::OutOfMemory { .. } | MemoryError::AddressSpace { .. }) => {
                Self::MEMORY_ALLOCATION
            }
            Failure::Memory(MemoryError::AlreadyRegistered(_)) => Self::HOST_MEMORY_ALREADY_REGISTERED,
            Failure::NullPointer
            | Failure::InvalidValue
            | Failure::Memory(MemoryError::NotAllocated(_) | MemoryError::Invalid) => Self::INVALID_VALUE,
            Failure::Cuda(error) => error,
        }
    }
}

impl From<Failure> for DriverError {
    fn from(failure: Failure) -> Self {
        Self(RuntimeError::from(failure).0)
    }
}
