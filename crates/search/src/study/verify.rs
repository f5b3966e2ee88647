//! Running the best of what rules told.
//!
//! A rule that gives a point the numbers of another one, or says that it is no better, is true up to a small error: with
//! a distributed optimizer a step takes nearly, not exactly, the time that it takes without. Among trials that are far
//! from the best that does not matter; among the best it decides which one wins. So at the end of a study the best of
//! these trials run themselves.

use trompe_results::study::{TrialOrigin, TrialStatus};

use super::{Proposal, Study, StudyError, Trial};

/// A trial that a rule told first and that ran after all.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The trial.
    pub number: u32,
    /// The rule that had told it.
    pub rule: String,
    /// The step time that the rule gave it in seconds; `None` when it only said that it is no better.
    pub told_seconds: Option<f64>,
}

/// How much worse than the best (as the difference of logarithms) a trial that is run after all may be: about 5 %.
const NEAR: f64 = 0.05;

impl Study {
    /// Trials to run after all, at most `most`: those nearest to the best whose numbers a rule told, then those that one
    /// calls no better than a trial near the best. All at once, so that the choice does not depend on the order in which
    /// they end.
    ///
    /// # Errors
    /// When the job of a point cannot be made.
    pub fn verify(&mut self, most: usize) -> Result<Vec<Proposal>, StudyError> {
        let Some(best) = self.best().and_then(|number| self.loss(number)) else { return Ok(Vec::new()) };
        let mut near: Vec<(bool, f64, u32)> = self
            .trials
            .iter()
            .filter_map(|trial| {
                let (no_better, loss) = self.told_loss(trial)?;
                (loss <= best + NEAR).then_some((no_better, loss, trial.number))
            })
            .collect();
        near.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        near.truncate(most);
        near.into_iter().map(|(_, _, number)| self.run_after_all(number)).collect()
    }

    /// The trials that ran although a rule had told them.
    #[must_use]
    pub fn verified(&self) -> &[Verified] {
        &self.verified
    }

    fn loss(&self, number: u32) -> Option<f64> {
        let outcome = self.trials.get(number as usize)?.outcome.as_ref()?;
        outcome.is_fit().then(|| outcome.logarithm(&self.space.objectives))
    }

    /// Whether a rule said that a trial is no better than another one (instead of the same), and the loss that it told.
    fn told_loss(&self, trial: &Trial) -> Option<(bool, f64)> {
        let outcome = trial.outcome.as_ref().filter(|_| trial.origin == TrialOrigin::Pruned)?;
        match outcome.status {
            TrialStatus::Fits => Some((false, self.loss(trial.number)?)),
            TrialStatus::NoBetter => Some((true, self.loss(trial.because_of?)?)),
            _ => None,
        }
    }

    fn run_after_all(&mut self, number: u32) -> Result<Proposal, StudyError> {
        let trial = &mut self.trials[number as usize];
        let told_seconds = trial.outcome.take().and_then(|outcome| Some(outcome.metrics?.step_seconds));
        trial.origin = TrialOrigin::Executed;
        trial.because_of = None;
        // The strategy was told what the rule said; a question is answered once.
        trial.ask = None;
        let rule = trial.rule.take().unwrap_or_default();
        let (point, values) = (trial.point.clone(), trial.values.clone());
        self.verified.push(Verified { number, rule, told_seconds });
        self.proposed.push(number);
        let job = self.space.job.resolve(&values);
        let job = job.map_err(|reason| StudyError::NoJob { point: self.text(&point), reason })?;
        Ok(Proposal { number, point, values, job, best_seconds: None })
    }
}

impl Verified {
    /// How much longer the step of `trial` took than the rule had told, as a share; `None` where one of them has no step.
    #[must_use]
    pub fn error(&self, trial: &Trial) -> Option<f64> {
        let found = trial.outcome.as_ref()?.metrics.as_ref()?.step_seconds;
        let told = self.told_seconds?;
        (told > 0.0).then(|| found / told - 1.0)
    }
}
