// Puts the page together.

const report = JSON.parse(document.getElementById("report-data").textContent);
const timeline = JSON.parse(document.getElementById("timeline-data").textContent);

const sections = [
  notes(),
  breakdown(),
  criticalPath(),
  memory(),
  timelineSection(),
  ranks(),
  communication(),
  kernels(),
  steps(),
  trust(),
  provenance(),
].filter(Boolean);
const short = {
  notes: "Notes",
  time: "Time",
  path: "What to fix",
  memory: "Memory",
  timeline: "Timeline",
  ranks: "Ranks",
  communication: "Communication",
  kernels: "Kernels",
  steps: "Steps",
  trust: "Trust",
  provenance: "Sources",
};
document.getElementById("page").append(
  h(
    "nav",
    null,
    h("b", null, "trompe"),
    sections.map((part) => h("a", { href: "#" + part.id }, short[part.id])),
  ),
  head(),
  verdict(),
  tiles(),
  ...sections,
  h(
    "footer",
    null,
    `Predicted by trompe ${report.trompe_version}; no GPU was used. The same data: report.json (schema version ${report.schema_version}) and timeline.json (opens in Perfetto).`,
  ),
);
