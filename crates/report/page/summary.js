// The head of the page: what ran, the verdict, and the numbers that answer it.

function head() {
  const { job, cluster, software } = report;
  const devices = cluster.nodes * cluster.devices_per_node;
  const where = [
    cluster.device &&
      `${devices} × ${cluster.device}${cluster.nodes > 1 ? ` in ${cluster.nodes} nodes` : ""} (${cluster.name})`,
    report.world_size > 1 && `${count(report.world_size)} ranks, ${count(report.ranks_emulated)} of them ran`,
    software.torch && `PyTorch ${software.torch}`,
    job.emulation_seconds !== null && `emulated in ${seconds(job.emulation_seconds)} without a GPU`,
  ];
  return h(
    "header",
    null,
    h("h1", null, job.command.join(" ") || "trompe"),
    h("p", { class: "faint" }, where.filter(Boolean).join(" · ")),
  );
}

function verdict() {
  const { status, text, hint, out_of_memory: failure } = report.verdict;
  const [word, mood] = {
    fits: ["Fits", "good"],
    out_of_memory: ["Out of memory", "bad"],
    failed: ["Failed", "bad"],
    interrupted: ["Interrupted", "warn"],
  }[status];
  const request = failure && [
    `Rank ${failure.rank} asked for ${bytes(failure.requested_bytes)}`,
    failure.owner && ` for ${failure.owner}`,
    failure.step !== null && ` in step ${failure.step}`,
    ` when ${bytes(failure.free_bytes)} were free.`,
  ];
  return h(
    "div",
    { class: "verdict " + mood },
    h("strong", null, word),
    h(
      "div",
      null,
      h("p", null, rich(sentence(text))),
      request && h("p", null, request.filter(Boolean).join("")),
      hint && h("p", null, h("b", null, "→ "), rich(sentence(hint))),
    ),
  );
}

function interval(low, value, high) {
  const [from, to] = [Math.min(low, value) * 0.9, Math.max(high, value) * 1.1];
  const place = (x) => ((x - from) / (to - from || 1)) * 100;
  return h(
    "div",
    { class: "interval", role: "img", "aria-label": `between ${seconds(low)} and ${seconds(high)}` },
    h("i", { style: `left:${place(low)}%;right:${100 - place(high)}%` }),
    h("b", { style: `left:${place(value)}%` }),
  );
}

function tiles() {
  const { step_time: step, throughput, flops, device_use: use, communication, memory } = report;
  const all = [];
  if (step) {
    all.push(
      tile(
        "Step time",
        seconds(step.seconds, 4),
        null,
        interval(step.low, step.seconds, step.high),
        `${seconds(step.low)} to ${seconds(step.high)} (${percent(step.level, 0)} interval)`,
        step.basis,
      ),
    );
  } else {
    all.push(tile("Step time", "not known", null, null, "no complete step was seen"));
  }
  const { tokens, samples } = throughput;
  if (tokens)
    all.push(
      tile(
        "Throughput",
        rate(tokens.per_second),
        "tokens/s",
        null,
        samples && `${rate(samples.per_second)} samples/s`,
        `${count(tokens.per_step)} tokens a step: ${tokens.found_by}`,
      ),
    );
  else if (samples)
    all.push(
      tile(
        "Throughput",
        rate(samples.per_second),
        "samples/s",
        null,
        `${count(samples.per_step)} samples a step: ${samples.found_by}`,
      ),
    );
  if (flops) {
    const peak = `of ${metric(flops.peak_flops_per_second, "FLOP/s")}${flops.peak_dtype ? " " + (DTYPES[flops.peak_dtype] ?? flops.peak_dtype) : ""}`;
    const hardware = flops.hfu > flops.mfu * 1.001 ? `with recomputation ${percent(flops.hfu)}` : null;
    all.push(
      tile(
        "Model FLOPs utilisation",
        percent(flops.mfu),
        null,
        meter(flops.mfu),
        peak,
        hardware,
        `${metric(flops.model_flops, "FLOP")} a step: ${flops.found_by}`,
      ),
    );
  }
  const fill = memory.capacity_bytes ? memory.total_bytes / memory.capacity_bytes : 0;
  all.push(
    tile(
      "Memory of the fullest device",
      bytes(memory.total_bytes),
      null,
      meter(fill, fill > 0.95),
      memory.capacity_bytes > 0 && `${percent(fill)} of ${bytes(memory.capacity_bytes)}`,
      `peak allocated ${bytes(memory.peak_allocated_bytes)}`,
      `peak reserved ${bytes(memory.peak_reserved_bytes)}`,
    ),
  );
  if (use)
    all.push(
      tile(
        "Device busy",
        percent(use.busy_share),
        null,
        meter(use.busy_share),
        `waits for the host ${percent(use.host_bound_share)} of the step (${seconds(use.host_bound_seconds)})`,
      ),
    );
  if (communication && report.world_size > 1) {
    all.push(
      tile(
        "Communication",
        seconds(communication.exposed_seconds),
        "exposed",
        step && meter(communication.exposed_seconds / step.seconds),
        `${seconds(communication.seconds)} a step in all`,
        step && `${percent(communication.exposed_seconds / step.seconds)} of the step is exposed`,
      ),
    );
  }
  return h("div", { class: "tiles" }, all);
}

function notes() {
  if (!report.notes.length) return null;
  const item = (note) =>
    h(
      "li",
      { class: note.severity },
      note.severity !== "info" && h("b", null, note.severity === "error" ? "Error: " : "Warning: "),
      rich(sentence(note.text)),
      note.action && h("span", { class: "action" }, "→ ", rich(sentence(note.action))),
    );
  const [serious, others] = [
    report.notes.filter((note) => note.severity !== "info"),
    report.notes.filter((note) => note.severity === "info"),
  ];
  return section(
    "notes",
    "Notes",
    null,
    h("ul", { class: "notes" }, serious.map(item)),
    others.length > 0 &&
      (serious.length
        ? h(
            "details",
            null,
            h("summary", null, plural(others.length, "remark", "remarks")),
            h("ul", { class: "notes" }, others.map(item)),
          )
        : h("ul", { class: "notes" }, others.map(item))),
  );
}
