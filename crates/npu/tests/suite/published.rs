//! Files that are made from the crate are as the crate makes them; `BLESS=1` writes them.

use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "a switch for whoever changes the table")]
fn check(path: &str, expect: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, expect).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expect, "{} is not up to date; run the test again with BLESS=1", path.display());
}

#[test]
fn published_files_are_up_to_date() {
    check("docs/npu/instructions.md", &trompe_npu::instructions_page());
    check("docs/npu/program.schema.json", &trompe_npu::Program::schema());
    check("docs/npu/job.schema.json", &trompe_npu::job::Job::schema());
    check("python/trompe/npu/instructions.json", &trompe_npu::python_table());
}
