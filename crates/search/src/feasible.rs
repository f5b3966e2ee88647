//! Which points of a space make sense on a cluster, and why none does when none does.
//!
//! Knobs are set one after the other; every constraint is looked at as soon as the names it mentions have values, so
//! a whole branch of combinations is left out at once. A derived value that cannot be computed (a division by zero)
//! makes its combinations infeasible like a constraint would.

mod diagnosis;

use std::collections::{BTreeMap, BTreeSet};

use crate::space::{MACHINE_NAMES, Space};
use crate::{Machines, Point, Values};

pub use diagnosis::EmptySpace;

/// The most feasible points that are handled.
const MOST_POINTS: usize = 1_000_000;

/// All feasible points of a space.
#[derive(Clone, Debug, Default)]
pub struct Feasible {
    /// The points, in the order of the knobs' values, the last knob fastest.
    pub points: Vec<Point>,
    /// Number of combinations, feasible or not.
    pub combinations: u128,
    positions: BTreeMap<Point, usize>,
}

/// Why there is nothing to search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSpace {
    /// No point meets all constraints.
    #[error(transparent)]
    Empty(#[from] EmptySpace),
    /// Too many points.
    #[error(
        "more than {MOST_POINTS} of {combinations} combinations meet the constraints; narrow the knobs or add constraints"
    )]
    TooLarge {
        /// Combinations of knob values.
        combinations: u128,
    },
}

impl Feasible {
    /// Finds the feasible points.
    ///
    /// # Errors
    /// When there is none, or there are too many.
    pub fn of(space: &Space, machines: &Machines) -> Result<Self, NoSpace> {
        let plan = Plan::new(space);
        let mut walk = Walk {
            space,
            machines,
            plan: &plan,
            point: Point(vec![0; space.knobs.len()]),
            found: Vec::new(),
        };
        let complete = walk.descend(0, &Values::new());
        let mut points = walk.found;
        if !complete {
            return Err(NoSpace::TooLarge { combinations: space.size() });
        }
        if points.is_empty() {
            return Err(diagnosis::of(space, machines).into());
        }
        points.sort();
        let positions = points.iter().cloned().enumerate().map(|(index, point)| (point, index)).collect();
        Ok(Self { points, combinations: space.size(), positions })
    }

    /// Position of a point among the feasible ones.
    #[must_use]
    pub fn position(&self, point: &Point) -> Option<usize> {
        self.positions.get(point).copied()
    }
}

/// All values at a point.
///
/// # Errors
/// Which derived value cannot be computed, and why.
pub fn values(space: &Space, machines: &Machines, point: &Point) -> Result<Values, String> {
    let mut values = Values::new();
    for (knob, position) in space.knobs.iter().zip(&point.0) {
        values.insert(knob.name.clone(), knob.values[*position as usize].clone());
    }
    machines.of(point).store(&mut values);
    for derived in &space.derived {
        let value =
            derived.value.evaluate(&values).map_err(|error| format!("`{}`: {error}", derived.name))?;
        if let Some(value) = value {
            values.insert(derived.name.clone(), value);
        }
    }
    Ok(values)
}

/// What is done after a knob has been set.
enum Act {
    /// Look at this constraint.
    Check(usize),
    /// Compute this derived value.
    Compute(usize),
}

/// In which order knobs are set and everything else follows.
struct Plan {
    /// Knob and what follows from it.
    levels: Vec<(usize, Vec<Act>)>,
}

impl Plan {
    fn new(space: &Space) -> Self {
        // The cluster first: most constraints compare with its size.
        let (hardware, rest): (Vec<usize>, Vec<usize>) =
            (0..space.knobs.len()).partition(|knob| space.knobs[*knob].hardware);
        let facts_at = hardware.len().saturating_sub(1);
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let mut checked = vec![false; space.constraints.len()];
        let mut computed = vec![false; space.derived.len()];
        let mut levels = Vec::new();
        for (level, knob) in hardware.into_iter().chain(rest).enumerate() {
            // What the knobs of the hardware are called are facts, known when all of them are set: `cluster` is then
            // the whole name, with the number of nodes.
            if !space.knobs[knob].hardware {
                known.insert(&space.knobs[knob].name);
            }
            if level == facts_at {
                known.extend(MACHINE_NAMES);
            }
            let mut acts = Vec::new();
            loop {
                let can = |names: &BTreeSet<String>| names.iter().all(|name| known.contains(name.as_str()));
                for (index, constraint) in space.constraints.iter().enumerate() {
                    if !checked[index] && can(&constraint.rule.names) {
                        checked[index] = true;
                        acts.push(Act::Check(index));
                    }
                }
                let next =
                    (0..space.derived.len()).find(|i| !computed[*i] && can(&space.derived[*i].value.names));
                let Some(index) = next else { break };
                computed[index] = true;
                known.insert(&space.derived[index].name);
                acts.push(Act::Compute(index));
            }
            levels.push((knob, acts));
        }
        Self { levels }
    }
}

struct Walk<'a> {
    space: &'a Space,
    machines: &'a Machines,
    plan: &'a Plan,
    point: Point,
    found: Vec<Point>,
}

impl Walk<'_> {
    /// Finds all points below what is set; `false` when there are too many.
    fn descend(&mut self, level: usize, values: &Values) -> bool {
        let Some((knob, acts)) = self.plan.levels.get(level) else {
            self.found.push(self.point.clone());
            return self.found.len() <= MOST_POINTS;
        };
        for (position, value) in self.space.knobs[*knob].values.iter().enumerate() {
            self.point.0[*knob] = position as u16;
            let mut values = values.clone();
            values.insert(self.space.knobs[*knob].name.clone(), value.clone());
            let last_hardware =
                !self.plan.levels[level + 1..].iter().any(|(knob, _)| self.space.knobs[*knob].hardware);
            if last_hardware {
                self.machines.of(&self.point).store(&mut values);
            }
            if self.follow(acts, &mut values) && !self.descend(level + 1, &values) {
                return false;
            }
        }
        self.point.0[*knob] = 0;
        true
    }

    /// Computes and checks what follows from a knob; `false` when the point makes no sense.
    fn follow(&self, acts: &[Act], values: &mut Values) -> bool {
        acts.iter().all(|act| match act {
            Act::Check(index) => self.space.constraints[*index].rule.holds(values).unwrap_or(false),
            Act::Compute(index) => {
                let derived = &self.space.derived[*index];
                match derived.value.evaluate(values) {
                    Ok(Some(value)) => {
                        values.insert(derived.name.clone(), value);
                        true
                    }
                    Ok(None) => true,
                    Err(_) => false,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
