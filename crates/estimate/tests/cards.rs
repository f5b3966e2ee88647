//! The published cards are those of the built-in models, and the models stay small.
//!
//! Set `TROMPE_BLESS=1` to rewrite `docs/model-cards.md` after models were trained.

use std::path::Path;

use trompe_estimate::Learned;
use trompe_estimate::features::Family;

const HEAD: &str = "# Cards of the built-in models

What `trompe estimate card` prints: for each model file of `crates/estimate/models` the data that it was trained on with their
licences, its features, its errors on rows that it was trained without, and its intervals. Written by the training itself
([tools/train](../tools/train/README.md)); errors on rows of other frameworks are in
[the crate's README](../crates/estimate/README.md).

";

/// All model files together.
const MOST_BYTES: u64 = 10_000_000;

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may read its blessing from the environment")]
fn the_published_cards_are_those_of_the_models() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cards: Vec<String> = Learned::builtin().models().iter().map(|model| model.markdown()).collect();
    let expect = format!("{HEAD}{}", cards.join("\n"));
    let path = root.join("../../docs/model-cards.md");
    if std::env::var_os("TROMPE_BLESS").is_some() {
        std::fs::write(&path, &expect).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == expect, "docs/model-cards.md is out of date: run the test with TROMPE_BLESS=1");
}

#[test]
fn every_card_says_where_its_model_comes_from_and_how_good_it_is() {
    let learned = Learned::builtin();
    for family in Family::ALL {
        assert!(!learned.models().of(family).is_empty(), "{} has no model", family.name());
    }
    for model in learned.models().iter() {
        let card = model.card();
        assert!(!card.rows.is_empty() && !card.trainer.is_empty() && !card.date.is_empty(), "{}", card.name);
        assert!(card.errors.iter().all(|error| error.mean > 0.0 && error.rows > 0), "{}", card.name);
        for (source, ..) in &card.rows {
            assert!(!card.licences.is_empty(), "{}: {source} has no licence", card.name);
        }
    }
}

#[test]
fn the_model_files_are_small() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let files = std::fs::read_dir(folder).unwrap();
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
}
