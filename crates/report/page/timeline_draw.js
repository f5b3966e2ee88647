// Drawing the timeline: where lanes are, what is under the pointer, spans, axis, arrows.

// Where each lane is: [{top, height, track, lane}], and the height of all.
function timelineLayout(view) {
  const rows = [];
  let top = AXIS + (timeline.marks.length ? MARKS : 0);
  for (const track of view.model.tracks.filter((track) => track.rank === view.rank)) {
    rows.push({ top, height: TITLE, title: track.label, track });
    top += TITLE;
    const height = track.kind === "host" ? LANE : STREAM;
    for (const lane of track.lanes) {
      rows.push({ top, height, lane, track });
      top += height;
    }
    top += 4;
  }
  return { rows, height: top + 4 };
}

function spanAt(view, canvas, event) {
  const bounds = canvas.getBoundingClientRect();
  const y = event.clientY - bounds.top;
  const row = timelineLayout(view).rows.find((row) => row.lane && y >= row.top && y < row.top + row.height);
  if (!row) return null;
  const scale = (view.to - view.from) / bounds.width;
  const time = view.from + (event.clientX - bounds.left) * scale;
  // A span narrower than two pixels is still to be hit.
  const slack = scale * 2;
  let best = null,
    distance = Infinity;
  for (
    let at = firstAfter(row.lane, time - slack);
    at < row.lane.length && row.lane[at].start <= time + slack;
    at += 1
  ) {
    const span = row.lane[at];
    const away = time < span.start ? span.start - time : time > span.end ? time - span.end : 0;
    if (away < distance) {
      best = span;
      distance = away;
    }
  }
  return best;
}

function prepare(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

function drawOverview(view, canvas, width) {
  const pen = prepare(canvas, width, OVERVIEW);
  const parts = Math.max(60, Math.min(400, Math.round(width / 3)));
  if (view.pieces?.length !== parts || view.piecesOf !== view.rank) {
    view.pieces = density(
      view.model.tracks.filter((track) => track.rank === view.rank),
      view.model.end,
      parts,
    );
    view.piecesOf = view.rank;
  }
  const colors = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, color(kind)]));
  const cell = width / parts;
  view.pieces.forEach((piece, index) => {
    const sum = [...piece.values()].reduce((a, b) => a + b, 0);
    const shrink = Math.max(1, sum);
    let y = OVERVIEW;
    for (const kind of Object.keys(KINDS)) {
      const tall = ((piece.get(kind) ?? 0) / shrink) * (OVERVIEW - 4);
      pen.fillStyle = colors[kind];
      pen.fillRect(index * cell, y - tall, cell + 0.5, tall);
      y -= tall;
    }
  });
  const [left, right] = [(view.from / view.model.end) * width, (view.to / view.model.end) * width];
  pen.fillStyle = color("paper");
  pen.globalAlpha = 0.72;
  pen.fillRect(0, 0, left, OVERVIEW);
  pen.fillRect(right, 0, width - right, OVERVIEW);
  pen.globalAlpha = 1;
  pen.strokeStyle = color("ink");
  pen.lineWidth = 1.5;
  pen.strokeRect(left + 0.75, 0.75, Math.max(2, right - left - 1.5), OVERVIEW - 1.5);
}

