//! Points as vectors in the unit cube, for strategies that know numbers only.
//!
//! An ordered knob is one dimension: its values are equal parts of `0..1` in their order, so powers of two are equally
//! far from each other. A knob whose values are just names has a dimension for each value; the largest one is chosen.
//! A vector that means no feasible point stands for the nearest feasible one.

use crate::{Feasible, Point, Space};

/// How points are written as vectors.
#[derive(Clone, Debug)]
pub struct Encoding {
    knobs: Vec<Shape>,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    values: usize,
    ordered: bool,
}

impl Encoding {
    /// The encoding of a space.
    #[must_use]
    pub fn of(space: &Space) -> Self {
        let shape = |knob: &crate::space::Knob| Shape {
            values: knob.values.len(),
            ordered: knob.ordered || knob.values.len() <= 2,
        };
        Self { knobs: space.knobs.iter().map(shape).collect() }
    }

    /// Number of dimensions.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.knobs.iter().map(|knob| if knob.ordered { 1 } else { knob.values }).sum()
    }

    /// The middle of the part of the cube that stands for a point.
    #[must_use]
    pub fn vector(&self, point: &Point) -> Vec<f64> {
        let mut vector = Vec::with_capacity(self.dimensions());
        for (knob, position) in self.knobs.iter().zip(&point.0) {
            let position = usize::from(*position);
            if knob.ordered {
                vector.push((position as f64 + 0.5) / knob.values as f64);
            } else {
                vector.extend((0..knob.values).map(|value| if value == position { 0.75 } else { 0.25 }));
            }
        }
        vector
    }

    /// The point that a vector stands for, feasible or not.
    #[must_use]
    pub fn point(&self, vector: &[f64]) -> Point {
        let mut rest = vector;
        let mut point = Vec::with_capacity(self.knobs.len());
        for knob in &self.knobs {
            if knob.ordered {
                let part = (rest[0].clamp(0.0, 1.0) * knob.values as f64) as usize;
                point.push(part.min(knob.values - 1) as u16);
                rest = &rest[1..];
            } else {
                let (own, others) = rest.split_at(knob.values);
                let largest = (0..knob.values).max_by(|a, b| own[*a].total_cmp(&own[*b]).then(b.cmp(a)));
                point.push(largest.unwrap_or(0) as u16);
                rest = others;
            }
        }
        Point(point)
    }

    /// The nearest feasible point for which `free` holds, by squared distance in the cube; the first of equals.
    pub fn nearest(
        &self,
        vector: &[f64],
        feasible: &Feasible,
        free: impl Fn(&Point) -> bool,
    ) -> Option<Point> {
        let mut best: Option<(f64, &Point)> = None;
        for point in feasible.points.iter().filter(|point| free(point)) {
            let distance: f64 = self.vector(point).iter().zip(vector).map(|(a, b)| (a - b) * (a - b)).sum();
            if best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, point));
            }
        }
        best.map(|(_, point)| point.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_its_own_vector() {
        let text = "command = 'x'\n[knobs]\na = [1, 2, 4]\nb = ['x', 'y', 'z']\nc = 'boolean'\n";
        let space = Space::read(text).unwrap();
        let encoding = Encoding::of(&space);
        assert_eq!(encoding.dimensions(), 5);
        for a in 0..3 {
            for b in 0..3 {
                for c in 0..2 {
                    let point = Point(vec![a, b, c]);
                    assert_eq!(encoding.point(&encoding.vector(&point)), point);
                }
            }
        }
        assert_eq!(encoding.point(&[-1.0, 0.1, 0.9, 0.2, 1.0]), Point(vec![0, 1, 1]));
    }
}
