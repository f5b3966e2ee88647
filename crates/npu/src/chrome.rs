//! A run as a Chrome or Perfetto timeline.
//!
//! One process; one track per core, lane and pipe, in the order S, MTE2, MTE1, M, FIX of the cube, then S, MTE2, V, MTE3
//! of each vector lane. Control tracks hold dispatches, pipes hold executions and synchronisation. Times are in
//! microseconds of the device's clock, as the format wants; the cycles stand in the arguments.

use serde_json::{Value, json};

use crate::compile::Lane;
use crate::cycles::Model;
use crate::ops::spec_of;
use crate::run::Outcome;
use crate::run::record::{What, actor_name};

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
        for actor in 0..13 {
            let (lane, pipe) = actor_name(actor);
            if shared.program.lanes[lane as usize].is_none() {
                continue;
            }
            let name = format!("core{}.{}.{pipe}", timeline.core, lane.name());
            for (kind, args) in [
                ("thread_name", json!({ "name": name })),
                ("thread_sort_index", json!({ "sort_index": track(actor) })),
            ] {
                events.push(json!({ "ph": "M", "pid": 1, "tid": track(actor), "name": kind, "args": args }));
            }
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
                    fields.insert("sync_name".to_owned(), json!(sync_name(outcome, lane, record)));
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

fn sync_name(outcome: &Outcome, lane: Lane, record: &crate::run::record::Record) -> String {
    use crate::ops::Op;
    let code = outcome.shared.program.lanes[lane as usize].as_ref();
    match record.op {
        Op::EventSet | Op::EventSetall | Op::EventWait | Op::EventRelease => code
            .and_then(|code| code.events.get(record.detail as usize))
            .map_or_else(String::new, |event| event.name.clone()),
        op => format!("{} {}", spec_of(op).name, record.detail),
    }
}
