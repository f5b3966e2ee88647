//! An emulated GPU node, in safe Rust: what the CUDA libraries would remember about it.
//!
//! What it is: the bookkeeping of one process. Devices with their address ranges and capacity ([`memory`]), streams
//! and events ([`stream`]), captures and graphs ([`graph`]), kernels and modules ([`kernel`]), and tables of
//! handles that know a freed or foreign handle from a live one ([`handle`]). Kernels do nothing here; how far
//! streams have come is counted ([`progress`]).
//!
//! What it is not: it makes no system call and follows no pointer. Where a real effect on host memory is needed, it
//! goes through [`memory::Backing`], which the preloaded library implements. It writes no records.

pub mod attribute;
pub mod blas;
pub mod communicator;
pub mod compiler;
pub mod dnn;
pub mod graph;
pub mod handle;
pub mod kernel;
pub mod machine;
pub mod memory;
pub mod numerics;
pub mod occupancy;
pub mod pace;
pub mod pool;
pub mod progress;
pub mod range;
pub mod stream;
pub mod visible;

pub use handle::{Handle, HandleTable, Kind};
pub use machine::Machine;
