//! Checks of a whole space: names exist and are used once, knobs have values.

use std::collections::BTreeSet;

use super::batch::{GLOBAL_BATCH, MICRO_BATCHES};
use super::{MACHINE_NAMES, Space, SpaceError};

/// Checks a space that has been read.
pub(super) fn check(space: &Space) -> Result<(), SpaceError> {
    knobs_have_values(space)?;
    let known = names(space)?;
    let look = |place: &str, names: &BTreeSet<String>, known: &BTreeSet<String>| match names
        .difference(known)
        .next()
    {
        None => Ok(()),
        Some(name) => Err(SpaceError::UnknownName {
            place: place.to_owned(),
            name: name.clone(),
            suggestion: suggestion(name, known),
        }),
    };
    for derived in &space.derived {
        look(&format!("`{}` in [derived]", derived.name), &derived.value.names, &known)?;
    }
    for constraint in &space.constraints {
        look(&format!("the constraint `{}`", constraint.rule.source), &constraint.rule.names, &known)?;
    }
    for rule in &space.rules {
        if let Some(condition) = &rule.condition {
            look(&format!("the pruning rule `{}`", rule.name), &condition.names, &known)?;
        }
    }
    if let Some(sequence) = space.batch.as_ref().and_then(|batch| batch.sequence.as_ref()) {
        look("`sequence` in [batch]", &sequence.names, &known)?;
    }
    if let Some(sampling) = &space.sampling {
        look("`first` in [sampling]", &sampling.first.names, &known)?;
        look("`second` in [sampling]", &sampling.second.names, &known)?;
        sampling_is_possible(space)?;
    }
    if let Some(replicas) = &space.replicas {
        let place = "`replicas` in [hardware]";
        look(place, &BTreeSet::from([replicas.degree.clone()]), &known)?;
        look(place, &replicas.apart.names, &known)?;
        replicas.condition.iter().try_for_each(|condition| look(place, &condition.names, &known))?;
    }
    if let Some(ranks) = &space.trial.ranks {
        look("`ranks` in [trial]", &ranks.names(), &known)?;
    }
    let mut with_files = known;
    with_files.extend(space.job.files.iter().map(|file| file.name.clone()));
    let used = space.job.names();
    let used =
        used.map_err(|(name, reason)| SpaceError::Part { place: format!("the file `{name}`"), reason })?;
    used.iter().try_for_each(|(place, names)| look(place, names, &with_files))
}

fn knobs_have_values(space: &Space) -> Result<(), SpaceError> {
    let wrong = |place: String, reason: String| SpaceError::Part { place, reason };
    if space.knobs.is_empty() {
        return Err(wrong("[knobs]".to_owned(), "there is no knob to turn".to_owned()));
    }
    for knob in &space.knobs {
        let place = format!("the knob `{}`", knob.name);
        if knob.values.is_empty() {
            return Err(wrong(place, "it has no values".to_owned()));
        }
        for (index, value) in knob.values.iter().enumerate() {
            if knob.values[..index].contains(value) {
                return Err(wrong(place, format!("the value {value} is given twice")));
            }
        }
    }
    Ok(())
}

/// Every name that expressions may use.
fn names(space: &Space) -> Result<BTreeSet<String>, SpaceError> {
    let mut known: BTreeSet<String> = MACHINE_NAMES.into_iter().map(str::to_owned).collect();
    for (name, hardware) in space.knobs.iter().map(|knob| (&knob.name, knob.hardware)) {
        if !known.insert(name.clone()) && !hardware {
            let reason = "a knob or a fact about the cluster has this name already".to_owned();
            return Err(SpaceError::Part { place: format!("the knob `{name}`"), reason });
        }
    }
    for derived in &space.derived {
        if !known.insert(derived.name.clone()) {
            let place = format!("`{}` in [derived]", derived.name);
            let own = [GLOBAL_BATCH, MICRO_BATCHES].contains(&derived.name.as_str()) && space.batch.is_some();
            let by = if own { "[batch] gives this name" } else { "something else has this name" };
            return Err(SpaceError::Part { place, reason: format!("{by} already") });
        }
    }
    Ok(known)
}

/// Fewer micro-batches are run by giving the script a smaller global batch, so its command must say it.
fn sampling_is_possible(space: &Space) -> Result<(), SpaceError> {
    let says = |reason: &str| SpaceError::Part { place: "[sampling]".to_owned(), reason: reason.to_owned() };
    if space.batch.is_none() {
        return Err(says("there is no [batch] whose micro-batches it could leave out"));
    }
    let names = space.job.names().unwrap_or_default();
    let said = [GLOBAL_BATCH, MICRO_BATCHES];
    if names.iter().any(|(_, names)| said.iter().any(|name| names.contains(*name))) {
        return Ok(());
    }
    Err(says(
        "neither `{global_batch}` nor `{micro_batches}` is in the command, so the script cannot be told to do less",
    ))
}

fn suggestion(name: &str, known: &BTreeSet<String>) -> Option<String> {
    const LIKE: f64 = 0.8;
    known
        .iter()
        .map(|other| (strsim::jaro_winkler(name, other), other))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, other)| other.clone())
}
