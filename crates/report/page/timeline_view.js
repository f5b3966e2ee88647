// The timeline on a canvas: drag or arrows move, ctrl + wheel, pinch or +/- zoom, a click shows a span.

const LANE = 17, STREAM = 24, TITLE = 20, AXIS = 22, MARKS = 16, OVERVIEW = 34;

function timelineSection() {
  if (!timeline.tracks.some((track) => track.start.length)) return null;
  const model = timelineModel();
  const ranks = [...new Set(model.tracks.map((track) => track.rank))].sort((a, b) => a - b);
  const view = { model, rank: ranks[0], from: 0, to: model.end, selected: null, found: new Set(), hover: null };
  const overview = h("canvas", { class: "overview", "aria-hidden": "true" });
  const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": "timeline of host threads and streams; use the arrow keys, plus, minus and 0" });
  const lanes = h("div", { class: "lanes" }, canvas);
  const readout = h("div", { class: "readout", hidden: true });
  const box = h("div", { class: "timeline chart" }, overview, lanes, readout);
  const pinned = h("div", { class: "pinned faint" }, "Click a span to see what it is and what launched it.");

  let wanted = false;
  const draw = () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() => { wanted = false; drawOverview(view, overview, box.clientWidth); drawLanes(view, canvas, box.clientWidth); });
  };
  const shortest = 2000; // picoseconds across the whole width, at the closest
  const moveTo = (from, to) => {
    const width = Math.min(model.end, Math.max(shortest, to - from));
    view.from = Math.max(0, Math.min(model.end - width, from));
    view.to = view.from + width;
    draw();
  };
  const zoom = (factor, at) => moveTo(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const middle = () => (view.from + view.to) / 2;
  const timeAt = (event) => view.from + ((event.clientX - box.getBoundingClientRect().left) / box.clientWidth) * (view.to - view.from);
  const select = (span, follow) => {
    view.selected = span;
    if (span && follow) {
      const width = view.to - view.from;
      if (span.start < view.from || span.end > view.to) moveTo((span.start + span.end) / 2 - width / 2, (span.start + span.end) / 2 + width / 2);
    }
    pinned.classList.toggle("faint", !span);
    pinned.replaceChildren(span ? spanFacts(view, span, (other) => select(other, true)) : "");
    draw();
  };

  timelineGestures({ view, lanes, overview, box, moveTo, zoom, timeAt, draw });
  canvas.addEventListener("pointermove", (event) => {
    const span = event.buttons ? null : spanAt(view, canvas, event);
    if (span !== view.hover) { view.hover = span; draw(); }
    readout.hidden = !span;
    if (!span) return;
    const bounds = box.getBoundingClientRect();
    const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    readout.replaceChildren(h("div", null, shorten(model.name(span), 70)), h("div", { class: "faint" }, `${seconds((span.end - span.start) * 1e-12)}${span.kind ? ", " + KINDS[span.kind] : ""}`));
    readout.style.cssText = `top:${y + 14}px;` + (x > bounds.width / 2 ? `right:${bounds.width - x + 10}px` : `left:${x + 10}px`);
  });
  canvas.addEventListener("pointerleave", () => { readout.hidden = true; view.hover = null; draw(); });
  canvas.addEventListener("click", (event) => !lanes.dataset.dragged && select(spanAt(view, canvas, event)));
  canvas.addEventListener("dblclick", (event) => {
    const span = spanAt(view, canvas, event);
    if (span) moveTo(span.start - (span.end - span.start) * 0.2, span.end + (span.end - span.start) * 0.2);
  });
  canvas.addEventListener("keydown", (event) => {
    const tenth = (view.to - view.from) / 10;
    const action = {
      ArrowLeft: () => moveTo(view.from - tenth, view.to - tenth), ArrowRight: () => moveTo(view.from + tenth, view.to + tenth), a: () => moveTo(view.from - tenth, view.to - tenth), d: () => moveTo(view.from + tenth, view.to + tenth),
      "+": () => zoom(0.7, middle()), "=": () => zoom(0.7, middle()), w: () => zoom(0.7, middle()), "-": () => zoom(1 / 0.7, middle()), s: () => zoom(1 / 0.7, middle()), 0: () => moveTo(0, model.end), Escape: () => select(null),
    }[event.key];
    if (action && !event.ctrlKey && !event.metaKey) { event.preventDefault(); action(); }
  });

  const button = (text, title, action) => h("button", { class: "plain", title, "aria-label": title, onclick: action }, text);
  const tally = h("span", { class: "faint small" });
  const all = () => model.tracks.filter((track) => track.rank === view.rank).flatMap((track) => track.lanes.flat());
  let matches = [], next = 0;
  const search = h("input", {
    type: "search", placeholder: "Find spans by name", "aria-label": "find spans by name",
    oninput: (event) => {
      const text = event.target.value.trim().toLowerCase();
      matches = text ? all().filter((span) => model.name(span).toLowerCase().includes(text)).sort((a, b) => a.start - b.start) : [];
      next = 0; view.found = new Set(matches);
      tally.textContent = text ? `${plural(matches.length, "span", "spans")}, ${seconds(matches.reduce((sum, span) => sum + span.end - span.start, 0) * 1e-12)}; Enter shows the next` : "";
      draw();
    },
    onkeydown: (event) => { if (event.key === "Enter" && matches.length) select(matches[next++ % matches.length], true); },
  });
  const choice = ranks.length > 1 && h("label", { class: "small" }, "Rank ", h("select", { onchange: (event) => { view.rank = ranks[event.target.selectedIndex]; select(null); } }, ranks.map((rank) => h("option", null, String(rank)))));
  const left = timeline.left_out ? ` The ${count(timeline.left_out)} shortest of ${count(timeline.total)} spans are left out here; timeline.json has them all.` : "";
  redrawn(box, draw);
  document.fonts?.ready.then(draw);
  return section("timeline", "Timeline", `Simulated: ${seconds(model.end * 1e-12, 4)}, ${plural(timeline.total, "span", "spans")}. Drag to move, ctrl + wheel or pinch to zoom, double-click a span to fit it.${left}`,
    h("div", { class: "bar" }, choice, button("−", "zoom out", () => zoom(1 / 0.6, middle())), button("+", "zoom in", () => zoom(0.6, middle())), button("Whole", "show everything", () => moveTo(0, model.end)), search, tally),
    box, pinned);
}

