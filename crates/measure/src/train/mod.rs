//! Learning from measurements, in the product: a user's rows become exact measurements and models.
//!
//! A family with enough rows gets a model. By default it *corrects* the built-in one (its target is what that leaves
//! unexplained), so a few dozen rows already help and shapes that the user did not measure keep the built-in answer;
//! with `replace` it stands alone over physics. Its intervals come from groups of shapes that were left out in turn.
//! Rows of the `dev` split are never used.

mod trees;

use std::collections::{BTreeMap, BTreeSet};

use trompe_base::Rng;
use trompe_estimate::bundle::Bundle;
use trompe_estimate::features::{FEATURES_VERSION, Family, features};
use trompe_estimate::forest::{Combination, Forest};
use trompe_estimate::model::{Card, CardError, Model, ModelError, Spreads, Trained};
use trompe_estimate::table::{Table, key};
use trompe_estimate::{Learned, Physics};

use crate::table::group;
use crate::{Sample, sources::Sources};

pub use trees::{Rows, Settings, fit as fit_trees};

/// Fewest rows of a family for a model.
pub const FEWEST: usize = 40;

/// Parts that are left out in turn.
const FOLDS: usize = 4;

/// Largest over smallest time of one operation from which its rows contradict each other.
pub const CONTRADICTION: f64 = 1.25;

/// Doublings of the physics time that intervals tell apart.
const BUCKETS: usize = 16;

/// How to learn.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the model is called in methods.
    pub name: String,
    /// The day, for the card.
    pub date: String,
    /// Boosting or forest.
    pub combination: Combination,
    /// Stand alone instead of correcting the built-in models.
    pub replace: bool,
    /// Only this family.
    pub family: Option<Family>,
}

/// One operation whose measurements differ by more than [`CONTRADICTION`].
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    /// Family and label.
    pub what: String,
    /// Device.
    pub gpu: String,
    /// Smallest and largest time in seconds.
    pub seconds: [f64; 2],
    /// Their lines.
    pub lines: [u64; 2],
}

/// What was learned about one family.
#[derive(Clone, Debug, PartialEq)]
pub struct Learning {
    /// The family.
    pub family: Family,
    /// Rows that were learned from.
    pub rows: usize,
    /// Mean absolute error before and after, on groups of shapes that were left out; `None` with too few rows.
    pub errors: Option<[f64; 2]>,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The file's content.
    pub bundle: Bundle,
    /// Per family.
    pub learned: Vec<Learning>,
    /// Rows that contradict each other, worst first.
    pub contradictions: Vec<Contradiction>,
    /// Rows of the `dev` split that were left alone.
    pub held_out: usize,
}

/// One row to learn from.
struct Example {
    values: Vec<f32>,
    /// What the models behind leave of `ln(time / physics)`.
    target: f64,
    microseconds: f64,
    group: u64,
    device: String,
}

/// Learns from `samples`.
///
/// # Errors
/// When the trees make no sense, which would be a bug of the trainer.
pub fn learn(samples: &[Sample], sources: &Sources, options: &Options) -> Result<Outcome, ModelError> {
    let usable: Vec<&Sample> =
        samples.iter().filter(|s| s.split != "dev" && s.operations.len() == 1 && s.learnable).collect();
    let held_out = samples.iter().filter(|sample| sample.split == "dev").count();
    let wanted = |sample: &&&Sample| {
        options.family.is_none_or(|family| Family::of(&sample.operations[0]) == Some(family))
    };
    let usable: Vec<&Sample> = usable.iter().filter(wanted).copied().collect();
    let mut table = Table::new(&options.name);
    for sample in &usable {
        table.add(&sample.operations[0], &sample.device, sample.kernel_seconds());
    }
    let (builtin, physics) = (Learned::builtin(), Physics::new());
    let (mut models, mut learned, mut replaces) = (Vec::new(), Vec::new(), Vec::new());
    for family in Family::ALL {
        let examples: Vec<Example> = usable
            .iter()
            .filter_map(|sample| example(sample, family, &builtin, &physics, options.replace))
            .collect();
        if examples.is_empty() {
            continue;
        }
        if examples.len() < FEWEST {
            learned.push(Learning { family, rows: examples.len(), errors: None });
            continue;
        }
        let residuals = left_out(&examples, options.combination);
        let before = mean(examples.iter().map(|e| (e.target.exp() - 1.0).abs() / e.target.exp()));
        let after = mean(residuals.iter().map(|r| ((-r).exp() - 1.0).abs()));
        learned.push(Learning { family, rows: examples.len(), errors: Some([before, after]) });
        let card = card(&usable, family, sources, options, after);
        models.push(model(family, &examples, &residuals, card, options)?);
        if options.replace {
            replaces.push(family);
        }
    }
    let contradictions = contradictions(&usable);
    Ok(Outcome { bundle: Bundle { table, models, replaces }, learned, contradictions, held_out })
}

