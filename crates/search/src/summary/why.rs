//! Why a trial is worse than the best one, in a few words.

use trompe_results::study::TrialStatus;

use crate::study::Trial;

/// A part of the step is named when it makes up this share of the difference.
const WORTH_NAMING: f64 = 0.25;

/// Why `trial` loses; `None` for the best.
pub(super) fn worse(trial: &Trial, best: Option<&Trial>) -> Option<String> {
    let outcome = trial.outcome.as_ref()?;
    match outcome.status {
        TrialStatus::OutOfMemory => {
            return Some(match outcome.missing_bytes {
                Some(missing) => format!("lacks {:.1} GiB", missing as f64 / f64::from(1 << 30)),
                None => "out of memory".to_owned(),
            });
        }
        TrialStatus::Failed => {
            return Some(outcome.last_lines.last().cloned().unwrap_or_else(|| "failed".to_owned()));
        }
        TrialStatus::Stopped => return Some("compute alone takes longer than the best".to_owned()),
        TrialStatus::NoBetter => return trial.rule.clone(),
        TrialStatus::OverLimit => return Some("over a limit of the space file".to_owned()),
        TrialStatus::Fits => {}
    }
    let best = best.filter(|best| best.number != trial.number)?;
    let (own, other) = (outcome.metrics.as_ref()?, best.outcome.as_ref()?.metrics.as_ref()?);
    let difference = own.step_seconds - other.step_seconds;
    if difference <= other.step_seconds * 1e-3 {
        return Some("as fast".to_owned());
    }
    let mut parts: Vec<(&str, f64)> = own
        .parts
        .named()
        .iter()
        .zip(other.parts.named())
        .map(|((name, own), (_, other))| (*name, own - other))
        .filter(|(_, more)| *more > WORTH_NAMING * difference)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, more)| format!("+{:.0} % {name}", more / other.step_seconds * 100.0))
        .collect();
    if parts.is_empty() {
        return Some(format!("+{:.0} %", difference / other.step_seconds * 100.0));
    }
    Some(parts.join(", "))
}
