//! A trained model and its file.
//!
//! A file is `trompe-model`, a version, and the rest as postcard in a zstd frame: the family, the names of the features
//! it was trained on, trees (thresholds as numbers into a table per feature, leaf values as 16-bit steps), where its
//! training data lie (`Coverage`), how far off it is ([`Spreads`]), and a [`Card`] that says where it comes from.
//! What is read is checked: another version, other features, damaged trees are errors that say so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::coverage::{Coverage, Near, Place};
use crate::features::{FEATURES_VERSION, Family};
use crate::forest::{Combination, Forest, ForestError, Tree};

pub use crate::spreads::Spreads;

/// Version of the file format.
pub const FORMAT_VERSION: u32 = 2;

const MAGIC: &[u8] = b"trompe-model";

/// The compression level: files are written once and read often.
const LEVEL: i32 = 19;

/// Leaf values are stored in steps of the largest one over this.
const STEPS: f32 = 32_000.0;

/// Where a model comes from and how good it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// What it is called in methods, after `learned.`.
    pub name: String,
    /// The day it was trained, as year-month-day.
    pub date: String,
    /// Library, algorithm and settings.
    pub trainer: String,
    /// Rows by source and device.
    pub rows: Vec<(String, String, u64)>,
    /// Licence and attribution of each source.
    pub licences: Vec<String>,
    /// Errors: what, device, rows, mean and median absolute error as shares.
    pub errors: Vec<CardError>,
    /// Anything else to know.
    pub notes: Vec<String>,
}

/// One line of a card's table of errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardError {
    /// How it was found: shapes left out, or a device left out.
    pub what: String,
    /// The device.
    pub device: String,
    /// Rows.
    pub rows: u64,
    /// Mean absolute error as a share.
    pub mean: f64,
    /// Median absolute error as a share.
    pub median: f64,
}

/// What a trainer hands over, readable JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trained {
    /// The family.
    pub family: Family,
    /// Names of the features, in the order of the trees' numbers.
    pub features: Vec<String>,
    /// Version of the features.
    pub features_version: u32,
    /// How trees are combined.
    pub combination: Combination,
    /// Added to every answer.
    pub base: f64,
    /// The trees, over the residual `ln(time / physics)`, or over what the models behind leave of it.
    pub trees: Vec<Tree>,
    /// Whether the trees correct the models behind this one instead of physics.
    #[serde(default)]
    pub corrects: bool,
    /// Errors on rows that were left out.
    pub spreads: Spreads,
    /// Where it comes from.
    pub card: Card,
}

