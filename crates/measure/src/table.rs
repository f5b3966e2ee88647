//! Samples as a table of features, for trainers: one line per sample that a learned model may learn from.
//!
//! Columns: what a trainer needs to split, weigh and group rows, the target `ln(time / physics)`, then the features of
//! the family. One file holds one family.

use std::io::{self, Write};

use trompe_estimate::Physics;
use trompe_estimate::features::{Family, features};
use trompe_estimate::model::{Model, Trained};
use trompe_trace::descriptor::Descriptor;

use crate::Sample;

/// Columns before the features.
pub const COLUMNS: [&str; 13] = [
    "source",
    "origin",
    "split",
    "gpu",
    "sheet",
    "label",
    "shape_in_train",
    "group",
    "learnable",
    "seconds",
    "launch",
    "physics_seconds",
    "target",
];

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    /// What physics says, in seconds.
    pub physics: f64,
    /// `ln(time / physics)`.
    pub target: f64,
    /// The features.
    pub values: Vec<f32>,
}

/// The line of `sample`, when it is one operation of `family`.
#[must_use]
pub fn line(sample: &Sample, family: Family, physics: &Physics) -> Option<Line> {
    let [operation] = sample.operations.as_slice() else { return None };
    if Family::of(operation) != Some(family) {
        return None;
    }
    let found = features(physics, operation, &sample.device, &sample.conditions)?;
    let seconds = found.physics.time.as_secs_f64();
    Some(Line { physics: seconds, target: (sample.kernel_seconds() / seconds).ln(), values: found.values })
}

/// What must not be torn apart by a split for validation: products with one weight, attention with one set of heads.
#[must_use]
pub fn group(operation: &Descriptor) -> String {
    match operation {
        Descriptor::Gemm(g) => format!("{}x{}x{}", g.m, g.k, g.batch.min(2)),
        Descriptor::Attention(a) => format!("{}/{}/{}", a.heads, a.kv_heads, a.head_dim),
        Descriptor::Convolution(c) => format!("{}>{}", c.in_channels, c.out_channels),
        Descriptor::Normalization(n) => format!("norm {}", n.cols),
        Descriptor::Softmax(r) | Descriptor::CrossEntropy(r) => format!("rows {}", r.cols),
        Descriptor::Elementwise(e) => format!("elements {}", e.elements),
        Descriptor::Embedding(e) => format!("embedding {}", e.width),
        other => other.family().to_owned(),
    }
}

/// The model of trees that were trained outside (`trained`, JSON) on a table of features (`features`, CSV): of it the
/// rows count that a model learns from and, for matrix products, those of the unit that the model's name ends with.
///
/// # Errors
/// In words, when either makes no sense.
pub fn pack(trained: &[u8], features: &[u8]) -> Result<Model, String> {
    let trained: Trained = serde_json::from_slice(trained).map_err(|error| error.to_string())?;
    let mut reader = csv::Reader::from_reader(features);
    let headers = reader.headers().map_err(|error| error.to_string())?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name);
    let (Some(split), Some(sheet), Some(learnable)) = (column("split"), column("sheet"), column("learnable"))
    else {
        return Err("it is no table of `trompe estimate features`".to_owned());
    };
    let unit = match trained.card.name.rsplit('.').next() {
        Some("half") => Some(3.0),
        Some("lanes") => Some(1.0),
        Some("fp8") => Some(4.0),
        _ => None,
    };
    let unit = unit.zip(column("unit"));
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let other_unit = unit.is_some_and(|(unit, at)| record[at].parse() != Ok::<f64, _>(unit));
        if &record[split] == "dev" || &record[learnable] != "1" || other_unit {
            continue;
        }
        let values: Result<Vec<f32>, _> = record.iter().skip(COLUMNS.len()).map(str::parse).collect();
        let values = values.map_err(|error| error.to_string())?;
        if values.len() != trained.features.len() {
            return Err(format!(
                "the table has {} features, the model {}",
                values.len(),
                trained.features.len()
            ));
        }
        rows.push((values, record[sheet].to_owned()));
    }
    Model::new(trained, &rows).map_err(|error| error.to_string())
}

/// Writes the table of `family`, as CSV.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(
    samples: &[Sample],
    family: Family,
    physics: &Physics,
    out: &mut dyn Write,
) -> io::Result<usize> {
    writeln!(out, "{},{}", COLUMNS.join(","), family.names().join(","))?;
    let mut lines = 0;
    for sample in samples {
        let Some(line) = line(sample, family, physics) else { continue };
        let text = |text: &str| text.replace([',', '"', '\n'], " ");
        write!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            text(&sample.source),
            text(sample.origin()),
            text(&sample.split),
            text(&sample.gpu),
            sample.device.name,
            text(&sample.label),
            sample.shape_in_train.map_or("", |known| if known { "1" } else { "0" }),
            group(&sample.operations[0]),
            u8::from(sample.learnable),
            sample.seconds,
            sample.launch,
            line.physics,
            line.target
        )?;
        for value in line.values {
            write!(out, ",{value}")?;
        }
        writeln!(out)?;
        lines += 1;
    }
    Ok(lines)
}
