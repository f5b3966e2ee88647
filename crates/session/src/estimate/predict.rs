//! A table of operations in, the same table with predictions out.

use std::path::Path;

use trompe_measure::errors::Pricing;

use super::{Data, sources, stack};
use crate::SessionError;
use crate::estimators::EstimatorChoice;

/// Columns that are added.
const ADDED: [&str; 6] =
    ["predicted_us", "low_us", "high_us", "predicted_by", "predicted_from", "training_distance"];

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicted {
    /// The table, as CSV.
    pub csv: Vec<u8>,
    /// Rows with a prediction.
    pub rows: usize,
    /// Rows without, with the first line and the reason.
    pub without: Vec<String>,
}

/// Predicts the rows of `file`; a row that states no operation keeps empty cells and is counted.
///
/// # Errors
/// When a file cannot be used.
pub fn predict(file: &Path, data: &Data, choice: &EstimatorChoice) -> Result<Predicted, SessionError> {
    let sources = sources(&data.sheets)?;
    let stack = stack(choice)?;
    let unreadable = |error: csv::Error| SessionError::from(trompe_measure::unreadable(file, &error));
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(trompe_measure::open(file)?);
    let headers = reader.headers().map_err(unreadable)?.clone();
    trompe_measure::kind(&headers, file)?;
    let mut with_time = headers.clone();
    let timed = headers.iter().any(|header| header.trim() == "time_us");
    if !timed {
        with_time.push_field("time_us");
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let all = headers.iter().chain(ADDED);
    writer.write_record(all).map_err(unreadable)?;
    let (mut rows, mut left) = (0, trompe_measure::Left::default());
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        let mut full = record.clone();
        if !timed {
            full.push_field("1");
        }
        let added: [String; 6] = match trompe_measure::read_row(&with_time, &full, &sources) {
            Ok(samples) if !samples.is_empty() => {
                rows += 1;
                let sample = &samples[0];
                let estimates: Vec<_> =
                    sample.operations.iter().map(|operation| stack.price(sample, operation)).collect();
                let sum = |part: fn(&trompe_estimate::Estimate) -> trompe_base::Duration| {
                    let seconds: f64 = estimates.iter().map(|e| part(e).as_secs_f64()).sum();
                    format!("{:.3}", seconds * 1e6)
                };
                let weakest = estimates.iter().max_by_key(|estimate| estimate.basis);
                let distance = estimates.iter().filter_map(|e| e.distance).reduce(f64::max);
                [
                    sum(|e| e.time),
                    sum(|e| e.low),
                    sum(|e| e.high),
                    weakest.map(|e| e.method.to_string()).unwrap_or_default(),
                    weakest.map(|e| e.basis.name().to_owned()).unwrap_or_default(),
                    distance.map(|d| format!("{d:.2}")).unwrap_or_default(),
                ]
            }
            Ok(_) => Default::default(),
            Err(reason) => {
                left.add(reason, line);
                Default::default()
            }
        };
        let cells = record.iter().map(str::to_owned).chain(added);
        let mut row: Vec<String> = cells.collect();
        row.resize(headers.len() + ADDED.len(), String::new());
        writer.write_record(&row).map_err(unreadable)?;
    }
    if rows == 0 {
        let reason = left.commonest();
        return Err(trompe_measure::MeasureError::Empty { path: file.to_owned(), reason }.into());
    }
    let csv = writer.into_inner().map_err(|error| SessionError::writing(file, error.into_error()))?;
    let without = left.reasons.into_iter();
    let without = without
        .map(|(reason, (count, line))| format!("{count} without prediction (first: line {line}): {reason}"));
    Ok(Predicted { csv, rows, without: without.collect() })
}
