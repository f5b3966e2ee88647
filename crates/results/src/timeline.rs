//! What happens when: spans on the tracks of each rank, in simulated time.
//!
//! Names are kept once and referred to by [`NameId`], since a step launches few different kernels many times. Times
//! are picoseconds since the start of the timeline. Spans of one track are in order of their start; spans of a host
//! track may nest, spans of a stream never overlap.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Kind;

/// A piece of simulated time, of some or all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// The names that spans, arguments and counters refer to.
    pub names: Vec<String>,
    /// What happens on each host thread and stream.
    pub tracks: Vec<Track>,
    /// Numbers that change over time.
    pub counters: Vec<Counter>,
    /// Named moments ("step 3").
    pub marks: Vec<Mark>,
}

/// An index into [`Timeline::names`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct NameId(pub u32);

/// One line of the timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Track {
    /// The rank it belongs to.
    pub rank: u32,
    /// What runs on it.
    pub kind: TrackKind,
    /// Number of the thread or stream.
    pub number: u32,
    /// Its name for people ("main thread", "stream 7").
    pub name: String,
    /// What happens on it, in order of start.
    pub spans: Vec<Span>,
}

/// What runs on a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackKind {
    /// A thread of the host program.
    #[default]
    Host,
    /// A stream of the device.
    Stream,
}

/// Something that takes time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// What it is.
    pub name: NameId,
    /// The kind of work; `None` on a host track.
    pub kind: Option<Kind>,
    /// Start in picoseconds.
    pub start_ps: u64,
    /// Length in picoseconds.
    pub duration_ps: u64,
    /// Joins a launch on the host with what it launched: spans with the same number belong together.
    pub correlation: Option<u64>,
    /// Further facts, shown when the span is looked at.
    pub arguments: Vec<(NameId, Argument)>,
}

/// The value of a fact about a span.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Argument {
    /// A whole number.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A text.
    Text(String),
}

/// A number that changes over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// The rank it belongs to.
    pub rank: u32,
    /// Its name for people.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Picoseconds and the value from then on, in order of time.
    pub points: Vec<(u64, f64)>,
}

/// A named moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// The moment in picoseconds.
    pub at_ps: u64,
    /// Its name.
    pub text: String,
}

impl Timeline {
    /// The text of a name; empty when there is none with that number.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("", String::as_str)
    }

    /// The number of spans on all tracks.
    #[must_use]
    pub fn span_count(&self) -> usize {
        self.tracks.iter().map(|track| track.spans.len()).sum()
    }

    /// The end of the last span in picoseconds.
    #[must_use]
    pub fn end_ps(&self) -> u64 {
        let ends =
            self.tracks.iter().flat_map(|track| &track.spans).map(|span| span.start_ps + span.duration_ps);
        ends.max().unwrap_or(0)
    }
}

/// Builds a [`Timeline`]: keeps each name once.
#[derive(Clone, Debug, Default)]
pub struct TimelineBuilder {
    ids: BTreeMap<String, NameId>,
    timeline: Timeline,
}

impl TimelineBuilder {
    /// An empty timeline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of `name`, which is added when it is new.
    pub fn name(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id =
            NameId(u32::try_from(self.timeline.names.len()).expect("a timeline has fewer than 2^32 names"));
        self.timeline.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// Adds a track without spans and returns its index for [`Self::push`].
    pub fn track(&mut self, rank: u32, kind: TrackKind, number: u32, name: impl Into<String>) -> usize {
        self.timeline.tracks.push(Track { rank, kind, number, name: name.into(), spans: Vec::new() });
        self.timeline.tracks.len() - 1
    }

    /// Adds a span to a track.
    ///
    /// # Panics
    /// When there is no such track.
    pub fn push(&mut self, track: usize, span: Span) {
        self.timeline.tracks[track].spans.push(span);
    }

    /// Adds a counter.
    pub fn counter(&mut self, counter: Counter) {
        self.timeline.counters.push(counter);
    }

    /// Adds a named moment.
    pub fn mark(&mut self, at_ps: u64, text: impl Into<String>) {
        self.timeline.marks.push(Mark { at_ps, text: text.into() });
    }

    /// The finished timeline: spans in order of start (the longer first where they start together, so that parents
    /// come before their children).
    #[must_use]
    pub fn finish(mut self) -> Timeline {
        for track in &mut self.timeline.tracks {
            track.spans.sort_by_key(|span| (span.start_ps, std::cmp::Reverse(span.duration_ps)));
        }
        self.timeline.marks.sort_by_key(|mark| mark.at_ps);
        self.timeline
    }
}