function drawLanes(view, canvas, width) {
  const layout = timelineLayout(view);
  const pen = prepare(canvas, width, layout.height);
  const scale = width / (view.to - view.from);
  const x = (time) => (time - view.from) * scale;
  const colors = {
    ...Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, color(kind)])),
    ink: color("ink"),
    faint: color("faint"),
    line: color("line"),
    card: color("card"),
    accent: color("accent"),
    hostInk: color("host-ink"),
  };
  const hosts = ["a", "b", "c", "d"].map((letter) => color("host-" + letter));
  drawTimeAxis(view, pen, { width, height: layout.height, x, colors });
  const where = new Map();
  for (const row of layout.rows) {
    if (row.title) {
      pen.fillStyle = colors.faint;
      pen.font = "600 11.5px system-ui, sans-serif";
      pen.fillText(clean(row.title), 6, row.top + 14);
      continue;
    }
    let drawnTo = -1;
    for (
      let at = firstAfter(row.lane, view.from);
      at < row.lane.length && row.lane[at].start < view.to;
      at += 1
    ) {
      const span = row.lane[at];
      const left = Math.max(-2, x(span.start)),
        right = Math.min(width + 2, x(span.end));
      const marked = span === view.selected || span === view.hover || view.found.has(span);
      // What would fall on a pixel that is drawn already is skipped, so a frame's work is bounded by its pixels.
      if (right <= drawnTo && !marked) continue;
      const wide = Math.max(1, right - left - (right - left > 4 ? 0.8 : 0));
      pen.globalAlpha = view.found.size && !marked ? 0.28 : 1;
      pen.fillStyle = span.kind ? colors[span.kind] : hosts[span.name % hosts.length];
      pen.fillRect(left, row.top + 1, wide, row.height - 2);
      if (marked) {
        pen.strokeStyle = span === view.selected ? colors.ink : colors.faint;
        pen.lineWidth = span === view.selected ? 2 : 1;
        pen.strokeRect(left, row.top + 1.5, Math.max(2, wide), row.height - 3);
      }
      drawnTo = Math.max(drawnTo, Math.ceil(left + wide));
      if (wide > 34) {
        const room = Math.floor((wide - 8) / 6);
        pen.fillStyle = span.kind ? colors.card : colors.hostInk;
        pen.font = "11px system-ui, sans-serif";
        pen.fillText(
          shorten(clean(view.model.name(span)), room),
          Math.max(0, left) + 4,
          row.top + row.height / 2 + 4,
        );
      }
      pen.globalAlpha = 1;
    }
    for (const span of [view.selected, ...(view.selected ? view.model.linked(view.selected) : [])]) {
      if (span && row.lane.includes(span)) where.set(span, row);
    }
  }
  drawLinks(view, pen, { where, x, colors });
}

function drawTimeAxis(view, pen, { width, height, x, colors }) {
  const step = niceStep(view.to - view.from, width / 110);
  pen.font = "11px system-ui, sans-serif";
  pen.lineWidth = 1;
  // Enough digits that neighbouring ticks differ.
  const digits = Math.max(3, Math.ceil(Math.log10(Math.max(1, view.to / step))) + 1);
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const place = Math.round(x(time)) + 0.5;
    pen.strokeStyle = colors.line;
    pen.beginPath();
    pen.moveTo(place, AXIS - 4);
    pen.lineTo(place, height);
    pen.stroke();
    pen.fillStyle = colors.faint;
    const label = time === 0 ? "0" : seconds(time * 1e-12, digits);
    if (place + 4 + label.length * 6 < width) pen.fillText(label, place + 4, 14);
  }
  for (const [time, text] of timeline.marks) {
    if (time < view.from || time > view.to) continue;
    pen.strokeStyle = colors.accent;
    pen.setLineDash([4, 3]);
    pen.beginPath();
    pen.moveTo(x(time) + 0.5, AXIS);
    pen.lineTo(x(time) + 0.5, height);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = colors.accent;
    const label = shorten(clean(text), 40),
      wide = label.length * 6.2;
    pen.fillText(label, x(time) + 4 + wide > width ? x(time) - 4 - wide : x(time) + 4, AXIS + 10);
  }
}

// Curves from the selected span to what belongs with it.
function drawLinks(view, pen, { where, x, colors }) {
  const from = view.selected && where.get(view.selected);
  if (!from) return;
  pen.strokeStyle = colors.ink;
  pen.lineWidth = 1.3;
  for (const [other, row] of where) {
    if (other === view.selected) continue;
    const [ax, ay, bx, by] = [
      x(view.selected.start),
      from.top + from.height / 2,
      x(other.start),
      row.top + row.height / 2,
    ];
    pen.beginPath();
    pen.moveTo(ax, ay);
    pen.bezierCurveTo(ax, (ay + by) / 2, bx, (ay + by) / 2, bx, by);
    pen.stroke();
  }
}
