//! Tables of measurements.
//!
//! What it is: a reader that turns rows of CSV files (plain or gzip) into [`Sample`]s: an operation, the device, the
//! conditions, the time ([`read`](fn@read)); what is known about public sources ([`sources`], data in `sources.toml`);
//! errors of an estimator against samples ([`errors`]).
//!
//! What it is not: it trains nothing by itself and prints nothing.
//!
//! Invariants: a row is either a sample or counted with the reason why not; nothing is averaged silently; files are
//! read in order, so the same files give the same samples in the same order.

pub mod errors;
mod kernels;
mod read;
mod row;
pub mod runs;
mod sample;
pub mod sources;
pub mod table;
pub mod train;

pub use read::{Left, MeasureError, Samples, kind, open, read, read_row, unreadable};
pub use row::Schema;
pub use sample::Sample;
