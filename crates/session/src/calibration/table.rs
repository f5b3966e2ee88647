//! From measured operations to rows: medians and quantiles, what is implausible, what contradicts itself, and samples to
//! learn from.

use std::collections::BTreeMap;
use std::sync::Arc;

use trompe_estimate::features::Conditions;
use trompe_estimate::table::key;
use trompe_estimate::{KernelEstimator, Stack};
use trompe_hardware::DeviceSheet;
use trompe_measure::train::CONTRADICTION;
use trompe_measure::{Sample, errors};

use super::{Observed, Row};

/// Shorter measurements vary too much to contradict each other, in microseconds.
const SHORT_US: f64 = 5.0;

/// Share of the least time that arithmetic and traffic take below which a time cannot be true: small tensors come from the
/// cache, and a convolution may need a quarter of the products that its definition has (Winograd).
const FASTEST: f64 = 0.2;

/// Two sources that disagree about one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// The operation.
    pub what: String,
    /// The device.
    pub gpu: String,
    /// Smallest and largest median in microseconds.
    pub times_us: [f64; 2],
    /// Their sources.
    pub sources: [String; 2],
}

/// Where rows come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) device: &'a DeviceSheet,
    /// What the rows call the device: its name, or the file of a sheet of the user's own.
    pub(super) gpu: &'a str,
    pub(super) source: &'a str,
    pub(super) date: &'a str,
}

/// One row per operation of `observed`.
pub(super) fn rows<'a>(observed: impl Iterator<Item = &'a Observed>, origin: Origin<'_>) -> Vec<Row> {
    let mut groups = BTreeMap::new();
    // A call of a library without shapes is found by nothing.
    for one in observed.filter(|one| one.exact || one.launch.is_some()) {
        let operation = one.exact.then(|| key(&one.descriptor, origin.device));
        let group =
            groups.entry((one.kernel.as_str(), one.launch, operation)).or_insert_with(|| (one, Vec::new()));
        group.1.push(one.seconds * 1e6);
    }
    let row = |(one, times): (&Observed, Vec<f64>)| Row {
        gpu: origin.gpu.to_owned(),
        kernel: one.kernel.clone(),
        grid: one.launch.map(|(grid, _)| grid),
        block: one.launch.map(|(_, block)| block),
        operation: one.exact.then(|| one.descriptor.clone()),
        count: times.len() as u64,
        time_us: rounded(quantile(&times, 0.5)),
        low_us: rounded(quantile(&times, 0.1)),
        high_us: rounded(quantile(&times, 0.9)),
        source: origin.source.to_owned(),
        date: origin.date.to_owned(),
    };
    groups.into_values().map(row).collect()
}

/// The value below which `share` of `values` lie.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    errors::quantile(&values, share)
}

/// To nanoseconds: no profiler tells more.
fn rounded(microseconds: f64) -> f64 {
    (microseconds * 1e3).round().max(1.0) / 1e3
}

/// Whether a device cannot be as fast as `one` was.
pub(super) fn is_impossible(one: &Observed, device: &DeviceSheet) -> bool {
    let least = if one.exact { errors::roofline(&one.descriptor, device) } else { f64::NAN };
    one.seconds < least * FASTEST
}

/// What times must be divided by, when they are so far from what is predicted that they must be in another unit: a thousand
/// for nanoseconds taken for microseconds, a thousandth for milliseconds; 1 otherwise. Asked of at least ten operations.
pub(super) fn unit<'a>(
    observed: impl Iterator<Item = &'a Observed>,
    device: &DeviceSheet,
    stack: &Stack,
) -> f64 {
    let ratios: Vec<f64> = observed
        .filter(|one| one.exact)
        .take(2000)
        .map(|one| one.seconds / stack.estimate(&one.descriptor, device).time.as_secs_f64())
        .collect();
    if ratios.len() < 10 {
        return 1.0;
    }
    match quantile(&ratios, 0.5) {
        100.0..1e5 => 1e3,
        1e-5..0.01 => 1e-3,
        _ => 1.0,
    }
}

/// A line about operations that one table or trace states with times that differ too much to be repeats of each other.
pub(super) fn contradicting(rows: &[Row]) -> Option<String> {
    let apart = |row: &&Row| row.low_us >= SHORT_US && row.high_us > row.low_us * CONTRADICTION;
    let mut found: Vec<&Row> = rows.iter().filter(apart).collect();
    found.sort_by(|a, b| (b.high_us / b.low_us).total_cmp(&(a.high_us / a.low_us)));
    let worst = found.first()?;
    Some(format!(
        "{} of the operations were measured more than once with times that differ by more than {:.0} % (most: {}, {} to {} us \
         on {}); the median is learned, with the range as its interval",
        found.len(),
        (CONTRADICTION - 1.0) * 100.0,
        worst.kernel,
        worst.low_us,
        worst.high_us,
        worst.gpu
    ))
}

/// What rows of different sources disagree about, furthest apart first.
pub(super) fn disagreements(rows: &[Row]) -> Vec<Disagreement> {
    let mut groups = BTreeMap::<(&str, String), Vec<&Row>>::new();
    for row in rows.iter().filter(|row| row.time_us >= SHORT_US) {
        if let Some(operation) = &row.operation {
            let canonical = trompe_estimate::table::canonical(operation);
            let text = serde_json::to_string(&canonical).expect("plain data has a JSON form");
            groups.entry((&row.gpu, text)).or_default().push(row);
        }
    }
    let mut found: Vec<Disagreement> = groups
        .into_values()
        .filter_map(|mut rows| {
            rows.sort_by(|a, b| a.time_us.total_cmp(&b.time_us).then_with(|| a.source.cmp(&b.source)));
            let (first, last) = (rows.first()?, rows.last()?);
            let apart = last.time_us > first.time_us * CONTRADICTION && first.source != last.source;
            apart.then(|| Disagreement {
                what: first.operation.as_ref().map(errors::describe).unwrap_or_default(),
                gpu: first.gpu.clone(),
                times_us: [first.time_us, last.time_us],
                sources: [first.source.clone(), last.source.clone()],
            })
        })
        .collect();
    let ratio = |d: &Disagreement| d.times_us[1] / d.times_us[0];
    found.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)).then_with(|| a.what.cmp(&b.what)));
    found
}

/// The samples to learn from: rows whose operation is known in full.
pub(super) fn samples(
    rows: &[Row],
    sheets: &mut super::rows::Sheets,
) -> Result<Vec<Sample>, crate::SessionError> {
    let mut samples = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(operation) = &row.operation else { continue };
        let device: Arc<DeviceSheet> = sheets.get(&row.gpu)?;
        samples.push(Sample {
            operations: vec![operation.clone()],
            gpu: row.gpu.clone(),
            device,
            // What a job is predicted for.
            conditions: Conditions::default(),
            seconds: row.time_us * 1e-6,
            launch: 0.0,
            learnable: true,
            source: row.source.clone(),
            split: String::new(),
            shape_in_train: None,
            label: String::new(),
            line: at as u64 + 2,
        });
    }
    Ok(samples)
}
