//! Writer of the Chrome trace event format (`timeline.json`), which Perfetto opens.
//!
//! Format: "Trace Event Format", Google, 2016: one object with an array of events. A rank is a process, a host thread
//! or stream is a thread of it, a span is a complete event (`X`), a launch and what it launched are joined by a flow
//! (`s` and `f`), memory is a counter (`C`), and named moments are instant events (`i`).
//!
//! Times in the file are microseconds with three decimals. Start and end are each rounded to the nanosecond and the
//! duration is their difference, so spans that touch keep touching, spans that nest keep nesting, and nothing
//! overlaps that did not overlap.
//!
//! The writer keeps no event: what is handed to it goes straight to the output, which the caller should buffer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use trompe_results::{Argument, Counter, Mark, NameId, Span, Timeline, Track, TrackKind};

/// Writes a whole timeline.
///
/// # Errors
/// What `out` reports.
pub fn write<W: Write>(timeline: &Timeline, out: W) -> io::Result<()> {
    let mut writer = Writer::new(out)?;
    let mut correlated = Correlated::of(timeline);
    for track in &timeline.tracks {
        let id = writer.track(track)?;
        for span in &track.spans {
            writer.span(id, span, &timeline.names)?;
            if let Some(flow) = correlated.next(track, span) {
                writer.flow(id, flow)?;
            }
        }
    }
    for counter in &timeline.counters {
        writer.counter(counter)?;
    }
    for mark in &timeline.marks {
        writer.mark(mark)?;
    }
    writer.finish()?;
    Ok(())
}

/// Writes events one by one.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// Whether an event has been written, so that the next needs a comma.
    started: bool,
    /// Number of tracks so far of each rank.
    threads: BTreeMap<u32, u32>,
    /// The event being formed; kept to spare allocations.
    line: String,
}

/// A track of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackId {
    process: u32,
    thread: u32,
}

/// One end of an arrow between two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Number of the arrow; both ends have the same.
    pub id: u64,
    /// Start of the span that this end is attached to, in picoseconds.
    pub at_ps: u64,
    /// Whether the arrow starts here (and does not end here).
    pub starts: bool,
}

impl<W: Write> Writer<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// What `out` reports.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self { out, started: false, threads: BTreeMap::new(), line: String::new() })
    }

    /// Adds a track (its name and place, not its spans).
    ///
    /// # Errors
    /// What the output reports.
    pub fn track(&mut self, track: &Track) -> io::Result<TrackId> {
        let threads = self.threads.entry(track.rank).or_insert(0);
        *threads += 1;
        let id = TrackId { process: track.rank, thread: *threads };
        if id.thread == 1 {
            let name = format!("rank {}", track.rank);
            self.metadata(id, "process_name", "name", &quoted(&name))?;
            self.metadata(id, "process_sort_index", "sort_index", &track.rank.to_string())?;
        }
        // Host threads stand above streams; within each, the given order holds.
        let place = id.thread + if track.kind == TrackKind::Host { 0 } else { 10_000 };
        self.metadata(id, "thread_name", "name", &quoted(&track.name))?;
        self.metadata(id, "thread_sort_index", "sort_index", &place.to_string()).map(|()| id)
    }

    /// Adds a span to a track; `names` is the table that its ids refer to.
    ///
    /// # Errors
    /// What the output reports.
    pub fn span(&mut self, track: TrackId, span: &Span, names: &[String]) -> io::Result<()> {
        let name = |id: NameId| names.get(id.0 as usize).map_or("", String::as_str);
        let start = nanos(span.start_ps);
        let end = nanos(span.start_ps.saturating_add(span.duration_ps));
        self.head('X', track, start);
        self.line.push_str(",\"dur\":");
        self.push_micros(end - start);
        self.line.push_str(",\"name\":");
        self.line.push_str(&quoted(name(span.name)));
        self.line.push_str(",\"cat\":");
        self.line.push_str(&quoted(span.kind.map_or("host", trompe_results::Kind::name)));
        if !span.arguments.is_empty() {
            self.line.push_str(",\"args\":{");
            for (index, (key, value)) in span.arguments.iter().enumerate() {
                self.line.push_str(if index == 0 { "" } else { "," });
                self.line.push_str(&quoted(name(*key)));
                self.line.push(':');
                self.line.push_str(&argument(value));
            }
            self.line.push('}');
        }
        self.end()
    }

    /// Adds one end of an arrow to the span that starts at `flow.at_ps` on `track`.
    ///
    /// # Errors
    /// What the output reports.
    pub fn flow(&mut self, track: TrackId, flow: Flow) -> io::Result<()> {
        let Flow { id, at_ps, starts } = flow;
        self.head(if starts { 's' } else { 'f' }, track, nanos(at_ps));
        let binding = if starts { "" } else { ",\"bp\":\"e\"" };
        push(&mut self.line, format_args!("{binding},\"id\":{id},\"name\":\"launch\",\"cat\":\"launch\""));
        self.end()
    }

    /// Adds a counter with all its points.
    ///
    /// # Errors
    /// What the output reports.
    pub fn counter(&mut self, counter: &Counter) -> io::Result<()> {
        let id = TrackId { process: counter.rank, thread: 0 };
        let (name, unit) = (quoted(&counter.name), quoted(&counter.unit));
        for &(at_ps, value) in &counter.points {
            self.head('C', id, nanos(at_ps));
            let value = number(value);
            push(&mut self.line, format_args!(",\"name\":{name},\"args\":{{{unit}:{value}}}"));
            self.end()?;
        }
        Ok(())
    }

    /// Adds a named moment that concerns every rank.
    ///
    /// # Errors
    /// What the output reports.
    pub fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        self.head('i', TrackId { process: 0, thread: 0 }, nanos(mark.at_ps));
        let name = quoted(&mark.text);
        push(&mut self.line, format_args!(",\"s\":\"g\",\"name\":{name},\"cat\":\"mark\""));
        self.end()
    }

    /// Ends the file and returns the output, flushed.
    ///
    /// # Errors
    /// What the output reports.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn metadata(&mut self, id: TrackId, what: &str, key: &str, value: &str) -> io::Result<()> {
        let TrackId { process, thread } = id;
        self.line.clear();
        push(
            &mut self.line,
            format_args!(
                "{{\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"name\":\"{what}\",\"args\":{{\"{key}\":{value}}}"
            ),
        );
        self.end()
    }

    /// Begins an event at `at` nanoseconds.
    fn head(&mut self, phase: char, id: TrackId, at: u64) {
        let TrackId { process, thread } = id;
        self.line.clear();
        push(&mut self.line, format_args!("{{\"ph\":\"{phase}\",\"pid\":{process},\"tid\":{thread},\"ts\":"));
        self.push_micros(at);
    }

    fn push_micros(&mut self, nanos: u64) {
        push(&mut self.line, format_args!("{}.{:03}", nanos / 1_000, nanos % 1_000));
    }

    /// Ends the event and writes it.
    fn end(&mut self) -> io::Result<()> {
        self.line.push('}');
        if self.started {
            self.out.write_all(b",\n")?;
        }
        self.started = true;
        self.out.write_all(self.line.as_bytes())
    }
}

