//! `trompe run` with a fake Python: the whole way from a command to a report, and everything that can be wrong before.

use std::fs;
use std::time::Duration;

use crate::stage::{Ran, Stage, TORCH, report};
use trompe_results::{HostMode, StepRule, VerdictStatus};

#[track_caller]
fn refused(torch: &str, arguments: &[&str], texts: &[&str]) {
    let stage = Stage::new(torch, "echo SCRIPT RAN");
    let ran = stage.trompe(arguments);
    ran.check(2, &["error: ", "hint: "]).check(2, texts);
    assert!(!ran.out.contains("SCRIPT RAN"), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 2, "one message and one hint: {}", ran.err);
}

#[test]
fn what_is_wrong_with_pytorch_is_said_before_anything_runs() {
    refused("null", &["run", "--", "python", "x.py"], &["PyTorch is not installed", "pip install torch"]);
    let without = TORCH.replace("\"13.2\"", "null");
    refused(&without, &["run", "--", "python", "x.py"], &["a build without CUDA"]);
    let older = TORCH.replace("13.2", "11.8");
    refused(&older, &["run", "--", "python", "x.py"], &["built for CUDA 11.8", "emulates CUDA 12 and 13"]);
}

#[test]
fn what_is_wrong_with_the_command_line_is_said_before_anything_runs() {
    refused(
        TORCH,
        &["run", "--cluster", "h100-smx", "--", "python"],
        &["h100-smx", "did you mean `h100-sxm`"],
    );
    refused(TORCH, &["run", "--", "pythonn", "x.py"], &["cannot run `pythonn`"]);
    refused(TORCH, &["run", "--out", "/dev/null/x", "--", "python"], &["/dev/null/x"]);
    refused(TORCH, &["run", "--out", "/dev/null", "--", "python"], &["not a folder"]);
}

#[test]
fn missing_libraries_are_named() {
    let stage = Stage::new(TORCH, "");
    fs::remove_file(stage.path("lib/libtrompe_shim.so")).unwrap();
    stage.trompe(&["run", "--", "python"]).check(2, &["stand in for CUDA's were not found", "TROMPE_LIB"]);
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let stage = Stage::new(TORCH, "record");
    fs::create_dir(stage.path("work/out")).unwrap();
    fs::write(stage.path("work/out/thesis.tex"), "mine").unwrap();
    stage.trompe(&["run", "--out", "out", "--", "python"]).check(2, &["was not made by trompe", "--force"]);
    stage.trompe(&["run", "--out", "out", "--force", "--", "python"]).check(0, &[]);
    assert_eq!(fs::read_to_string(stage.path("work/out/thesis.tex")).unwrap(), "mine");
}

