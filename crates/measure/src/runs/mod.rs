//! Whole training runs: tables of configurations with their measured step times and memories, and how far predictions
//! are from them.
//!
//! [`row`] reads tables of step times, [`published`] fills in what they leave out and others state, [`golden`] reads the
//! records of continuous integration with exact command lines, [`score`] sums up errors: by group, by pairs that are
//! ordered right, by what the choice of the best one loses.

pub mod golden;
pub mod published;
pub mod row;
pub mod score;

pub use golden::Golden;
pub use row::RunRow;
pub use score::{Compared, Group, Ordering, Worst};
