//! What the runtime and the driver have in common: the same handler stands behind `cudaMalloc` and `cuMemAlloc`.
//!
//! Handlers answer a [`Failure`](crate::failure::Failure), which the door turns into the code of the library that was
//! called.

#![expect(clippy::too_many_arguments, reason = "handlers have the libraries' own signatures")]

pub(crate) mod capture;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod fill;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod host;
pub(crate) mod ipc;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod occupancy;
pub(crate) mod pool;
pub(crate) mod stream;
pub(crate) mod tool;
pub(crate) mod user_object;

/// What a handler answers.
pub(crate) type Outcome = Result<(), crate::failure::Failure>;
