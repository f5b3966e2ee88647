//! What the user must know before trusting the ranking: that nothing fits and what would, which trials failed, and which
//! have numbers that a rule told.

use std::collections::BTreeMap;

use trompe_results::study::{TrialOrigin, TrialStatus};
use trompe_results::{Note, Severity};

use crate::study::{Study, Trial};

/// All notes.
pub(super) fn of(study: &Study, finished: &[&Trial]) -> Vec<Note> {
    [nothing_fits(study, finished), failures(finished), told(finished), verified(study)]
        .into_iter()
        .flatten()
        .collect()
}

/// That trials in the ranking have the numbers of others.
fn told(finished: &[&Trial]) -> Option<Note> {
    let mut rules = BTreeMap::<&str, u32>::new();
    for trial in finished {
        let fits = trial.outcome.as_ref().is_some_and(crate::Outcome::is_fit);
        if let (TrialOrigin::Pruned, true, Some(rule)) = (trial.origin, fits, &trial.rule) {
            *rules.entry(rule).or_default() += 1;
        }
    }
    let count: u32 = rules.values().sum();
    let rules: Vec<String> = rules.iter().map(|(rule, count)| format!("{count} by `{rule}`")).collect();
    let have = if count == 1 { "trial has" } else { "trials have" };
    (count > 0).then(|| Note {
        severity: Severity::Info,
        code: "times-reused".to_owned(),
        text: format!("{count} {have} the numbers of another one and did not run: {}.", rules.join(", ")),
        action: Some("--no-prune runs them; --verify says how many of the best do at the end".to_owned()),
    })
}

/// How far rules were from the truth, where that was looked at.
fn verified(study: &Study) -> Option<Note> {
    let all = study.verified();
    let trial = |number: u32| study.trials().get(number as usize);
    let ended =
        all.iter().filter_map(|one| Some((one, trial(one.number).filter(|trial| trial.outcome.is_some())?)));
    let ended: Vec<_> = ended.collect();
    let errors: Vec<f64> = ended.iter().filter_map(|(one, trial)| one.error(trial)).collect();
    let best = study.best().filter(|best| all.iter().any(|one| one.number == *best));
    let how_far = match (errors.iter().copied().reduce(f64::min), errors.iter().copied().reduce(f64::max)) {
        (Some(least), Some(most)) if least < most => {
            format!(
                " Their steps differ from what the rule had told by {:+.1} % to {:+.1} %.",
                least * 100.0,
                most * 100.0
            )
        }
        (Some(only), _) => {
            format!(" The step differs from what the rule had told by {:+.1} %.", only * 100.0)
        }
        _ => String::new(),
    };
    let won = best.map_or(String::new(), |best| format!(" One of them, trial {best}, is the best."));
    let of_the = if ended.len() == 1 { "One trial" } else { "Trials" };
    let count = if ended.len() == 1 { String::new() } else { format!(" ({})", ended.len()) };
    (!ended.is_empty()).then(|| Note {
        severity: Severity::Info,
        code: "verified".to_owned(),
        text: format!(
            "{of_the}{count} near the best that rules had made needless ran after all.{how_far}{won}"
        ),
        action: None,
    })
}

/// That nothing fits: the nearest miss, and what would make it fit.
fn nothing_fits(study: &Study, finished: &[&Trial]) -> Option<Note> {
    let status = |trial: &&&Trial, wanted| trial.outcome.as_ref().is_some_and(|one| one.status == wanted);
    if finished.iter().any(|trial| trial.outcome.as_ref().is_some_and(crate::Outcome::is_fit)) {
        return None;
    }
    let short = finished.iter().filter(|trial| status(trial, TrialStatus::OutOfMemory));
    let nearest = short
        .filter_map(|trial| Some((trial.outcome.as_ref()?.missing_bytes?, trial)))
        .min_by_key(|(missing, trial)| (*missing, trial.number));
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    match nearest {
        Some((missing, trial)) => {
            let outcome = trial.outcome.as_ref();
            let capacity = outcome.and_then(|outcome| outcome.capacity_bytes).unwrap_or(0);
            let known = outcome.is_some_and(|outcome| !outcome.notes.is_empty());
            let least = if known { "" } else { "at least " };
            Some(Note {
                severity: Severity::Error,
                code: "nothing-fits".to_owned(),
                text: format!(
                    "No configuration fits. The nearest miss is trial {} ({}): it lacks {least}{} of the {} of a device.",
                    trial.number,
                    study.text(&trial.point),
                    gib(missing),
                    gib(capacity)
                ),
                action: Some(format!(
                    "it fits on devices with {} or more; or let the space shard further (larger tensor, pipeline or \
                     data parallelism over more devices, a distributed optimizer), recompute, or take smaller \
                     micro-batches",
                    gib(capacity + missing)
                )),
            })
        }
        None => finished.first().map(|_| Note {
            severity: Severity::Error,
            code: "nothing-fits".to_owned(),
            text: "No configuration has a result.".to_owned(),
            action: Some("the table says for each trial how it ended".to_owned()),
        }),
    }
}

/// That some trials failed, with the end of the first one's output.
fn failures(finished: &[&Trial]) -> Option<Note> {
    let failed: Vec<&&Trial> = finished
        .iter()
        .filter(|trial| trial.outcome.as_ref().is_some_and(|outcome| outcome.status == TrialStatus::Failed))
        .collect();
    let first = failed.first()?;
    let last =
        first.outcome.as_ref().and_then(|outcome| outcome.last_lines.last().cloned()).unwrap_or_default();
    Some(Note {
        severity: Severity::Warning,
        code: "failed-trials".to_owned(),
        text: format!(
            "{} of {} trials failed; the first, trial {}, ended with: {last}",
            failed.len(),
            finished.len(),
            first.number
        ),
        action: Some(
            "their last lines are in the table of trials; a constraint keeps such points out".to_owned(),
        ),
    })
}
