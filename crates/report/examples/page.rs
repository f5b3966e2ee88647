//! Writes the sample's page to standard output, to look at while working on it:
//! `cargo run -p trompe-report --example page > page.html`. With the path of a `report.json` it draws that, and with
//! a second path the timeline that is kept there in this crate's own shape.

#[path = "../tests/sample/mod.rs"]
mod sample;

use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let report = match arguments.next() {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
        None => sample::report(),
    };
    let timeline = match arguments.next() {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
        None => sample::timeline(),
    };
    std::io::stdout().write_all(trompe_report::html(&report, &timeline).as_bytes())
}