#[test]
fn a_run_ends_in_a_report() {
    let stage = Stage::new(TORCH, "record; echo HELLO $*; echo $LD_PRELOAD; nvidia-smi -L");
    let ran = stage.trompe(&["run", "--host", "fixed=5us", "--", "python", "x.py", "--lr", "1"]);
    ran.check(0, &["HELLO x.py --lr 1", "libtrompe_shim.so", "GPU 0: NVIDIA H100 80GB HBM3"]);
    let tail: Vec<_> = ran.out.lines().rev().take(3).collect();
    assert_eq!(tail, ["trompe-out/timeline.json", "trompe-out/report.json", "trompe-out/report.html"]);
    let folder = stage.path("work/trompe-out");
    for name in ["report.html", "report.json", "timeline.json", "job.trace", "cluster.json"] {
        assert!(folder.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let report = report(&folder);
    assert_eq!(report.verdict.status, VerdictStatus::Fits);
    assert_eq!((report.job.exit_code, report.host.mode), (Some(0), HostMode::Fixed));
    assert_eq!(report.job.command, ["python", "x.py", "--lr", "1"]);
    assert!(report.job.records > 20 && report.step_time.is_some());
    assert!(report.notes.iter().any(|note| note.code == "no-kernel-database"), "{:?}", report.notes);
}

#[test]
fn a_second_run_replaces_the_first_or_keeps_it() {
    let stage = Stage::new(TORCH, "record");
    stage.trompe(&["run", "--", "python"]).check(0, &[]);
    stage.trompe(&["run", "--keep", "--", "python"]).check(0, &["trompe-out-2/report.json"]);
    stage.trompe(&["run", "--", "python"]).check(0, &["trompe-out/report.json"]);
    assert_eq!(fs::read_dir(stage.path("work/trompe-out/workers")).unwrap().count(), 3);
}

#[test]
fn the_user_names_the_steps() {
    let stage = Stage::new(TORCH, "record");
    stage
        .trompe(&["run", "--steps", "marker=step", "--tokens-per-step", "100", "--", "python"])
        .check(0, &[]);
    let report = report(&stage.path("work/trompe-out"));
    assert_eq!((report.steps.rule, report.steps.seen), (StepRule::User, 4));
    assert_eq!(report.throughput.tokens.unwrap().per_step, 100.0);
}

#[test]
fn a_failing_script_keeps_its_exit_code_and_its_trace() {
    let stage = Stage::new(TORCH, "record; echo Traceback >&2; exit 7");
    stage.trompe(&["run", "--", "python"]).check(7, &["Traceback", "exit code 7"]);
    let report = report(&stage.path("work/trompe-out"));
    assert_eq!((report.verdict.status, report.job.exit_code), (VerdictStatus::Failed, Some(7)));
    assert!(stage.path("work/trompe-out/job.trace").exists());
}

#[test]
fn a_command_without_cuda_has_nothing_to_predict() {
    let stage = Stage::new(TORCH, "echo hello");
    stage.trompe(&["run", "--", "python"]).check(0, &["hello", "made no CUDA call"]);
    let stage = Stage::new(TORCH, "exit 3");
    stage.trompe(&["run", "--", "python"]).check(3, &["exit code 3 before its first CUDA call"]);
}

#[test]
fn hidden_devices_are_said() {
    let stage = Stage::new(TORCH, "echo hello");
    let mut command = stage.command(&["run", "--", "python"]);
    let ran = Ran::of(command.env("CUDA_VISIBLE_DEVICES", "").output().unwrap());
    ran.check(0, &["hello", "hides every device"]);
}

#[test]
fn a_shell_script_guesses_its_python() {
    let stage = Stage::new("null", "record");
    stage.program("work/job.sh", "#!/bin/sh\nexec python train.py\n");
    stage.trompe(&["run", "--", "./job.sh"]).check(0, &["which Python", "PyTorch is not installed"]);
}

/// Starts a run, waits until its script says so, and sends a signal to trompe or to the whole group, as a terminal does.
fn interrupted(body: &str, group: bool, signal: &str) -> (Stage, Ran) {
    use std::os::unix::process::CommandExt;
    let stage = Stage::new(TORCH, body);
    let mut command = stage.command(&["run", "--", "python"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).process_group(0);
    let child = command.spawn().unwrap();
    for _ in 0..2400 {
        if stage.path("work/ready").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    let target = if group { format!("-{}", child.id()) } else { child.id().to_string() };
    let kill = std::process::Command::new("kill").args([signal, "--", &target]).status().unwrap();
    assert!(kill.success());
    let ran = Ran::of(child.wait_with_output().unwrap());
    (stage, ran)
}

#[test]
fn what_was_recorded_before_ctrl_c_is_reported_and_children_end() {
    let body = "record; sleep 60 & echo $! > child; touch ready; wait";
    let (stage, ran) = interrupted(body, true, "-INT");
    ran.check(130, &["INTERRUPTED"]);
    assert_eq!(report(&stage.path("work/trompe-out")).verdict.status, VerdictStatus::Interrupted);
    let child = fs::read_to_string(stage.path("work/child")).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "still running: {state}");
}

#[test]
fn a_signal_to_trompe_alone_reaches_the_job() {
    let body = "trap 'exit 9' TERM; record; touch ready; while :; do sleep 0.1; done";
    let (_, ran) = interrupted(body, false, "-TERM");
    ran.check(9, &["INTERRUPTED"]);
}
