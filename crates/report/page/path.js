// What carries the step: the critical path by owner, what a gain there would bring, and what was varied.

const SORTS = { kernel: "kernel", collective: "collective", host: "host program", latency: "latency" };

function pathColor(owner) {
  if (owner.sort === "host") return "host_bound";
  if (owner.sort === "latency") return "bubble";
  return owner.kind ?? "other";
}

function criticalPath() {
  const path = report.critical_path;
  if (!path?.owners.length) return null;
  const bar = h(
    "div",
    {
      class: "stack",
      role: "img",
      "aria-label": path.owners.map((owner) => `${owner.what} ${percent(owner.share)}`).join(", "),
    },
    path.owners
      .filter((owner) => owner.share > 0.002)
      .map((owner) =>
        h(
          "i",
          {
            class: owner.sort === "latency" ? "idle" : null,
            title: `${owner.what}: ${seconds(owner.seconds)}, ${percent(owner.share)}`,
            style: `flex:${owner.share * 100} 1 0;background-color:var(--${pathColor(owner)})`,
          },
          owner.share >= 0.055 ? percent(owner.share, 0) : null,
        ),
      ),
  );
  const most = Math.max(...path.owners.map((owner) => owner.gain_seconds ?? 0), Number.MIN_VALUE);
  const faster = percent(path.faster_share, 0);
  const rows = table(
    [
      {
        head: "Owner",
        cell: (row) => [swatch(pathColor(row), row.sort === "latency"), " ", row.what],
      },
      { head: "Sort", wide: true, cell: (row) => SORTS[row.sort] },
      { head: "Pieces", right: true, wide: true, cell: (row) => count(row.pieces) },
      { head: "Time", right: true, cell: (row) => seconds(row.seconds) },
      { head: "Share", right: true, cell: (row) => percent(row.share) },
      {
        head: `Gain if ${faster} faster`,
        right: true,
        cell: (row) =>
          row.gain_seconds === null
            ? h("span", { class: "faint" }, "–")
            : [seconds(row.gain_seconds, 2), meter(row.gain_seconds / most)],
      },
    ],
    path.owners,
  );
  const over =
    path.ranks.length > 1 &&
    h(
      "p",
      { class: "faint" },
      `It leads over ${path.ranks.map((part) => `rank ${part.rank} (${seconds(part.seconds)})`).join(", ")}.`,
    );
  return section(
    "path",
    "What carries the step",
    `The critical path of step ${path.step} of rank ${path.rank} (${seconds(path.seconds, 4)}): the unbroken chain of work that ends when the step ends. Time anywhere else costs nothing. The gain is that of the mean step in a replay in which the owner is ${faster} faster everywhere.`,
    bar,
    rows,
    over,
    varied(),
  );
}

// Contention, chance and slow machines.
function varied() {
  const { contention: effect, variation, family } = report;
  const change = effect && effect.with_seconds / (effect.without_seconds || 1) - 1;
  const repeats = variation?.repeats;
  const spread = (steps) =>
    `median ${seconds(steps.median, 4)}, ${seconds(steps.low, 4)} to ${seconds(steps.high, 4)} in eight of ten (mean ${seconds(steps.mean, 4)})`;
  const pairs = [
    [
      "Contention",
      effect &&
        `${effect.on ? "on" : "off"}: ${seconds(effect.with_seconds, 4)} with it, ${seconds(effect.without_seconds, 4)} without (${change < 0 ? "" : "+"}${percent(change)}); ${effect.model}`,
    ],
    variation && ["Without chance and stragglers", seconds(variation.plain_seconds, 4)],
    repeats?.count > 1 && [
      "Step time over repetitions",
      `${count(repeats.count)}: ${spread(repeats)}`,
    ],
    variation?.stragglers.length > 0 && [
      "Slow ranks",
      variation.stragglers
        .slice(0, 16)
        .map((slow) => {
          const parts = [
            ["device", slow.gpu],
            ["host", slow.host],
            ["adapter", slow.nic],
          ].filter(([, speed]) => speed !== 1);
          return `rank ${slow.rank}: ${parts.map(([part, speed]) => `${part} at ${percent(speed, 0)}`).join(", ")}`;
        })
        .join("; ") + (variation.stragglers.length > 16 ? "; …" : ""),
    ],
    family && [
      "Step time over the samples",
      `${count(family.samples.length)} runs from ${family.routing} on: ${spread(family.steps)}`,
    ],
    family && ["The same without host time", spread(family.steps_without_host)],
  ].filter(Boolean);
  const members = family?.steps_without_host;
  return [
    repeats?.count > 4 && histogram(repeats.seconds),
    members?.count > 4 && histogram(members.seconds),
    facts(pairs),
    family && samples(family),
  ];
}

// Each run of a family.
function samples(family) {
  return h(
    "details",
    null,
    h("summary", null, `The ${count(family.samples.length)} samples`),
    table(
      [
        { head: "Routing", cell: (row) => h("a", { href: row.report }, row.routing) },
        { head: "Step", right: true, cell: (row) => seconds(row.seconds, 4) },
        { head: "Without host", right: true, cell: (row) => seconds(row.seconds_without_host, 4) },
        { head: "Peak allocated", right: true, cell: (row) => bytes(row.peak_allocated_bytes) },
      ],
      family.samples,
    ),
  );
}

// How often a step of the repetitions took how long.
function histogram(values) {
  const [low, high] = [values[0], values[values.length - 1]];
  const bins = Math.min(24, Math.max(5, Math.round(Math.sqrt(values.length) * 2)));
  const width = (high - low) / bins || 1;
  const counts = Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor((value - low) / width))] += 1;
  const most = Math.max(...counts);
  return h(
    "figure",
    { class: "histogram" },
    h(
      "div",
      { role: "img", "aria-label": `step times from ${seconds(low)} to ${seconds(high)}` },
      counts.map((number, bin) =>
        h("i", {
          style: `height:${(number / most) * 100}%`,
          title: `${seconds(low + bin * width, 4)} to ${seconds(low + (bin + 1) * width, 4)}: ${number}`,
        }),
      ),
    ),
    h(
      "figcaption",
      { class: "faint small" },
      h("span", null, seconds(low, 4)),
      h("span", null, "step time of the repetitions"),
      h("span", null, seconds(high, 4)),
    ),
  );
}
