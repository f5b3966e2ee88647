//! A table of training runs: one configuration per line with its measured step time and, perhaps, memory.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Deserializer};

use crate::{Left, MeasureError, open, unreadable};

/// Columns without which a table of runs says nothing.
pub const NEEDED: [&str; 6] = ["gpu", "n_gpus", "layers", "seq", "micro_batch", "step_time_s"];

/// A training run as a table states it. Numbers that the table leaves empty are `None`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RunRow {
    /// Line of the file, from 1.
    #[serde(skip)]
    pub line: u64,
    /// Name of the row in its table.
    #[serde(default)]
    pub id: String,
    /// Where it comes from.
    #[serde(default)]
    pub source: String,
    /// What trained ("Megatron-DeepSpeed", "llm-foundry/Composer FSDP").
    #[serde(default)]
    pub framework: String,
    /// The device as the table calls it.
    pub gpu: String,
    /// Devices of the job.
    #[serde(deserialize_with = "whole")]
    pub n_gpus: Option<u64>,
    /// Devices per node.
    #[serde(default, deserialize_with = "whole")]
    pub gpus_per_node: Option<u64>,
    /// Name of the model.
    #[serde(default)]
    pub model: String,
    /// Width.
    #[serde(default, deserialize_with = "whole")]
    pub hidden: Option<u64>,
    /// Layers.
    #[serde(deserialize_with = "whole")]
    pub layers: Option<u64>,
    /// Attention heads.
    #[serde(default, deserialize_with = "whole")]
    pub heads: Option<u64>,
    /// Heads of keys and values.
    #[serde(default, deserialize_with = "whole")]
    pub kv_heads: Option<u64>,
    /// Width inside a layer's feed-forward part.
    #[serde(default, deserialize_with = "whole")]
    pub ffn: Option<u64>,
    /// Words of the vocabulary.
    #[serde(default, deserialize_with = "whole")]
    pub vocab: Option<u64>,
    /// Experts of a mixture.
    #[serde(default, deserialize_with = "whole")]
    pub n_experts: Option<u64>,
    /// Tokens of a sequence.
    #[serde(deserialize_with = "whole")]
    pub seq: Option<u64>,
    /// Sequences per step.
    #[serde(default, deserialize_with = "whole")]
    pub global_batch: Option<u64>,
    /// Sequences per micro batch and device.
    #[serde(deserialize_with = "whole")]
    pub micro_batch: Option<u64>,
    /// Tensor parallelism.
    #[serde(default, deserialize_with = "whole")]
    pub tp: Option<u64>,
    /// Pipeline parallelism.
    #[serde(default, deserialize_with = "whole")]
    pub pp: Option<u64>,
    /// Data parallelism.
    #[serde(default, deserialize_with = "whole")]
    pub dp: Option<u64>,
    /// Context parallelism.
    #[serde(default, deserialize_with = "whole")]
    pub cp: Option<u64>,
    /// Expert parallelism.
    #[serde(default, deserialize_with = "whole")]
    pub ep: Option<u64>,
    /// Virtual pipeline stages per device.
    #[serde(default, deserialize_with = "whole")]
    pub vp: Option<u64>,
    /// How parameters are sharded.
    #[serde(default)]
    pub sharding: String,
    /// What is recomputed ("full", "none", "selective+seqpar").
    #[serde(default)]
    pub recompute: String,
    /// Element type of the training ("fp16", "amp_bf16", "FP8").
    #[serde(default)]
    pub precision: String,
    /// Measured seconds per step.
    #[serde(default, deserialize_with = "number")]
    pub step_time_s: Option<f64>,
    /// Measured memory in GiB.
    #[serde(default, deserialize_with = "number")]
    pub peak_mem_gib: Option<f64>,
    /// What that memory is.
    #[serde(default)]
    pub mem_kind: String,
    /// Remarks.
    #[serde(default)]
    pub notes: String,
    /// `train` or `dev`; empty when the table does not split.
    #[serde(default)]
    pub split: String,
}

/// A number, or `None` of an empty cell.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse::<f64>().map(Some).map_err(|_| serde::de::Error::custom(format!("`{text}` is no number")))
}

/// A count that tables may write as `32.0`.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match number(deserializer)? {
        None => Ok(None),
        Some(value) if value.fract() == 0.0 && (0.0..1e15).contains(&value) => Ok(Some(value as u64)),
        Some(value) => {
            Err(serde::de::Error::custom(format!("{value} is no whole number that is not negative")))
        }
    }
}

