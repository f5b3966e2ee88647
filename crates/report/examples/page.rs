//! Writes the sample's page to standard output, to look at while working on it:
//! `cargo run -p trompe-report --example page > /tmp/page.html`. With the path of a `report.json` it draws that.

#[path = "../tests/sample/mod.rs"]
mod sample;

use std::io::Write;

fn main() -> std::io::Result<()> {
    let report = match std::env::args().nth(1) {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
        None => sample::report(),
    };
    std::io::stdout().write_all(trompe_report::html(&report, &sample::timeline()).as_bytes())
}