fn example(
    sample: &Sample,
    family: Family,
    builtin: &Learned,
    physics: &Physics,
    replace: bool,
) -> Option<Example> {
    let operation = &sample.operations[0];
    if Family::of(operation) != Some(family) {
        return None;
    }
    let found = features(physics, operation, &sample.device, &sample.conditions)?;
    let seconds = found.physics.time.as_secs_f64();
    let behind = if replace {
        0.0
    } else {
        builtin.answer(operation, &sample.device, &sample.conditions).map_or(0.0, |answer| answer.residual())
    };
    Some(Example {
        values: found.values,
        target: (sample.kernel_seconds() / seconds).ln() - behind,
        microseconds: seconds * 1e6,
        group: stable(&group(operation)),
        device: sample.device.name.clone(),
    })
}

/// The same number for the same text in every run (FNV-1a).
fn stable(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn trees(examples: &[&Example], combination: Combination) -> Vec<trompe_estimate::forest::Tree> {
    let features: Vec<&[f32]> = examples.iter().map(|example| example.values.as_slice()).collect();
    let targets: Vec<f64> = examples.iter().map(|example| example.target).collect();
    let mut counts = BTreeMap::<&str, f64>::new();
    for example in examples {
        *counts.entry(&example.device).or_default() += 1.0;
    }
    // Devices with many rows count less per row, but more in all.
    let weights: Vec<f64> =
        examples.iter().map(|example| counts[example.device.as_str()].powf(-0.5)).collect();
    let average = mean(weights.iter().copied());
    let weights: Vec<f64> = weights.into_iter().map(|weight| weight / average).collect();
    let settings = Settings::for_rows(combination, examples.len());
    fit_trees(Rows { features: &features, targets: &targets, weights: &weights }, &settings)
}

/// `ln(measured / predicted)` of each example, predicted without its group.
fn left_out(examples: &[Example], combination: Combination) -> Vec<f64> {
    let groups: BTreeSet<u64> = examples.iter().map(|example| example.group).collect();
    let mut random = Rng::new(1);
    let fold: BTreeMap<u64, usize> =
        groups.into_iter().map(|group| (group, random.below(FOLDS as u64) as usize)).collect();
    let mut residuals: Vec<f64> = examples.iter().map(|example| example.target).collect();
    for part in 0..FOLDS {
        let seen: Vec<&Example> = examples.iter().filter(|example| fold[&example.group] != part).collect();
        let width = examples.first().map_or(0, |example| example.values.len());
        let Ok(forest) = Forest::new(&trees(&seen, combination), width, 0.0, combination) else { continue };
        for (example, residual) in examples.iter().zip(&mut residuals) {
            if fold[&example.group] == part {
                *residual = example.target - forest.predict(&example.values);
            }
        }
    }
    residuals
}

fn model(
    family: Family,
    examples: &[Example],
    residuals: &[f64],
    card: Card,
    options: &Options,
) -> Result<Model, ModelError> {
    let all: Vec<&Example> = examples.iter().collect();
    let trained = Trained {
        family,
        features: family.names().iter().map(ToString::to_string).collect(),
        features_version: FEATURES_VERSION,
        combination: options.combination,
        base: 0.0,
        trees: trees(&all, options.combination),
        corrects: !options.replace,
        // A user's rows say nothing about devices that they do not hold.
        spreads: Spreads { shapes: spreads(examples, residuals), devices: Vec::new(), ..Spreads::default() },
        card,
    };
    let rows: Vec<(Vec<f32>, String)> =
        examples.iter().map(|example| (example.values.clone(), example.device.clone())).collect();
    Model::new(trained, &rows)
}

/// 10 and 90 % quantiles of the residuals by doublings of the physics time; sparse ones take their neighbours'.
fn spreads(examples: &[Example], residuals: &[f64]) -> Vec<[f32; 2]> {
    let bucket = |example: &Example| (example.microseconds.max(1.0).log2() as usize).min(BUCKETS - 1);
    let of = |wanted: usize| {
        for reach in 0..BUCKETS {
            let near = examples.iter().zip(residuals).filter(|(e, _)| bucket(e).abs_diff(wanted) <= reach);
            let mut found: Vec<f64> = near.map(|(_, residual)| *residual).collect();
            if found.len() >= FEWEST.min(examples.len()) {
                found.sort_by(f64::total_cmp);
                let at = |share: f64| found[((found.len() - 1) as f64 * share).round() as usize] as f32;
                return [at(0.1), at(0.9)];
            }
        }
        [-0.2, 0.2]
    };
    (0..BUCKETS).map(of).collect()
}

fn card(samples: &[&Sample], family: Family, sources: &Sources, options: &Options, error: f64) -> Card {
    let mut counts = BTreeMap::<(String, String), u64>::new();
    let mut licences = BTreeSet::new();
    let own = samples.iter().filter(|sample| Family::of(&sample.operations[0]) == Some(family));
    for sample in own.clone() {
        *counts.entry((sample.origin().to_owned(), sample.gpu.clone())).or_default() += 1;
        licences.insert(sources.source(&sample.source, "").licence);
    }
    licences.remove("");
    let kind = match options.combination {
        Combination::Sum => "gradient boosting",
        Combination::Mean => "random forest",
    };
    let over = if options.replace { "physics" } else { "the built-in models" };
    Card {
        name: format!("{}.{}", options.name, family.name()),
        date: options.date.clone(),
        trainer: format!("`trompe estimate fit`: {kind} over {over}"),
        rows: counts.into_iter().map(|((origin, gpu), count)| (origin, gpu, count)).collect(),
        licences: licences.into_iter().collect(),
        errors: vec![CardError {
            what: "groups of shapes left out".to_owned(),
            device: "all".to_owned(),
            rows: own.count() as u64,
            mean: error,
            median: 0.0,
        }],
        notes: Vec::new(),
    }
}

/// Operations that were measured more than once with times that differ too much.
#[must_use]
pub fn contradictions(samples: &[&Sample]) -> Vec<Contradiction> {
    let mut by_operation = BTreeMap::<u64, Vec<&Sample>>::new();
    for sample in samples {
        by_operation.entry(key(&sample.operations[0], &sample.device)).or_default().push(sample);
    }
    let mut found: Vec<Contradiction> = by_operation
        .into_values()
        .filter_map(|mut all| {
            all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let (first, last) = (all.first()?, all.last()?);
            (last.seconds > first.seconds * CONTRADICTION).then(|| Contradiction {
                what: format!("{} {}", first.family(), first.label),
                gpu: first.gpu.clone(),
                seconds: [first.seconds, last.seconds],
                lines: [first.line, last.line],
            })
        })
        .collect();
    let ratio = |c: &Contradiction| c.seconds[1] / c.seconds[0];
    found.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)).then_with(|| a.lines.cmp(&b.lines)));
    found
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}
