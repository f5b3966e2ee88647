//! The `trompe` program.

fn main() {}
