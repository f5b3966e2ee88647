//! The CUDA runtime, one module per family of functions.

pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod memory;
