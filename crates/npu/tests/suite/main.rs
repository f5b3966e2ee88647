//! Kernels run, checked against plain Rust; cycles against numbers worked out by hand; errors against their messages.

mod checks;
mod cycles;
mod errors;
mod kernels;
mod published;
mod python;
mod support;
mod vector_ops;