const shorten = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

function spanFacts(view, span, show) {
  const { model } = view;
  const value = (v) => (typeof v === "number" ? (Number.isInteger(v) ? count(v) : significant(v, 4)) : v);
  const others = model.linked(span).map((other) => h("div", null, h("button", { class: "plain", onclick: () => show(other) }, shorten(model.name(other), 80)), h("span", { class: "faint small" }, ` on ${model.tracks[other.track].label}, ${seconds((other.end - other.start) * 1e-12)}`)));
  return h("div", null, h("b", { class: "mono" }, model.name(span)), facts([
    ["Track", `${model.tracks[span.track].label}, rank ${model.tracks[span.track].rank}`], ["Length", seconds((span.end - span.start) * 1e-12, 4)], ["Start", seconds(span.start * 1e-12, 6)],
    ["Kind", span.kind && KINDS[span.kind]], ...span.more.map(([key, v]) => [timeline.names[key] ?? "", value(v)]),
    [model.tracks[span.track].kind === "host" ? "Launched" : "Launched by", others.length ? others : null],
  ]));
}

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
  let best = null, distance = Infinity;
  for (let at = firstAfter(row.lane, time - slack); at < row.lane.length && row.lane[at].start <= time + slack; at += 1) {
    const span = row.lane[at];
    const away = time < span.start ? span.start - time : time > span.end ? time - span.end : 0;
    if (away < distance) { best = span; distance = away; }
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
    view.pieces = density(view.model.tracks.filter((track) => track.rank === view.rank), view.model.end, parts);
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
  const colors = { ...Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, color(kind)])), ink: color("ink"), faint: color("faint"), line: color("line"), card: color("card"), accent: color("accent"), hostInk: color("host-ink") };
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
    for (let at = firstAfter(row.lane, view.from); at < row.lane.length && row.lane[at].start < view.to; at += 1) {
      const span = row.lane[at];
      const left = Math.max(-2, x(span.start)), right = Math.min(width + 2, x(span.end));
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
        pen.fillText(shorten(clean(view.model.name(span)), room), Math.max(0, left) + 4, row.top + row.height / 2 + 4);
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
    pen.beginPath(); pen.moveTo(place, AXIS - 4); pen.lineTo(place, height); pen.stroke();
    pen.fillStyle = colors.faint;
    const label = time === 0 ? "0" : seconds(time * 1e-12, digits);
    if (place + 4 + label.length * 6 < width) pen.fillText(label, place + 4, 14);
  }
  for (const [time, text] of timeline.marks) {
    if (time < view.from || time > view.to) continue;
    pen.strokeStyle = colors.accent;
    pen.setLineDash([4, 3]);
    pen.beginPath(); pen.moveTo(x(time) + 0.5, AXIS); pen.lineTo(x(time) + 0.5, height); pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = colors.accent;
    const label = shorten(clean(text), 40), wide = label.length * 6.2;
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
    const [ax, ay, bx, by] = [x(view.selected.start), from.top + from.height / 2, x(other.start), row.top + row.height / 2];
    pen.beginPath(); pen.moveTo(ax, ay); pen.bezierCurveTo(ax, (ay + by) / 2, bx, (ay + by) / 2, bx, by); pen.stroke();
  }
}
