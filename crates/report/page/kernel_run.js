// The page of one simulated kernel: where its cycles went.

const run = JSON.parse(document.getElementById("report-data").textContent);

const PIPES = {
  MTE2: ["copy", "loads from global memory"],
  MTE1: ["embedding", "loads the matrix unit's operands"],
  M: ["gemm", "multiplies"],
  FIX: ["optimizer", "stores what was multiplied"],
  V: ["attention", "vector instructions"],
  MTE3: ["norm", "stores from the unified buffer"],
};
const pipeOf = (name) => name.split(".")[1];
const cycles = (value) => count(value) + NO_BREAK + "cycles";
const ratio = (share) =>
  h("span", { class: "share" }, meter(share), h("span", null, percent(share)));

function head() {
  return h(
    "header",
    null,
    h("h1", null, run.program),
    h(
      "p",
      { class: "faint" },
      [
        `${plural(run.cores, "core", "cores")} of ${run.device} at ${run.clock_mhz} MHz`,
        `profile ${run.profile}`,
        run.timing_only && "timing only: no data was touched",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
  );
}

function tiles() {
  const busiest = [...run.pipes].sort((a, b) => b.busy_share - a.busy_share)[0];
  const waiting = [...run.pipes].sort((a, b) => b.waiting_cycles - a.waiting_cycles)[0];
  const matrix = [...run.matrix].sort((a, b) => b.multiply_adds - a.multiply_adds)[0];
  const path = [...run.paths].sort((a, b) => b.share - a.share)[0];
  return h(
    "div",
    { class: "tiles" },
    tile("Makespan", count(run.cycles), "cycles", null, seconds(run.seconds, 4), `${count(run.tasks)} tasks`),
    busiest &&
      tile(
        "Busiest pipe",
        busiest.pipe,
        null,
        meter(busiest.busy_share),
        `at work ${percent(busiest.busy_share)} of the time`,
      ),
    matrix &&
      tile(
        "Matrix units",
        percent(matrix.share),
        "of peak",
        meter(matrix.share),
        `${significant(matrix.per_cycle, 4)} of ${count(matrix.peak_per_cycle)} ${matrix.dtype} multiply-adds per cycle and core`,
      ),
    path &&
      tile(
        "Busiest path",
        path.path,
        null,
        meter(path.share),
        `${significant(path.per_cycle, 3)} of ${significant(path.peak_per_cycle, 3)} bytes per cycle and core`,
      ),
    waiting &&
      waiting.waits.length > 0 &&
      tile(
        "Longest wait",
        waiting.pipe,
        null,
        null,
        `${waiting.waits[0].what}: ${cycles(waiting.waits[0].cycles)}, all cores together`,
      ),
  );
}

// One row per pipe: how much of each part of the makespan it was at work.
function activity() {
  const rows = run.pipes.filter((pipe) => pipe.activity.length);
  if (!rows.length) return null;
  const height = 22;
  const label = 92;
  const holder = h("div", { class: "chart" });
  const draw = (width) => {
    const inner = Math.max(60, width - label - 12);
    const bottom = rows.length * height;
    const step = niceStep(run.cycles, Math.max(2, inner / 110));
    const x = (cycle) => label + (cycle / run.cycles) * inner;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${bottom + 24}`,
      height: bottom + 24,
      role: "img",
      "aria-label": "activity of each pipe over the makespan",
    });
    rows.forEach((pipe, at) => {
      const top = at * height;
      const [name, meaning] = PIPES[pipeOf(pipe.pipe)] ?? ["other", ""];
      const part = inner / pipe.activity.length;
      picture.append(
        svg("text", { x: 0, y: top + 15 }, pipe.pipe),
        svg("rect", { x: label, y: top + 3, width: inner, height: height - 6, fill: color("soft"), rx: 2 }),
      );
      pipe.activity.forEach((share, index) => {
        if (share <= 0) return;
        const tall = Math.max(1, share * (height - 6));
        picture.append(
          svg(
            "rect",
            {
              x: label + index * part,
              y: top + height - 3 - tall,
              width: part + 0.3,
              height: tall,
              fill: color(name),
              "shape-rendering": "crispEdges",
            },
            svg(
              "title",
              null,
              `${pipe.pipe} ${meaning}: ${percent(share, 0)} of cycles ${count((index * run.cycles) / pipe.activity.length)} to ${count(((index + 1) * run.cycles) / pipe.activity.length)}`,
            ),
          ),
        );
      });
    });
    for (let cycle = 0; cycle <= run.cycles; cycle += step) {
      const anchor = cycle === 0 ? "start" : x(cycle) > width - 40 ? "end" : "middle";
      picture.append(
        svg("line", { x1: x(cycle), x2: x(cycle), y1: 0, y2: bottom + 4, stroke: color("line") }),
        svg(
          "text",
          { x: x(cycle), y: bottom + 18, "text-anchor": anchor },
          count(cycle),
        ),
      );
    }
    holder.replaceChildren(picture);
  };
  return section(
    "activity",
    "Pipes over time",
    "How much of each part of the makespan (in cycles) a pipe was at work, the mean over the cores.",
    redrawn(holder, draw),
  );
}

function pipes() {
  const waits = (pipe) =>
    pipe.waits.length
      ? pipe.waits.slice(0, 6).map((wait) => h("div", null, `${wait.what}: `, h("span", { class: "faint" }, count(wait.cycles))))
      : h("span", { class: "faint" }, "nothing");
  return section(
    "pipes",
    "Pipes",
    "All cores together; the busy share is of the makespan. Waits are for events, flags and phases of other pipes, in cycles.",
    table(
      [
        { head: "Pipe", cell: (pipe) => [swatch((PIPES[pipeOf(pipe.pipe)] ?? ["other"])[0]), pipe.pipe] },
        { head: "Tasks", right: true, cell: (pipe) => count(pipe.tasks) },
        { head: "Busy", right: true, cell: (pipe) => ratio(pipe.busy_share) },
        { head: "Busy cycles", right: true, wide: true, cell: (pipe) => count(pipe.busy_cycles) },
        { head: "Waiting", right: true, cell: (pipe) => count(pipe.waiting_cycles) },
        { head: "Waited for", cell: waits },
      ],
      run.pipes,
    ),
  );
}

function rates() {
  const rows = [
    ...run.matrix.map((row) => ({ ...row, name: `matrix unit, ${row.dtype}`, amount: metric(row.multiply_adds, "MAC") })),
    ...run.paths.map((row) => ({ ...row, name: row.path, amount: bytes(row.bytes) })),
  ];
  if (!rows.length) return null;
  return section(
    "rates",
    "Achieved against peak",
    "Multiply-adds and bytes per cycle and core against what the profile says a core can do.",
    table(
      [
        { head: "Unit or path", cell: (row) => row.name },
        { head: "Amount", right: true, cell: (row) => row.amount },
        { head: "Per cycle and core", right: true, wide: true, cell: (row) => significant(row.per_cycle, 4) },
        { head: "Peak", right: true, wide: true, cell: (row) => significant(row.peak_per_cycle, 4) },
        { head: "Achieved", right: true, cell: (row) => ratio(row.share) },
      ],
      rows,
    ),
    run.memories.length > 0 && h("h3", null, "Memories of a core"),
    run.memories.length > 0 &&
      table(
        [
          { head: "Memory", cell: (row) => row.memory.toUpperCase() },
          { head: "Used", right: true, cell: (row) => bytes(row.used_bytes) },
          { head: "Capacity", right: true, wide: true, cell: (row) => bytes(row.capacity_bytes) },
          { head: "Full", right: true, cell: (row) => ratio(row.used_bytes / row.capacity_bytes) },
        ],
        run.memories,
      ),
  );
}

function critical() {
  const shown = run.critical_path.slice(0, 40);
  const rest = run.critical_path.length - shown.length;
  return section(
    "critical",
    "Critical path",
    `${plural(run.critical_tasks, "task", "tasks")} that each waited for the one before, by instruction. To make the kernel faster, make these shorter or take them off the path.`,
    table(
      [
        { head: "Instruction", cell: (row) => rich(row.instruction) },
        { head: "Tasks", right: true, cell: (row) => count(row.tasks) },
        { head: "Cycles", right: true, cell: (row) => count(row.cycles) },
        { head: "Of the makespan", right: true, cell: (row) => ratio(row.share) },
      ],
      shown,
    ),
    rest > 0 && h("p", { class: "faint small" }, `and ${plural(rest, "more instruction", "more instructions")}`),
  );
}

function printed() {
  if (!run.prints.length) return null;
  return section("printed", "Printed", null, h("pre", { class: "mono small scroll" }, run.prints.join("\n")));
}

const sections = [activity(), pipes(), rates(), critical(), printed()].filter(Boolean);
const short = { activity: "Over time", pipes: "Pipes", rates: "Rates", critical: "Critical path", printed: "Printed" };
document.getElementById("page").append(
  h(
    "nav",
    null,
    h("b", null, "trompe npu"),
    sections.map((part) => h("a", { href: "#" + part.id }, short[part.id])),
  ),
  head(),
  tiles(),
  ...sections,
  h(
    "footer",
    null,
    `Simulated by trompe ${run.trompe_version} with profile ${run.profile} (${run.profile_source}); no NPU was used. The same data: report.json.`,
  ),
);
