//! The records of a worker trace in order of time, one line each.

use trompe_trace::reader::{Names, WorkerTrace};
use trompe_trace::record::Record;

use super::describe;

/// Kinds that [`worker_lines`] can be limited to.
pub const KINDS: [&str; 24] = [
    "allocator",
    "attention",
    "call",
    "clock",
    "collective",
    "communicator",
    "convolution",
    "copy",
    "count",
    "dropped",
    "end",
    "event",
    "gemm",
    "graph",
    "launch",
    "library",
    "marker",
    "memory",
    "meta",
    "name",
    "operator",
    "rnn",
    "set",
    "stream",
];

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Microseconds since the trace began.
    pub at_us: f64,
    /// How long it took in microseconds.
    pub took_us: f64,
    /// Operating system thread.
    pub thread: u32,
    /// Operators around it.
    pub depth: usize,
    /// Kind, one of [`KINDS`].
    pub kind: &'static str,
    /// What happened.
    pub text: String,
}

/// Calls `each` with every record of `kind` (all when `None`) in order of time, until it returns `false`.
///
/// Announcements of names are shown only when asked for; what they announce stands in the other lines.
pub fn worker_lines(trace: &WorkerTrace, kind: Option<&str>, mut each: impl FnMut(&Line) -> bool) {
    let names = Names::collect(trace);
    let mut depths = std::collections::BTreeMap::<u32, usize>::new();
    for entry in trace.sorted() {
        let depth = depths.entry(entry.thread).or_default();
        if matches!(entry.record, Record::OperatorEnd { .. }) {
            *depth = depth.saturating_sub(1);
        }
        let found = describe::kind(&entry.record);
        if kind.map_or(found != "name", |kind| kind == found) {
            let line = Line {
                at_us: names.clock.nanos(entry.stamp.begin) as f64 / 1e3,
                took_us: names.clock.length_nanos(u64::from(entry.stamp.ticks)) / 1e3,
                thread: entry.thread,
                depth: *depth,
                kind: found,
                text: describe::text(&entry.record, &names),
            };
            if !each(&line) {
                return;
            }
        }
        if matches!(entry.record, Record::OperatorBegin { .. }) {
            *depth += 1;
        }
    }
}
