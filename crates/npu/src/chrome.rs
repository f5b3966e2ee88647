//! A run as a Chrome or Perfetto timeline.
//!
//! One process; one track per core, lane and pipe, in the order S, MTE2, MTE1, M, FIX of the cube, then S, MTE2, V, MTE3
//! of each vector lane, and one per core for its start and end. Control tracks hold dispatches, pipes hold executions
//! and synchronisation. Times are in microseconds of the device's clock, as the format wants; the cycles stand in the
//! arguments.

use serde_json::{Value, json};

use crate::compile::Lane;
use crate::cycles::{Model, path_of};
use crate::ops::spec_of;
use crate::run::Outcome;
use crate::run::record::{CoreTimeline, Record, What, actor_name};

/// The number of a core's own track, after those of its actors.
const RUNTIME: usize = 99;

/// The timeline as JSON text.
#[must_use]
pub fn timeline(outcome: &Outcome) -> String {
    let shared = &outcome.shared;
    let clock = shared.device.clock_mhz;
    let mut events = vec![json!({
        "ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": { "name": format!("trompe:{}", outcome.program) }
    })];
    for timeline in &outcome.timelines {
        let track = |actor: usize| timeline.core as usize * 100 + actor;
        events.extend(core_events(outcome, timeline, track(RUNTIME)));
        for actor in 0..13 {
            let (lane, pipe) = actor_name(actor);
            if shared.program.lanes[lane as usize].is_none() {
                continue;
            }
            let name = format!("core{}.{}.{pipe}", timeline.core, lane.name());
            events.extend(named_track(track(actor), &name, track(actor) as i64));
        }
        for record in &timeline.records {
            let actor = usize::from(record.actor);
            let (lane, pipe) = actor_name(actor);
            let name = spec_of(record.op).name;
            let site = outcome.site(lane, record.instr);
            let cycles = record.end - record.start;
            let mut args = json!({
                "lane_name": lane.name(),
                "pipe_name": pipe,
                "opname": name,
                "status": "done",
                "time_domain": "cycle",
                "cycle_model_profile": shared.profile.name,
                "model_kind": record.model.name(),
                "modeled_cycles": cycles,
                "start_cycle": record.start,
                "end_cycle": record.end,
                "core_idx": timeline.core,
                "instruction": site.map(ToString::to_string),
            });
            let fields = args.as_object_mut().expect("an object");
            let phase = match record.what {
                What::Task => "execute",
                What::Set | What::Wait => {
                    fields.insert("trace_kind".to_owned(), json!("sync"));
                    for (field, value) in sync_fields(outcome, lane, (timeline.core, record)) {
                        fields.insert(field.to_owned(), value);
                    }
                    if record.what == What::Set { "ready" } else { "wait" }
                }
            };
            fields.insert("trace_phase".to_owned(), json!(phase));
            let quantity = match record.model {
                Model::Bandwidth => Some("payload_bytes"),
                Model::Compute => Some("macs"),
                Model::Vector | Model::Micro => Some("instruction_count"),
                Model::Marker | Model::Fallback => None,
            };
            if let Some(quantity) = quantity {
                fields.insert(quantity.to_owned(), json!(record.quantity));
            }
            let source = match record.model {
                Model::Bandwidth => path_of(record.op).map(|path| ("bandwidth_source", path)),
                Model::Compute => Some(("compute_source", "mmad")),
                Model::Vector => Some(("compute_source", "vector")),
                Model::Micro => Some(("compute_source", "micro")),
                Model::Marker | Model::Fallback => None,
            };
            if let Some((field, source)) = source {
                fields.insert(field.to_owned(), json!(source));
            }
            if matches!(record.model, Model::Vector | Model::Micro) && record.quantity > 0 {
                let each = cycles as f64 / record.quantity as f64;
                fields.insert("cycles_per_instruction".to_owned(), json!((each * 1e3).round() / 1e3));
            }
            let category = if record.what == What::Task { "pipe" } else { "sync" };
            let shown = cycles.max(u64::from(record.what != What::Task));
            events.push(span((name, category), track(actor), (record.start, shown), clock, args));
            if record.what == What::Task {
                let control = match lane {
                    Lane::Cube => 0,
                    Lane::Vec0 => 5,
                    Lane::Vec1 => 9,
                };
                let args = json!({ "trace_phase": "dispatch", "pipe_name": pipe, "opname": name });
                events.push(span((name, "control"), track(control), (record.issued, 0), clock, args));
            }
        }
    }
    let text = json!({ "traceEvents": events, "displayTimeUnit": "ns", "trompe_time_domain": "cycle" });
    text.to_string() + "\n"
}