/// The arrows that are still to be drawn, by rank and number: from the first host span with that number to the first
/// span of a stream.
struct Correlated {
    open: BTreeMap<(u32, u64), Ends>,
}

/// Which ends of an arrow are in the timeline and not yet given out.
#[derive(Clone, Copy, Default)]
struct Ends {
    host: bool,
    stream: bool,
}

impl Ends {
    const fn side(&mut self, kind: TrackKind) -> &mut bool {
        match kind {
            TrackKind::Host => &mut self.host,
            TrackKind::Stream => &mut self.stream,
        }
    }
}

impl Correlated {
    fn of(timeline: &Timeline) -> Self {
        let mut open: BTreeMap<(u32, u64), Ends> = BTreeMap::new();
        for track in &timeline.tracks {
            for id in track.spans.iter().filter_map(|span| span.correlation) {
                *open.entry((track.rank, id)).or_default().side(track.kind) = true;
            }
        }
        open.retain(|_, ends| ends.host && ends.stream);
        Self { open }
    }

    /// The end of an arrow at this span, when there is one to give.
    fn next(&mut self, track: &Track, span: &Span) -> Option<Flow> {
        let id = span.correlation?;
        let due = self.open.get_mut(&(track.rank, id))?.side(track.kind);
        if !std::mem::take(due) {
            return None;
        }
        // A number may be used by every rank, an arrow's must be its own: ranks are kept apart in the upper bits.
        let id = (u64::from(track.rank) << 40) ^ id;
        Some(Flow { id, at_ps: span.start_ps, starts: track.kind == TrackKind::Host })
    }
}

/// Picoseconds to the nearest nanosecond.
const fn nanos(ps: u64) -> u64 {
    ps.saturating_add(500) / 1_000
}

fn push(line: &mut String, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("writing to a string cannot fail");
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn argument(value: &Argument) -> String {
    match value {
        Argument::Integer(value) => value.to_string(),
        Argument::Real(value) => number(*value),
        Argument::Text(text) => quoted(text),
    }
}

/// JSON has no NaN and no infinity: both become `null`.
fn number(value: f64) -> String {
    serde_json::Value::from(value).to_string()
}
