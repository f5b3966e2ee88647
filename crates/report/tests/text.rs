//! The terminal text of sample reports, as people see it.

use trompe_report::{Style, text};
use trompe_results::{
    Communication, Family, HostMode, OutOfMemory, RankMemory, Report, Sample, VerdictStatus,
};

fn sample() -> Report {
    serde_json::from_str(include_str!("../../results/tests/fixtures/gpt2.json")).unwrap()
}

fn plain(report: &Report, width: usize) -> String {
    text(report, Style { color: false, width })
}

#[test]
fn a_job_that_fits() {
    insta::assert_snapshot!(plain(&sample(), 100));
}

#[test]
fn a_narrow_terminal() {
    insta::assert_snapshot!(plain(&sample(), 64));
}

#[test]
fn a_job_that_does_not_fit() {
    let mut report = Report {
        job: sample().job,
        software: sample().software,
        cluster: sample().cluster,
        memory: sample().memory,
        notes: sample().notes,
        ..Report::default()
    };
    report.verdict.status = VerdictStatus::OutOfMemory;
    report.verdict.text =
        "The job does not fit: rank 0 ran out of memory before its first step ended.".to_owned();
    report.verdict.hint = Some("Halve the batch size, or shard the optimizer over more devices.".to_owned());
    report.verdict.out_of_memory = Some(OutOfMemory {
        rank: 0,
        requested_bytes: 3 << 30,
        free_bytes: 1 << 30,
        step: Some(0),
        owner: Some("aten::_log_softmax".to_owned()),
    });
    insta::assert_snapshot!(plain(&report, 100));
}

#[test]
fn many_ranks_stopped_early() {
    let mut report = sample();
    report.world_size = 32;
    report.ranks_emulated = 2;
    report.cluster.name = "dgx-h100:4".to_owned();
    (report.cluster.nodes, report.cluster.devices_per_node) = (4, 8);
    report.communication =
        Some(Communication { seconds: 0.051, exposed_seconds: 0.0152, groups: Vec::new() });
    report.host.mode = HostMode::Scale;
    report.host.scale = 0.6;
    let other = RankMemory { rank: 31, ..report.memory.ranks[0].clone() };
    report.memory.ranks.push(other);
    report.kernels.truncate(4);
    report.verdict.status = VerdictStatus::Interrupted;
    report.verdict.text = "Stopped by the user after 8 steps; the report covers these.".to_owned();
    insta::assert_snapshot!(plain(&report, 100));
}

#[test]
fn an_empty_report_is_still_readable() {
    insta::assert_snapshot!(plain(&Report::default(), 100));
}

#[test]
fn plain_text_has_no_escape_and_colour_changes_nothing_else() {
    let (plain, coloured) = (plain(&sample(), 90), text(&sample(), Style { color: true, width: 90 }));
    assert!(!plain.contains('\x1b'));
    assert!(coloured.contains("\x1b[1;32mFITS\x1b[0m"));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn hostile_names_cannot_steer_the_terminal() {
    let mut report = sample();
    report.job.command = vec!["\x1b]0;owned\x07\x1b[2J".to_owned()];
    report.kernels[0].name = "k\r\x1b[1A\u{202e}".to_owned();
    report.notes[0].text = "a\n\n\x1b[31mFITS".to_owned();
    report.verdict.text = "\u{9b}1;31m".to_owned();
    report.cluster.device = "\x1b[5m".to_owned();
    let text = plain(&report, 100);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn a_family_of_runs() {
    let sample_of = |number: u32| Sample {
        routing: format!("zipf:1.2:{number}"),
        seconds: 0.1 + f64::from(number) * 1e-3,
        seconds_without_host: 0.05 + f64::from(number) * 1e-3,
        ..Sample::default()
    };
    let family = Some(Family::of("zipf:1.2:0".to_owned(), (0..11).map(sample_of).collect()));
    let shown = plain(&Report { family, ..sample() }, 100);
    let said = |text: &str| assert!(shown.contains(text), "{text} is not in {shown}");
    said("samples         median 105.0 ms, 101.0 ms to 109.0 ms in eight of ten of 11 runs, from zipf:1.2:0");
    said("without host time: median 55.00 ms, 51.00 ms to 59.00 ms in eight of ten");
}
