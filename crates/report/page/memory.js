// Device memory: over time against the capacity, what fills the device, and who owns the peak.

function memory() {
  const { ranks, capacity_bytes: capacity } = report.memory;
  if (!ranks.length) return null;
  const body = h("div");
  let rank = ranks.find((row) => row.rank === report.memory.fullest_rank) ?? ranks[0];
  let whole = capacity > 0 && rank.total_bytes > capacity * 0.35;
  const show = () =>
    body.replaceChildren(
      rankMemory(rank, capacity, whole, (next) => {
        whole = next;
        show();
      }),
    );
  show();
  const choice =
    ranks.length > 1 &&
    h(
      "div",
      { class: "bar" },
      h(
        "label",
        null,
        "Rank ",
        h(
          "select",
          {
            onchange: (event) => {
              rank = ranks[event.target.selectedIndex];
              show();
            },
          },
          ranks.map((row) =>
            h("option", { selected: row === rank }, `${row.rank} (${bytes(row.total_bytes)})`),
          ),
        ),
      ),
    );
  const lead = `As the framework's own caching allocator asked for it; capacity: ${report.memory.capacity_source || "source not stated"}.`;
  return section("memory", "Device memory", lead, choice, body);
}

function rankMemory(rank, capacity, whole, rescale) {
  const chart = h("div", { class: "chart" });
  redrawn(chart, (width) => chart.replaceChildren(...memoryChart(rank, capacity, whole, width)));
  const switcher =
    capacity > 0 &&
    h(
      "button",
      { class: "plain", onclick: () => rescale(!whole) },
      whole ? "Scale to what is used" : "Scale to the capacity",
    );
  const key = (name, dashed, text) =>
    h(
      "span",
      { class: "small nowrap" },
      h("span", {
        class: "swatch",
        style: dashed
          ? `height:0;border-top:2px dashed var(--${name});border-radius:0;vertical-align:4px`
          : `background:var(--${name})`,
      }),
      text,
    );
  return h(
    "div",
    null,
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "chart" },
        h(
          "div",
          { class: "bar" },
          key("attention", false, "allocated"),
          key("faint", true, "reserved"),
          capacity > 0 && key("bad", true, "capacity"),
          h("span", { class: "faint small" }, MEMORY_AXIS[rank.axis].name),
          h("span", { class: "grow" }),
          switcher,
        ),
        chart,
      ),
      h("div", null, owners(rank)),
    ),
    filling(rank, capacity),
  );
}

// What fills the device when it is fullest, against its capacity.
function filling(rank, capacity) {
  const parts = [
    ["allocated at the peak", rank.peak_allocated_bytes, "attention", "live tensors"],
    [
      "cached by the allocator",
      Math.max(0, rank.peak_reserved_bytes - rank.peak_allocated_bytes),
      "norm",
      "reserved, less allocated",
    ],
    ...rank.charges.map((charge, index) => [
      charge.what,
      charge.bytes,
      ["elementwise", "communication", "copy", "embedding", "reduction"][index % 5],
      charge.source,
    ]),
  ].filter(([, size]) => size > 0);
  const total =
    Math.max(
      capacity,
      parts.reduce((sum, [, size]) => sum + size, 0),
    ) || 1;
  const free = total - parts.reduce((sum, [, size]) => sum + size, 0);
  const bar = h(
    "div",
    { class: "stack thin", role: "img", "aria-label": "what fills the device" },
    parts.map(([name, size, tone]) =>
      h("i", { title: `${name}: ${bytes(size)}`, style: `flex:${size} 1 0;background:var(--${tone})` }),
    ),
    h("i", { title: `free: ${bytes(free)}`, style: `flex:${free} 1 0` }),
  );
  const row = ([name, size, tone, source]) =>
    h(
      "div",
      { title: source },
      tone
        ? swatch(tone)
        : h("span", { class: "swatch", style: "background:var(--soft);border:1px solid var(--line)" }),
      h("span", null, name),
      h("span", null, bytes(size)),
      h("span", { class: "right faint" }, percent(size / total)),
    );
  const counted = [
    rank.allocations !== null && plural(rank.allocations, "allocation", "allocations"),
    rank.retries !== null && `${plural(rank.retries, "retry", "retries")} after freeing the cache`,
  ].filter(Boolean);
  const sources = rank.charges.filter((charge) => charge.source);
  return h(
    "div",
    null,
    h("h3", null, "What fills the device"),
    bar,
    h("div", { class: "legend" }, parts.map(row), row(["free", free, null, ""])),
    sources.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, "Where the sizes outside the allocator come from"),
        facts(sources.map((charge) => [charge.what, `${bytes(charge.bytes)}: ${charge.source}`])),
      ),
    counted.length > 0 && h("p", { class: "faint small" }, counted.join(", ")),
  );
}

function owners(rank) {
  if (!rank.owners.length) return h("p", { class: "faint" }, "The trace does not say who owns the peak.");
  const total = rank.owners.reduce((sum, owner) => sum + owner.bytes, 0) || 1;
  const row = (owner) =>
    h(
      "tr",
      null,
      h(
        "td",
        null,
        swatch(OWNERS[owner.kind][1]),
        h("span", { class: "mono" }, owner.owner),
        h(
          "div",
          { class: "faint small" },
          OWNERS[owner.kind][0],
          owner.allocations !== null && `, ${plural(owner.allocations, "allocation", "allocations")}`,
        ),
      ),
      h(
        "td",
        { class: "right" },
        bytes(owner.bytes),
        h("div", { class: "faint small" }, percent(owner.bytes / total)),
      ),
    );
  const rows = (list) => h("table", null, h("tbody", null, list.map(row)));
  return h(
    "div",
    null,
    h("h3", { style: "margin-top:.2rem" }, "Owners of the allocated peak"),
    rows(rank.owners.slice(0, 6)),
    rank.owners.length > 6 &&
      h("details", null, h("summary", null, `${rank.owners.length - 6} more`), rows(rank.owners.slice(6))),
  );
}
