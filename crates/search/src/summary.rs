//! What a study says when it is over: the ranking, the Pareto front, what the knobs are worth, why others lose.

mod notes;
mod sensitivity;
mod why;

use trompe_results::study as results;
use trompe_results::study::{Counts, Progress, TrialJob, TrialOrigin, TrialStatus};
use trompe_results::{NamedValue, Note};

use crate::space::{Goal, Objective};
use crate::study::{Study, Trial};

/// What only the driver of a study knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circumstances {
    /// Version of trompe.
    pub version: String,
    /// The space file as the user named it.
    pub space: String,
    /// The cluster as the user named it.
    pub cluster: String,
    /// Strategy.
    pub strategy: String,
    /// Seed.
    pub seed: u64,
    /// Folder that the space file lies in.
    pub directory: String,
    /// Real seconds that the study took.
    pub seconds: f64,
    /// Real seconds of the study at which each trial was known, by number.
    pub known_at: std::collections::BTreeMap<u32, f64>,
    /// Why it ended.
    pub ended: String,
    /// What the user must know.
    pub notes: Vec<Note>,
}

/// Everything that a study says.
#[must_use]
pub fn report(study: &Study, circumstances: &Circumstances) -> results::Study {
    let space = study.space();
    let finished: Vec<&Trial> = study.trials().iter().filter(|trial| trial.outcome.is_some()).collect();
    let ranking = ranking(study, &finished);
    let best = ranking.first().and_then(|number| finished.iter().find(|trial| trial.number == *number));
    let mut all_notes = circumstances.notes.clone();
    all_notes.extend(notes::of(study, &finished));
    results::Study {
        schema_version: results::STUDY_SCHEMA_VERSION,
        trompe_version: circumstances.version.clone(),
        name: space.name.clone(),
        space: circumstances.space.clone(),
        cluster: circumstances.cluster.clone(),
        strategy: circumstances.strategy.clone(),
        seed: circumstances.seed,
        objectives: space.objectives.iter().map(|objective| objective.name().to_owned()).collect(),
        knobs: sensitivity::knobs(study, &finished),
        counts: counts(study, &finished),
        seconds: circumstances.seconds,
        ended: circumstances.ended.clone(),
        trials: finished.iter().map(|trial| row(study, trial, best.copied(), circumstances)).collect(),
        pareto: pareto(study, &finished),
        convergence: convergence(study, &finished, circumstances),
        ranking,
        notes: all_notes,
    }
}

/// One trial as the report says it; `None` when there is none with this number or it is under way.
#[must_use]
pub fn trial(study: &Study, number: u32, circumstances: &Circumstances) -> Option<results::Trial> {
    let all = study.trials();
    let trial = all.get(number as usize).filter(|trial| trial.outcome.is_some())?;
    let best = study.best().and_then(|best| all.get(best as usize));
    Some(row(study, trial, best, circumstances))
}

/// Numbers of the trials that fit, best first. Trials that a rule gives the numbers of another come after it.
fn ranking(study: &Study, finished: &[&Trial]) -> Vec<u32> {
    let objectives = &study.space().objectives;
    let mut fits: Vec<(f64, u32)> = finished
        .iter()
        .filter_map(|trial| {
            let outcome = trial.outcome.as_ref().filter(|outcome| outcome.is_fit())?;
            Some((outcome.logarithm(objectives), trial.number))
        })
        .collect();
    fits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    fits.into_iter().map(|(_, number)| number).collect()
}

