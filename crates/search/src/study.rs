//! A study: asks for points, is told outcomes, and knows at every moment what the best is.
//!
//! Between asking and telling, points are run by whoever drives the study, several at a time and in any order. So that
//! the order in which they finish changes nothing, an outcome counts when its turn has come: before the n-th proposal
//! exactly the outcomes up to the (n − `lag`)-th are looked at. With the same seed, lag and outcomes the same points
//! are proposed in the same order, on one machine or on many.
//!
//! Points that were seen before are answered at once, and so are points that a pruning rule tells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trompe_results::study::{TrialOrigin, TrialStatus};

use crate::encoding::Encoding;
use crate::prune::{self, Pruned};
use crate::space::ResolvedJob;
use crate::strategy::{Ask, Strategy};
use crate::{Feasible, Machines, Outcome, Point, Space, Values, feasible};

/// A study under way.
pub struct Study {
    space: Arc<Space>,
    machines: Machines,
    feasible: Arc<Feasible>,
    encoding: Encoding,
    strategy: Box<dyn Strategy>,
    lag: u32,
    prune: bool,
    trials: Vec<Trial>,
    /// Trials that need an answer, in the order in which they were proposed.
    proposed: Vec<u32>,
    /// How many of `proposed` have been looked at.
    absorbed: usize,
    /// Points whose outcome counts.
    known: BTreeMap<Point, u32>,
    /// Points that were chosen, counting or not.
    chosen: BTreeSet<Point>,
    /// A point that was chosen and waits for a trial that may make it needless.
    deferred: Option<(Ask, Point)>,
    exhausted: bool,
    verified: Vec<Verified>,
}

/// A trial of a study.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its number.
    pub number: u32,
    /// Its point.
    pub point: Point,
    /// Names of its knobs and everything that follows, with their values.
    pub values: Values,
    /// What became of it; `None` while it is under way.
    pub outcome: Option<Outcome>,
    /// Where that comes from.
    pub origin: TrialOrigin,
    /// The rule that told it.
    pub rule: Option<String>,
    /// The trial that told it.
    pub because_of: Option<u32>,
    /// The strategy's question; `None` for a point from outside.
    ask: Option<u64>,
}

/// What to do next.
#[derive(Clone, Debug)]
pub enum Asked {
    /// Run this trial and tell its outcome.
    Run(Box<Proposal>),
    /// Tell an outcome first.
    Wait,
    /// There is no further point.
    Done,
}

/// A trial to run.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Its number.
    pub number: u32,
    /// Its point.
    pub point: Point,
    /// All values there.
    pub values: Values,
    /// Its job.
    pub job: ResolvedJob,
    /// The best step time so far, in seconds, where only that is sought: a trial that cannot beat it may stop.
    pub best_seconds: Option<f64>,
}

/// A study that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// A point has no job.
    #[error("the job at {point} cannot be made: {reason}")]
    NoJob {
        /// The point.
        point: String,
        /// Why.
        reason: String,
    },
    /// An outcome for a trial that is not under way.
    #[error("there is no trial {number} under way")]
    NotUnderWay {
        /// The number.
        number: u32,
    },
    /// A point that the constraints exclude.
    #[error("the point {point} does not meet the constraints")]
    NotFeasible {
        /// The point.
        point: String,
    },
}

/// How often a strategy may propose what is known before the nearest unknown point is taken.
const REPEATS: usize = 12;

impl Study {
    /// A study of `space` whose points `strategy` chooses. Outcomes count `lag` (at least 1) proposals later.
    #[must_use]
    pub fn new(
        space: Arc<Space>,
        machines: Machines,
        feasible: Arc<Feasible>,
        strategy: Box<dyn Strategy>,
        lag: u32,
    ) -> Self {
        let encoding = Encoding::of(&space);
        Self {
            space,
            machines,
            feasible,
            encoding,
            strategy,
            lag: lag.max(1),
            prune: true,
            trials: Vec::new(),
            proposed: Vec::new(),
            absorbed: 0,
            known: BTreeMap::new(),
            chosen: BTreeSet::new(),
            deferred: None,
            exhausted: false,
            verified: Vec::new(),
        }
    }

    /// Runs every point that is chosen, whatever the rules say.
    pub fn without_pruning(&mut self) {
        self.prune = false;
    }

    /// The space.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Facts about clusters.
    #[must_use]
    pub const fn machines(&self) -> &Machines {
        &self.machines
    }

