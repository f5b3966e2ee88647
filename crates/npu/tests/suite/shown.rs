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
    assert_eq!(tracks.len(), 2 * 14);
    assert_eq!(tracks[..3], [("core0.runtime", 99), ("core0.cube.S", 0), ("core0.cube.MTE2", 1)]);
    assert_eq!(tracks[14 + 8], ("core1.vec0.V", 107));
    assert_eq!(named("core_start")[0]["args"]["lane_names"], serde_json::json!(["cube", "vec0", "vec1"]));
    let done: u64 = named("core_stop").iter().map(|e| e["args"]["completed_tasks"].as_u64().unwrap()).sum();
    assert_eq!(done, outcome.tasks);
    let load = named("gm_to_l1_nd2nz")[0];
    assert_eq!(load["ph"], "X");
    assert_eq!(load["args"]["trace_phase"], "execute");
    assert_eq!(load["args"]["modeled_cycles"], 1024);
    assert_eq!(load["args"]["payload_bytes"], 32768);
    assert_eq!(load["args"]["bandwidth_source"], "gm to l1");
    let micro = &named("call_micro")[0]["args"];
    assert_eq!((&micro["compute_source"], &micro["cycles_per_instruction"]), (&"micro".into(), &2.0.into()));
    let wait = &named("event_wait")[0]["args"];
    assert!(["sevent", "devent"].contains(&wait["event_kind"].as_str().unwrap()), "{wait}");
    assert!(wait["src_pipe"].is_string() && wait["dst_pipe"].is_string());
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
    let summary = summary::of(&simulate(&mix(4096, 4), &[], &timing()).unwrap());
    assert_eq!((summary.program.as_str(), summary.device.as_str()), ("mix", "ascend-950"));
    assert_eq!((summary.cycles, summary.cores, summary.timing_only), (14083, 4, true));
    assert!((summary.seconds * 1e6 - 8.535).abs() < 1e-3);
    // 32 tiles of (128 x 128 + 64 x 128) halves, over a path of 32 bytes per cycle.
    let path = summary.paths.iter().find(|path| path.path == "gm to l1").unwrap();
    assert_eq!((path.bytes, path.peak_per_cycle), (1_572_864, 32.0));
    assert!((path.share - 1_572_864.0 / 14083.0 / 4.0 / 32.0).abs() < 1e-9);
    let matrix = &summary.matrix[0];
    assert_eq!((matrix.dtype.as_str(), matrix.multiply_adds), ("f16", 33_554_432));
    assert_eq!(matrix.peak_per_cycle, 4096.0);
    let pipe = &summary.pipes[0];
    assert_eq!((pipe.pipe.as_str(), pipe.tasks, pipe.busy_cycles), ("cube.MTE2", 64, 49152));
    assert!((pipe.busy_share - 0.873).abs() < 1e-3);
    // The busy share is the mean of the activity.
    let mean = pipe.activity.iter().sum::<f64>() / pipe.activity.len() as f64;
    assert!((mean - pipe.busy_share).abs() < 2e-3, "{mean}");
    assert!(
        summary.pipes.iter().any(|pipe| pipe.waits.iter().any(|wait| wait.what.ends_with(" filled by MTE2")))
    );
    let critical: u64 = summary.critical_path.iter().map(|row| row.tasks).sum();
    assert_eq!(critical, summary.critical_tasks);
    assert!(summary.critical_path.is_sorted_by(|a, b| a.cycles >= b.cycles));
    let memory = summary.memories.iter().find(|memory| memory.memory == "l0c").unwrap();
    assert_eq!((memory.used_bytes, memory.capacity_bytes), (2 * 128 * 64 * 4, 256 << 10));
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
