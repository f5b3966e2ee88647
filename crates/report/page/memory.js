// Device memory: over time against the capacity, what fills the device, and who owns the peak.

function memory() {
  const { ranks, capacity_bytes: capacity } = report.memory;
  if (!ranks.length) return null;
  const body = h("div");
  let rank = ranks.find((row) => row.rank === report.memory.fullest_rank) ?? ranks[0];
  let whole = capacity > 0 && rank.total_bytes > capacity * 0.35;
  const show = () => body.replaceChildren(rankMemory(rank, capacity, whole, (next) => { whole = next; show(); }));
  show();
  const choice = ranks.length > 1 && h("div", { class: "bar" }, h("label", null, "Rank ", h("select", {
    onchange: (event) => { rank = ranks[event.target.selectedIndex]; show(); },
  }, ranks.map((row) => h("option", { selected: row === rank }, `${row.rank} (${bytes(row.total_bytes)})`)))));
  const lead = `As the framework's own caching allocator asked for it; capacity: ${report.memory.capacity_source || "source not stated"}.`;
  return section("memory", "Device memory", lead, choice, body);
}

function rankMemory(rank, capacity, whole, rescale) {
  const chart = h("div", { class: "chart" });
  redrawn(chart, (width) => chart.replaceChildren(...memoryChart(rank, capacity, whole, width)));
  const switcher = capacity > 0 && h("button", { class: "plain", onclick: () => rescale(!whole) }, whole ? "Scale to what is used" : "Scale to the capacity");
  const key = (name, dashed, text) => h("span", { class: "small nowrap" }, h("span", { class: "swatch", style: dashed ? `height:0;border-top:2px dashed var(--${name});border-radius:0;vertical-align:4px` : `background:var(--${name})` }), text);
  return h("div", null,
    h("div", { class: "columns" },
      h("div", { class: "chart" }, h("div", { class: "bar" }, key("attention", false, "allocated"), key("faint", true, "reserved"), capacity > 0 && key("bad", true, "capacity"), h("span", { class: "grow" }), switcher), chart),
      h("div", null, owners(rank))),
    filling(rank, capacity));
}

function memoryChart(rank, capacity, whole, width) {
  const { samples } = rank;
  if (samples.length < 2) return [h("p", { class: "faint" }, "The trace has no allocations to draw.")];
  const [height, left, bottom, top] = [318, 62, 24, 20];
  const outside = rank.charges.reduce((sum, charge) => sum + charge.bytes, 0);
  const most = Math.max(...samples.map((s) => Math.max(s.reserved_bytes, s.allocated_bytes)));
  const limit = Math.max(0, capacity - outside);
  const ceiling = whole && capacity > 0 ? Math.max(limit, most) * 1.06 : most * 1.2 || 1;
  const [from, to] = [samples[0].at, samples[samples.length - 1].at];
  const x = (at) => left + ((at - from) / (to - from || 1)) * (width - left - 8);
  const y = (value) => height - bottom - (value / ceiling) * (height - bottom - top);
  const steps = (key) => samples.map((s, i) => (i ? `H${x(s.at).toFixed(1)}V${y(s[key]).toFixed(1)}` : `M${x(s.at).toFixed(1)},${y(s[key]).toFixed(1)}`)).join("");
  const parts = [];
  const unit = 1024 ** Math.min(4, Math.max(0, Math.floor(Math.log2(ceiling) / 10)));
  const tick = niceStep(ceiling / unit, 4) * unit;
  for (let value = 0; value <= ceiling; value += tick) {
    parts.push(svg("line", { x1: left, x2: width - 8, y1: y(value), y2: y(value), stroke: "var(--line)" }), svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, bytes(value)));
  }
  const time = { simulated_seconds: seconds, recorded_seconds: seconds, event: (value) => count(value) }[rank.axis];
  const across = niceStep(to - from, Math.max(2, width / 130));
  for (let at = Math.ceil(from / across) * across; at <= to; at += across) {
    parts.push(svg("text", { x: x(at), y: height - 7, "text-anchor": x(at) > width - 40 ? "end" : "middle" }, at === 0 ? "0" : time(at)));
  }
  let lastLabel = -Infinity;
  rank.step_starts.forEach((at, index) => {
    if (at < from || at > to) return;
    parts.push(svg("line", { x1: x(at), x2: x(at), y1: top, y2: height - bottom, stroke: "var(--line)", "stroke-dasharray": "2 3" }));
    if (x(at) - lastLabel > 54 && x(at) < width - 50) {
      parts.push(svg("text", { x: x(at) + 3, y: top - 6 }, `step ${index}`));
      lastLabel = x(at);
    }
  });
  const line = steps("allocated_bytes");
  parts.push(svg("path", { d: `${line}V${y(0)}H${x(from)}Z`, fill: "var(--attention)", opacity: 0.24 }), svg("path", { d: line, fill: "none", stroke: "var(--attention)", "stroke-width": 1.5 }));
  parts.push(svg("path", { d: steps("reserved_bytes"), fill: "none", stroke: "var(--faint)", "stroke-width": 1.5, "stroke-dasharray": "5 3" }));
  if (capacity > 0 && limit <= ceiling) {
    parts.push(svg("line", { x1: left, x2: width - 8, y1: y(limit), y2: y(limit), stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "7 4" }),
      svg("text", { x: width - 12, y: y(limit) + 15, "text-anchor": "end", style: "fill:var(--bad)" }, `${bytes(capacity)} capacity less ${bytes(outside)} outside`));
  } else if (capacity > 0) {
    parts.push(svg("text", { x: width - 12, y: top + 14, "text-anchor": "end", style: "fill:var(--bad)" }, `↑ ${bytes(capacity)} capacity`));
  }
  if (rank.peak_at !== null && rank.peak_at >= from && rank.peak_at <= to) {
    const [px, py] = [x(rank.peak_at), y(rank.peak_allocated_bytes)];
    const end = px > width / 2;
    parts.push(svg("circle", { cx: px, cy: py, r: 4, fill: "var(--attention)", stroke: "var(--card)", "stroke-width": 1.5 }));
    if (py > top + 22) parts.push(svg("text", { x: px + (end ? -8 : 8), y: py - 8, "text-anchor": end ? "end" : "start", style: "fill:var(--ink)" }, `peak ${bytes(rank.peak_allocated_bytes)}`));
  }
  const cursor = svg("line", { y1: top, y2: height - bottom, stroke: "var(--ink)", opacity: 0.5, visibility: "hidden" });
  const readout = h("div", { class: "readout", hidden: true });
  const move = (event) => {
    const box = drawing.getBoundingClientRect();
    const at = from + ((event.clientX - box.left - left) / (width - left - 8)) * (to - from);
    let low = 0, high = samples.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (samples[middle].at <= at) low = middle; else high = middle - 1;
    }
    const sample = samples[low], place = x(Math.max(from, Math.min(to, at)));
    cursor.setAttribute("x1", place); cursor.setAttribute("x2", place); cursor.setAttribute("visibility", "visible");
    readout.hidden = false;
    readout.replaceChildren(h("div", { class: "faint" }, rank.axis === "event" ? `event ${count(sample.at)}` : seconds(Math.max(from, at), 4)), h("div", null, `allocated ${bytes(sample.allocated_bytes)}`), h("div", null, `reserved ${bytes(sample.reserved_bytes)}`));
    readout.style.cssText = `top:${top + 4}px;` + (place > width / 2 ? `right:${width - place + 8}px` : `left:${place + 8}px`);
  };
  const leave = () => { readout.hidden = true; cursor.setAttribute("visibility", "hidden"); };
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `memory of rank ${rank.rank} over time, peak ${bytes(rank.peak_allocated_bytes)}`, onpointermove: move, onpointerleave: leave }, parts, cursor);
  return [drawing, readout];
}

