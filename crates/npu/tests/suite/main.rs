//! Kernels run, checked against plain Rust; cycles against numbers worked out by hand; errors against their messages.

mod allocations;
mod checks;
mod control;
mod cycles;
mod errors;
mod kernels;
mod properties;
mod published;
mod python;
mod rest;
mod shown;
mod support;
mod vector_ops;
