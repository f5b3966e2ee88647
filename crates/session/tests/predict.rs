//! From a job trace to report, page and timeline, without a run.

mod job;

use trompe_base::Duration;
use trompe_hardware::resolve;
use trompe_results::{Bound, Kind, Method, Report, VerdictStatus};
use trompe_session::output::Existing;
use trompe_session::{Choices, HostChoice, Silent, predict, simulate};
use trompe_trace::job_file;

fn predicted(cluster: &str, host: HostChoice) -> Report {
    let choices = Choices { host, ..Choices::default() };
    predict(&job::job(4), &resolve(cluster).unwrap(), &choices).unwrap().report
}

#[test]
fn a_step_adds_up() {
    let report = predicted("h100-sxm", HostChoice::Measured);
    report.check().unwrap();
    let step = report.step_time.as_ref().unwrap();
    let flops = report.flops.as_ref().unwrap();
    assert_eq!(flops.model_flops, job::PRODUCTS as f64 * job::PRODUCT_FLOPS);
    let mfu = flops.model_flops / (step.seconds * flops.peak_flops_per_second);
    assert!((flops.mfu - mfu).abs() < 1e-9 && flops.mfu > 0.2 && flops.mfu < 1.0, "{}", flops.mfu);
    assert!(step.low < step.seconds && step.seconds < step.high, "{step:?}");
    assert_eq!((report.steps.seen, report.steps.warm_up, report.steps.used), (4, 1, 3));
    assert_eq!(report.throughput.tokens.as_ref().unwrap().per_step, 4096.0);
    assert_eq!(report.verdict.status, VerdictStatus::Fits);
    let gemm = &report.kernels[0];
    assert_eq!((gemm.name.as_str(), gemm.count, gemm.kind), ("gemm bf16", job::PRODUCTS, Kind::Gemm));
    assert_eq!((gemm.method, gemm.bound), (Method::Learned, Some(Bound::Compute)));
    assert_eq!(gemm.flops, Some(flops.model_flops));
}

#[test]
fn host_models_differ_as_they_should() {
    let seconds = |host| predicted("h100-sxm", host).step_time.unwrap().seconds;
    let (off, measured) = (seconds(HostChoice::Off), seconds(HostChoice::Measured));
    assert!(off <= measured);
    assert!(seconds(HostChoice::Scale(100.0)) > 2.0 * measured);
    let fixed = seconds(HostChoice::Fixed(Duration::from_micros(1_000)));
    assert!(fixed > 9e-3 && fixed < 13e-3, "ten calls of a millisecond take {fixed} s");
}

#[test]
fn another_device_is_noted_and_slower_hardware_is_slower() {
    let (h100, a100) = (predicted("h100-sxm", HostChoice::Off), predicted("a100-80", HostChoice::Off));
    assert!(a100.step_time.unwrap().seconds > 1.5 * h100.step_time.unwrap().seconds);
    assert!(a100.notes.iter().any(|note| note.code == "other-device"), "{:?}", a100.notes);
    assert!(h100.notes.iter().all(|note| note.code != "other-device"));
}

#[test]
fn memory_is_judged_against_the_simulated_device() {
    let small = predicted("l4", HostChoice::Off);
    assert_eq!(small.verdict.status, VerdictStatus::OutOfMemory);
    let failure = small.verdict.out_of_memory.unwrap();
    assert!(failure.requested_bytes > failure.free_bytes, "{failure:?}");
    let tight = predicted("v100-32", HostChoice::Off);
    assert!(tight.verdict.text.contains("32.00 GiB"), "{}", tight.verdict.text);
}

#[test]
fn a_job_without_steps_has_no_step_time_but_kernels() {
    let mut job = job::job(2);
    job.templates[0].steps = trompe_trace::job::Steps {
        boundaries: vec![0, job.templates[0].events.len()],
        ..trompe_trace::job::Steps::default()
    };
    let report = predict(&job, &resolve("h100-sxm").unwrap(), &Choices::default()).unwrap().report;
    assert!(report.step_time.is_none() && !report.kernels.is_empty());
}