    /// The feasible points.
    #[must_use]
    pub fn feasible(&self) -> &Feasible {
        &self.feasible
    }

    /// All trials so far.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Number of trials that were proposed (and not told by a rule).
    #[must_use]
    pub fn proposals(&self) -> usize {
        self.proposed.len()
    }

    /// The number of the best trial whose outcome is known.
    #[must_use]
    pub fn best(&self) -> Option<u32> {
        best(&self.space, self.trials.iter())
    }

    /// The next trial to run.
    ///
    /// # Errors
    /// When the job of a point cannot be made.
    pub fn ask(&mut self) -> Result<Asked, StudyError> {
        loop {
            if self.exhausted {
                return Ok(Asked::Done);
            }
            let due = self.proposed.len().saturating_sub(self.lag as usize - 1);
            if !self.absorb_up_to(due) {
                return Ok(Asked::Wait);
            }
            let chosen = self.deferred.take().or_else(|| self.choose());
            if let Some((ask, point)) = &chosen {
                let needed = self.tells(point);
                if !self.absorb_up_to(needed) {
                    self.deferred = Some((ask.clone(), point.clone()));
                    return Ok(Asked::Wait);
                }
            }
            let Some((ask, point)) = chosen else {
                // What is under way may still be told; then the strategy may want more.
                if self.chosen.len() >= self.feasible.points.len() || self.absorbed == self.proposed.len() {
                    self.exhausted = true;
                    return Ok(Asked::Done);
                }
                if !self.absorb_up_to(self.absorbed + 1) {
                    return Ok(Asked::Wait);
                }
                continue;
            };
            if let Some(proposal) = self.propose(point, Some(ask.id))? {
                return Ok(Asked::Run(Box::new(proposal)));
            }
        }
    }

    /// Looks at the outcomes of the first `count` proposals; `false` when one of them is not known yet.
    fn absorb_up_to(&mut self, count: usize) -> bool {
        while self.absorbed < count {
            let number = self.proposed[self.absorbed];
            if self.trials[number as usize].outcome.is_none() {
                return false;
            }
            self.absorbed += 1;
            self.absorb(number);
        }
        true
    }

    /// How many proposals must be looked at before `point` runs: up to the last one of which a rule may tell its
    /// outcome. To wait for that one costs less than to run the point in vain.
    fn tells(&self, point: &Point) -> usize {
        if !self.prune {
            return 0;
        }
        let may_tell = |number: u32| {
            let other = &self.trials[number as usize].point;
            self.space.rules.iter().any(|rule| {
                let knob = rule.knob;
                let (tried, own) = (usize::from(other.0[knob]), usize::from(point.0[knob]));
                rule.reaches(tried, own) && point.with(knob, tried) == *other
            })
        };
        let open = self.proposed.iter().enumerate().skip(self.absorbed);
        open.filter(|(_, number)| may_tell(**number)).map(|(at, _)| at + 1).max().unwrap_or(0)
    }

    /// A trial of a given point: what a driver from outside wants to know.
    ///
    /// # Errors
    /// When the point is not feasible or has no job.
    pub fn enqueue(&mut self, point: Point) -> Result<Option<Proposal>, StudyError> {
        if self.feasible.position(&point).is_none() {
            return Err(StudyError::NotFeasible { point: self.text(&point) });
        }
        self.propose(point, None)
    }

    /// Adds a trial; `None` when a rule tells its outcome.
    fn propose(&mut self, point: Point, ask: Option<u64>) -> Result<Option<Proposal>, StudyError> {
        let number = self.trials.len() as u32;
        let name = self.text(&point);
        let no_job = |reason| StudyError::NoJob { point: name.clone(), reason };
        let values = feasible::values(&self.space, &self.machines, &point).map_err(no_job)?;
        let mut trial = Trial {
            number,
            point: point.clone(),
            values: values.clone(),
            outcome: None,
            origin: TrialOrigin::Executed,
            rule: None,
            because_of: None,
            ask,
        };
        self.chosen.insert(point.clone());
        if let Some(Pruned { rule, because_of, outcome }) = self.pruned(&point) {
            trial.outcome = Some(outcome);
            trial.origin = TrialOrigin::Pruned;
            trial.rule = Some(rule);
            trial.because_of = Some(because_of);
            self.trials.push(trial);
            self.absorb(number);
            return Ok(None);
        }
        let job = self.space.job.resolve(&values).map_err(no_job)?;
        self.trials.push(trial);
        self.proposed.push(number);
        Ok(Some(Proposal { number, point, values, job, best_seconds: self.best_seconds() }))
    }

