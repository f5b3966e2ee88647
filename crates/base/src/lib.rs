//! Vocabulary shared by every crate of trompe.
//!
//! What it is: simulated time in integer picoseconds ([`SimTime`], [`Duration`]), byte and floating-point
//! operation counts ([`Bytes`], [`Flops`]), typed ids ([`Rank`], [`StreamId`], …), regular
//! sets of ranks ([`RankPattern`], [`Mesh`]) and communicator ids made of them ([`UniqueId`]), tensor data types ([`DType`])
//! and a seeded random generator ([`Rng`]).
//!
//! What it is not: it knows no GPU, no trace, no cluster, and reads neither clock nor environment.

mod dtype;
mod id;
mod mesh;
mod pattern;
mod quantity;
mod rng;
mod time;
mod unique_id;

pub use dtype::DType;
pub use id::{DeviceIndex, EventId, KernelId, Rank, StreamId, ThreadIndex};
pub use mesh::Mesh;
pub use pattern::RankPattern;
pub use quantity::{Bytes, Flops};
pub use rng::Rng;
pub use time::{Duration, SimTime};
pub use unique_id::UniqueId;