#[test]
fn an_empty_trace_is_judged_without_a_simulation() {
    let mut job = job::job(1);
    job.templates[0] = trompe_trace::job::RankTemplate::default();
    let report = predict(&job, &resolve("h100-sxm").unwrap(), &Choices::default()).unwrap().report;
    assert!(report.step_time.is_none());
    assert!(report.notes.iter().any(|note| note.code == "no-steps"));
}

/// A kept trace gives the same files byte by byte, but for the seconds that the simulation took.
#[test]
fn the_same_trace_gives_the_same_bytes() {
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("job.trace");
    job_file::save(&job::job(4), &trace).unwrap();
    let mut files = Vec::new();
    for name in ["first", "second"] {
        let request = simulate::Request {
            estimators: trompe_session::estimators::EstimatorChoice::default(),
            trace: trace.clone(),
            cluster: None,
            npu_profile: None,
            choices: Choices::default(),
            out: Some(root.path().join(name)),
            existing: Existing::Replace,
        };
        let written = simulate::simulate(&request, &mut Silent).unwrap().written.unwrap();
        let text = |path: &std::path::Path| {
            let text = std::fs::read_to_string(path).unwrap();
            // `"simulation_seconds": 0.01,` in both spellings.
            let start = text.find("simulation_seconds").map(|at| at + "simulation_seconds\":".len());
            start.map_or(text.clone(), |start| {
                let end = start + text[start..].find(',').unwrap();
                format!("{}{}", &text[..start], &text[end..])
            })
        };
        files.push([
            text(&written.report_json),
            text(&written.timeline),
            text(&written.cluster),
            text(&written.report_html),
        ]);
    }
    assert!(files[0][1].len() > 1000, "the timeline has content");
    assert!(files[0] == files[1]);
}

#[test]
fn the_report_says_what_carries_the_step() {
    let report = predicted("h100-sxm", HostChoice::Measured);
    let path = report.critical_path.as_ref().unwrap();
    let sum: f64 = path.owners.iter().map(|owner| owner.seconds).sum();
    assert!((sum - path.seconds).abs() < 1e-9 && path.seconds > 0.0, "{path:?}");
    let first = &path.owners[0];
    assert!(first.gain_seconds.is_some_and(|gain| gain > 0.0 && gain <= 0.11 * path.seconds), "{first:?}");
    let effect = report.contention.as_ref().unwrap();
    assert!(effect.on && effect.with_seconds >= effect.without_seconds, "{effect:?}");
    assert_eq!((report.ranks.len(), report.ranks[0].stands_for), (1, 1));
    assert_eq!(report.variation, None);
    assert_eq!(report.memory.ranks[0].axis, trompe_results::MemoryAxis::SimulatedSeconds);
}

#[test]
fn chance_stragglers_and_hosts_are_what_was_asked_for() {
    let run =
        |choices: Choices| predict(&job::job(4), &resolve("h100-sxm").unwrap(), &choices).unwrap().report;
    let jitter = "kernel=0.1,host=0.1".parse().unwrap();
    let varied = run(Choices { jitter, repeat: 9, ..Choices::default() });
    let variation = varied.variation.as_ref().unwrap();
    assert_eq!((variation.repeats.count, variation.kernel_jitter), (9, 0.1));
    let median = variation.repeats.median;
    assert!(variation.repeats.low < median && median < variation.repeats.high, "{variation:?}");
    assert!((varied.step_time.unwrap().seconds / median - 1.0).abs() < 1e-9);
    let stragglers = vec!["rank=0,gpu=0.5".parse().unwrap()];
    let slow = run(Choices { stragglers, host: HostChoice::Off, ..Choices::default() });
    let plain = slow.variation.as_ref().unwrap().plain_seconds;
    assert!((slow.step_time.unwrap().seconds / plain - 2.0).abs() < 0.2);
    let none = Choices { stragglers: vec!["rank=9,gpu=0.5".parse().unwrap()], ..Choices::default() };
    assert!(predict(&job::job(4), &resolve("h100-sxm").unwrap(), &none).is_err());
    let named = run(Choices { host: HostChoice::Named("ryzen-9-7950x".into()), ..Choices::default() });
    assert_eq!(named.host.simulated_on, "ryzen-9-7950x");
    assert!(named.notes.iter().any(|note| note.code == "named-host"), "{:?}", named.notes);
}
