//! The binary interface of the CUDA libraries, as far as frameworks ask for it.
//!
//! What it is: plain C types ([`runtime`], [`driver`]), the wrappers through which a caller's pointers are read and
//! written ([`mod@pointer`]), and one table per library ([`tables`]): a row names a symbol and says what happens when it is
//! called. A table is a macro that hands its rows to any other macro, so the exported functions, the look-up by
//! name, the list of needed thin libraries and the coverage page all come from the same lines.
//!
//! What it is not: it holds no state and does nothing; the emulated device is `device`, the exported functions are
//! in `shim`. No vendor header is used: layouts and numbers are stated here.
//!
//! A row of a table reads
//!
//! ```text
//! recorded   cudaMalloc(address: Out<u64>, bytes: usize) => memory::malloc;      // handler in the shim, recorded
//! quiet      cudaGetDevice(device: Out<i32>) => device::get;                     // called constantly: only counted
//! recorded   cudaGetErrorName(code: i32) -> Address => error::name;              // returns a value, not a status
//! accepted   cusparseSpMM_bufferSize [8: zero_usize];                            // success, out-parameter 8 zeroed
//! unsupported cuGetExportTable;                                                  // the library's own error code
//! data       nvshmem_selected_device_transport;                                  // a data object of 4 bytes
//! ```

pub mod driver;
pub mod libraries;
pub mod pointer;
pub mod row;
pub mod runtime;
pub mod status;
pub mod tables;

pub use row::{Action, ApiId, Class, Library, Row};
