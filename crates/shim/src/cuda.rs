//! The CUDA driver, one module per family of functions.

pub(crate) mod error;
