//! `docs/report.schema.json` and `docs/study.schema.json` are the schemas of what this version writes.
//!
//! Set `TROMPE_BLESS=1` to rewrite the files after a wanted change.

use std::path::PathBuf;

#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a test may read its blessing from the environment")]
fn check(name: &str, schema: &impl serde::Serialize) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let mut expect = serde_json::to_string_pretty(schema).unwrap();
    expect.push('\n');
    if std::env::var_os("TROMPE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &expect).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == expect, "docs/{name} is out of date: run the test with TROMPE_BLESS=1");
}

#[test]
fn the_published_schema_is_current() {
    check("report.schema.json", &trompe_results::schema());
}

#[test]
fn the_published_schema_of_studies_is_current() {
    check("study.schema.json", &trompe_results::study::schema());
}
