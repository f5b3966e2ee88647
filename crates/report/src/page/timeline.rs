//! The timeline in columns: a tenth of the size of a list of spans, and as much as the page's script can draw smoothly.

use std::collections::BTreeMap;

use serde::Serialize;
use trompe_results::{Argument, Kind, NameId, Span, Timeline, Track, TrackKind};

/// The most spans that the page carries.
const MOST: usize = 150_000;

/// A timeline as `page/timeline_model.js` reads it.
#[derive(Debug, Serialize)]
pub(super) struct Packed<'a> {
    /// Names of the kinds that `Lane::kind` counts.
    kinds: Vec<&'static str>,
    names: &'a [String],
    tracks: Vec<Lane<'a>>,
    marks: Vec<(u64, &'a str)>,
    /// Spans of the whole timeline, and how many of them are not here.
    total: usize,
    left_out: usize,
}

/// A track; the columns have an entry for each span.
#[derive(Debug, Serialize)]
struct Lane<'a> {
    rank: u32,
    track: &'static str,
    label: &'a str,
    /// Picoseconds since the start of the span before.
    start: Vec<u64>,
    /// Picoseconds.
    length: Vec<u64>,
    name: Vec<u32>,
    /// Place in `Packed::kinds`; -1 when the span has none.
    kind: Vec<i32>,
    /// Correlation; 0 when there is none.
    link: Vec<u64>,
    /// Arguments by place of the span, of those that have any.
    more: BTreeMap<usize, &'a [(NameId, Argument)]>,
}

/// The timeline for the page: host tracks of a rank above its streams, the shortest spans left out when there are too
/// many.
pub(super) fn pack(timeline: &Timeline) -> Packed<'_> {
    pack_at_most(timeline, MOST)
}

fn pack_at_most(timeline: &Timeline, most: usize) -> Packed<'_> {
    let total = timeline.span_count();
    let mut keep = Keep::new(timeline, most);
    let mut tracks: Vec<_> = timeline.tracks.iter().collect();
    tracks.sort_by_key(|track| (track.rank, track.kind, track.number));
    let tracks: Vec<_> = tracks.into_iter().map(|track| lane(track, &mut keep)).collect();
    let kept: usize = tracks.iter().map(|track| track.start.len()).sum();
    Packed {
        kinds: Kind::ALL.iter().map(|kind| kind.name()).collect(),
        names: &timeline.names,
        tracks,
        marks: timeline.marks.iter().map(|mark| (mark.at_ps, mark.text.as_str())).collect(),
        total,
        left_out: total - kept,
    }
}

fn lane<'a>(track: &'a Track, keep: &mut Keep) -> Lane<'a> {
    let mut lane = Lane {
        rank: track.rank,
        track: match track.kind {
            TrackKind::Host => "host",
            TrackKind::Stream => "stream",
        },
        label: &track.name,
        start: Vec::new(),
        length: Vec::new(),
        name: Vec::new(),
        kind: Vec::new(),
        link: Vec::new(),
        more: BTreeMap::new(),
    };
    let mut before = 0;
    for span in track.spans.iter().filter(|span| keep.wants(span)) {
        if !span.arguments.is_empty() {
            lane.more.insert(lane.start.len(), &span.arguments);
        }
        lane.start.push(span.start_ps.saturating_sub(before));
        before = span.start_ps.max(before);
        lane.length.push(span.duration_ps);
        lane.name.push(span.name.0);
        lane.kind.push(span.kind.map_or(-1, |kind| kind as i32));
        lane.link.push(span.correlation.unwrap_or(0));
    }
    lane
}

/// Chooses the longest spans.
struct Keep {
    /// Spans longer than this are kept.
    longer_than: u64,
    /// How many of exactly that length are kept too: the first ones.
    equal: usize,
    all: bool,
}

impl Keep {
    fn new(timeline: &Timeline, most: usize) -> Self {
        let spans = timeline.tracks.iter().flat_map(|track| &track.spans);
        let mut lengths: Vec<_> = spans.map(|span| span.duration_ps).collect();
        if lengths.len() <= most {
            return Self { longer_than: 0, equal: 0, all: true };
        }
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let longer_than = lengths[most];
        let longer = lengths.partition_point(|&length| length > longer_than);
        Self { longer_than, equal: most - longer, all: false }
    }

    fn wants(&mut self, span: &Span) -> bool {
        if self.all || span.duration_ps > self.longer_than {
            return true;
        }
        if span.duration_ps == self.longer_than && self.equal > 0 {
            self.equal -= 1;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(lengths: &[u64]) -> Timeline {
        let spans = lengths
            .iter()
            .enumerate()
            .map(|(at, &duration_ps)| Span { start_ps: 100 * at as u64, duration_ps, ..Span::default() })
            .collect();
        Timeline { tracks: vec![Track { spans, ..Track::default() }], ..Timeline::default() }
    }

    #[test]
    fn starts_are_differences() {
        let timeline = timeline(&[5, 6, 7]);
        let packed = pack(&timeline);
        assert_eq!(packed.tracks[0].start, [0, 100, 100]);
        assert_eq!(packed.tracks[0].length, [5, 6, 7]);
        assert_eq!((packed.total, packed.left_out), (3, 0));
    }

    #[test]
    fn the_longest_stay() {
        let check = |most, expect: &[u64]| {
            let timeline = timeline(&[5, 9, 5, 5, 7]);
            let packed = pack_at_most(&timeline, most);
            assert_eq!(packed.tracks[0].length, expect);
            assert_eq!(packed.left_out, 5 - expect.len());
        };
        check(5, &[5, 9, 5, 5, 7]);
        check(4, &[5, 9, 5, 7]);
        check(2, &[9, 7]);
        check(0, &[]);
    }

    #[test]
    fn kinds_are_counted_in_their_order() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }
}
