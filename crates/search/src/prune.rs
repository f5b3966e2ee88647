//! Trials that need not run, because a rule tells their result from another one's.

use std::collections::BTreeMap;

use trompe_results::study::TrialStatus;

use crate::space::{Effect, Rule, Space, When};
use crate::{Machines, Outcome, Point, feasible};

/// What is known of a point: the trial that it comes from and how that ended.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The trial's number.
    pub number: u32,
    /// Its outcome.
    pub outcome: &'a Outcome,
}

/// A point that need not run.
#[derive(Clone, Debug, PartialEq)]
pub struct Pruned {
    /// Name of the rule.
    pub rule: String,
    /// The trial that tells.
    pub because_of: u32,
    /// What is known of the point.
    pub outcome: Outcome,
}

/// Looks for a rule that tells the outcome at `point`. Rules are looked at in the order of the file, the values of their
/// knobs in order, so the answer does not depend on the order of the trials.
pub fn look<'a>(
    space: &Space,
    machines: &Machines,
    point: &Point,
    known: &impl Fn(&Point) -> Option<Known<'a>>,
) -> Option<Pruned> {
    space.rules.iter().find_map(|rule| {
        let own = usize::from(point.0[rule.knob]);
        let tried = (0..space.knobs[rule.knob].values.len()).filter(|tried| rule.reaches(*tried, own));
        tried.into_iter().find_map(|tried| {
            let other = point.with(rule.knob, tried);
            let found = known(&other)?;
            let holds = applies(rule, found.outcome) && meets(rule, space, machines, &[point, &other]);
            holds.then(|| Pruned {
                rule: rule.name.clone(),
                because_of: found.number,
                outcome: told(rule, found.outcome),
            })
        })
    })
}

fn applies(rule: &Rule, outcome: &Outcome) -> bool {
    match rule.when {
        When::OutOfMemory => outcome.status == TrialStatus::OutOfMemory,
        When::Fits => outcome.status == TrialStatus::Fits,
    }
}

/// Whether both points meet the rule's condition.
fn meets(rule: &Rule, space: &Space, machines: &Machines, points: &[&Point]) -> bool {
    let Some(condition) = &rule.condition else { return true };
    points.iter().all(|point| {
        let values = feasible::values(space, machines, point);
        values.is_ok_and(|values| condition.holds(&values).unwrap_or(false))
    })
}

/// The outcome that a rule tells.
fn told(rule: &Rule, outcome: &Outcome) -> Outcome {
    match rule.effect {
        Effect::Same => Outcome { seconds: 0.0, ..outcome.clone() },
        Effect::OutOfMemory => Outcome {
            status: TrialStatus::OutOfMemory,
            missing_bytes: outcome.missing_bytes,
            capacity_bytes: outcome.capacity_bytes,
            ..Outcome::default()
        },
        Effect::NoBetter => Outcome {
            status: TrialStatus::NoBetter,
            at_least_seconds: outcome.metrics.as_ref().map(|metrics| metrics.step_seconds),
            ..Outcome::default()
        },
    }
}

/// The trials that ran, as [`look`] wants them.
pub fn from_map<'a>(map: &'a BTreeMap<Point, (u32, Outcome)>) -> impl Fn(&Point) -> Option<Known<'a>> {
    |point| map.get(point).map(|(number, outcome)| Known { number: *number, outcome })
}

#[cfg(test)]
mod tests {
    use trompe_results::study::Metrics;

    use super::*;
    use crate::space::MachineFacts;

    const SPACE: &str = "command = 'x'\n[knobs]\npp = [1, 2]\nmicro = [1, 2, 4]\n\
        recompute = { values = [false, true], memory = 'decreases' }\nsp = { values = [false, true], memory = 'decreases' }\n\
        dist = [false, true]\n\
        [[prune]]\nname = 'dist'\nknob = 'dist'\ntried = false\nthen = true\nwhen = 'fits'\neffect = 'same'\n\
        [[prune]]\nname = 'micro'\nknob = 'micro'\nothers = 'earlier'\nwhen = 'fits'\neffect = 'no_better'\nif = 'pp == 1'\n";

    #[track_caller]
    fn check(tried: [u16; 5], outcome: Outcome, asked: [u16; 5], expect: Option<(&str, TrialStatus)>) {
        let space = Space::read(SPACE).unwrap();
        let machines =
            Machines::look_up(&space, Some("x"), || (), |_| Ok::<_, ()>(MachineFacts::default())).unwrap();
        let map = BTreeMap::from([(Point(tried.to_vec()), (7, outcome))]);
        let found = look(&space, &machines, &Point(asked.to_vec()), &from_map(&map));
        let found = found.map(|pruned| (pruned.rule, pruned.outcome.status, pruned.because_of));
        assert_eq!(found, expect.map(|(rule, status)| (rule.to_owned(), status, 7)));
    }

    #[test]
    fn the_rules_of_the_paper_keep_the_answer() {
        let fits = || Outcome::fits(Metrics { step_seconds: 1.0, ..Metrics::default() });
        let oom = || Outcome::out_of_memory(Some(1), 2);
        let memory = |knob: &str| format!("out of memory with less needed by `{knob}`");
        let (recompute, sp) = (memory("recompute"), memory("sp"));
        // Recompute on and still out of memory: off is too. Not the other way around.
        check([1, 0, 1, 0, 0], oom(), [1, 0, 0, 0, 0], Some((&recompute, TrialStatus::OutOfMemory)));
        check([1, 0, 0, 0, 0], oom(), [1, 0, 1, 0, 0], None);
        check([1, 0, 1, 0, 0], fits(), [1, 0, 0, 0, 0], None);
        // Only one knob may differ.
        check([1, 0, 1, 0, 0], oom(), [1, 1, 0, 0, 0], None);
        // Sequence parallel likewise.
        check([1, 0, 0, 1, 0], oom(), [1, 0, 0, 0, 0], Some((&sp, TrialStatus::OutOfMemory)));
        // It fits without a distributed optimizer: with it, its time is reused.
        check([1, 0, 0, 0, 0], fits(), [1, 0, 0, 0, 1], Some(("dist", TrialStatus::Fits)));
        check([1, 0, 0, 0, 0], oom(), [1, 0, 0, 0, 1], None);
        // Without a pipeline a larger micro-batch fits: smaller ones are no better.
        check([0, 2, 0, 0, 0], fits(), [0, 1, 0, 0, 0], Some(("micro", TrialStatus::NoBetter)));
        check([0, 0, 0, 0, 0], fits(), [0, 1, 0, 0, 0], None);
        check([1, 2, 0, 0, 0], fits(), [1, 1, 0, 0, 0], None);
    }
}