/// The trials that fit and that no other one beats in every objective.
fn pareto(study: &Study, finished: &[&Trial]) -> Vec<u32> {
    let objectives = &study.space().objectives;
    let losses = |trial: &Trial| -> Option<Vec<f64>> {
        let outcome = trial.outcome.as_ref().filter(|outcome| outcome.is_fit())?;
        objectives.iter().map(|objective| objective.loss(outcome.metrics.as_ref()?)).collect()
    };
    let all: Vec<(u32, Vec<f64>)> =
        finished.iter().filter_map(|trial| Some((trial.number, losses(trial)?))).collect();
    let beats = |(first, a): &(u32, Vec<f64>), (second, b): &(u32, Vec<f64>)| {
        let no_worse = a.iter().zip(b).all(|(a, b)| a <= b);
        no_worse && (a.iter().zip(b).any(|(a, b)| a < b) || first < second)
    };
    let front = all.iter().filter(|one| !all.iter().any(|other| beats(other, one)));
    let mut front: Vec<&(u32, Vec<f64>)> = front.collect();
    front.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
    front.into_iter().map(|(number, _)| *number).collect()
}

/// The best value of the first objective as trials were told.
fn convergence(study: &Study, finished: &[&Trial], circumstances: &Circumstances) -> Vec<Progress> {
    let space = study.space();
    let objective = space.objectives.first().copied().unwrap_or(Objective::StepTime);
    let mut best: Option<f64> = None;
    let mut steps = Vec::new();
    let mut ran = 0;
    for trial in finished {
        ran += u32::from(trial.origin != TrialOrigin::Pruned);
        let Some(outcome) = trial.outcome.as_ref().filter(|outcome| outcome.is_fit()) else { continue };
        let Some(value) = outcome.metrics.as_ref().and_then(|metrics| objective.of(metrics)) else {
            continue;
        };
        let better = best.is_none_or(|best| match objective.goal() {
            Goal::Least => value < best,
            Goal::Most => value > best,
        });
        if better {
            best = Some(value);
            let seconds = circumstances.known_at.get(&trial.number).copied().unwrap_or(circumstances.seconds);
            steps.push(Progress { trials: ran, seconds, best: value });
        }
    }
    steps
}

fn counts(study: &Study, finished: &[&Trial]) -> Counts {
    let with = |keep: &dyn Fn(&Trial) -> bool| finished.iter().filter(|trial| keep(trial)).count() as u32;
    let origin = |origin| with(&|trial: &Trial| trial.origin == origin);
    let status =
        |status| with(&|trial: &Trial| trial.outcome.as_ref().is_some_and(|one| one.status == status));
    Counts {
        combinations: u64::try_from(study.feasible().combinations).unwrap_or(u64::MAX),
        feasible: study.feasible().points.len() as u64,
        executed: origin(TrialOrigin::Executed) + origin(TrialOrigin::Told),
        cached: origin(TrialOrigin::Cached),
        simulated: origin(TrialOrigin::Simulated),
        pruned: origin(TrialOrigin::Pruned),
        fits: status(TrialStatus::Fits),
        out_of_memory: status(TrialStatus::OutOfMemory),
        failed: status(TrialStatus::Failed),
        stopped: status(TrialStatus::Stopped),
    }
}

fn row(study: &Study, trial: &Trial, best: Option<&Trial>, circumstances: &Circumstances) -> results::Trial {
    let space = study.space();
    let outcome = trial.outcome.clone().unwrap_or_default();
    let named = |name: &String| {
        let value = trial.values.get(name)?;
        Some(NamedValue { name: name.clone(), value: value.to_string() })
    };
    let job = space.job.resolve(&trial.values).unwrap_or_default();
    results::Trial {
        number: trial.number,
        knobs: space.knobs.iter().filter_map(|knob| named(&knob.name)).collect(),
        derived: space.derived.iter().filter_map(|derived| named(&derived.name)).collect(),
        job: TrialJob {
            command: job.command,
            cluster: study.machines().of(&trial.point).cluster.clone(),
            environment: job.environment,
            files: job.files,
            directory: job.directory.unwrap_or_else(|| circumstances.directory.clone()),
        },
        status: outcome.status,
        origin: trial.origin,
        rule: trial.rule.clone(),
        because_of: trial.because_of,
        why: why::worse(trial, best),
        metrics: outcome.metrics,
        missing_bytes: outcome.missing_bytes,
        last_lines: outcome.last_lines,
        seconds: outcome.seconds,
    }
}
