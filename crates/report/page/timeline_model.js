// The spans of the timeline, unpacked: tracks of lanes, a lane for each depth of nesting.

// Spans come as columns; starts are differences. Times are picoseconds since the start of the timeline.
function unpackTrack(packed, index) {
  const lanes = [],
    open = [];
  let start = 0;
  packed.start.forEach((difference, at) => {
    start += difference;
    const end = start + packed.length[at];
    while (open.length && open[open.length - 1] <= start) open.pop();
    const depth = open.length;
    open.push(end);
    (lanes[depth] ??= []).push({
      track: index,
      start,
      end,
      name: packed.name[at],
      kind: packed.kind[at] < 0 ? null : timeline.kinds[packed.kind[at]],
      link: packed.link[at],
      more: packed.more[at] ?? [],
    });
  });
  return { rank: packed.rank, kind: packed.track, label: packed.label, lanes };
}

function timelineModel() {
  const tracks = timeline.tracks.map(unpackTrack);
  const links = new Map();
  let end = 1;
  for (const track of tracks) {
    for (const span of track.lanes.flat()) {
      end = Math.max(end, span.end);
      if (!span.link) continue;
      const key = track.rank + ":" + span.link;
      if (!links.has(key)) links.set(key, []);
      links.get(key).push(span);
    }
  }
  const linked = (span) =>
    span.link
      ? (links.get(tracks[span.track].rank + ":" + span.link) ?? []).filter((other) => other !== span)
      : [];
  return { tracks, end, linked, name: (span) => timeline.names[span.name] ?? "" };
}

// The first span of a lane that ends after `time`; spans of a lane neither overlap nor go back.
function firstAfter(lane, time) {
  let low = 0,
    high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].end > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// How busy the streams are in each of `parts` equal pieces: the share of each kind, in order.
function density(tracks, end, parts) {
  const pieces = Array.from({ length: parts }, () => new Map());
  const size = end / parts;
  for (const span of tracks
    .filter((track) => track.kind === "stream")
    .flatMap((track) => track.lanes.flat())) {
    for (let piece = Math.floor(span.start / size); piece < parts && piece * size < span.end; piece += 1) {
      const inside = Math.min(span.end, (piece + 1) * size) - Math.max(span.start, piece * size);
      pieces[piece].set(span.kind, (pieces[piece].get(span.kind) ?? 0) + inside / size);
    }
  }
  return pieces;
}
