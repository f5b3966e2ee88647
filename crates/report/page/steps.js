// The steps that were seen: which of them the prediction rests on, and how they spread.

function steps() {
  const { steps: seen, step_time: predicted } = report;
  if (!seen.table.length) return null;
  const chart = h("div", { class: "chart" });
  redrawn(chart, (width) => chart.replaceChildren(stepsChart(seen.table, predicted, width)));
  const found = `${plural(seen.seen, "complete step", "complete steps")}, the first ${seen.warm_up} left out as warm-up, ${seen.used} used. Boundary found by ${seen.found_by}.`;
  const lead = seen.rule === "whole_run" ? "No steps were found: the whole run is shown as one." : found;
  const rows = table(
    [
      { head: "Step", right: true, cell: (row) => row.index },
      { head: "Time", right: true, cell: (row) => seconds(row.seconds, 4) },
      { head: "Device busy", right: true, cell: (row) => seconds(row.busy_seconds, 4) },
      { head: "Host", right: true, wide: true, cell: (row) => seconds(row.host_seconds, 4) },
      { head: "Kernels", right: true, wide: true, cell: (row) => count(row.kernels) },
      { head: "Peak allocated", right: true, cell: (row) => bytes(row.peak_allocated_bytes) },
      { head: "Used", cell: (row) => (row.used ? "yes" : `no: ${row.excluded_because ?? "left out"}`) },
    ],
    seen.table,
  );
  return section(
    "steps",
    "Steps",
    lead,
    chart,
    h("details", { open: seen.table.length <= 4 }, h("summary", null, "Every step in numbers"), rows),
  );
}

function stepsChart(rows, predicted, width) {
  const counted = rows.filter((row) => row.used);
  // A slow first step must not flatten the others: the axis ends a little above the steps that count.
  const longest = Math.max(
    predicted?.high ?? 0,
    ...(counted.length ? counted : rows).map((row) => row.seconds),
  );
  const field = plot({ width, height: 176, across: [0, rows.length], up: longest * 1.25 || 1 });
  const slot = field.x(1) - field.x(0);
  const wide = Math.max(1, Math.min(46, slot * 0.72));
  const every = Math.ceil(34 / slot);
  const bars = rows.map((row, index) => {
    const [x, y] = [field.x(index + 0.5), field.y(row.seconds)];
    const why = row.used ? "" : `, left out: ${row.excluded_because ?? ""}`;
    return [
      svg(
        "rect",
        {
          x: x - wide / 2,
          width: wide,
          y,
          height: Math.max(1, field.bottom - y),
          rx: Math.min(3, wide / 4),
          fill: row.used ? "var(--accent)" : "var(--bubble)",
        },
        svg("title", null, `step ${row.index}: ${seconds(row.seconds, 4)}${why}`),
      ),
      row.seconds > field.up &&
        slot > 44 &&
        label(x, field.top - 6, "middle", `${seconds(row.seconds, 2)} ↑`, "ink"),
      index % every === 0 && label(x, field.height - 6, "middle", String(row.index)),
    ];
  });
  const [low, high] = predicted ? [field.y(predicted.low), field.y(predicted.high)] : [0, 0];
  return drawing(field, "time of each step", [
    grid(field, niceStep(field.up, 3), (value) => (value === 0 ? "0" : seconds(value, 2))),
    predicted &&
      svg("rect", {
        x: field.left,
        width: field.right - field.left,
        y: high,
        height: Math.max(1, low - high),
        fill: "var(--accent)",
        opacity: 0.1,
      }),
    bars,
    predicted &&
      level(field, predicted.seconds, { stroke: "var(--ink)", "stroke-dasharray": "6 4", opacity: 0.7 }),
  ]);
}
