// How ranks differ: work, waiting and communication of each.

const GROUP_KINDS = {
  tensor: "TP",
  pipeline: "PP",
  data: "DP",
  expert: "EP",
  context: "CP",
  other: "other groups",
};

function ranks() {
  const all = report.ranks ?? [];
  if (report.world_size < 2 || !all.length) return null;
  const kinds = Object.keys(GROUP_KINDS).filter((kind) =>
    all.some((rank) => rank.groups.some((group) => group.kind === kind)),
  );
  const of = (rank, kind) => rank.groups.find((group) => group.kind === kind);
  const shown = [...all].sort((a, b) => b.seconds - a.seconds || a.rank - b.rank).slice(0, 64);
  const parts = (rank) => [
    ["gemm", "works", rank.busy_seconds - rank.exposed_seconds],
    ["communication", "exposed communication", rank.exposed_seconds],
    ["bubble", "waits for other ranks", rank.bubble_seconds],
    ["host_bound", "waits for the host", rank.host_bound_seconds],
  ];
  const most = Math.max(...shown.map((rank) => rank.seconds), Number.MIN_VALUE);
  const bar = (rank) =>
    h(
      "div",
      { class: "stack thin", style: `width:${(rank.seconds / most) * 100}%` },
      parts(rank).map(([color, name, time]) =>
        h("i", {
          class: color === "bubble" || color === "host_bound" ? "idle" : null,
          title: `${name}: ${seconds(time)}`,
          style: `flex:${Math.max(0, time / rank.seconds) * 100} 1 0;background-color:var(--${color})`,
        }),
      ),
    );
  return section(
    "ranks",
    "Ranks",
    `Per step, slowest first. Equal ranks are simulated once. Of communication the part that nothing hides is shown, and in brackets all of it; groups are told apart by what is called on them.${all.length > shown.length ? ` ${count(shown.length)} of ${count(all.length)} are shown.` : ""}`,
    table(
      [
        {
          head: "Rank",
          cell: (row) => [
            String(row.rank),
            row.stands_for > 1 && h("span", { class: "faint small" }, ` +${count(row.stands_for - 1)} alike`),
          ],
        },
        { head: "Work, exposed communication, waiting", cell: bar, wide: true },
        { head: "Step", right: true, cell: (row) => seconds(row.seconds) },
        { head: "Host", right: true, cell: (row) => seconds(row.host_bound_seconds) },
        { head: "Bubble", right: true, cell: (row) => seconds(row.bubble_seconds) },
        ...kinds.map((kind) => ({
          head: GROUP_KINDS[kind],
          right: true,
          cell: (row) => {
            const group = of(row, kind);
            return group
              ? [
                  seconds(group.exposed_seconds),
                  h("span", { class: "faint small" }, ` (${seconds(group.seconds)})`),
                ]
              : "–";
          },
        })),
      ],
      shown,
    ),
  );
}
