//! The trials of a study as a table of plain columns, for spreadsheets and data frames.

use trompe_results::study::{Metrics, Study, Trial};

/// A table: names of the columns, and a cell for each in every row. A cell that is not known is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

type Number = (&'static str, fn(&Metrics) -> Option<f64>);

const NUMBERS: [Number; 14] = [
    ("step_seconds", |m| Some(m.step_seconds)),
    ("step_seconds_low", |m| Some(m.step_seconds_low)),
    ("step_seconds_high", |m| Some(m.step_seconds_high)),
    ("memory_bytes", |m| Some(m.memory_bytes as f64)),
    ("capacity_bytes", |m| Some(m.capacity_bytes as f64)),
    ("tokens_per_second_per_gpu", |m| m.tokens_per_second_per_gpu),
    ("samples_per_second", |m| m.samples_per_second),
    ("cost_per_million_tokens", |m| m.cost_per_million_tokens),
    ("mfu", |m| m.mfu),
    ("compute_seconds", |m| Some(m.parts.compute)),
    ("recompute_seconds", |m| Some(m.parts.recompute)),
    ("communication_seconds", |m| Some(m.parts.communication)),
    ("bubble_seconds", |m| Some(m.parts.bubble)),
    ("host_seconds", |m| Some(m.parts.host)),
];

/// The trials of a study: number, rank, knobs, derived values, how each ended, its numbers, its command.
#[must_use]
pub fn study_table(study: &Study) -> Table {
    let names = |list: fn(&Trial) -> &Vec<trompe_results::NamedValue>| -> Vec<String> {
        study
            .trials
            .first()
            .map(|trial| list(trial).iter().map(|one| one.name.clone()).collect())
            .unwrap_or_default()
    };
    let knobs: Vec<String> = study.knobs.iter().map(|knob| knob.name.clone()).collect();
    let derived = names(|trial| &trial.derived);
    let mut columns: Vec<String> = ["trial", "rank"].map(str::to_owned).to_vec();
    columns.extend(knobs.iter().chain(&derived).cloned());
    columns.extend(["status", "origin", "rule", "because_of"].map(str::to_owned));
    columns.extend(NUMBERS.iter().map(|(name, _)| (*name).to_owned()));
    columns.extend(["missing_bytes", "seconds", "cluster", "command"].map(str::to_owned));
    let rows = study.trials.iter().map(|trial| row(study, trial, &knobs, &derived)).collect();
    Table { columns, rows }
}

fn row(study: &Study, trial: &Trial, knobs: &[String], derived: &[String]) -> Vec<String> {
    let rank = study.ranking.iter().position(|number| *number == trial.number);
    let text = |value: Option<String>| value.unwrap_or_default();
    let find = |list: &[trompe_results::NamedValue], name: &String| {
        text(list.iter().find(|one| one.name == *name).map(|one| one.value.clone()))
    };
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut cells = vec![trial.number.to_string(), text(rank.map(|rank| (rank + 1).to_string()))];
    cells.extend(knobs.iter().map(|name| find(&trial.knobs, name)));
    cells.extend(derived.iter().map(|name| find(&trial.derived, name)));
    cells.push(word(serde_json::json!(trial.status)));
    cells.push(word(serde_json::json!(trial.origin)));
    cells.push(text(trial.rule.clone()));
    cells.push(text(trial.because_of.map(|number| number.to_string())));
    let number = |of: fn(&Metrics) -> Option<f64>| trial.metrics.as_ref().and_then(of);
    cells.extend(NUMBERS.iter().map(|(_, of)| text(number(*of).map(|value| value.to_string()))));
    cells.push(text(trial.missing_bytes.map(|bytes| bytes.to_string())));
    cells.push(trial.seconds.to_string());
    cells.push(trial.job.cluster.clone());
    cells.push(trial.job.command.join(" "));
    cells
}

impl Table {
    /// The table as comma-separated values (RFC 4180).
    #[must_use]
    pub fn csv(&self) -> String {
        let cell = |text: &String| {
            if text.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.clone()
            }
        };
        let line = |cells: &Vec<String>| cells.iter().map(cell).collect::<Vec<_>>().join(",");
        let lines: Vec<String> = std::iter::once(&self.columns).chain(&self.rows).map(line).collect();
        lines.join("\r\n") + "\r\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let table = Table {
            columns: vec!["a".into(), "b".into()],
            rows: vec![vec!["1,2".into(), "say \"x\"".into()]],
        };
        assert_eq!(table.csv(), "a,b\r\n\"1,2\",\"say \"\"x\"\"\"\r\n");
    }

    #[test]
    fn every_row_has_a_cell_for_every_column() {
        let study = Study { trials: vec![Trial::default(), Trial::default()], ..Study::default() };
        let table = study_table(&study);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    }
}
