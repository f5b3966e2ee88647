//! The commands that need no job.

use std::fs;

use crate::stage::{Stage, TORCH};

/// A stage on which one job ran.
fn after_a_run() -> Stage {
    let stage = Stage::new(TORCH, "record");
    stage.trompe(&["run", "--host", "off", "--", "python", "x.py"]).check(0, &[]);
    // From now on there is no Python.
    fs::remove_file(stage.path("bin/python")).unwrap();
    stage
}

#[test]
fn a_kept_trace_is_simulated_on_other_hardware_without_python() {
    let stage = after_a_run();
    let same = stage.trompe(&["simulate", "trompe-out"]);
    same.check(0, &["h100-sxm", "step time"]);
    let other = stage.trompe(&["simulate", "trompe-out", "--cluster", "a100", "--out", "a100"]);
    other.check(0, &["A100-SXM4-80GB", "recorded for `h100-sxm5-80`", "a100/report.json"]);
    stage.trompe(&["simulate", "a100"]).check(0, &["A100-SXM4-80GB"]);
    stage.trompe(&["simulate", "trompe-out/job.trace", "--host", "scale=2"]).check(0, &["times 2"]);
    stage.trompe(&["simulate", "nowhere"]).check(2, &["holds no trace", "hint: "]);
    stage.trompe(&["simulate", "trompe-out", "--cluster", "h1000"]).check(2, &["h1000"]);
}

#[test]
fn a_report_is_printed_again() {
    let stage = after_a_run();
    stage.trompe(&["report"]).check(0, &["FITS", "step time"]);
    stage.trompe(&["report", "trompe-out/report.json"]).check(0, &["FITS"]);
    stage.trompe(&["report", "bin"]).check(2, &["no `report.json`"]);
    let path = stage.path("work/trompe-out/report.json");
    fs::write(&path, "{\"schema_version\": 999}").unwrap();
    stage.trompe(&["report"]).check(2, &["report version 999"]);
    fs::write(&path, "{").unwrap();
    stage.trompe(&["report"]).check(2, &["cannot be understood"]);
}

#[test]
fn traces_are_shown() {
    let stage = after_a_run();
    let shown = stage.trompe(&["trace", "show", "trompe-out", "--kind", "gemm", "--limit", "2"]);
    shown.check(0, &["TN 1024 × 1024 × 1024"]);
    assert_eq!(shown.out.lines().count(), 2, "{}", shown.out);
    stage.trompe(&["trace", "show", "trompe-out/job.trace"]).check(0, &["step 0", "gemm"]);
    stage.trompe(&["trace", "show", "trompe-out", "--kind", "gem"]).check(2, &["there is no kind `gem`"]);
    stage
        .trompe(&["trace", "stats", "trompe-out"])
        .check(0, &["records by kind", "ended in an orderly way", "4 steps"]);
    stage.trompe(&["trace", "stats", "bin"]).check(2, &["holds no trace"]);
}

#[test]
fn a_damaged_trace_is_named() {
    let stage = after_a_run();
    let path = stage.path("work/trompe-out/job.trace");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    stage.trompe(&["simulate", "trompe-out"]).check(2, &["job.trace", "checksum"]);
}

#[test]
fn the_doctor_names_what_is_missing() {
    let stage = Stage::new("null", "");
    let ran = stage.trompe(&["doctor"]);
    ran.check(1, &["FAIL  pytorch", "PyTorch is not installed", "does not work yet"]);
    stage.trompe(&["doctor", "--python", "/nowhere/python"]).check(1, &["no program `/nowhere/python`"]);
}

#[test]
fn the_catalogue_is_listed() {
    let stage = Stage::new(TORCH, "");
    stage.trompe(&["gpus"]).check(0, &["h100-sxm5-80", "dgx-h100", "ascend-950pr", "1650 MHz", "196 GB/s"]);
    stage.trompe(&["gpus"]).check(0, &["h100-sxm5-80", "gh200-96", "dgx-h100", "rails-4to1", "4:1 above"]);
    let json: serde_json::Value = serde_json::from_str(&stage.trompe(&["gpus", "--json"]).out).unwrap();
    assert!(json["devices"].as_array().unwrap().len() >= 15);
}

#[test]
fn networks_are_explained() {
    let stage = Stage::new(TORCH, "");
    let explain = |operation: &str, rest: &[&str]| {
        let mut arguments = vec!["network", "explain", operation];
        arguments.extend(rest);
        stage.trompe(&arguments)
    };
    explain("all_reduce", &["--cluster", "superpod-h100", "--bytes", "1G"]).check(0, &["nvls", "simple"]);
    explain("all_reduce", &["--cluster", "selene", "--bytes", "1G"]).check(0, &["collnet"]);
    // All to all fills the way between groups of eight nodes with a quarter of the adapters' bandwidth.
    explain("all_to_all", &["--cluster", "rails-4to1", "--bytes", "1G"]).check(0, &["into the core"]);
    // Links from another tool, and what does not fit.
    let matrix = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n";
    fs::write(stage.path("work/topo.txt"), matrix).unwrap();
    let topology = ["--network", "topology=topo.txt", "--bytes", "1M", "--cluster"];
    explain("all_reduce", &[&topology[..], &["a100-sxm:2"]].concat()).check(0, &["links 0 to 1"]);
    explain("all_reduce", &[&topology[..], &["dgx-a100"]].concat()).check(2, &["topo.txt", "2 devices"]);
    // Unequal parts: the second device gets nearly everything.
    fs::write(stage.path("work/parts.txt"), "0 64M 1K\n1K 0 1K\n1K, 64M, 0\n").unwrap();
    let pairs = ["--cluster", "dgx-h100", "--devices", "0-2", "--pairs", "parts.txt"];
    explain("all_to_all", &pairs).check(0, &["port into device 1"]);
    explain("all_to_all", &["--cluster", "dgx-h100", "--pairs", "parts.txt"])
        .check(2, &["3 rows for 8 devices"]);
    explain("all_reduce", &pairs).check(2, &["only all_to_all"]);
}

#[test]
fn help_has_examples() {
    let stage = Stage::new(TORCH, "");
    for command in ["run", "simulate"] {
        stage.trompe(&[command, "--help"]).check(0, &["Examples:"]);
    }
    stage.trompe::<&str>(&[]).check(2, &["Usage: trompe"]);
}
