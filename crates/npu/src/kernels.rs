//! Kernels of our own, written with [`crate::builder`]: examples, test subjects and what the benchmark runs.

mod attention;
mod fusion;
mod matmul;
mod rows;
mod vector;

pub use attention::{Attention, attention};
pub use fusion::{mix, rotation};
pub use matmul::{Matmul, matmul};
pub use rows::{RowKernel, row_kernel};
pub use vector::{all_reduce, top_k, vector_add};
