//! Every point once, in an order in which the points that rules tell others from come first.

use super::{Ask, Setting, Strategy};
use crate::Space;
use crate::space::Reach;

/// See the module.
#[derive(Debug)]
pub(super) struct Grid {
    setting: Setting,
    order: Vec<u32>,
    next: usize,
}

impl Grid {
    pub(super) fn new(space: &Space, setting: &Setting) -> Self {
        let places: Vec<Vec<usize>> = (0..space.knobs.len()).map(|knob| places(space, knob)).collect();
        let mut order: Vec<u32> = (0..setting.feasible.points.len() as u32).collect();
        order.sort_by_cached_key(|index| {
            let point = &setting.feasible.points[*index as usize];
            point
                .0
                .iter()
                .zip(&places)
                .map(|(position, places)| places[*position as usize])
                .collect::<Vec<_>>()
        });
        Self { setting: setting.clone(), order, next: 0 }
    }
}

/// For each value of a knob, its place in the order of visits: a value that a rule looks at comes before those that
/// it tells of. Rules that contradict each other leave the order of the file.
fn places(space: &Space, knob: usize) -> Vec<usize> {
    let count = space.knobs[knob].values.len();
    let rules = || space.rules.iter().filter(|rule| rule.knob == knob);
    let before = |a: usize, b: usize| rules().any(|rule| rule.reaches(a, b));
    let backwards = rules().any(|rule| rule.reach == Reach::Earlier);
    let mut order: Vec<usize> = Vec::new();
    let mut left: Vec<usize> = if backwards { (0..count).rev().collect() } else { (0..count).collect() };
    while !left.is_empty() {
        let free = left.iter().position(|value| !left.iter().any(|other| before(*other, *value)));
        order.push(left.remove(free.unwrap_or(0)));
    }
    let mut places = vec![0; count];
    for (place, value) in order.into_iter().enumerate() {
        places[value] = place;
    }
    places
}

impl Strategy for Grid {
    fn ask(&mut self) -> Option<Ask> {
        let index = *self.order.get(self.next)?;
        self.next += 1;
        let vector = self.setting.encoding.vector(&self.setting.feasible.points[index as usize]);
        Some(Ask { id: self.next as u64, vector })
    }

    fn tell(&mut self, _: u64, _: f64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_look_at_comes_first() {
        let space = Space::read(
            "command = 'x'\n[knobs]\nrecompute = { values = [false, true], memory = 'decreases' }\n\
             b = [1, 2, 4]\nc = { values = [1, 2, 4], memory = 'increases' }\n\
             [[prune]]\nname = 'r'\nknob = 'b'\ntried = 4\nthen = 1\nwhen = 'fits'\neffect = 'same'\n",
        )
        .unwrap();
        assert_eq!(places(&space, 0), [1, 0]);
        assert_eq!(places(&space, 1), [2, 0, 1]);
        assert_eq!(places(&space, 2), [0, 1, 2]);
    }
}