    /// The outcome of a trial under way.
    ///
    /// # Errors
    /// When there is no such trial.
    pub fn tell(&mut self, number: u32, outcome: Outcome, origin: TrialOrigin) -> Result<(), StudyError> {
        let limits = self.space.limits;
        let trial = self.trials.get_mut(number as usize).filter(|trial| trial.outcome.is_none());
        let trial = trial.ok_or(StudyError::NotUnderWay { number })?;
        if outcome.status == TrialStatus::Stopped {
            trial.rule = Some("compute alone takes longer than the best".to_owned());
        }
        trial.outcome = Some(outcome.limited(&limits));
        trial.origin = origin;
        Ok(())
    }

    /// Lets the strategy and the rules know an outcome.
    fn absorb(&mut self, number: u32) {
        let trial = &self.trials[number as usize];
        let Some(outcome) = &trial.outcome else { return };
        if let Some(id) = trial.ask {
            self.strategy.tell(id, outcome.logarithm(&self.space.objectives));
        }
        self.known.insert(trial.point.clone(), number);
    }

    /// What a rule says of a point.
    fn pruned(&self, point: &Point) -> Option<Pruned> {
        if !self.prune {
            return None;
        }
        let known = |point: &Point| {
            let number = *self.known.get(point)?;
            let outcome = self.trials[number as usize].outcome.as_ref()?;
            Some(prune::Known { number, outcome })
        };
        prune::look(&self.space, &self.machines, point, &known)
    }

    /// A point that was not chosen before, and the strategy's question it answers.
    fn choose(&mut self) -> Option<(Ask, Point)> {
        let mut last = None;
        for _ in 0..REPEATS {
            let Some(ask) = self.strategy.ask() else { break };
            let asked = self.encoding.point(&ask.vector);
            let point = match self.feasible.position(&asked) {
                Some(_) => asked,
                None => self.encoding.nearest(&ask.vector, &self.feasible, |_| true)?,
            };
            if !self.chosen.contains(&point) {
                return Some((ask, point));
            }
            let known =
                self.known.get(&point).and_then(|number| self.trials[*number as usize].outcome.as_ref());
            if let Some(outcome) = known {
                self.strategy.tell(ask.id, outcome.logarithm(&self.space.objectives));
            }
            last = Some(ask);
        }
        // The strategy goes round in a circle: what is nearest to where it looks is new at least.
        let mut ask = last?;
        let point =
            self.encoding.nearest(&ask.vector, &self.feasible, |point| !self.chosen.contains(point))?;
        ask.id = u64::MAX;
        Some((ask, point))
    }

    /// The best step time whose outcome counts, where nothing else is sought.
    fn best_seconds(&self) -> Option<f64> {
        if self.space.objectives != [crate::space::Objective::StepTime] {
            return None;
        }
        let numbers = self.known.values();
        let best = best(&self.space, numbers.map(|number| &self.trials[*number as usize]))?;
        self.trials[best as usize].outcome.as_ref()?.metrics.as_ref().map(|metrics| metrics.step_seconds)
    }

    /// A point as people write it.
    #[must_use]
    pub fn text(&self, point: &Point) -> String {
        let pairs = self.space.knobs.iter().zip(&point.0);
        let pairs: Vec<String> = pairs
            .map(|(knob, position)| format!("{}={}", knob.name, knob.values[*position as usize]))
            .collect();
        pairs.join(" ")
    }
}

/// The trial with the smallest loss among those that fit; the first of equals.
fn best<'a>(space: &Space, trials: impl Iterator<Item = &'a Trial>) -> Option<u32> {
    let mut best: Option<(f64, u32)> = None;
    for trial in trials {
        let Some(outcome) = trial.outcome.as_ref().filter(|outcome| outcome.is_fit()) else { continue };
        let loss = outcome.logarithm(&space.objectives);
        if best.is_none_or(|(least, number)| loss < least || (loss == least && trial.number < number)) {
            best = Some((loss, trial.number));
        }
    }
    best.map(|(_, number)| number)
}

mod verify;
pub use verify::Verified;

#[cfg(test)]
mod tests;
