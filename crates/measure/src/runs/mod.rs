//! Whole training runs: tables of configurations with their measured step times and memories, and how far predictions
//! are from them.
//!
//! [`row`] reads tables of step times, [`golden`] the records of continuous integration with exact command lines,
//! [`score`] sums up errors: by group, by pairs that are ordered right, by what the choice of the best one loses.

pub mod golden;
pub mod row;
pub mod score;

pub use golden::Golden;
pub use row::RunRow;
pub use score::{Compared, Group, Ordering, Worst};

use std::collections::BTreeMap;

/// Rows that were left out: reason, how many, the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<String, (u64, u64)>);

impl LeftOut {
    /// Counts a row.
    pub fn add(&mut self, reason: impl Into<String>, line: u64) {
        self.0.entry(reason.into()).or_insert((0, line)).0 += 1;
    }

    /// One line of text per reason; the commonest first.
    #[must_use]
    pub fn lines(&self, file: &str) -> Vec<String> {
        let mut reasons: Vec<_> = self.0.iter().collect();
        reasons.sort_by_key(|(reason, (count, _))| (std::cmp::Reverse(*count), reason.as_str()));
        let line = |(reason, (count, line)): (&String, &(u64, u64))| {
            let rows = if *count == 1 { "row" } else { "rows" };
            format!("{file}: {count} {rows} left out (first: line {line}): {reason}")
        };
        reasons.into_iter().map(line).collect()
    }
}
