//! What each knob is worth.
//!
//! Two numbers. *Spread*: for each value of the knob, the best result that any trial with it reached; how much worse
//! the worst of these is than the best. *Explained share*: the variance between the means of the logarithms of the
//! results, grouped by the knob's value, over the whole variance (the first-order effect of an analysis of variance).
//! Both are of the trials that ran, which a strategy did not choose evenly; they order knobs, they do not measure them.

use trompe_results::study::{KnobReport, KnobValue, TrialStatus};

use crate::space::{Goal, Objective};
use crate::study::{Study, Trial};

/// The report of every knob.
pub(super) fn knobs(study: &Study, finished: &[&Trial]) -> Vec<KnobReport> {
    let space = study.space();
    let objective = space.objectives.first().copied().unwrap_or(Objective::StepTime);
    let one = |(index, knob): (usize, &crate::space::Knob)| {
        let with = |position: usize| {
            finished.iter().filter(move |trial| usize::from(trial.point.0[index]) == position)
        };
        let values = knob.values.iter().enumerate().map(|(position, value)| {
            let results = with(position).filter_map(|trial| result(trial, objective));
            let best = results.reduce(|a, b| match objective.goal() {
                Goal::Least => a.min(b),
                Goal::Most => a.max(b),
            });
            let count = |status| {
                with(position).filter(|t| t.outcome.as_ref().is_some_and(|o| o.status == status)).count()
                    as u32
            };
            KnobValue {
                value: value.to_string(),
                best,
                fits: count(TrialStatus::Fits),
                out_of_memory: count(TrialStatus::OutOfMemory),
            }
        });
        let values: Vec<KnobValue> = values.collect();
        KnobReport {
            name: knob.name.clone(),
            spread: spread(&values),
            explained_share: explained(finished, index, objective),
            values,
        }
    };
    space.knobs.iter().enumerate().map(one).collect()
}

fn result(trial: &Trial, objective: Objective) -> Option<f64> {
    let outcome = trial.outcome.as_ref().filter(|outcome| outcome.is_fit())?;
    objective.of(outcome.metrics.as_ref()?)
}

fn spread(values: &[KnobValue]) -> Option<f64> {
    let best: Vec<f64> = values.iter().filter_map(|value| value.best).collect();
    if best.len() < 2 {
        return None;
    }
    let least = best.iter().copied().fold(f64::INFINITY, f64::min);
    let most = best.iter().copied().fold(0.0, f64::max);
    (least > 0.0).then(|| most / least - 1.0)
}

fn explained(finished: &[&Trial], knob: usize, objective: Objective) -> Option<f64> {
    let results: Vec<(u16, f64)> = finished
        .iter()
        .filter_map(|trial| Some((trial.point.0[knob], result(trial, objective).filter(|x| *x > 0.0)?.ln())))
        .collect();
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    let all: Vec<f64> = results.iter().map(|(_, result)| *result).collect();
    let whole: f64 = all.iter().map(|x| (x - mean(&all)).powi(2)).sum();
    let mut positions: Vec<u16> = results.iter().map(|(position, _)| *position).collect();
    positions.sort_unstable();
    positions.dedup();
    if positions.len() < 2 || whole <= 0.0 {
        return None;
    }
    let between = positions.iter().map(|position| {
        let group: Vec<f64> = results.iter().filter(|(own, _)| own == position).map(|(_, x)| *x).collect();
        group.len() as f64 * (mean(&group) - mean(&all)).powi(2)
    });
    Some((between.sum::<f64>() / whole).clamp(0.0, 1.0))
}
