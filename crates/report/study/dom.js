'use strict';
// Elements, numbers and colours.
const study = JSON.parse(document.getElementById('study').textContent);

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'style') node.style.cssText = value;
    else node.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function svg(name, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  for (const child of children.flat()) node.append(child);
  return node;
}

function significant(value, digits) {
  if (value === 0) return '0';
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(12, digits - 1 - magnitude)));
}

function seconds(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  const [scale, unit] = value >= 1 ? [1, 's'] : value >= 1e-3 ? [1e3, 'ms'] : [1e6, 'µs'];
  return `${significant(value * scale, digits)} ${unit}`;
}

// Both ends in the unit of the upper one.
function interval(low, high) {
  const [scale, unit] = high >= 1 ? [1, 's'] : high >= 1e-3 ? [1e3, 'ms'] : [1e6, 'µs'];
  return `${significant(low * scale, 3)}–${significant(high * scale, 3)} ${unit}`;
}

function bytes(value) {
  if (value === null || value === undefined) return '–';
  return `${significant(value / 2 ** 30, 3)} GiB`;
}

function percent(value) {
  return value === null || value === undefined ? '–' : `${(value * 100).toFixed(1)} %`;
}

const OBJECTIVES = {
  step_time: { title: 'step time', of: (m) => m.step_seconds, show: seconds, most: false },
  tokens_per_second_per_gpu: { title: 'tokens/s/GPU', of: (m) => m.tokens_per_second_per_gpu,
    show: (v) => (v === null || v === undefined ? '–' : Math.round(v).toLocaleString('en')), most: true },
  cost_per_million_tokens: { title: 'cost per million tokens', of: (m) => m.cost_per_million_tokens,
    show: (v) => (v === null || v === undefined ? '–' : significant(v, 3)), most: false },
  mfu: { title: 'MFU', of: (m) => m.mfu, show: percent, most: true },
  memory: { title: 'memory', of: (m) => m.memory_bytes, show: bytes, most: false },
};

const PARTS = [['compute', '--gemm'], ['recompute', '--attention'], ['communication', '--communication'],
  ['bubble', '--bubble'], ['host', '--host_bound']];

const byNumber = new Map(study.trials.map((trial) => [trial.number, trial]));
const objective = OBJECTIVES[study.objectives[0]] || OBJECTIVES.step_time;
const knobText = (trial) => trial.knobs.map((knob) => `${knob.name}=${knob.value}`).join(' ');
const card = (title, ...children) => el('section', { class: 'card' }, el('h2', {}, title), ...children);
