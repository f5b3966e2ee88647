// What the numbers rest on: methods, what was not understood, the host model, sheets and software.

function trust() {
  const { coverage, host, step_time: step } = report;
  const known = coverage.methods.filter((row) => row.seconds > 0);
  const bar =
    known.length > 0 &&
    h(
      "div",
      {
        class: "stack thin",
        role: "img",
        "aria-label": known.map((row) => `${row.method} ${percent(row.share)}`).join(", "),
      },
      known.map((row) =>
        h("i", {
          style: `flex:${row.share * 100} 1 0;background:var(--${row.method})`,
          title: `${row.method}: ${percent(row.share)}`,
        }),
      ),
    );
  const legend =
    known.length > 0 &&
    table(
      [
        {
          head: "Method",
          cell: (row) => [
            swatch(row.method),
            row.method,
            h("div", { class: "faint small" }, METHODS[row.method]),
          ],
        },
        { head: "Kernels", right: true, cell: (row) => count(row.count) },
        { head: "Time", right: true, cell: (row) => seconds(row.seconds) },
        { head: "Share", right: true, cell: (row) => percent(row.share) },
      ],
      known,
    );
  const clock =
    coverage.sustained_clock &&
    h(
      "p",
      { class: "small" },
      `Kernels near the arithmetic peak (${percent(coverage.sustained_clock.kernel_time_share)} of the kernel time) are priced at down to ${percent(coverage.sustained_clock.lowest_share)} of the highest clock, which the device lowers under their load.`,
    );
  const modes = {
    measured: "recorded gaps between calls, less the emulator's own cost, plus the cost of the real calls",
    scale: `the same, times ${host.scale}`,
    named: `the same, times ${+host.scale.toPrecision(3)}: single-thread speeds of the recording machine and of ${host.simulated_on}`,
    fixed: `${seconds((host.fixed_nanoseconds ?? 0) * 1e-9)} between calls`,
    off: "the host takes no time",
  };
  const hostFacts =
    step &&
    h(
      "div",
      null,
      h("h3", null, "Host time"),
      facts([
        ["Model", `${host.mode}: ${modes[host.mode]}`],
        ["Recorded on", host.recorded_on],
        ["Host sheet", host.simulated_on],
        [
          "Per step",
          `${seconds(host.seconds_per_step)} over ${plural(host.calls_per_step, "device call", "device calls")}`,
        ],
        ["Cost of real calls", rich(host.call_cost_source)],
        [
          "Emulator's own cost",
          host.emulator_nanoseconds_per_call === null
            ? null
            : `${significant(host.emulator_nanoseconds_per_call, 3)} ns a call, taken off`,
        ],
      ]),
    );
  const unknown =
    coverage.unknown_kernels.length > 0 &&
    h(
      "div",
      null,
      h("h3", null, `Kernels that were not understood (${count(coverage.unknown_kernels.length)})`),
      table(
        [
          { head: "Kernel", cell: (row) => h("span", { class: "mono" }, row.name) },
          { head: "Calls", right: true, cell: (row) => count(row.count) },
          { head: "Charged", right: true, cell: (row) => seconds(row.seconds) },
          { head: "By the rule", cell: (row) => row.rule },
        ],
        coverage.unknown_kernels,
      ),
    );
  const calls = (title, rows, open) =>
    rows.length > 0 &&
    h(
      "details",
      { open },
      h("summary", null, `${title} (${count(rows.length)})`),
      table(
        [
          { head: "Function", cell: (row) => h("span", { class: "mono" }, row.symbol) },
          { head: "Library", wide: true, cell: (row) => row.library },
          { head: "Calls", right: true, cell: (row) => count(row.count) },
          { head: "What it means", cell: (row) => row.effect },
        ],
        rows,
      ),
    );
  const shapes = coverage.kernels_with_shapes_share;
  return section(
    "trust",
    "What the numbers rest on",
    shapes === null ? null : `Operator and input shapes are known for ${percent(shapes)} of the kernels.`,
    h("div", { class: "halves" }, h("div", null, bar, legend, clock), hostFacts),
    unknown,
    calls("Calls that the emulator refused", coverage.unsupported_calls, true),
    calls("Calls that were accepted without effect", coverage.accepted_calls, false),
  );
}

function provenance() {
  const { job, software, device, cluster } = report;
  const sheet =
    device.facts.length > 0 &&
    h("div", null, h("h3", null, `Device sheet ${device.sheet}`), sourced(device.facts));
  const pairs = (rows) => rows.map((row) => [h("code", null, row.name), h("code", null, row.value)]);
  return section(
    "provenance",
    "Where it comes from",
    null,
    h(
      "div",
      { class: "halves" },
      h(
        "div",
        null,
        h("h3", null, "Run"),
        facts([
          ["Command", h("code", null, job.command.join(" "))],
          ["Directory", job.directory && h("code", null, job.directory)],
          ["Exit code", job.exit_code === null ? null : String(job.exit_code)],
          ["Cluster", cluster.name],
          ["Interconnect", cluster.interconnect],
          ["Emulated in", job.emulation_seconds === null ? null : seconds(job.emulation_seconds)],
          ["Simulated in", job.simulation_seconds === null ? null : seconds(job.simulation_seconds)],
          ["Records", count(job.records)],
          ["Traces", job.trace && h("code", null, job.trace)],
        ]),
        h("h3", null, "Software"),
        facts([
          ["Python", software.python],
          ["PyTorch", software.torch],
          ["CUDA", software.cuda],
          ["System", software.system],
          ...pairs(software.packages),
        ]),
        software.environment.length > 0 && [h("h3", null, "Environment"), facts(pairs(software.environment))],
      ),
      sheet,
    ),
  );
}

// Numbers under their sources, so that a source which many share is read once.
function sourced(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.source, [...(groups.get(row.source) ?? []), row]);
  return [...groups].map(([source, members]) =>
    h(
      "div",
      { class: "sourced" },
      h("p", { class: "faint small" }, source || "source not stated"),
      facts(members.map((row) => [row.name, withUnit(row.value, row.unit)])),
    ),
  );
}
