// Every kernel of a step: sortable, searchable, each with its method and interval.

function kernels() {
  const all = report.kernels;
  if (!all.length) return null;
  const LARGEST = 10;
  let [order, falling, every, wanted] = ["seconds", true, all.length <= LARGEST, ""];
  const each = (kernel) => (kernel.count ? kernel.seconds / kernel.count : 0);
  const spread = (kernel) => (kernel.seconds ? (kernel.high - kernel.low) / 2 / kernel.seconds : 0);
  const columns = [
    {
      key: "name",
      head: "Kernel",
      value: (k) => k.name,
      cell: (k) => [
        h(
          "span",
          { class: "mono clamp" },
          k.note && k.method !== "simulated" && h("span", { class: "flag", title: clean(k.note) }, "!"),
          k.name,
        ),
        k.caller && h("div", { class: "faint small mono" }, k.caller),
      ],
    },
    {
      key: "family",
      head: "Family",
      wide: true,
      value: (k) => k.family,
      cell: (k) => h("span", { class: "nowrap" }, swatch(k.kind), k.family),
    },
    {
      key: "count",
      head: "Calls",
      right: true,
      wide: true,
      value: (k) => k.count,
      cell: (k) => count(k.count),
    },
    { key: "seconds", head: "Total", right: true, value: (k) => k.seconds, cell: (k) => seconds(k.seconds) },
    {
      key: "share",
      head: "Share",
      right: true,
      value: (k) => k.share,
      cell: (k) =>
        h("div", { class: "share" }, meter(k.share / (all[0].share || 1)), h("span", null, percent(k.share))),
    },
    { key: "each", head: "Each", right: true, wide: true, value: each, cell: (k) => seconds(each(k)) },
    {
      key: "spread",
      head: "±",
      right: true,
      wide: true,
      value: spread,
      cell: (k) => h("span", { title: `${seconds(k.low)} to ${seconds(k.high)}` }, percent(spread(k), 0)),
    },
    {
      key: "method",
      head: "Method",
      value: (k) => Object.keys(METHODS).indexOf(k.method),
      cell: (k) => h("span", { class: "badge " + k.method, title: METHODS[k.method] }, k.method),
    },
    {
      key: "bound",
      head: "Limit",
      wide: true,
      value: (k) => k.bound ?? "",
      cell: (k) => h("span", { class: "nowrap" }, k.bound ?? "–"),
    },
  ];
  const kind = (column) => [column.right && "right", column.wide && "wide"].filter(Boolean).join(" ") || null;
  const body = h("tbody"),
    headings = h("tr"),
    tally = h("span", { class: "faint small" });
  const more = h("button", {
    class: "plain",
    onclick: () => {
      every = !every;
      draw();
    },
  });

  function detail(kernel) {
    const reached = [];
    if (kernel.flops) reached.push(metric(kernel.flops / kernel.seconds, "FLOP/s"));
    if (kernel.bytes) reached.push(metric(kernel.bytes / kernel.seconds, "B/s"));
    return facts([
      ["Name", kernel.name.length > 60 && h("code", null, kernel.name)],
      ["Symbol", h("code", null, kernel.symbol)],
      ["Launches", `${count(kernel.count)} a step, ${seconds(each(kernel))} each`],
      [
        "Interval",
        `${seconds(kernel.low)} to ${seconds(kernel.high)}, ${kernel.method}: ${METHODS[kernel.method]}`,
      ],
      [
        "Work",
        [kernel.flops && metric(kernel.flops, "FLOP"), kernel.bytes && metric(kernel.bytes, "B")]
          .filter(Boolean)
          .join(", ") || null,
      ],
      ["Reached", reached.join(", ")],
      ["Note", kernel.note],
    ]);
  }

  function draw() {
    headings.replaceChildren(
      ...columns.map((column) =>
        h(
          "th",
          {
            class: kind(column),
            "aria-sort": column.key === order ? (falling ? "descending" : "ascending") : null,
          },
          h(
            "button",
            {
              onclick: () => {
                falling = column.key === order ? !falling : column.key !== "name" && column.key !== "family";
                order = column.key;
                draw();
              },
            },
            column.head + (column.key === order ? (falling ? " ▾" : " ▴") : ""),
          ),
        ),
      ),
    );
    const { value } = columns.find((column) => column.key === order);
    const text = (k) => [k.name, k.symbol, k.family, k.caller, k.method].join(" ").toLowerCase();
    const found = all.filter((k) => !wanted || text(k).includes(wanted));
    const compare = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    found.sort((a, b) => (falling ? -compare(a, b) : compare(a, b)) || all.indexOf(a) - all.indexOf(b));
    const shown = every || wanted ? found : found.slice(0, LARGEST);
    body.replaceChildren(
      ...shown.map((kernel) => {
        const row = h(
          "tr",
          { class: "row", tabindex: 0 },
          columns.map((column) => h("td", { class: kind(column) }, column.cell(kernel))),
        );
        const toggle = () => {
          if (row.classList.toggle("open"))
            row.after(h("tr", { class: "open" }, h("td", { colspan: columns.length }, detail(kernel))));
          else row.nextSibling.remove();
        };
        row.addEventListener("click", () => getSelection().isCollapsed && toggle());
        row.addEventListener(
          "keydown",
          (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), toggle()),
        );
        return row;
      }),
    );
    const share = found.reduce((sum, k) => sum + k.share, 0);
    tally.textContent = wanted
      ? `${plural(found.length, "kernel", "kernels")}, ${percent(share)} of the kernel time`
      : "";
    more.hidden = all.length <= LARGEST || wanted !== "";
    more.textContent = every ? `Only the ${LARGEST} largest` : `All ${count(all.length)} kernels`;
  }
  draw();
  const search = h("input", {
    type: "search",
    placeholder: "Find a kernel, family, operator…",
    "aria-label": "find a kernel",
    oninput: (event) => {
      wanted = event.target.value.trim().toLowerCase();
      draw();
    },
  });
  const sum = all.reduce((total, k) => total + k.seconds, 0);
  const lead = `Per step: ${plural(
    all.reduce((total, k) => total + k.count, 0),
    "launch",
    "launches",
  )}, ${seconds(sum)} of kernel time. Click a row for its symbol, work and interval.`;
  return section(
    "kernels",
    "Kernels",
    lead,
    h("div", { class: "bar" }, search, tally, h("span", { class: "grow" }), more),
    h("div", { class: "scroll" }, h("table", null, h("thead", null, headings), body)),
  );
}
