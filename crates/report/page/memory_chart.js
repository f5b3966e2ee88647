// Allocated and reserved memory over the run, with the capacity, the steps and the peak.

function memoryChart(rank, capacity, whole, width) {
  const { samples } = rank;
  if (samples.length < 2) return [h("p", { class: "faint" }, "The trace has no allocations to draw.")];
  const outside = rank.charges.reduce((sum, charge) => sum + charge.bytes, 0);
  const limit = Math.max(0, capacity - outside);
  const most = samples.reduce((max, s) => Math.max(max, s.reserved_bytes, s.allocated_bytes), 0);
  const field = plot({
    width,
    height: 318,
    across: [samples[0].at, samples[samples.length - 1].at],
    up: whole && capacity > 0 ? Math.max(limit, most) * 1.08 : most * 1.2 || 1,
  });
  const chart = drawing(
    field,
    `memory of rank ${rank.rank} over time, peak ${bytes(rank.peak_allocated_bytes)}`,
    [
      memoryGrid(field, rank),
      memoryCurves(field, samples),
      capacity > 0 && memoryLimit(field, { capacity, outside, limit, late: peakIsLate(field, rank) }),
      memoryPeak(field, rank, limit),
    ],
  );
  return [chart, memoryCursor(field, chart, rank)];
}

const MEMORY_AXIS = {
  simulated_seconds: {
    name: "over simulated time",
    text: (at) => seconds(at),
    exact: (at) => seconds(at, 4),
  },
  recorded_seconds: {
    name: "over the time of the run",
    text: (at) => seconds(at),
    exact: (at) => seconds(at, 4),
  },
  event: { name: "by allocator event", text: (at) => count(at), exact: (at) => `event ${count(at)}` },
};

function memoryGrid(field, rank) {
  const unit = 1024 ** Math.min(4, Math.max(0, Math.floor(Math.log2(field.up) / 10)));
  const parts = [grid(field, niceStep(field.up / unit, 5) * unit, bytes)];
  const step = niceStep(field.to - field.from, Math.max(2, field.width / 130));
  for (let at = Math.ceil(field.from / step) * step; at <= field.to; at += step) {
    const side = field.x(at) > field.right - 30 ? "end" : "middle";
    parts.push(label(field.x(at), field.height - 7, side, at === 0 ? "0" : MEMORY_AXIS[rank.axis].text(at)));
  }
  let [line, named] = [-Infinity, -Infinity];
  rank.step_starts.forEach((at, index) => {
    if (at > field.to) return;
    const x = field.x(Math.max(at, field.from));
    if (x - line < 4) return;
    line = x;
    parts.push(upright(field, x, { "stroke-dasharray": "2 3" }));
    if (x - named > 54 && x < field.right - 42) {
      parts.push(label(x + 3, field.top - 7, "start", `step ${index}`));
      named = x;
    }
  });
  return parts;
}

function memoryCurves(field, samples) {
  const path = (key) => {
    const place = (sample) => [field.x(sample.at).toFixed(1), field.y(sample[key]).toFixed(1)];
    const [x, y] = place(samples[0]);
    return (
      `M${x},${y}` +
      samples
        .slice(1)
        .map(place)
        .map(([x, y]) => `H${x}V${y}`)
        .join("")
    );
  };
  const [allocated, line] = [path("allocated_bytes"), { fill: "none", "stroke-width": 1.5 }];
  return [
    svg("path", {
      d: `${allocated}V${field.bottom}H${field.left}Z`,
      fill: "var(--attention)",
      opacity: 0.24,
    }),
    svg("path", { ...line, d: allocated, stroke: "var(--attention)" }),
    svg("path", { ...line, d: path("reserved_bytes"), stroke: "var(--faint)", "stroke-dasharray": "5 3" }),
  ];
}

function memoryLimit(field, { capacity, outside, limit, late }) {
  if (limit > field.up) {
    return label(field.right - 4, field.top + 13, "end", `↑ ${bytes(capacity)} capacity`, "bad");
  }
  // The label keeps away from the peak's.
  const [x, side] = late ? [field.left + 6, "start"] : [field.right - 4, "end"];
  return [
    level(field, limit, { stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "7 4" }),
    label(x, field.y(limit) - 5, side, `${bytes(capacity)} capacity less ${bytes(outside)} outside`, "bad"),
  ];
}

const peakIsLate = (field, rank) =>
  rank.peak_at !== null && field.x(rank.peak_at) > (field.left + field.right) / 2;

function memoryPeak(field, rank, limit) {
  const at = rank.peak_at;
  if (at === null || at < field.from || at > field.to) return null;
  const [x, y] = [field.x(at), field.y(rank.peak_allocated_bytes)];
  const end = peakIsLate(field, rank);
  const crowded = y < field.top + 24 || (limit <= field.up && Math.abs(y - 12 - field.y(limit)) < 12);
  return [
    svg("circle", {
      cx: x,
      cy: y,
      r: 4,
      fill: "var(--attention)",
      stroke: "var(--card)",
      "stroke-width": 1.5,
    }),
    label(
      end ? x - 8 : x + 8,
      crowded ? y + 16 : y - 8,
      end ? "end" : "start",
      `peak ${bytes(rank.peak_allocated_bytes)}`,
      "ink",
    ),
  ];
}

// A line under the pointer, and what the memory is there.
function memoryCursor(field, chart, rank) {
  const { samples } = rank;
  const cursor = upright(field, 0, { stroke: "var(--ink)", opacity: 0.5, visibility: "hidden" });
  const readout = h("div", { class: "readout", hidden: true });
  chart.append(cursor);
  chart.addEventListener("pointermove", (event) => {
    const inside =
      (event.clientX - chart.getBoundingClientRect().left - field.left) / (field.right - field.left);
    const at = field.from + Math.max(0, Math.min(1, inside)) * (field.to - field.from);
    let [low, high] = [0, samples.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (samples[middle].at <= at) low = middle;
      else high = middle - 1;
    }
    const x = field.x(at);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.setAttribute("visibility", "visible");
    readout.hidden = false;
    readout.replaceChildren(
      h("div", { class: "faint" }, MEMORY_AXIS[rank.axis].exact(at)),
      h("div", null, `allocated ${bytes(samples[low].allocated_bytes)}`),
      h("div", null, `reserved ${bytes(samples[low].reserved_bytes)}`),
    );
    const side = x > field.width / 2 ? `right:${field.width - x + 8}px` : `left:${x + 8}px`;
    readout.style.cssText = `top:${field.top + 4}px;${side}`;
  });
  chart.addEventListener("pointerleave", () => {
    readout.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  });
  return readout;
}
