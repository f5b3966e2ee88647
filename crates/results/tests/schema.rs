//! `docs/report.schema.json` is the schema of this version's reports.
//!
//! Set `TROMPE_BLESS=1` to rewrite the file after a wanted change.

use std::path::PathBuf;

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may read its blessing from the environment")]
fn the_published_schema_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let mut expect = serde_json::to_string_pretty(&trompe_results::schema()).unwrap();
    expect.push('\n');
    if std::env::var_os("TROMPE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &expect).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == expect, "docs/report.schema.json is out of date: run the test with TROMPE_BLESS=1");
}