impl RunRow {
    /// The part of the row that says what ran: rows of which it is equal repeat each other.
    #[must_use]
    pub fn configuration(&self) -> String {
        let count =
            |name: &str, value: Option<u64>| value.map_or(String::new(), |value| format!(" {name}{value}"));
        let counts: String = [
            ("gpus=", self.n_gpus),
            ("h", self.hidden),
            ("l", self.layers),
            ("a", self.heads),
            ("s", self.seq),
            ("gbs", self.global_batch),
            ("mbs", self.micro_batch),
            ("tp", self.tp),
            ("pp", self.pp),
            ("dp", self.dp),
            ("cp", self.cp),
            ("ep", self.ep),
            ("vp", self.vp),
        ]
        .into_iter()
        .map(|(name, value)| count(name, value))
        .collect();
        format!("{} {}{counts} {} {} {}", self.gpu, self.model, self.sharding, self.recompute, self.precision)
    }

    /// How the job is spread, as "TP2 PP4 DP1".
    #[must_use]
    pub fn parallelism(&self) -> String {
        let parts = [("TP", self.tp), ("PP", self.pp), ("DP", self.dp), ("CP", self.cp), ("EP", self.ep)];
        let shown = parts.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        let shown: Vec<String> = shown
            .filter(|(name, value)| *value > 1 || *name == "DP")
            .map(|(name, n)| format!("{name}{n}"))
            .collect();
        let sharding = if self.sharding.is_empty() { String::new() } else { format!(" {}", self.sharding) };
        format!("{}{sharding}", shown.join(" "))
    }
}

/// Reads a table of runs (CSV, plain or gzip). Rows of the split `train`, rows without a positive time and rows that
/// make no sense are counted in the second part of the result.
///
/// # Errors
/// When the file cannot be read, has other columns, or no row can be used.
pub fn read(path: &Path) -> Result<(Vec<RunRow>, Left), MeasureError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(open(path)?);
    let headers = reader.headers().map_err(|error| unreadable(path, &error))?.clone();
    if let Some(missing) = NEEDED.iter().find(|name| !headers.iter().any(|header| header == **name)) {
        return Err(MeasureError::OtherColumns {
            path: path.to_owned(),
            found: headers.iter().map(|header| format!("`{header}`")).collect::<Vec<_>>().join(", "),
            needed: format!(
                "one of whole runs needs {} (`{missing}` is missing)",
                NEEDED.map(|name| format!("`{name}`")).join(", ")
            ),
        });
    }
    let (mut rows, mut left) = (Vec::new(), Left::default());
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(path, &error))?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != headers.len() {
            left.add("another number of cells than columns", line);
            continue;
        }
        match record.deserialize::<RunRow>(Some(&headers)) {
            Err(error) => left.add(words(&error), line),
            Ok(row) => match usable(&row) {
                Err(reason) => left.add(reason, line),
                Ok(()) => rows.push(RunRow { line, ..row }),
            },
        }
    }
    contradicting(&rows, &mut left);
    if rows.is_empty() {
        let reason = left.lines("it").into_iter().next().unwrap_or_else(|| "it has no rows".to_owned());
        let reason = reason.trim_start_matches("it: ").to_owned();
        return Err(MeasureError::Empty { path: path.to_owned(), reason });
    }
    Ok((rows, left))
}

/// The part of a CSV error that says what is wrong with the cell.
fn words(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.kind().to_string(),
        _ => error.to_string(),
    }
}

/// Why a row cannot be compared, whatever runs it.
fn usable(row: &RunRow) -> Result<(), String> {
    if row.split == "train" {
        return Err("it is of the split `train`".to_owned());
    }
    match row.step_time_s {
        Some(seconds) if seconds > 0.0 && seconds.is_finite() => {}
        None if row.peak_mem_gib.is_some() => {}
        None => return Err("it has neither a step time nor a memory".to_owned()),
        Some(_) => return Err("its step time is not positive".to_owned()),
    }
    if row.peak_mem_gib.is_some_and(|gib| gib <= 0.0 || !gib.is_finite()) {
        return Err("its memory is not positive".to_owned());
    }
    let spread = [row.tp, row.pp, row.dp, row.cp, row.ep];
    let sizes = [row.n_gpus, row.layers, row.seq, row.micro_batch, row.global_batch, row.hidden, row.heads];
    let counts = || sizes.into_iter().chain(spread).flatten();
    if counts().any(|count| count == 0) {
        return Err("a count that must be positive is zero".to_owned());
    }
    if counts().any(|count| count > 1 << 40) {
        return Err("a count is absurdly large".to_owned());
    }
    if row.n_gpus.is_some_and(|gpus| spread.into_iter().flatten().any(|part| part > gpus || gpus > 1 << 20)) {
        return Err("it is spread over more GPUs than it has".to_owned());
    }
    if let (Some(gpus), Some(tp), Some(pp)) = (row.n_gpus, row.tp, row.pp) {
        let dp = row.dp.unwrap_or(1);
        let model = tp * pp * row.cp.unwrap_or(1);
        if gpus % model != 0 || row.dp.is_some() && gpus != model * dp {
            return Err("TP x PP x DP x CP is not the number of GPUs".to_owned());
        }
    }
    Ok(())
}

