//! One operation explained: what was asked, which model answered, what it saw and what moved its answer.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use trompe_base::Duration;
use trompe_estimate::features::Family;
use trompe_estimate::{Estimate, KernelEstimator, Physics};
use trompe_measure::{Sample, errors, table};

use super::{Data, sources, stack};
use crate::SessionError;
use crate::estimators::EstimatorChoice;

/// Contributions that are shown.
const SHOWN: usize = 8;

/// An operation in the words of the tables of measurements.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// The device, as a table would call it.
    pub gpu: String,
    /// Columns and their values, for example `m` and `4096`.
    pub columns: Vec<(String, String)>,
    /// Sheets of devices that the catalogue does not know.
    pub sheets: Vec<PathBuf>,
}

/// Everything that is known about an estimate.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// The operation in short.
    pub operation: String,
    /// The device's sheet.
    pub device: String,
    /// The estimate.
    pub estimate: Estimate,
    /// What physics alone says.
    pub physics: Estimate,
    /// The bound that the roofline gives.
    pub roofline: Duration,
    /// Why this method answered.
    pub why: String,
    /// Where the model comes from: trainer, date, sources with their licences.
    pub model: Vec<String>,
    /// Features with their values, in the model's order.
    pub features: Vec<(String, f32)>,
    /// What each feature adds to `ln(time / physics)`, largest first.
    pub contributions: Vec<(String, f64)>,
    /// The nearest rows of the tables that were given: operation, measured time, distance in doublings.
    pub neighbours: Vec<(String, Duration, f64)>,
}

/// Explains the estimate of `operation`; `data` are measurements among which to look for neighbours.
///
/// # Errors
/// When the operation is not stated in full or a file cannot be used.
pub fn explain(
    operation: &Operation,
    data: &Data,
    choice: &EstimatorChoice,
) -> Result<Explained, SessionError> {
    let sample = sample(operation)?;
    let stack = stack(choice)?;
    let (descriptor, device) = (&sample.operations[0], &sample.device);
    let physics = Physics::new();
    let estimate = stack.under(descriptor, device, &sample.conditions);
    let answer = stack.learned().and_then(|l| l.answer(descriptor, device, &sample.conditions));
    let learned = answer.as_ref().filter(|_| estimate.method.starts_with("learned."));
    let names = Family::of(descriptor).map(Family::names).unwrap_or_default();
    let seen = trompe_estimate::features::features(&physics, descriptor, device, &sample.conditions);
    let values = seen.map(|seen| seen.values).unwrap_or_default();
    let mut contributions: Vec<(String, f64)> = learned.map_or_else(Vec::new, |answer| {
        let shares = answer.model.contributions(&values);
        let named = names.iter().map(ToString::to_string).chain(["(mean of the training rows)".to_owned()]);
        named.zip(shares).collect()
    });
    contributions.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    contributions.truncate(SHOWN);
    let model = learned.map_or_else(Vec::new, |answer| {
        let card = answer.model.card();
        let mut lines = vec![format!("{} ({})", card.trainer, card.date)];
        lines.extend(card.licences.iter().cloned());
        lines
    });
    Ok(Explained {
        operation: errors::describe(descriptor),
        device: device.name.clone(),
        physics: physics.estimate(descriptor, device),
        roofline: Duration::from_secs_f64(errors::roofline(descriptor, device).max(0.0)),
        why: why(&estimate, stack.learned().is_some(), &sample),
        model,
        features: names.iter().map(ToString::to_string).zip(values.iter().copied()).collect(),
        contributions,
        neighbours: neighbours(&sample, &values, data)?,
        estimate,
    })
}

fn why(estimate: &Estimate, learned: bool, sample: &Sample) -> String {
    let family = sample.family();
    match (estimate.method.split('.').next(), estimate.distance) {
        (Some("measured"), _) => "this very operation was measured on this device".to_owned(),
        (Some("learned"), Some(0.0)) => "measurements of this size and kind lie around it".to_owned(),
        (Some("learned"), Some(distance)) => {
            format!("the nearest measured size of its kind is {distance:.1} doublings away")
        }
        (Some("physics"), _) if learned => format!(
            "no model was trained on {family} like this within {} doublings, or not for such a device",
            trompe_estimate::FAR_REACH
        ),
        (Some("physics"), _) => "only physics was asked".to_owned(),
        _ => "the estimator that was configured for this family".to_owned(),
    }
}

/// The operation as a table row would give it.
pub(super) fn sample(operation: &Operation) -> Result<Sample, SessionError> {
    let sources = sources(&operation.sheets)?;
    let mut headers = csv::StringRecord::from(vec!["gpu", "time_us"]);
    let mut record = csv::StringRecord::from(vec![operation.gpu.as_str(), "1"]);
    for (name, value) in &operation.columns {
        headers.push_field(name);
        record.push_field(value);
    }
    let found = trompe_measure::read_row(&headers, &record, &sources);
    let mut samples = found.map_err(|reason| SessionError::BadOperation { reason })?;
    if samples.is_empty() || samples[0].operations.is_empty() {
        return Err(SessionError::BadOperation { reason: "it is no single kernel".to_owned() });
    }
    Ok(samples.swap_remove(0))
}

fn neighbours(
    sample: &Sample,
    values: &[f32],
    data: &Data,
) -> Result<Vec<(String, Duration, f64)>, SessionError> {
    let Some(family) = Family::of(&sample.operations[0]) else { return Ok(Vec::new()) };
    let physics = Physics::new();
    let names = family.names();
    let at = |name: &&str| names.iter().position(|other| other == name);
    let axes = family.axes();
    let sizes: Vec<usize> = axes.sizes.iter().filter_map(at).collect();
    let classes: Vec<usize> = axes.classes.iter().filter_map(at).collect();
    let mut found = Vec::new();
    let read = data.read()?;
    for other in read.files.iter().flat_map(|file| &file.samples) {
        if other.device.name != sample.device.name {
            continue;
        }
        let Some(line) = table::line(other, family, &physics) else { continue };
        if classes.iter().any(|at| line.values[*at] != values[*at]) {
            continue;
        }
        let squares = sizes.iter().map(|at| f64::from(line.values[*at] - values[*at]).powi(2));
        found.push((squares.sum::<f64>().sqrt(), Arc::new(other.clone())));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.line.cmp(&b.1.line)));
    let nearest = found.into_iter().take(5);
    Ok(nearest
        .map(|(distance, other)| {
            let time = Duration::from_secs_f64(other.kernel_seconds());
            (format!("{} ({})", errors::describe(&other.operations[0]), other.source), time, distance)
        })
        .collect())
}