/// A model, ready to be asked.
#[derive(Clone, Debug)]
pub struct Model {
    trained: Trained,
    coverage: Coverage,
    /// Sheets of the devices among the training rows.
    devices: Vec<String>,
    /// Range of each device feature among the training rows.
    device_ranges: Vec<[f32; 2]>,
    forest: Forest,
    place: Place,
}

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Not one of our files.
    #[error("it is no model file of trompe")]
    NotAModel,
    /// Written by another version.
    #[error(
        "it has format {found}, this trompe reads format {expected}; train it again with `trompe estimate fit`"
    )]
    OtherFormat {
        /// In the file.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// Trained on other features.
    #[error(
        "it was trained on features of version {found}, this trompe computes version {expected}; train it again with \
         `trompe estimate fit`"
    )]
    OtherFeatures {
        /// In the file.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// The bytes make no sense.
    #[error("it is damaged: {reason}")]
    Damaged {
        /// What the reader stumbled over.
        reason: String,
    },
    /// The trees make no sense.
    #[error("it is damaged: {0}")]
    Forest(#[from] ForestError),
}

/// The intervals of a file of format 1.
#[derive(Deserialize)]
struct SpreadsBefore {
    shapes: Vec<[f32; 2]>,
    devices: Vec<[f32; 2]>,
}

impl From<SpreadsBefore> for Spreads {
    fn from(before: SpreadsBefore) -> Self {
        Self { shapes: before.shapes, devices: before.devices, ..Self::default() }
    }
}

/// The file's content after the header.
#[derive(Serialize, Deserialize)]
struct Packed<S = Spreads> {
    family: Family,
    features: Vec<String>,
    combination: Combination,
    base: f64,
    /// Thresholds of each feature, ascending.
    cuts: Vec<Vec<f32>>,
    /// Nodes of each tree.
    lengths: Vec<u32>,
    /// Feature of each node; 255 for leaves.
    feature: Vec<u8>,
    /// Threshold number of a question, step of a leaf (from −32,000).
    number: Vec<u16>,
    /// Right successor less the node itself; the left one follows directly.
    right: Vec<u16>,
    corrects: bool,
    /// Size of a step.
    step: f32,
    coverage: Coverage,
    device_ranges: Vec<[f32; 2]>,
    spreads: S,
    card: Card,
}

impl Model {
    /// A model of `trained`, whose training rows are `rows`: the features of each and the sheet of its device.
    ///
    /// # Errors
    /// When the features are not this version's or the trees make no sense.
    pub fn new(trained: Trained, rows: &[(Vec<f32>, String)]) -> Result<Self, ModelError> {
        let own = rows.iter().map(|(features, device)| (features.as_slice(), device.as_str()));
        let coverage = Coverage::of(trained.family, own);
        let names = trained.family.names();
        let ranges =
            names.iter().enumerate().filter(|(_, name)| name.starts_with("device_")).map(|(at, _)| {
                let values = rows.iter().map(|(row, _)| row[at]);
                let (low, high) =
                    (values.clone().fold(f32::INFINITY, f32::min), values.fold(f32::NEG_INFINITY, f32::max));
                [low, high]
            });
        let device_ranges = ranges.collect();
        Self::assemble(trained, coverage, device_ranges)
    }

    fn assemble(
        trained: Trained,
        coverage: Coverage,
        device_ranges: Vec<[f32; 2]>,
    ) -> Result<Self, ModelError> {
        if trained.features_version != FEATURES_VERSION || trained.features != trained.family.names() {
            return Err(ModelError::OtherFeatures {
                found: trained.features_version,
                expected: FEATURES_VERSION,
            });
        }
        let forest = Forest::new(&trained.trees, trained.features.len(), trained.base, trained.combination)?;
        let place = Place::new(trained.family);
        let devices = coverage.devices().into_iter().map(str::to_owned).collect();
        Ok(Self { trained, coverage, devices, device_ranges, forest, place })
    }

    /// The family that it is for.
    #[must_use]
    pub fn family(&self) -> Family {
        self.trained.family
    }

    /// Where it comes from.
    #[must_use]
    pub fn card(&self) -> &Card {
        &self.trained.card
    }

    /// Sheets of the devices that it was trained on.
    #[must_use]
    pub fn devices(&self) -> Vec<&str> {
        self.devices.iter().map(String::as_str).collect()
    }

    /// Whether it was trained on the device with the sheet `device`.
    pub(crate) fn knows_device(&self, device: &str) -> bool {
        self.devices.iter().any(|known| known == device)
    }

    /// Trees, nodes and cells of shapes.
    #[must_use]
    pub fn size(&self) -> (usize, usize, usize) {
        (self.forest.trees(), self.forest.nodes(), self.coverage.cells())
    }

    /// Whether it corrects the models behind it instead of physics.
    #[must_use]
    pub fn corrects(&self) -> bool {
        self.trained.corrects
    }

    /// The predicted `ln(time / physics)`, at most a factor of six to either side.
    #[must_use]
    pub fn residual(&self, features: &[f32]) -> f64 {
        self.forest.predict(features).clamp(-1.8, 1.8)
    }

    /// What each feature contributes to the residual; the last entry is the base.
    #[must_use]
    pub fn contributions(&self, features: &[f32]) -> Vec<f64> {
        self.forest.contributions(features)
    }

    /// Where `features` on the device with the sheet `device` are among the training rows; `None` when nothing of the
    /// kind was trained on.
    #[must_use]
    pub fn near(&self, features: &[f32], device: &str) -> Option<Near> {
        self.coverage.near(&self.place, features, device)
    }

    /// Factors to both ends of the interval for `features` on the device with the sheet `device`, that physics gives
    /// `microseconds`.
    pub(crate) fn spread(&self, features: &[f32], device: &str, near: Near, microseconds: f64) -> [f64; 2] {
        let device = near.device_seen.then_some(device);
        self.trained.spreads.of(device, self.place.kind(features), microseconds)
    }

    /// Whether the model may be asked about a device that it was not trained on: its numbers must lie within what was
    /// trained on, a fifth of the range more on either side.
    pub(crate) fn carries_over(&self, features: &[f32]) -> bool {
        if self.trained.spreads.devices.is_empty() {
            return false;
        }
        let names = self.trained.features.iter().enumerate();
        let own = names.filter(|(_, name)| name.starts_with("device_")).map(|(at, _)| features[at]);
        own.zip(&self.device_ranges).all(|(value, [low, high])| {
            let margin = 0.2 * (high - low) + 0.02 * high.abs();
            (low - margin..=high + margin).contains(&value)
        })
    }

    /// Where it comes from and how good it is, as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let card = self.card();
        let (trees, nodes, cells) = self.size();
        let mut text = format!(
            "## {}\n\nFamily {}, trained {} by {}. {trees} trees, {nodes} nodes, {cells} cells of shapes.\n\n",
            card.name,
            self.family().name(),
            card.date,
            card.trainer
        );
        text.push_str(&format!("Features: {}.\n\n", self.trained.features.join(", ")));
        for note in &card.notes {
            text.push_str(&format!("Note: {note}.\n\n"));
        }
        text.push_str("| source | device | rows |\n|---|---|---:|\n");
        for (source, device, rows) in &card.rows {
            text.push_str(&format!("| {source} | {device} | {rows} |\n"));
        }
        text.push_str(
            "\n| what was left out | device | rows | mean error | median |\n|---|---|---:|---:|---:|\n",
        );
        for error in &card.errors {
            text.push_str(&format!(
                "| {} | {} | {} | {:.1} % | {:.1} % |\n",
                error.what,
                error.device,
                error.rows,
                error.mean * 100.0,
                error.median * 100.0
            ));
        }
        text.push_str(&self.trained.spreads.markdown());
        text.push_str("\nTrained on measurements of:\n\n");
        for licence in &card.licences {
            text.push_str(&format!("- {licence}\n"));
        }
        text
    }

    /// The file's bytes.
    ///
    /// # Panics
    /// Never: what is written was made by this program.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let packed = self.pack();
        let plain = postcard::to_stdvec(&packed).expect("plain data serialises");
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&FEATURES_VERSION.to_le_bytes());
        bytes.extend(zstd::encode_all(plain.as_slice(), LEVEL).expect("memory can be written"));
        bytes
    }

    /// The model of a file's bytes.
    ///
    /// # Errors
    /// When the bytes are not such a file, are damaged, or belong to another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(ModelError::NotAModel)?;
        let (Some(header), Some(body)) = (rest.get(..8), rest.get(8..)) else {
            return Err(ModelError::NotAModel);
        };
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if !(1..=FORMAT_VERSION).contains(&number(0)) {
            return Err(ModelError::OtherFormat { found: number(0), expected: FORMAT_VERSION });
        }
        // Features of an earlier version may be the same for this family; their names are compared below.
        if !(1..=FEATURES_VERSION).contains(&number(4)) {
            return Err(ModelError::OtherFeatures { found: number(4), expected: FEATURES_VERSION });
        }
        let damaged = |reason: String| ModelError::Damaged { reason };
        let plain = zstd::decode_all(body).map_err(|error| damaged(error.to_string()))?;
        let unreadable = |error: postcard::Error| damaged(error.to_string());
        if number(0) == 1 {
            return postcard::from_bytes::<Packed<SpreadsBefore>>(&plain).map_err(unreadable)?.unpack();
        }
        postcard::from_bytes::<Packed>(&plain).map_err(unreadable)?.unpack()
    }

    fn pack(&self) -> Packed {
        let trained = &self.trained;
        let mut cuts = vec![Vec::<f32>::new(); trained.features.len()];
        let questions = trained.trees.iter().flat_map(|tree| tree.feature.iter().zip(&tree.threshold));
        for (feature, threshold) in questions.filter(|(feature, _)| **feature >= 0) {
            cuts[*feature as usize].push(*threshold);
        }
        for of_feature in &mut cuts {
            of_feature.sort_by(f32::total_cmp);
            of_feature.dedup();
        }
        let leaves = trained.trees.iter().flat_map(|tree| tree.feature.iter().zip(&tree.value));
        let largest = leaves.filter(|(f, _)| **f < 0).map(|(_, value)| value.abs()).fold(1e-6_f32, f32::max);
        let step = largest / STEPS;
        let (mut lengths, mut feature, mut number, mut right) = (vec![], vec![], vec![], vec![]);
        for tree in &trained.trees {
            let before = feature.len();
            // In preorder the left successor follows its node.
            let mut open = vec![(0_u32, None::<usize>)];
            while let Some((node, from)) = open.pop() {
                let node = node as usize;
                let at = feature.len();
                if let Some(parent) = from {
                    let apart: usize = at - parent;
                    right[parent] = u16::try_from(apart).unwrap_or(u16::MAX);
                }
                right.push(0);
                if tree.feature[node] < 0 {
                    feature.push(u8::MAX);
                    number.push((tree.value[node] / step + STEPS).round() as u16);
                    continue;
                }
                let index = tree.feature[node] as usize;
                let threshold = tree.threshold[node];
                let cut = cuts[index].binary_search_by(|cut| cut.total_cmp(&threshold)).unwrap_or(0);
                feature.push(index as u8);
                number.push(cut as u16);
                open.push((tree.right[node], Some(at)));
                open.push((tree.left[node], None));
            }
            lengths.push((feature.len() - before) as u32);
        }
        Packed {
            family: trained.family,
            features: trained.features.clone(),
            combination: trained.combination,
            base: trained.base,
            cuts,
            lengths,
            feature,
            number,
            right,
            corrects: trained.corrects,
            step,
            coverage: self.coverage.clone(),
            device_ranges: self.device_ranges.clone(),
            spreads: trained.spreads.clone(),
            card: trained.card.clone(),
        }
    }
}

