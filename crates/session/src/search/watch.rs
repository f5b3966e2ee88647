//! What a search says while it runs.

use trompe_results::study::{TrialOrigin, TrialStatus};
use trompe_search::Study;

use super::Budget;

/// Where a search is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Trials that are known.
    pub done: u32,
    /// Of them, those that ran here.
    pub executed: u32,
    /// Those that a rule told.
    pub pruned: u32,
    /// Those that were known from earlier studies.
    pub cached: u32,
    /// Those that are out of memory.
    pub out_of_memory: u32,
    /// Those that failed.
    pub failed: u32,
    /// Trials under way.
    pub under_way: u32,
    /// Points of the space.
    pub points: u64,
    /// The best step time in seconds, and its point.
    pub best: Option<(f64, String)>,
    /// Seconds since the beginning.
    pub seconds: f64,
    /// Seconds that it will probably take still; `None` when that cannot be said.
    pub seconds_left: Option<f64>,
}

/// Whoever shows it.
pub trait SearchProgress {
    /// Something has changed, or some time has passed.
    fn state(&mut self, state: &State);
    /// Something that the user should know at once.
    fn note(&mut self, text: &str);
}

/// Where a study is.
pub(super) fn state(study: &Study, budget: Budget, seconds: f64, under_way: usize) -> State {
    let mut state = State { seconds, under_way: under_way as u32, ..State::default() };
    for trial in study.trials() {
        let Some(outcome) = &trial.outcome else { continue };
        state.done += 1;
        match trial.origin {
            TrialOrigin::Pruned => state.pruned += 1,
            TrialOrigin::Cached => state.cached += 1,
            TrialOrigin::Executed | TrialOrigin::Simulated | TrialOrigin::Told => state.executed += 1,
        }
        match outcome.status {
            TrialStatus::OutOfMemory => state.out_of_memory += 1,
            TrialStatus::Failed => state.failed += 1,
            _ => {}
        }
    }
    state.points = study.feasible().points.len() as u64;
    state.best = study.best().and_then(|number| {
        let trial = &study.trials()[number as usize];
        let metrics = trial.outcome.as_ref()?.metrics.as_ref()?;
        Some((metrics.step_seconds, study.text(&trial.point)))
    });
    state.seconds_left = left(&state, budget, study.proposals());
    state
}

/// The time left: of the time budget, or at the pace so far of the trials or points.
fn left(state: &State, budget: Budget, proposals: usize) -> Option<f64> {
    let by_time = budget.seconds.map(|most| (most - state.seconds).max(0.0));
    let pace = |done: f64, all: f64| (done > 0.0).then(|| state.seconds / done * (all - done).max(0.0));
    let ran = f64::from(state.executed + state.cached);
    let by_trials = budget.trials.and_then(|most| pace(ran, f64::from(most).max(proposals as f64)));
    let by_points = pace(f64::from(state.done), state.points as f64);
    [by_time, by_trials, by_points].into_iter().flatten().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_what_ends_first() {
        let state = State { seconds: 10.0, executed: 5, done: 10, points: 100, ..State::default() };
        let check = |budget, expect| assert_eq!(left(&state, budget, 5), Some(expect));
        check(Budget::default(), 90.0);
        check(Budget { trials: Some(10), seconds: None }, 10.0);
        check(Budget { trials: Some(10), seconds: Some(12.0) }, 2.0);
    }
}
