// The timeline on a canvas: drag or arrows move, ctrl + wheel, pinch or +/- zoom, a click shows a span.

// Heights in pixels: a lane of a host track, of a stream, a title, the time axis, the named moments, the overview.
const [LANE, STREAM, TITLE, AXIS, MARKS, OVERVIEW] = [17, 24, 20, 22, 16, 34];
const HINT = "Click a span to see what it is and what launched it.";

function timelineSection() {
  if (!timeline.tracks.some((track) => track.start.length)) return null;
  const model = timelineModel();
  const ranks = [...new Set(model.tracks.map((track) => track.rank))].sort((a, b) => a - b);
  const view = {
    model,
    rank: ranks[0],
    from: 0,
    to: model.end,
    selected: null,
    found: new Set(),
    hover: null,
  };
  const overview = h("canvas", { class: "overview", "aria-hidden": "true" });
  const canvas = h("canvas", {
    tabindex: 0,
    role: "img",
    "aria-label": "timeline of host threads and streams; use the arrow keys, plus, minus and 0",
  });
  const lanes = h("div", { class: "lanes" }, canvas);
  const readout = h("div", { class: "readout", hidden: true });
  const box = h("div", { class: "timeline chart" }, overview, lanes, readout);
  const pinned = h("div", { class: "pinned faint" }, HINT);

  let wanted = false;
  const draw = () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() => {
      wanted = false;
      drawOverview(view, overview, box.clientWidth);
      drawLanes(view, canvas, box.clientWidth);
    });
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
  const timeAt = (event) =>
    view.from +
    ((event.clientX - box.getBoundingClientRect().left) / box.clientWidth) * (view.to - view.from);
  const select = (span, follow) => {
    view.selected = span;
    if (span && follow) {
      const width = view.to - view.from;
      if (span.start < view.from || span.end > view.to)
        moveTo((span.start + span.end) / 2 - width / 2, (span.start + span.end) / 2 + width / 2);
    }
    pinned.classList.toggle("faint", !span);
    pinned.replaceChildren(span ? spanFacts(view, span, (other) => select(other, true)) : HINT);
    draw();
  };

  timelineGestures({ view, lanes, overview, box, moveTo, zoom, timeAt, draw });
  canvas.addEventListener("pointermove", (event) => {
    const span = event.buttons ? null : spanAt(view, canvas, event);
    if (span !== view.hover) {
      view.hover = span;
      draw();
    }
    readout.hidden = !span;
    if (!span) return;
    const bounds = box.getBoundingClientRect();
    const x = event.clientX - bounds.left,
      y = event.clientY - bounds.top;
    readout.replaceChildren(
      h("div", null, shorten(model.name(span), 70)),
      h(
        "div",
        { class: "faint" },
        `${seconds((span.end - span.start) * 1e-12)}${span.kind ? ", " + KINDS[span.kind] : ""}`,
      ),
    );
    readout.style.cssText =
      `top:${y + 14}px;` + (x > bounds.width / 2 ? `right:${bounds.width - x + 10}px` : `left:${x + 10}px`);
  });
  canvas.addEventListener("pointerleave", () => {
    readout.hidden = true;
    view.hover = null;
    draw();
  });
  canvas.addEventListener("click", (event) => !lanes.dataset.dragged && select(spanAt(view, canvas, event)));
  canvas.addEventListener("dblclick", (event) => {
    const span = spanAt(view, canvas, event);
    if (span) moveTo(span.start - (span.end - span.start) * 0.2, span.end + (span.end - span.start) * 0.2);
  });
  canvas.addEventListener("keydown", (event) => {
    const tenth = (view.to - view.from) / 10;
    const action = {
      ArrowLeft: () => moveTo(view.from - tenth, view.to - tenth),
      ArrowRight: () => moveTo(view.from + tenth, view.to + tenth),
      a: () => moveTo(view.from - tenth, view.to - tenth),
      d: () => moveTo(view.from + tenth, view.to + tenth),
      "+": () => zoom(0.7, middle()),
      "=": () => zoom(0.7, middle()),
      w: () => zoom(0.7, middle()),
      "-": () => zoom(1 / 0.7, middle()),
      s: () => zoom(1 / 0.7, middle()),
      0: () => moveTo(0, model.end),
      Escape: () => select(null),
    }[event.key];
    if (action && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      action();
    }
  });

  const button = (text, title, action) =>
    h("button", { class: "plain", title, "aria-label": title, onclick: action }, text);
  const tally = h("span", { class: "faint small" });
  const all = () =>
    model.tracks.filter((track) => track.rank === view.rank).flatMap((track) => track.lanes.flat());
  let matches = [],
    next = 0;
  const search = h("input", {
    type: "search",
    placeholder: "Find spans by name",
    "aria-label": "find spans by name",
    oninput: (event) => {
      const text = event.target.value.trim().toLowerCase();
      matches = text
        ? all()
            .filter((span) => model.name(span).toLowerCase().includes(text))
            .sort((a, b) => a.start - b.start)
        : [];
      next = 0;
      view.found = new Set(matches);
      tally.textContent = text
        ? `${plural(matches.length, "span", "spans")}, ${seconds(matches.reduce((sum, span) => sum + span.end - span.start, 0) * 1e-12)}; Enter shows the next`
        : "";
      draw();
    },
    onkeydown: (event) => {
      if (event.key === "Enter" && matches.length) select(matches[next++ % matches.length], true);
    },
  });
  const choice =
    ranks.length > 1 &&
    h(
      "label",
      { class: "small" },
      "Rank ",
      h(
        "select",
        {
          onchange: (event) => {
            view.rank = ranks[event.target.selectedIndex];
            select(null);
          },
        },
        ranks.map((rank) => h("option", null, String(rank))),
      ),
    );
  const left = timeline.left_out
    ? ` The ${count(timeline.left_out)} shortest of ${count(timeline.total)} spans are left out here; timeline.json has them all.`
    : "";
  redrawn(box, draw);
  document.fonts?.ready.then(draw);
  return section(
    "timeline",
    "Timeline",
    `Simulated: ${seconds(model.end * 1e-12, 4)}, ${plural(timeline.total, "span", "spans")}. Drag to move, ctrl + wheel or pinch to zoom, double-click a span to fit it.${left}`,
    h(
      "div",
      { class: "bar" },
      choice,
      button("−", "zoom out", () => zoom(1 / 0.6, middle())),
      button("+", "zoom in", () => zoom(0.6, middle())),
      button("Whole", "show everything", () => moveTo(0, model.end)),
      search,
      tally,
    ),
    box,
    pinned,
  );
}

const shorten = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

function spanFacts(view, span, show) {
  const { model } = view;
  const value = (v) => (typeof v === "number" ? (Number.isInteger(v) ? count(v) : significant(v, 4)) : v);
  const others = model
    .linked(span)
    .map((other) =>
      h(
        "div",
        null,
        h("button", { class: "plain", onclick: () => show(other) }, shorten(model.name(other), 80)),
        h(
          "span",
          { class: "faint small" },
          ` on ${model.tracks[other.track].label}, ${seconds((other.end - other.start) * 1e-12)}`,
        ),
      ),
    );
  return h(
    "div",
    null,
    h("b", { class: "mono" }, model.name(span)),
    facts([
      ["Track", `${model.tracks[span.track].label}, rank ${model.tracks[span.track].rank}`],
      ["Length", seconds((span.end - span.start) * 1e-12, 4)],
      ["Start", seconds(span.start * 1e-12, 6)],
      ["Kind", span.kind && KINDS[span.kind]],
      ...span.more.map(([key, v]) => [timeline.names[key] ?? "", value(v)]),
      [model.tracks[span.track].kind === "host" ? "Launched" : "Launched by", others.length ? others : null],
    ]),
  );
}
