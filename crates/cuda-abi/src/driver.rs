//! Types and numbers of the CUDA driver (`libcuda.so.1`).

mod error;

pub use error::DriverError;