fn span(
    (name, category): (&str, &str),
    tid: usize,
    (start, cycles): (u64, u64),
    megahertz: f64,
    args: Value,
) -> Value {
    let micros = |cycles: u64| (cycles as f64 / megahertz * 1e6).round() / 1e6;
    json!({
        "ph": "X", "pid": 1, "tid": tid, "name": name, "cat": category, "ts": micros(start), "dur": micros(cycles), "args": args
    })
}

/// Name and place of a track.
fn named_track(tid: usize, name: &str, place: i64) -> [Value; 2] {
    [("thread_name", json!({ "name": name })), ("thread_sort_index", json!({ "sort_index": place }))]
        .map(|(kind, args)| json!({ "ph": "M", "pid": 1, "tid": tid, "name": kind, "args": args }))
}

/// The track of a core as a whole: when it starts, and when it has done how many tasks.
fn core_events(outcome: &Outcome, timeline: &CoreTimeline, tid: usize) -> Vec<Value> {
    let shared = &outcome.shared;
    let lanes: Vec<&str> = Lane::ALL
        .into_iter()
        .filter(|lane| shared.program.lanes[*lane as usize].is_some())
        .map(Lane::name)
        .collect();
    let tasks = timeline.records.iter().filter(|record| record.what == What::Task).count();
    let end = timeline.records.iter().map(|record| record.end).max().unwrap_or(0);
    let core = timeline.core;
    let mut events = named_track(tid, &format!("core{core}.runtime"), i64::from(core) * 100 - 1).to_vec();
    for (name, cycle, args) in [
        ("core_start", 0, json!({ "core_idx": core, "lane_names": lanes })),
        ("core_stop", end, json!({ "core_idx": core, "completed_tasks": tasks })),
    ] {
        events.push(span((name, "control"), tid, (cycle, 0), shared.device.clock_mhz, args));
    }
    events
}

/// What a synchronisation is about.
fn sync_fields(outcome: &Outcome, lane: Lane, (core, record): (u32, &Record)) -> Vec<(&'static str, Value)> {
    use crate::ops::Op;
    let code = outcome.shared.program.lanes[lane as usize].as_ref();
    let event = match record.op {
        Op::EventSet | Op::EventSetall | Op::EventWait | Op::EventRelease => {
            code.and_then(|code| code.events.get(record.detail as usize))
        }
        _ => None,
    };
    if let Some(event) = event {
        let kind = ["sevent", "devent", "tevent", "qevent"][event.flags.clamp(1, 4) - 1];
        return vec![
            ("sync_name", json!(event.name)),
            ("event_name", json!(event.name)),
            ("event_kind", json!(kind)),
            ("src_pipe", json!(event.source.name())),
            ("dst_pipe", json!(event.target.name())),
        ];
    }
    let mut fields = vec![
        ("sync_name", json!(format!("{} {}", spec_of(record.op).name, record.detail))),
        ("flag_id", json!(record.detail)),
    ];
    match record.op {
        Op::AllcubeReady | Op::AllcubeWait => fields.push(("participant_idx", json!(core))),
        Op::AllvecReady | Op::AllvecWait => {
            let lanes = outcome.shared.vector_lanes as u32;
            fields.push(("participant_idx", json!(core * lanes + lane.sub_block() as u32)));
        }
        _ => {}
    }
    fields
}
