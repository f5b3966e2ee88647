//! The CUDA runtime where it differs from the driver, one module per family of functions.

#![expect(clippy::too_many_arguments, reason = "handlers have the libraries' own signatures")]

pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod earlier;
pub(crate) mod entry_point;
pub(crate) mod error;
pub(crate) mod function;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod pointer;
pub(crate) mod register;
pub(crate) mod symbol;