/// Notes rows that state the same configuration and differ by more than a quarter; both are compared.
fn contradicting(rows: &[RunRow], left: &mut Left) {
    let mut same = BTreeMap::<String, Vec<&RunRow>>::new();
    for row in rows {
        same.entry(format!("{} {} {} {}", row.source, row.framework, row.configuration(), row.notes))
            .or_default()
            .push(row);
    }
    for rows in same.values() {
        let times: Vec<f64> = rows.iter().filter_map(|row| row.step_time_s).collect();
        let (low, high) = times.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), t| (l.min(*t), h.max(*t)));
        if times.len() > 1 && high > 1.25 * low {
            let text = format!(
                "(compared nevertheless) {} rows state one configuration and differ by {:.0} %: {}",
                times.len(),
                (high / low - 1.0) * 100.0,
                rows[0].configuration()
            );
            left.add(text, rows[0].line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "id,source,gpu,n_gpus,layers,seq,micro_batch,tp,pp,dp,step_time_s,split\n";

    fn read_text(text: &str) -> Result<(Vec<RunRow>, Vec<String>), String> {
        // Tests run side by side, and two texts may be equally long.
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("trompe-runs-{}-{count}", std::process::id()));
        std::fs::write(&folder, text).unwrap();
        let result =
            read(&folder).map(|(rows, left)| (rows, left.lines("f"))).map_err(|error| error.to_string());
        std::fs::remove_file(&folder).unwrap();
        result
    }

    #[track_caller]
    fn left_out(row: &str, expect: &str) {
        let good = "1,s,A100,8.0,12,1024,2,2,2,2,0.5,dev\n";
        let (rows, left) = read_text(&format!("{HEADER}{good}{row}\n")).unwrap();
        assert_eq!(rows.len(), 1);
        assert!(left.iter().any(|line| line.contains(expect)), "{left:?}");
    }

    #[test]
    fn rows_that_cannot_be_compared_are_named_with_the_reason() {
        left_out("2,s,A100,8,12,1024,2,2,2,2,0,dev", "step time is not positive");
        left_out("2,s,A100,8,12,1024,2,2,2,2,-1,dev", "step time is not positive");
        left_out("2,s,A100,8,12,1024,2,2,2,2,,dev", "neither a step time nor a memory");
        left_out("2,s,A100,8,12,1024,2,2,2,2,fast,dev", "`fast` is no number");
        left_out("2,s,A100,8,12.5,1024,2,2,2,2,1,dev", "no whole number");
        left_out("2,s,A100,8,12,1024,2,2,2,4,1,dev", "TP x PP x DP x CP");
        left_out("2,s,A100,8,12,1024,0,2,2,2,1,dev", "must be positive");
        left_out("2,s,A100,8,12,1024,2,64,2,2,1,dev", "more GPUs than it has");
        left_out("2,s,A100,8,12,900000000000000,2,2,2,2,1,dev", "absurdly large");
        left_out("2,s,A100,8,12,1024,2,2,2,2,1,train", "split `train`");
        left_out("2,s,A100,8,12,1024,2,2", "another number of cells");
    }

    #[test]
    fn other_columns_are_one_error() {
        let error = read_text("a,b\n1,2\n").unwrap_err();
        assert!(error.contains("`gpu` is missing"), "{error}");
        let error = read_text(HEADER).unwrap_err();
        assert!(error.contains("it has no rows"), "{error}");
    }

    #[test]
    fn rows_that_contradict_each_other_are_compared_and_said() {
        let row = |time: &str| format!("1,s,A100,8,12,1024,2,2,2,2,{time},dev\n");
        let (rows, left) = read_text(&format!("{HEADER}{}{}", row("1.0"), row("1.5"))).unwrap();
        assert_eq!(rows.len(), 2);
        assert!(left[0].contains("differ by 50 %"), "{left:?}");
    }

    #[test]
    fn parallelism_is_told_in_short() {
        let row = RunRow { tp: Some(2), pp: Some(1), dp: Some(4), ..RunRow::default() };
        assert_eq!(row.parallelism(), "TP2 DP4");
    }
}
