//! The host events of a job trace, one line each.

use trompe_trace::job::{Action, JobTrace, RankTemplate};

/// Calls `each` with every event of every template in order, until it returns `false`; `kind` limits them to a family
/// of operations (`gemm`, `copy`, …), `collective`, `event`, `synchronize`, `graph` or `host`.
pub fn job_lines(job: &JobTrace, kind: Option<&str>, mut each: impl FnMut(&str) -> bool) {
    for (number, template) in job.templates.iter().enumerate() {
        let ranks = job.ranks.iter().filter(|rank| rank.template == number).count();
        if !each(&format!("template {number}: {ranks} ranks, {} events", template.events.len())) {
            return;
        }
        for (row, event) in template.events.iter().enumerate() {
            if let Some(step) = template.steps.boundaries.iter().position(|begin| *begin == row) {
                let text = if step < template.steps.count() {
                    let warmup = if step < template.steps.warmup { " (warm-up)" } else { "" };
                    format!("step {step}{warmup}")
                } else {
                    "after the last step".to_owned()
                };
                if !each(&text) {
                    return;
                }
            }
            let (found, text) = action(template, &event.action);
            if kind.is_some_and(|kind| kind != found) {
                continue;
            }
            let site = template.sites.get(event.site as usize);
            let site = site.map_or(String::new(), |site| {
                let phase = format!("{:?}", site.phase).to_lowercase();
                format!("  [{}; {phase}]", [&*site.operator, &*site.scope].join(" ").trim())
            });
            let gap = event.gap.as_micros_f64();
            if !each(&format!("{row:>8}  thread {}  +{gap:>9.2} us  {found:<12} {text}{site}", event.thread))
            {
                return;
            }
        }
    }
}

fn action(template: &RankTemplate, action: &Action) -> (&'static str, String) {
    match action {
        Action::Enqueue { stream, operation, blocking } => {
            let Some(operation) = template.operations.get(*operation as usize) else {
                return ("other", format!("stream {stream}: operation {operation}, which does not exist"));
            };
            let waits = if *blocking { ", the host waits" } else { "" };
            (operation.descriptor.family(), format!("stream {stream}: {}{waits}", operation.short_name))
        }
        Action::Collective { stream, collective } => (
            "collective",
            format!(
                "stream {stream}: {:?} of {} on communicator {}, call {}",
                collective.kind, collective.bytes, collective.communicator, collective.sequence
            ),
        ),
        Action::RecordEvent { stream, event, version } => {
            ("event", format!("stream {stream} records event {event}.{version}"))
        }
        Action::WaitEvent { stream, event, version } => {
            ("event", format!("stream {stream} waits for event {event}.{version}"))
        }
        Action::SynchronizeEvent { event, version } => {
            ("synchronize", format!("the host waits for event {event}.{version}"))
        }
        Action::SynchronizeStream { stream } => {
            ("synchronize", format!("the host waits for stream {stream}"))
        }
        Action::SynchronizeDevice { device } => {
            ("synchronize", format!("the host waits for device {device}"))
        }
        Action::Graph { stream, operations } => {
            ("graph", format!("stream {stream}: {} operations", operations.len()))
        }
        Action::Host => ("host", String::new()),
        Action::Give { token } => ("thread", format!("hands over {token}")),
        Action::Take { token } => ("thread", format!("waits until {token} is handed over")),
    }
}
