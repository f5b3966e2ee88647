//! The file is valid JSON, holds every span once, and keeps order, nesting and time.

use proptest::prelude::*;
use serde_json::Value;
use trompe_interop::chrome;
use trompe_results::{Argument, Counter, Kind, Span, Timeline, TimelineBuilder, TrackKind};

fn written(timeline: &Timeline) -> Vec<Value> {
    let mut out = Vec::new();
    chrome::write(timeline, &mut out).unwrap();
    let file: Value = serde_json::from_slice(&out).expect("valid JSON");
    file["traceEvents"].as_array().expect("an array of events").clone()
}

fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

/// A launch on the host of rank 3 and its kernel.
fn launch() -> Timeline {
    let mut builder = TimelineBuilder::new();
    let host = builder.track(3, TrackKind::Host, 0, "main \"thread\"\n");
    let stream = builder.track(3, TrackKind::Stream, 7, "stream 7");
    let (op, kernel, grid) = (builder.name("aten::mm"), builder.name("gemm\u{1}<\">"), builder.name("grid"));
    let span =
        Span { name: op, start_ps: 1_000, duration_ps: 5_000_499, correlation: Some(9), ..Span::default() };
    builder.push(host, span);
    let span = Span {
        name: kernel,
        kind: Some(Kind::Gemm),
        start_ps: 7_000_000,
        duration_ps: 1_234_567,
        correlation: Some(9),
        arguments: vec![(grid, Argument::Text("4,1,1".to_owned())), (op, Argument::Real(f64::NAN))],
    };
    builder.push(stream, span);
    let points = vec![(0, 0.0), (2_000_000, 512.0)];
    builder.counter(Counter { rank: 3, name: "allocated".into(), unit: "bytes".into(), points });
    builder.mark(8_000_000, "step 1");
    builder.finish()
}

#[test]
fn a_launch_in_full() {
    let events = written(&launch());
    let spans = of_phase(&events, "X");
    assert_eq!(spans.len(), 2);
    assert_eq!(spans[0]["ts"].to_string(), "0.001");
    assert_eq!(spans[0]["dur"].to_string(), "5.0");
    assert_eq!(spans[0]["cat"], "host");
    assert_eq!(spans[1]["name"], "gemm\u{1}<\">");
    assert_eq!(spans[1]["cat"], "gemm");
    assert_eq!(spans[1]["pid"], 3);
    assert_eq!(spans[1]["dur"].to_string(), "1.235");
    assert_eq!(spans[1]["args"]["grid"], "4,1,1");
    assert_eq!(spans[1]["args"]["aten::mm"], Value::Null);

    let (start, end) = (of_phase(&events, "s"), of_phase(&events, "f"));
    assert_eq!((start.len(), end.len()), (1, 1));
    assert_eq!(start[0]["id"], end[0]["id"]);
    assert_eq!(start[0]["tid"], spans[0]["tid"]);
    assert_eq!(end[0]["tid"], spans[1]["tid"]);
    assert_eq!(end[0]["bp"], "e");

    let counters = of_phase(&events, "C");
    assert_eq!(counters[1]["args"]["bytes"].to_string(), "512.0");
    assert_eq!(of_phase(&events, "i")[0]["name"], "step 1");
    let names: Vec<_> =
        events.iter().filter(|event| event["ph"] == "M").map(|event| event["args"].to_string()).collect();
    assert!(names.contains(&r#"{"name":"main \"thread\"\n"}"#.to_owned()), "{names:?}");
    assert!(names.contains(&r#"{"name":"rank 3"}"#.to_owned()), "{names:?}");
}

#[test]
fn an_empty_timeline_is_a_valid_file() {
    assert!(written(&Timeline::default()).is_empty());
}

#[test]
fn a_number_without_its_other_end_draws_no_arrow() {
    let mut timeline = launch();
    timeline.tracks.pop();
    let events = written(&timeline);
    assert!(of_phase(&events, "s").is_empty());
}

proptest! {
    /// However the spans lie, none is lost, none overlaps its neighbour, and each end is within a nanosecond.
    #[test]
    fn spans_are_conserved(pieces in proptest::collection::vec((0..3_000_000_u64, 0..9_000_000_u64), 0..60)) {
        let mut builder = TimelineBuilder::new();
        let track = builder.track(0, TrackKind::Stream, 0, "stream 0");
        let name = builder.name("kernel");
        let (mut now, mut expect) = (0, Vec::new());
        for (gap, length) in pieces {
            now += gap;
            expect.push((now, now + length));
            builder.push(track, Span { name, start_ps: now, duration_ps: length, ..Span::default() });
            now += length;
        }
        let events = written(&builder.finish());
        let spans = of_phase(&events, "X");
        prop_assert_eq!(spans.len(), expect.len());
        let nanos = |value: &Value| (value.as_f64().unwrap() * 1e3).round() as i64;
        let mut last_end = 0;
        for (span, (start, end)) in spans.iter().zip(expect) {
            let (got_start, got_end) = (nanos(&span["ts"]), nanos(&span["ts"]) + nanos(&span["dur"]));
            prop_assert!((got_start * 1_000 - start as i64).abs() <= 500);
            prop_assert!((got_end * 1_000 - end as i64).abs() <= 500);
            prop_assert!(got_start >= last_end);
            last_end = got_end;
        }
    }
}