impl<S: Into<Spreads>> Packed<S> {
    fn unpack(self) -> Result<Model, ModelError> {
        let damaged = |reason: &str| ModelError::Damaged { reason: reason.to_owned() };
        let all: usize = self.lengths.iter().map(|length| *length as usize).sum();
        if [self.feature.len(), self.number.len(), self.right.len()].iter().any(|length| *length != all) {
            return Err(damaged("its arrays have different lengths"));
        }
        let (mut trees, mut at) = (Vec::with_capacity(self.lengths.len()), 0);
        for length in &self.lengths {
            let length = *length as usize;
            let mut tree = Tree {
                feature: vec![-1; length],
                threshold: vec![0.0; length],
                left: vec![0; length],
                right: vec![0; length],
                value: vec![0.0; length],
            };
            for node in 0..length {
                let (feature, number) = (self.feature[at + node], self.number[at + node]);
                if feature == u8::MAX {
                    tree.value[node] = (f32::from(number) - STEPS) * self.step;
                    continue;
                }
                let cuts = self.cuts.get(usize::from(feature)).ok_or_else(|| damaged("no such feature"))?;
                tree.feature[node] = i16::from(feature);
                tree.threshold[node] =
                    *cuts.get(usize::from(number)).ok_or_else(|| damaged("no such threshold"))?;
                tree.left[node] = node as u32 + 1;
                tree.right[node] = node as u32 + u32::from(self.right[at + node]);
            }
            trees.push(tree);
            at += length;
        }
        let trained = Trained {
            family: self.family,
            features: self.features,
            features_version: FEATURES_VERSION,
            combination: self.combination,
            base: self.base,
            trees,
            corrects: self.corrects,
            spreads: self.spreads.into(),
            card: self.card,
        };
        Model::assemble(trained, self.coverage, self.device_ranges)
    }
}

