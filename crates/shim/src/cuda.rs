//! The CUDA driver where it differs from the runtime, one module per family of functions.

#![expect(clippy::too_many_arguments, reason = "handlers have the libraries' own signatures")]

pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod entry_point;
pub(crate) mod error;
pub(crate) mod fill;
pub(crate) mod launch;
pub(crate) mod link;
pub(crate) mod module;
pub(crate) mod pointer;
pub(crate) mod stream_memory;
pub(crate) mod tensor_map;
pub(crate) mod virtual_memory;
