//! Chakra execution traces (MLCommons): written from a job trace, read into one.
//!
//! A trace is a graph of one rank's operations; a job is a file per rank, `NAME.RANK.et`. The format is a stream of
//! protobuf messages ([`wire`]). [`write_rank`] and [`groups`] write what ASTRA-sim reads.

mod export;
mod file;
pub mod wire;

pub use export::{Costs, groups, single_collective, write_rank};
pub use file::{ChakraError, read};