/// Models by family, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Models(BTreeMap<Family, Vec<Model>>);

impl Models {
    /// Puts `model` before those that are there.
    pub fn put(&mut self, model: Model) {
        self.0.entry(model.family()).or_default().insert(0, model);
    }

    /// Removes those of `family`.
    pub fn clear(&mut self, family: Family) {
        self.0.remove(&family);
    }

    /// Those of `family`.
    #[must_use]
    pub fn of(&self, family: Family) -> &[Model] {
        self.0.get(&family).map_or(&[], Vec::as_slice)
    }

    /// All of them, by family.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.0.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trained() -> Trained {
        let names: Vec<String> = Family::Streaming.names().iter().map(ToString::to_string).collect();
        let tree = Tree {
            feature: vec![2, -1, 3, -1, -1],
            threshold: vec![10.5, 0.0, 12.0, 0.0, 0.0],
            left: vec![1, 0, 4, 0, 0],
            right: vec![2, 0, 3, 0, 0],
            value: vec![0.0, -0.25, 0.0, 0.5, 0.125],
        };
        Trained {
            family: Family::Streaming,
            features: names,
            features_version: FEATURES_VERSION,
            combination: Combination::Sum,
            base: 0.01,
            trees: vec![tree.clone(), tree],
            corrects: false,
            spreads: Spreads { shapes: vec![[-0.1, 0.2]], devices: vec![[-0.3, 0.3]], ..Spreads::default() },
            card: Card { name: "test".to_owned(), ..Card::default() },
        }
    }

    fn row(rows: f32, cols: f32) -> Vec<f32> {
        let mut row = vec![0.0; Family::Streaming.names().len()];
        (row[2], row[3]) = (rows, cols);
        row
    }

    #[test]
    fn a_file_gives_the_same_answers() {
        let model = Model::new(trained(), &[(row(10.0, 12.0), "a".to_owned())]).unwrap();
        let again = Model::from_bytes(&model.to_bytes()).unwrap();
        for (rows, cols) in [(10.0, 0.0), (11.0, 12.0), (11.0, 13.0)] {
            let features = row(rows, cols);
            let apart = (model.residual(&features) - again.residual(&features)).abs();
            assert!(apart < 1e-4, "{features:?}: {apart}");
            assert_eq!(model.near(&features, "a"), again.near(&features, "a"));
        }
        assert_eq!(again.devices(), ["a"]);
        assert_eq!(again.card().name, "test");
        assert_eq!(again.to_bytes(), model.to_bytes());
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let model = Model::new(trained(), &[(row(1.0, 1.0), "a".to_owned())]).unwrap();
        let bytes = model.to_bytes();
        let check = |bytes: &[u8], expect: &str| {
            let error = Model::from_bytes(bytes).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(b"PK", "no model file");
        check(&bytes[..14], "no model file");
        check(&bytes[..bytes.len() / 2], "damaged");
        let mut newer = bytes.clone();
        newer[MAGIC.len()] = 9;
        check(&newer, "format 9");
        let mut other = bytes;
        other[MAGIC.len() + 4] = 7;
        check(&other, "features of version 7");
        let mut names = trained();
        names.features.pop();
        assert!(matches!(Model::new(names, &[]), Err(ModelError::OtherFeatures { .. })));
    }
}
