// The steps that were seen: which of them the prediction rests on, and how they spread.

function steps() {
  const { steps: seen, step_time: predicted } = report;
  if (!seen.table.length) return null;
  const chart = h("div", { class: "chart" });
  redrawn(chart, (width) => chart.replaceChildren(stepsChart(seen.table, predicted, width)));
  const lead = `${plural(seen.seen, "complete step", "complete steps")}, the first ${seen.warm_up} left out as warm-up, ${seen.used} used. Boundary found by ${seen.found_by}.`;
  const rows = table([
    { head: "Step", right: true, cell: (row) => row.index }, { head: "Time", right: true, cell: (row) => seconds(row.seconds, 4) },
    { head: "Device busy", right: true, cell: (row) => seconds(row.busy_seconds, 4) }, { head: "Host", right: true, wide: true, cell: (row) => seconds(row.host_seconds, 4) },
    { head: "Kernels", right: true, wide: true, cell: (row) => count(row.kernels) }, { head: "Peak allocated", right: true, cell: (row) => bytes(row.peak_allocated_bytes) },
    { head: "Used", cell: (row) => (row.used ? "yes" : `no: ${row.excluded_because ?? "left out"}`) },
  ], seen.table);
  return section("steps", "Steps", lead, chart, h("details", { open: seen.table.length <= 4 }, h("summary", null, "Every step in numbers"), rows));
}

function stepsChart(rows, predicted, width) {
  const [height, left, bottom, top] = [176, 62, 22, 24];
  const used = rows.filter((row) => row.used);
  // A slow first step must not flatten the others: the axis ends a little above the steps that count.
  const ceiling = Math.max(...(used.length ? used : rows).map((row) => row.seconds), predicted?.high ?? 0) * 1.25 || 1;
  const y = (value) => height - bottom - (Math.min(value, ceiling) / ceiling) * (height - bottom - top);
  const slot = (width - left - 8) / rows.length;
  const bar = Math.max(1, Math.min(46, slot * 0.72));
  const parts = [];
  const tick = niceStep(ceiling, 3);
  for (let value = 0; value <= ceiling; value += tick) {
    parts.push(svg("line", { x1: left, x2: width - 8, y1: y(value), y2: y(value), stroke: "var(--line)" }), svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, value === 0 ? "0" : seconds(value, 2)));
  }
  if (predicted) parts.push(svg("rect", { x: left, width: width - left - 8, y: y(predicted.high), height: Math.max(1, y(predicted.low) - y(predicted.high)), fill: "var(--accent)", opacity: 0.1 }));
  const every = Math.ceil(rows.length / Math.max(1, Math.floor((width - left) / 34)));
  rows.forEach((row, index) => {
    const x = left + slot * (index + 0.5);
    const cut = row.seconds > ceiling;
    parts.push(svg("rect", { x: x - bar / 2, width: bar, y: y(row.seconds), height: Math.max(1, y(0) - y(row.seconds)), rx: Math.min(3, bar / 4), fill: row.used ? "var(--accent)" : "var(--bubble)" },
      svg("title", null, `step ${row.index}: ${seconds(row.seconds, 4)}${row.used ? "" : `, left out: ${row.excluded_because ?? ""}`}`)));
    if (cut && slot > 44) parts.push(svg("text", { x, y: top - 6, "text-anchor": "middle", style: "fill:var(--ink)" }, `${seconds(row.seconds, 2)} ↑`));
    if (index % every === 0) parts.push(svg("text", { x, y: height - 6, "text-anchor": "middle" }, String(row.index)));
  });
  if (predicted) parts.push(svg("line", { x1: left, x2: width - 8, y1: y(predicted.seconds), y2: y(predicted.seconds), stroke: "var(--ink)", "stroke-dasharray": "6 4", opacity: 0.7 }));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "time of each step" }, parts);
}
