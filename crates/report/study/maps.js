'use strict';
// The cost map over two knobs, and what each knob is worth.
function heat(share) {
  // From good (green) over yellow to bad (red), readable on both themes.
  const hue = 140 - 140 * Math.min(1, share);
  return `background: hsl(${hue} 55% 45% / 0.55)`;
}

function costMap() {
  const names = study.knobs.filter((knob) => knob.values.length > 1).map((knob) => knob.name);
  if (names.length < 2) return null;
  const ordered = [...study.knobs].filter((k) => names.includes(k.name)).sort((a, b) => (b.spread || 0) - (a.spread || 0));
  const chosen = [ordered[0].name, ordered[1].name];
  const table = el('table', { class: 'map' });
  const value = (trial, name) => (trial.knobs.find((knob) => knob.name === name) || {}).value;
  const draw = () => {
    const [rows, columns] = chosen.map((name) => study.knobs.find((knob) => knob.name === name));
    const cells = new Map();
    for (const trial of study.trials) {
      const key = `${value(trial, rows.name)}|${value(trial, columns.name)}`;
      const cell = cells.get(key) || { best: null, trial: null, seen: new Set() };
      cell.seen.add(trial.status);
      const result = trial.status === 'fits' && trial.metrics ? objective.of(trial.metrics) : null;
      if (Number.isFinite(result) && (cell.best === null || (objective.most ? result > cell.best : result < cell.best))) {
        cell.best = result;
        cell.trial = trial;
      }
      cells.set(key, cell);
    }
    const results = [...cells.values()].map((cell) => cell.best).filter((best) => best !== null);
    const best = objective.most ? Math.max(...results) : Math.min(...results);
    table.replaceChildren(el('tr', {}, el('th', {}, `${rows.name} \\ ${columns.name}`), columns.values.map((c) => el('th', {}, c.value))));
    for (const row of rows.values) {
      table.append(el('tr', {}, el('th', {}, row.value), columns.values.map((column) => {
        const cell = cells.get(`${row.value}|${column.value}`);
        if (!cell) return el('td', { style: 'background: var(--soft); color: var(--faint)', title: 'not tried, or excluded by a constraint' }, '·');
        if (cell.best === null) {
          return el('td', { style: 'background: var(--bad-soft); color: var(--bad)' }, without(cell.seen));
        }
        const worse = objective.most ? best / cell.best - 1 : cell.best / best - 1;
        return el('td', { style: heat(worse), title: knobText(cell.trial) }, objective.show(cell.best, 3));
      })));
    }
  };
  const pick = (at) => el('select', { onchange: (event) => { chosen[at] = event.target.value; draw(); } },
    names.map((name) => el('option', name === chosen[at] ? { selected: '' } : {}, name)));
  draw();
  return card('Cost map', el('div', { class: 'controls' }, 'best with', pick(0), '×', pick(1)), el('div', { class: 'scroll' }, table));
}

/** Statuses of the trials with a value of a knob. */
function seenWith(name, text) {
  const has = (trial) => trial.knobs.some((knob) => knob.name === name && knob.value === text);
  return new Set(study.trials.filter(has).map((trial) => trial.status));
}

/** Why trials with these statuses have no result. */
function without(seen) {
  if (seen.has('stopped')) return 'cannot win';
  if (seen.has('out_of_memory')) return seen.size === 1 ? 'OOM' : '–';
  return seen.size ? [...seen][0].replaceAll('_', ' ') : '–';
}

function sensitivity() {
  const knobs = [...study.knobs].sort((a, b) => (b.spread || 0) - (a.spread || 0));
  const most = Math.max(...knobs.map((knob) => knob.spread || 0), 1e-9);
  const grid = el('div', { class: 'spread' });
  for (const knob of knobs) {
    grid.append(el('b', {}, knob.name),
      el('div', { class: 'track' }, el('i', { style: `width: ${((knob.spread || 0) / most) * 100}%` })),
      el('span', { class: 'number' }, knob.spread === null ? '–' : `${(knob.spread * 100).toFixed(0)} %`,
        knob.explained_share === null ? '' : ` · explains ${(knob.explained_share * 100).toFixed(0)} %`),
      el('div', { class: 'values' }, knob.values.map((value, index) => {
        const shown = value.best === null ? without(seenWith(knob.name, value.value)) : objective.show(value.best, 4);
        return `${index ? ' · ' : ''}${value.value}: ${shown}`;
      })));
  }
  return card('What the knobs are worth', el('p', { class: 'under' },
    'Bar: how much worse the best result with the worst value is than with the best value. "Explains": its share of the '
    + 'variance of the results that were tried.'), grid);
}
