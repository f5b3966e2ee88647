//! Pruning rules: what one trial says about others, so that they need not run.
//!
//! Every rule has the same shape: *when a trial with this knob at this value ended like that, the point that differs from
//! it only in this knob (at that value) is known.* The answer stays exact as far as the rule is true; the file's author
//! vouches for it, and each pruned trial names its rule and the trial it was told from.

use crate::expression::Expression;

/// How the trial that is looked at must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Out of memory.
    OutOfMemory,
    /// It fits.
    Fits,
}

/// What is then known of the other point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is out of memory too.
    OutOfMemory,
    /// It has the same numbers.
    Same,
    /// It is no better, and left out.
    NoBetter,
}

/// Which values of the knob the two points have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The trial has the first value, the other point the second (positions in the knob's values).
    Pair(usize, usize),
    /// The other point has any later value.
    Later,
    /// The other point has any earlier value.
    Earlier,
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// What it is called in results.
    pub name: String,
    /// Position of the knob in which the two points differ.
    pub knob: usize,
    /// Their values of it.
    pub reach: Reach,
    /// How the trial ended.
    pub when: When,
    /// What is known of the other point.
    pub effect: Effect,
    /// What both points must meet for the rule to apply.
    pub condition: Option<Expression>,
}

impl Rule {
    /// Whether a trial with value `tried` says something about a point with value `other` (positions).
    #[must_use]
    pub fn reaches(&self, tried: usize, other: usize) -> bool {
        match self.reach {
            Reach::Pair(from, to) => tried == from && other == to,
            Reach::Later => other > tried,
            Reach::Earlier => other < tried,
        }
    }
}
