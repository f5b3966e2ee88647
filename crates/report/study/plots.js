'use strict';
// Convergence and the Pareto front.
const WIDTH = 520;
const HEIGHT = 250;
const LEFT = 64;
const BOTTOM = 34;

function ticks(low, high, count = 4) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const list = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) list.push(at);
  return list;
}

function frame(x, y, names, show) {
  const sx = (v) => LEFT + ((v - x[0]) / (x[1] - x[0] || 1)) * (WIDTH - LEFT - 12);
  const sy = (v) => 10 + (1 - (v - y[0]) / (y[1] - y[0] || 1)) * (HEIGHT - BOTTOM - 18);
  const root = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img' });
  for (const tick of ticks(...y)) {
    root.append(svg('line', { class: 'axis', x1: LEFT, x2: WIDTH - 12, y1: sy(tick), y2: sy(tick) }));
    root.append(svg('text', { x: LEFT - 6, y: sy(tick) + 4, 'text-anchor': 'end' }, show.y(tick)));
  }
  for (const tick of ticks(...x)) {
    root.append(svg('text', { x: sx(tick), y: HEIGHT - BOTTOM + 10, 'text-anchor': 'middle' }, show.x(tick)));
  }
  root.append(svg('text', { x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, 'text-anchor': 'middle' }, names.x));
  root.append(svg('text', { x: 4, y: 8 }, names.y));
  return { root, sx, sy };
}

function padded(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const pad = (high - low || high || 1) * 0.06;
  return [low - pad, high + pad];
}

function dot(plot, x, y, title, style) {
  const mark = svg('circle', { cx: plot.sx(x), cy: plot.sy(y), r: style.r, fill: style.fill, stroke: style.stroke || 'none' });
  mark.append(svg('title', {}, title));
  plot.root.append(mark);
}

function convergence() {
  const steps = study.convergence;
  if (!steps.length) return null;
  let ran = 0;
  const tried = [];
  for (const trial of study.trials) {
    if (trial.origin !== 'pruned') ran += 1;
    const value = trial.metrics && trial.status === 'fits' && trial.origin !== 'pruned' ? objective.of(trial.metrics) : null;
    if (value !== null) tried.push([ran, value, trial]);
  }
  const sorted = tried.map((t) => t[1]).sort((a, b) => a - b);
  // A few very bad trials must not squeeze the others into one line.
  const cut = sorted.length < 20 ? 0 : 0.1;
  const quantile = sorted[Math.floor((sorted.length - 1) * (objective.most ? cut : 1 - cut))];
  const best = steps[steps.length - 1].best;
  const inside = tried.filter((t) => (objective.most ? t[1] >= quantile : t[1] <= quantile));
  const y = padded([...inside.map((t) => t[1]), best]);
  const plot = frame([0, ran], y, { x: 'trials that ran or were known', y: objective.title },
    { x: (v) => String(v), y: (v) => objective.show(v, 3) });
  for (const [at, value, trial] of inside) {
    dot(plot, at, value, `trial ${trial.number}: ${objective.show(value)}\n${knobText(trial)}`, { r: 2.6, fill: 'var(--line)' });
  }
  const inRange = (v) => Math.min(y[1], Math.max(y[0], v));
  let path = '';
  steps.forEach((step, index) => {
    const [x, v] = [plot.sx(step.trials), plot.sy(inRange(step.best))];
    path += index ? `H${x}V${v}` : `M${x},${v}`;
  });
  path += `H${plot.sx(ran)}`;
  plot.root.append(svg('path', { d: path, fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2 }));
  const last = steps[steps.length - 1];
  dot(plot, last.trials, last.best, `best after ${last.trials} trials`, { r: 4, fill: 'var(--accent)' });
  return card('Convergence', plot.root);
}

function pareto() {
  // The objectives themselves, or time against memory where there is only one.
  const names = study.objectives.length > 1 ? study.objectives.slice(0, 2) : ['step_time', 'memory'];
  const [first, second] = names.map((name) => OBJECTIVES[name]);
  const all = study.trials.filter((trial) => trial.status === 'fits' && trial.metrics && !trial.rule
    && Number.isFinite(first.of(trial.metrics)) && Number.isFinite(second.of(trial.metrics)));
  if (all.length < 2) return null;
  const point = (trial) => [first.of(trial.metrics), second.of(trial.metrics)];
  const good = (axis, a, b) => (axis.most ? a >= b : a <= b);
  const front = all.filter((one) => !all.some((other) => other !== one
    && good(first, point(other)[0], point(one)[0]) && good(second, point(other)[1], point(one)[1])
    && (point(other)[0] !== point(one)[0] || point(other)[1] !== point(one)[1])));
  front.sort((a, b) => point(a)[0] - point(b)[0]);
  const plot = frame(padded(all.map((t) => point(t)[0])), padded(all.map((t) => point(t)[1])),
    { x: first.title, y: second.title }, { x: (v) => first.show(v, 3), y: (v) => second.show(v, 3) });
  const text = (trial) => `trial ${trial.number}: ${first.show(point(trial)[0])}, ${second.show(point(trial)[1])}\n${knobText(trial)}`;
  for (const trial of all) dot(plot, ...point(trial), text(trial), { r: 2.6, fill: 'var(--host_bound)' });
  const path = front.map((trial, i) => `${i ? 'L' : 'M'}${plot.sx(point(trial)[0])},${plot.sy(point(trial)[1])}`).join('');
  plot.root.append(svg('path', { d: path, fill: 'none', stroke: 'var(--communication)', 'stroke-width': 1.5 }));
  for (const trial of front) dot(plot, ...point(trial), text(trial), { r: 4, fill: 'var(--communication)' });
  return card(study.objectives.length > 1 ? 'Pareto front' : 'Step time against memory', plot.root);
}