// What fills the device when it is fullest, against its capacity.
function filling(rank, capacity) {
  const parts = [
    ["allocated at the peak", rank.peak_allocated_bytes, "attention", "live tensors"],
    ["cached by the allocator", Math.max(0, rank.peak_reserved_bytes - rank.peak_allocated_bytes), "norm", "reserved, less allocated"],
    ...rank.charges.map((charge, index) => [charge.what, charge.bytes, ["elementwise", "communication", "copy", "embedding", "reduction"][index % 5], charge.source]),
  ].filter(([, size]) => size > 0);
  const total = Math.max(capacity, parts.reduce((sum, [, size]) => sum + size, 0)) || 1;
  const free = total - parts.reduce((sum, [, size]) => sum + size, 0);
  const bar = h("div", { class: "stack thin", role: "img", "aria-label": "what fills the device" },
    parts.map(([name, size, tone]) => h("i", { title: `${name}: ${bytes(size)}`, style: `flex:${size} 1 0;background:var(--${tone})` })), h("i", { title: `free: ${bytes(free)}`, style: `flex:${free} 1 0` }));
  const row = ([name, size, tone, source]) => h("div", { title: source }, tone ? swatch(tone) : h("span", { class: "swatch", style: "background:var(--soft);border:1px solid var(--line)" }), h("span", null, name), h("span", null, bytes(size)), h("span", { class: "right faint" }, percent(size / total)));
  const sources = rank.charges.filter((charge) => charge.source);
  return h("div", null, h("h3", null, "What fills the device"), bar, h("div", { class: "legend" }, parts.map(row), row(["free", free, null, ""])),
    sources.length > 0 && h("details", null, h("summary", null, "Where the sizes outside the allocator come from"), facts(sources.map((charge) => [charge.what, `${bytes(charge.bytes)}: ${charge.source}`]))),
    h("p", { class: "faint small" }, `${plural(rank.allocations, "allocation", "allocations")}, ${plural(rank.retries, "retry", "retries")} after freeing the cache`));
}

function owners(rank) {
  if (!rank.owners.length) return h("p", { class: "faint" }, "The trace does not say who owns the peak.");
  const total = rank.owners.reduce((sum, owner) => sum + owner.bytes, 0) || 1;
  const row = (owner) => h("tr", null, h("td", null, swatch(OWNERS[owner.kind][1]), h("span", { class: "mono" }, owner.owner), h("div", { class: "faint small" }, `${OWNERS[owner.kind][0]}, ${plural(owner.allocations, "allocation", "allocations")}`)), h("td", { class: "right" }, bytes(owner.bytes), h("div", { class: "faint small" }, percent(owner.bytes / total))));
  const rows = (list) => h("table", null, h("tbody", null, list.map(row)));
  return h("div", null, h("h3", { style: "margin-top:.2rem" }, "Owners of the allocated peak"), rows(rank.owners.slice(0, 6)),
    rank.owners.length > 6 && h("details", null, h("summary", null, `${rank.owners.length - 6} more`), rows(rank.owners.slice(6))));
}
