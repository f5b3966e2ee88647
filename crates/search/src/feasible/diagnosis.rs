//! Why no point of a space is feasible: the constraints that no point meets together.

use std::fmt;

use super::values;
use crate::space::Space;
use crate::{Machines, Point, Values};

/// A space without a feasible point.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct EmptySpace {
    /// Combinations of knob values.
    pub combinations: u128,
    /// Constraints (their reasons) that together exclude every combination: one that never holds, or a few that
    /// contradict each other.
    pub conflict: Vec<String>,
    /// Why one of them cannot be evaluated, where that is the reason.
    pub cannot: Option<String>,
    /// The combination that violates the fewest constraints, and which.
    pub nearest: Option<(String, Vec<String>)>,
}

impl fmt::Display for EmptySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none of the {} combinations meets all constraints: ", self.combinations)?;
        let quoted: Vec<String> = self.conflict.iter().map(|text| format!("`{text}`")).collect();
        match quoted.as_slice() {
            [] => write!(f, "each excludes some")?,
            [one] => write!(f, "{one} never holds")?,
            several => write!(f, "{} contradict each other", several.join(" and "))?,
        }
        if let Some(reason) = &self.cannot {
            write!(f, " ({reason})")?;
        }
        if let Some((point, violated)) = &self.nearest {
            write!(f, "; the nearest is {point}, which violates `{}`", violated.join("`, `"))?;
        }
        Ok(())
    }
}

/// The most combinations that are looked at.
const MOST: u128 = 100_000;

/// Finds out why no combination is feasible.
pub(super) fn of(space: &Space, machines: &Machines) -> EmptySpace {
    let size = space.size();
    let step = size.div_ceil(MOST).max(1);
    // An odd step visits all values of knobs whose number of values is a power of two.
    let step = if step > 1 { step | 1 } else { step };
    let mut violations: Vec<Vec<usize>> = Vec::new();
    let mut nearest: Option<(Point, Vec<usize>)> = None;
    let mut cannot = None;
    let mut number = 0;
    while number < size {
        let point = nth(space, number);
        let violated = violated(space, machines, &point, &mut cannot);
        if nearest.as_ref().is_none_or(|(_, fewest)| violated.len() < fewest.len()) {
            nearest = Some((point, violated.clone()));
        }
        violations.push(violated);
        number += step;
    }
    let conflict = conflict(&violations, space.constraints.len() + 1);
    let name = |index: usize| match space.constraints.get(index) {
        Some(constraint) => constraint.because.clone(),
        None => "the derived values can be computed".to_owned(),
    };
    EmptySpace {
        combinations: size,
        cannot: cannot.filter(|(index, _)| conflict.contains(index)).map(|(_, reason)| reason),
        conflict: conflict.into_iter().map(name).collect(),
        nearest: nearest
            .map(|(point, violated)| (text(space, &point), violated.into_iter().map(name).collect())),
    }
}

/// The constraints that a combination violates; one past the last when derived values cannot be computed.
fn violated(
    space: &Space,
    machines: &Machines,
    point: &Point,
    cannot: &mut Option<(usize, String)>,
) -> Vec<usize> {
    let (known, error) = match values(space, machines, point) {
        Ok(known) => (known, None),
        Err(error) => (partial(space, machines, point), Some(error)),
    };
    let mut violated = Vec::new();
    for (index, constraint) in space.constraints.iter().enumerate() {
        match constraint.rule.holds(&known) {
            Ok(true) => {}
            Ok(false) => violated.push(index),
            Err(reason) => {
                // A name without a value is the derived value's fault, not the constraint's.
                if error.is_none() {
                    cannot.get_or_insert((index, reason));
                    violated.push(index);
                }
            }
        }
    }
    if let Some(reason) = error
        && violated.is_empty()
    {
        violated.push(space.constraints.len());
        cannot.get_or_insert((space.constraints.len(), reason));
    }
    violated
}

/// The values that can be computed at a point.
fn partial(space: &Space, machines: &Machines, point: &Point) -> Values {
    let mut values = Values::new();
    for (knob, position) in space.knobs.iter().zip(&point.0) {
        values.insert(knob.name.clone(), knob.values[*position as usize].clone());
    }
    machines.of(point).store(&mut values);
    for derived in &space.derived {
        if let Ok(Some(value)) = derived.value.evaluate(&values) {
            values.insert(derived.name.clone(), value);
        }
    }
    values
}

/// The smallest set (up to three, else greedily) of constraints of which every combination violates one.
fn conflict(violations: &[Vec<usize>], count: usize) -> Vec<usize> {
    let covers =
        |set: &[usize]| violations.iter().all(|violated| set.iter().any(|index| violated.contains(index)));
    for a in 0..count {
        if covers(&[a]) {
            return vec![a];
        }
    }
    for a in 0..count {
        for b in a + 1..count {
            if covers(&[a, b]) {
                return vec![a, b];
            }
        }
    }
    let mut set: Vec<usize> = (0..count).collect();
    let mut index = 0;
    while index < set.len() {
        let without: Vec<usize> = set.iter().copied().filter(|one| *one != set[index]).collect();
        if covers(&without) {
            set = without;
        } else {
            index += 1;
        }
    }
    set
}

/// The combination with this number, the last knob fastest.
fn nth(space: &Space, mut number: u128) -> Point {
    let mut point = vec![0; space.knobs.len()];
    for (position, knob) in point.iter_mut().zip(&space.knobs).rev() {
        let count = knob.values.len() as u128;
        *position = (number % count) as u16;
        number /= count;
    }
    Point(point)
}

/// The point as people write it.
fn text(space: &Space, point: &Point) -> String {
    let pairs = space.knobs.iter().zip(&point.0);
    let pairs: Vec<String> =
        pairs.map(|(knob, position)| format!("{}={}", knob.name, knob.values[*position as usize])).collect();
    pairs.join(" ")
}
