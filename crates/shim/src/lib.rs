//! The library that a job preloads instead of CUDA.
//!
//! What it is: the exported functions of the CUDA libraries, made from the tables of `cuda-abi` (`export`). Each
//! enters through one `door`: a panic never leaves it, the time of entry and exit is taken, the call is recorded. What
//! happens inside is an ordinary safe function in the module of its library (`cudart`, `cuda`, …) working on the
//! emulated device of the crate `device`. The record file belongs to `sink`.
//!
//! What it is not: it knows no simulation and prices nothing. It never ends or crashes the process that it lives in: what
//! cannot be answered gets the library's own error code and one line on standard error.
//!
//! The library is inherited by every child of a job (shells, compilers): nothing happens before the first CUDA call.
//!
//! To add a function: one row in the library's table in `cuda-abi`, one function in the library's module here.

mod atfork;
mod backing;
mod caller;
mod clock;
mod common;
mod cuda;
mod cudart;
mod door;
mod ending;
mod environment;
mod export;
mod failure;
mod finalize;
mod fork;
mod libs;
mod log;
mod observe;
mod process;
mod rank;
mod shareable;
mod sink;
mod text;
mod thread;
mod values;
