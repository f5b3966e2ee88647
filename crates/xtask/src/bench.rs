//! `cargo xtask bench PART… [--json]`: every performance claim comes from here.
//!
//! A part is a crate's own benchmark program (`crates/PART/benches/PART.rs`): it compares with a named baseline in the
//! same run and prints a table, or one JSON object with `--json`. This command builds and runs them one after the
//! other and says on which machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Crates that carry a benchmark program.
pub(crate) const PARTS: &[&str] = &["shim", "engine", "cluster", "npu", "estimate", WORLDS];

/// The part that is no crate's: whole jobs of many ranks (`tests/bench_worlds.py`), with the built program.
const WORLDS: &str = "worlds";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Which parts; all when none is named.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(PARTS))]
    parts: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// What to pass on to the benchmarks, after `--`: `--quick`; `--callgrind` (engine: instructions per event, needs
    /// valgrind); `--full`, `--plot DIR NOTE` (cluster).
    #[arg(last = true)]
    more: Vec<String>,
}

/// Runs the chosen benchmarks in the workspace at `root`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    let Arguments { ref parts, ref more, json: as_json } = *arguments;
    let chosen: Vec<&str> =
        if parts.is_empty() { PARTS.to_vec() } else { parts.iter().map(String::as_str).collect() };
    let machine = machine();
    if !as_json {
        println!("machine: {}", machine["processor"].as_str().unwrap_or("unknown processor"));
    }
    let mut results = BTreeMap::new();
    for part in chosen {
        let mut command = match part {
            WORLDS => worlds(root),
            _ => {
                let package = format!("trompe-{part}");
                let mut command = Command::new(std::env!("CARGO"));
                command.args(["bench", "--quiet", "-p", &package, "--bench", part, "--"]);
                command
            }
        };
        command.current_dir(root).args(more);
        if as_json {
            command.arg("--json");
            let output = command.output().with_context(|| format!("cannot run the benchmark of `{part}`"))?;
            let text = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() {
                bail!("the benchmark of `{part}` failed:\n{}", String::from_utf8_lossy(&output.stderr));
            }
            let value: Value = serde_json::from_str(text.trim())
                .with_context(|| format!("the benchmark of `{part}` printed no JSON"))?;
            results.insert(part, value);
        } else {
            println!("\n== {part}");
            let status = command.status().with_context(|| format!("cannot run the benchmark of `{part}`"))?;
            if !status.success() {
                bail!("the benchmark of `{part}` failed");
            }
        }
    }
    if as_json {
        println!("{}", serde_json::to_string_pretty(&json!({ "machine": machine, "parts": results }))?);
    }
    Ok(())
}

/// The benchmark of whole jobs, with what `make build venv` made.
fn worlds(root: &Path) -> Command {
    let python = root.join(".venv/bin/python");
    let mut command = Command::new(&python);
    // This program lies in `target/debug` or `target/release`.
    let own = std::env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(2).map_or_else(|| root.join("target"), Path::to_path_buf);
    let trompe = target.join("release/trompe");
    command.arg("tests/bench_worlds.py").arg("--trompe").arg(trompe).arg("--python").arg(python);
    command
}

/// What the numbers were measured on.
fn machine() -> Value {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = cpuinfo.lines().find_map(|line| {
        line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    json!({ "processor": processor, "cores": cores })
}
