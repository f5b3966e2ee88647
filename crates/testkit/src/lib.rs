//! Fixtures for tests, never part of a release.
//!
//! [`TraceBuilder`] writes a worker trace in memory, record by record, with a clock that it moves itself; [`values`]
//! packs operator arguments as the recording library does; [`estimators`] is the contract of kernel estimators.

pub mod estimators;
mod trace;
pub mod values;

pub use trace::{Launch, TraceBuilder};
