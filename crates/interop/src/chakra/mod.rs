//! Chakra execution traces (MLCommons): written from a job trace, read into one.
//!
//! A trace is a graph of one rank's operations; a job is a file per rank, `NAME.RANK.et`. The format is a stream of
//! protobuf messages ([`wire`]); there are JSON forms, which [`read_json`] reads. [`write_rank`] and [`groups`] write what ASTRA-sim
//! reads, [`import()`] makes a job trace of what was read.

mod export;
mod file;
mod import;
mod json;
pub mod wire;

pub use export::{Costs, groups, single_collective, write_rank, write_rank_of};
pub use file::{ChakraError, read};
pub use import::{Described, Graph, ImportError, import};
pub use json::{JsonError, read_json};
