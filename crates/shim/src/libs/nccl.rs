//! NCCL: communicators whose other members do not exist in this process.
//!
//! Calls are recorded with the communicator's identity and their number in it, so that traces of several ranks can be matched.
//! Content is answered as if every absent rank were a copy of this one (*mirror*): a sum is this rank's value times the
//! number of ranks, a gather repeats it. Ranks that do exist exchange what small calls carry (`board`). Large buffers are
//! not filled, only made to read zero.

mod board;
pub(crate) mod buffer;
#[rustfmt::skip]
pub(crate) mod collective;
pub(crate) mod communicator;
pub(crate) mod group;
mod memory;
mod mirror;
mod number;
