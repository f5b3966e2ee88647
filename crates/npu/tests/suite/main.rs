//! Kernels run, checked against plain Rust; cycles against numbers worked out by hand; errors against their messages.

mod kernels;
mod support;
