//! What can go wrong in a library, and the code that each library has for it.

use trompe_cuda_abi::libraries::{
    BlasError, CompilerError, DnnStatus, FftError, ManagementError, NcclError, ProfilingError, RandomError,
    ShmemError, SolverError, SparseError,
};
use trompe_cuda_abi::pointer::NullPointer;
use trompe_device::dnn::DnnError;
use trompe_device::handle::NotLive;
use trompe_device::memory::MemoryError;

use crate::failure::Failure;

/// A failure, before a library names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LibraryFailure {
    #[error("a required pointer is null")]
    NullPointer,
    #[error("a handle is not live")]
    NotLive,
    #[error("an argument makes no sense")]
    InvalidValue,
    #[error("a descriptor is not finalized")]
    NotFinalized,
    #[error("a buffer is too small")]
    TooSmall,
    #[error("there is no such thing")]
    NotFound,
    #[error("there is nothing more")]
    Exhausted,
    #[error("not supported")]
    NotSupported,
    #[error("out of device memory")]
    OutOfMemory,
}

impl From<NullPointer> for LibraryFailure {
    fn from(_: NullPointer) -> Self {
        Self::NullPointer
    }
}

impl From<NotLive> for LibraryFailure {
    fn from(_: NotLive) -> Self {
        Self::NotLive
    }
}

impl From<DnnError> for LibraryFailure {
    fn from(error: DnnError) -> Self {
        match error {
            DnnError::BadParameter => Self::InvalidValue,
            DnnError::NotFinalized => Self::NotFinalized,
            DnnError::SizeInsufficient => Self::TooSmall,
            DnnError::NotSupported => Self::NotSupported,
        }
    }
}

impl From<Failure> for LibraryFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NullPointer => Self::NullPointer,
            Failure::NotLive(_) => Self::NotLive,
            Failure::Memory(MemoryError::OutOfMemory { .. } | MemoryError::AddressSpace { .. }) => {
                Self::OutOfMemory
            }
            _ => Self::InvalidValue,
        }
    }
}

/// Names each failure in each library: `other` stands for what the library has no special code for.
macro_rules! codes {
    ($($error:ident { $($failure:ident => $code:ident,)* _ => $other:ident })*) => {
        $(impl From<LibraryFailure> for $error {
            fn from(failure: LibraryFailure) -> Self {
                match failure {
                    $(LibraryFailure::$failure => Self::$code,)*
                    _ => Self::$other,
                }
            }
        })*
    };
}

codes! {
    BlasError {
        NotLive => NOT_INITIALIZED, OutOfMemory => ALLOC_FAILED, NotSupported => NOT_SUPPORTED,
        _ => INVALID_VALUE
    }
    DnnStatus {
        NullPointer => BAD_PARAM_NULL_POINTER, NotFinalized => BAD_PARAM_NOT_FINALIZED,
        TooSmall => BAD_PARAM_SIZE_INSUFFICIENT, NotSupported => NOT_SUPPORTED,
        OutOfMemory => DEVICE_ALLOCATION_FAILED,
        _ => BAD_PARAM
    }
    FftError { NotLive => INVALID_PLAN, OutOfMemory => ALLOC_FAILED, NotSupported => NOT_SUPPORTED, _ => INVALID_VALUE }
    SolverError {
        NotLive => NOT_INITIALIZED, OutOfMemory => ALLOC_FAILED, NotSupported => NOT_SUPPORTED,
        _ => INVALID_VALUE
    }
    SparseError {
        NotLive => NOT_INITIALIZED, OutOfMemory => ALLOC_FAILED, NotSupported => NOT_SUPPORTED,
        _ => INVALID_VALUE
    }
    RandomError { OutOfMemory => ALLOCATION_FAILED, NotSupported => TYPE_ERROR, _ => NOT_INITIALIZED }
    NcclError { OutOfMemory => UNHANDLED_CUDA_ERROR, NotSupported => INVALID_USAGE, _ => INVALID_ARGUMENT }
    CompilerError {
        NotLive => INVALID_PROGRAM, OutOfMemory => OUT_OF_MEMORY, NotFound => NAME_EXPRESSION_NOT_VALID,
        NotSupported => INVALID_OPTION,
        _ => INVALID_INPUT
    }
    ProfilingError { Exhausted => MAX_LIMIT_REACHED, NotSupported => NOT_SUPPORTED, _ => INVALID_PARAMETER }
    ManagementError {
        NotSupported => NOT_SUPPORTED, NotFound => NOT_FOUND, TooSmall => INSUFFICIENT_SIZE,
        _ => INVALID_ARGUMENT
    }
    ShmemError { NotSupported => NOT_SUPPORTED, _ => INVALID_VALUE }
}
