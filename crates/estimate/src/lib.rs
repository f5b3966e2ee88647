//! How long a device operation takes.
//!
//! What it is: [`KernelEstimator`], the one question that a simulation asks (a [`Descriptor`] on a
//! [`DeviceSheet`]: how long?), the answer ([`Estimate`]: time, interval, method), and [`Physics`], models that are
//! bounded by what the hardware can do: arithmetic with tile and wave quantisation, memory bandwidth, cache, launch
//! floor. Their constants are data (`constants/*.toml`), fitted on public measurements or named as assumptions.
//!
//! What it is not: it knows no stream, no contention and no collective, and it reads no file.
//!
//! Invariants: every estimate is positive and finite, `low <= time <= high`, the same question has the same answer,
//! and an operation that no model understands is charged by a stated rule and marked [`Basis::Fallback`].
//!
//! [`Descriptor`]: trompe_trace::descriptor::Descriptor
//! [`DeviceSheet`]: trompe_hardware::DeviceSheet

pub mod bundle;
mod cached;
mod coverage;
mod estimate;
mod estimator;
pub mod features;
pub mod forest;
mod implementations;
mod learned;
pub mod model;
mod physics;
mod programs;
mod spreads;
mod stack;
pub mod table;

pub use cached::Cached;
pub use coverage::Near;
pub use estimate::{Basis, Estimate};
pub use estimator::{Fixed, KernelEstimator};
pub use learned::{Answer, FAR_REACH, Learned, REACH};
pub use physics::Physics;
pub use programs::{ProgramEstimator, WithPrograms};
pub use stack::Stack;
