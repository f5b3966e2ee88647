//! Spans with names, for people.

use std::collections::{BTreeMap, HashMap};

use trompe_results::{Kind, NameId, Span, Timeline, TimelineBuilder, TrackKind};
use trompe_trace::job::{Action, JobTrace, RankTemplate};

use crate::plan::Plan;
use crate::recorder::{DeviceWork, HostWork, Recorder};

/// Gives the recorded spans their names. Time starts with the first span.
pub(crate) fn build(trace: &JobTrace, plan: &Plan, recorder: &Recorder) -> Timeline {
    let starts =
        recorder.device.iter().map(|span| span.time.0).chain(recorder.host.iter().map(|span| span.time.0));
    let mut writer = Writer {
        builder: TimelineBuilder::new(),
        tracks: BTreeMap::new(),
        host_names: HashMap::new(),
        device_names: HashMap::new(),
        origin: starts.min().unwrap_or(0),
    };
    for span in &recorder.host {
        let index = plan.ranks[span.rank as usize].template;
        let template = &trace.templates[index];
        // A queue's waits are on the track of its first thread.
        let waits = |queue| {
            let first = plan.templates[index].row(queue, 0).filter(|_| queue > 0);
            first.map_or(0, |row| template.events[row].thread.0)
        };
        let (thread, name) = match span.what {
            HostWork::Event(row) => {
                let event = &template.events[row as usize];
                let builder = &mut writer.builder;
                // Most events of a site have one name.
                let key = (index, event.site, named_by(template, row));
                let name =
                    *writer.host_names.entry(key).or_insert_with(|| builder.name(&host_name(template, row)));
                (event.thread.0, name)
            }
            HostWork::Device(queue) => (waits(queue), writer.builder.name("waits for the device")),
            HostWork::Thread(queue) => (waits(queue), writer.builder.name("waits for another thread")),
        };
        let row = if let HostWork::Event(row) = span.what { Some(row) } else { None };
        let track = writer.track((plan.ranks[span.rank as usize].rank.0, TrackKind::Host, thread), || {
            format!("thread {thread}")
        });
        writer.push(track, Span { name, ..self::span(span.time, row) });
    }
    for span in &recorder.device {
        let index = plan.ranks[span.rank as usize].template;
        let template = &trace.templates[index];
        let compiled = plan.template_of(span.rank as usize);
        let (what, kind) = match span.what {
            DeviceWork::Operation { operation, kind } => ((0, operation), kind),
            DeviceWork::Transfer { call } => ((1, call), Kind::Communication),
            DeviceWork::Waiting { call } => ((2, call), Kind::Bubble),
        };
        let builder = &mut writer.builder;
        let name = *writer.device_names.entry((index, what.0, what.1)).or_insert_with(|| match span.what {
            DeviceWork::Operation { operation, .. } => {
                builder.name(&template.operations[operation as usize].short_name)
            }
            DeviceWork::Transfer { call } => builder.name(compiled.calls[call as usize].call.kind.words()),
            DeviceWork::Waiting { call } => {
                let name = compiled.calls[call as usize].call.kind.words();
                builder.name(&format!("{name} waits for other ranks"))
            }
        });
        let id = compiled.streams[span.stream as usize].id.0;
        let track = writer
            .track((plan.ranks[span.rank as usize].rank.0, TrackKind::Stream, id), || format!("stream {id}"));
        writer.push(track, Span { name, kind: Some(kind), ..self::span(span.time, Some(span.row)) });
    }
    writer.builder.finish()
}

/// Rank, kind and number of a track.
type TrackKey = (u32, TrackKind, u32);

struct Writer {
    builder: TimelineBuilder,
    tracks: BTreeMap<TrackKey, usize>,
    /// Names given so far, by template, site and operation. Nothing ever walks through them.
    host_names: HashMap<(usize, u32, u32), NameId>,
    /// By template, sort of work, and operation or call.
    device_names: HashMap<(usize, u8, u32), NameId>,
    origin: u64,
}

impl Writer {
    fn track(&mut self, key: TrackKey, name: impl FnOnce() -> String) -> usize {
        let builder = &mut self.builder;
        *self.tracks.entry(key).or_insert_with(|| builder.track(key.0, key.1, key.2, name()))
    }

    /// Adds a span whose start still counts from the start of the replay.
    fn push(&mut self, track: usize, span: Span) {
        self.builder.push(track, Span { start_ps: span.start_ps - self.origin, ..span });
    }
}

/// A span without name.
fn span(time: (u64, u64), row: Option<u32>) -> Span {
    Span {
        start_ps: time.0,
        duration_ps: time.1 - time.0,
        correlation: row.map(u64::from),
        ..Span::default()
    }
}

/// What tells events of one site apart by name: nothing where the site has an operator, else the event.
fn named_by(template: &RankTemplate, row: u32) -> u32 {
    let event = &template.events[row as usize];
    match template.sites.get(event.site as usize) {
        Some(site) if !site.operator.is_empty() => u32::MAX,
        _ => row,
    }
}

/// What the host does around an event: the framework's operator if it is known, else the call.
fn host_name(template: &RankTemplate, row: u32) -> String {
    let event = &template.events[row as usize];
    let site = template.sites.get(event.site as usize);
    if let Some(site) = site.filter(|site| !site.operator.is_empty()) {
        return site.operator.clone();
    }
    match &event.action {
        Action::Enqueue { operation, .. } => {
            let operation = template.operations.get(*operation as usize);
            operation
                .map_or_else(|| "launch".to_owned(), |operation| format!("launch {}", operation.short_name))
        }
        Action::Collective { collective, .. } => format!("launch {}", collective.kind.words()),
        Action::RecordEvent { .. } => "record event".to_owned(),
        Action::WaitEvent { .. } => "let stream wait for event".to_owned(),
        Action::SynchronizeEvent { .. } => "synchronise with event".to_owned(),
        Action::SynchronizeStream { .. } => "synchronise with stream".to_owned(),
        Action::SynchronizeDevice { .. } => "synchronise with device".to_owned(),
        Action::Graph { .. } => "launch graph".to_owned(),
        Action::Host => "host".to_owned(),
        Action::Give { .. } => "hand over to another thread".to_owned(),
        Action::Take { .. } => "take over from another thread".to_owned(),
    }
}
