//! A whole report survives JSON unchanged, and its check finds what is wrong with it.

use trompe_results::{Inconsistency, Report, VerdictStatus};

fn sample() -> Report {
    serde_json::from_str(include_str!("fixtures/gpt2.json")).expect("the sample has the report's shape")
}

/// Breaks the sample with `change` and expects the check to say `expect`.
#[track_caller]
fn check(change: impl FnOnce(&mut Report), expect: &str) {
    let mut report = sample();
    change(&mut report);
    let error: Inconsistency = report.check().expect_err("the check must notice");
    assert!(error.to_string().contains(expect), "{error}");
}

#[test]
fn a_report_survives_json() {
    let report = sample();
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
}

#[test]
fn a_sound_report_passes() {
    sample().check().unwrap();
    Report::default().check().unwrap();
}

#[test]
fn the_check_finds_what_is_wrong() {
    check(|r| r.step_time.as_mut().unwrap().seconds = f64::NAN, "`step_time` is NaN");
    check(|r| r.step_time.as_mut().unwrap().low = -1.0, "below zero");
    check(|r| r.step_time.as_mut().unwrap().high = 0.1, "outside of its interval");
    check(|r| r.breakdown[0].seconds += 0.01, "the parts of `breakdown.seconds` add up");
    check(|r| r.device_use.as_mut().unwrap().busy_seconds = 1.0, "busy and host-bound seconds");
    check(|r| r.communication.as_mut().unwrap().exposed_seconds = 1.0, "communication.exposed_seconds");
    check(|r| r.flops.as_mut().unwrap().model_flops *= 2.0, "flops.model_flops");
    check(|r| r.kernels[3].high = 0.0, "`kernels.seconds`");
    check(|r| r.coverage.methods[2].share = 0.2, "coverage.methods.share");
    check(|r| r.memory.peak_reserved_bytes = 1, "memory.peak_allocated_bytes");
    check(|r| r.memory.total_bytes = 1 << 60, "memory exceeds the capacity");
    check(|r| r.verdict.status = VerdictStatus::OutOfMemory, "the verdict is `out of memory`");
}
