// Where the time of a step goes: one bar, every moment of the step once.

function breakdown() {
  const parts = report.breakdown.filter((part) => part.seconds > 0);
  if (!parts.length) return null;
  const bar = h(
    "div",
    {
      class: "stack",
      role: "img",
      "aria-label": parts.map((part) => `${KINDS[part.kind]} ${percent(part.share)}`).join(", "),
    },
    parts.map((part) =>
      h(
        "i",
        {
          class: IDLE.has(part.kind) ? "idle" : null,
          title: `${KINDS[part.kind]}: ${seconds(part.seconds)}, ${percent(part.share)}`,
          style: `flex:${part.share * 100} 1 0;background-color:var(--${part.kind})`,
        },
        part.share >= 0.055 ? percent(part.share, 0) : null,
      ),
    ),
  );
  const rows = [...parts]
    .sort((a, b) => b.seconds - a.seconds)
    .map((part) => {
      const overlapped =
        part.kernel_seconds > part.seconds * 1.001
          ? `, ${seconds(part.kernel_seconds)} with what overlaps`
          : "";
      return h(
        "div",
        { title: part.count ? plural(part.count, "kernel", "kernels") + overlapped : null },
        swatch(part.kind, IDLE.has(part.kind)),
        h(
          "span",
          null,
          KINDS[part.kind],
          part.count ? h("span", { class: "faint small" }, `  ×${NO_BREAK}${count(part.count)}`) : null,
        ),
        h("span", null, seconds(part.seconds)),
        h("span", { class: "right faint" }, percent(part.share)),
      );
    });
  return section(
    "time",
    "Where the time of a step goes",
    "Each moment counts once, for the first of the kinds that run in it; hatched time is idle. Communication here is exposed communication.",
    bar,
    h("div", { class: "legend" }, rows),
  );
}

function communication() {
  const groups = report.communication?.groups ?? [];
  if (!groups.length) return null;
  return section(
    "communication",
    "Communication",
    "Per step, on the rank where it takes longest; rows may overlap in time.",
    table(
      [
        {
          head: "Group",
          cell: (row) => [
            row.kind && row.kind !== "other" && h("b", null, GROUP_KINDS[row.kind] + " "),
            row.group,
          ],
        },
        { head: "Operation", cell: (row) => row.operation },
        { head: "Ranks", right: true, cell: (row) => count(row.ranks) },
        { head: "Calls", right: true, cell: (row) => count(row.count) },
        { head: "Size", right: true, cell: (row) => bytes(row.bytes) },
        { head: "Time", right: true, cell: (row) => seconds(row.seconds) },
        { head: "Exposed", right: true, cell: (row) => seconds(row.exposed_seconds) },
        { head: "Bubble", right: true, wide: true, cell: (row) => seconds(row.bubble_seconds ?? 0) },
      ],
      groups,
    ),
  );
}
