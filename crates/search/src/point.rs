//! A point of a space: one value of each knob.

use serde::{Deserialize, Serialize};

/// Positions in the values of each knob, in the order of the knobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub Vec<u16>);

impl Point {
    /// The same point with another value of one knob.
    #[must_use]
    pub fn with(&self, knob: usize, position: usize) -> Self {
        let mut other = self.clone();
        other.0[knob] = position as u16;
        other
    }
}
