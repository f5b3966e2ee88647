//! What users see of a run: the timeline and the summary.

use trompe_npu::kernels::{mix, vector_add};
use trompe_npu::{Options, chrome, summary};

use crate::support::*;

#[test]
fn the_timeline_has_a_track_per_pipe_and_microseconds() {
    let outcome = simulate(&mix(256, 2), &[], &timing()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&chrome::timeline(&outcome)).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(move |event| event["name"] == name).collect::<Vec<_>>();
    assert_eq!(named("process_name")[0]["args"]["name"], "trompe:mix");
    let tracks: Vec<(&str, u64)> = named("thread_name")
        .iter()
        .map(|event| (event["args"]["name"].as_str().unwrap(), event["tid"].as_u64().unwrap()))
        .collect();
    assert_eq!(tracks.len(), 2 * 13);
    assert_eq!(tracks[1], ("core0.cube.MTE2", 1));
    assert_eq!(tracks[13 + 7], ("core1.vec0.V", 107));
    let load = named("gm_to_l1_nd2nz")[0];
    assert_eq!(load["ph"], "X");
    assert_eq!(load["args"]["trace_phase"], "execute");
    assert_eq!(load["args"]["modeled_cycles"], 1024);
    assert_eq!(load["args"]["payload_bytes"], 32768);
    // 1024 cycles of a 1650 MHz clock.
    assert!((load["dur"].as_f64().unwrap() - 1024.0 / 1650.0).abs() < 1e-6);
    let waits = named("wait_cube");
    assert!(waits.iter().all(|event| event["cat"] == "sync" && event["args"]["trace_phase"] == "wait"));
    assert_eq!(waits.len(), 4);
    // The same bytes again.
    let again = simulate(&mix(256, 2), &[], &timing()).unwrap();
    assert_eq!(chrome::timeline(&again), chrome::timeline(&outcome));
}

#[test]
fn the_summary_says_where_the_time_went() {
    let text = summary::text(&simulate(&mix(4096, 4), &[], &timing()).unwrap());
    for part in [
        "mix on ascend-950 (4 cores, 1650 MHz), profile reference",
        "makespan   14083 cycles = 8.535 µs",
        // 32 tiles of (128 x 128 + 64 x 128) halves.
        "gm to l1          1572864 bytes",
        "33554432 multiply-adds",
        "cube.MTE2        64          49152  87.3 %",
        "critical path: ",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn prints_and_dumps_are_kept() {
    let mut program = vector_add(64, 64, 1);
    let lane = &mut program.lanes[0].instructions;
    lane.push(
        serde_json::from_value(serde_json::json!({
            "op": "sim_print", "args": { "payload": ["turns:", "turn", "c.0"] }
        }))
        .unwrap(),
    );
    lane.push(
        serde_json::from_value(serde_json::json!({
            "op": "sim_dump_tensor", "args": { "tensor": "z", "filename": "after" }
        }))
        .unwrap(),
    );
    let x = f32s(&[64], &(0..64).map(|at| at as f32).collect::<Vec<_>>());
    let outcome = simulate(&program, &[("x", x.clone()), ("y", x)], &Options::default()).unwrap();
    assert!(outcome.prints.iter().any(|line| line == "core0.vec0: turns: 1 [0 2 4 6 8 10 12 14]"));
    let dump = outcome.dumps.iter().find(|dump| dump.name == "after.core0.vec0").unwrap();
    assert_eq!(dump.content.bytes, outcome.outputs[0].content.bytes);
}
