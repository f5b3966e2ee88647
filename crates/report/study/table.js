'use strict';
// Every trial: sortable, filtered, with where its time goes.
function bar(metrics) {
  const total = PARTS.reduce((sum, [name]) => sum + metrics.parts[name], 0) || 1;
  return el('div', { class: 'bar', title: PARTS.map(([name]) => `${name} ${seconds(metrics.parts[name], 3)}`).join('\n') },
    PARTS.map(([name, color]) => el('i', { style: `width: ${(metrics.parts[name] / total) * 100}%; background: var(${color})` })));
}

function trialTable() {
  const rank = new Map(study.ranking.map((number, index) => [number, index + 1]));
  const extra = study.objectives.filter((name) => !['step_time', 'memory'].includes(name));
  const columns = [
    ['#', (t) => rank.get(t.number) || Infinity, (t) => rank.get(t.number) || ''],
    ['trial', (t) => t.number, (t) => t.number],
    ['step', (t) => (t.metrics ? t.metrics.step_seconds : Infinity), (t) => (t.metrics ? seconds(t.metrics.step_seconds) : '')],
    ['interval', (t) => (t.metrics ? t.metrics.step_seconds_high : Infinity),
      (t) => (t.metrics ? interval(t.metrics.step_seconds_low, t.metrics.step_seconds_high) : '')],
    ['memory', (t) => (t.metrics ? t.metrics.memory_bytes : Infinity), (t) => (t.metrics ? bytes(t.metrics.memory_bytes) : '')],
    ...extra.map((name) => [OBJECTIVES[name].title, (t) => (t.metrics ? OBJECTIVES[name].of(t.metrics) : Infinity),
      (t) => (t.metrics ? OBJECTIVES[name].show(OBJECTIVES[name].of(t.metrics)) : '')]),
  ];
  let sort = [0, 1];
  let filter = '';
  let status = '';
  let shown = 60;
  const body = el('tbody');
  const more = el('button', { onclick: () => { shown += 200; draw(); } }, 'more');
  const row = (trial) => {
    const best = study.ranking[0] === trial.number;
    const why = trial.why || (best ? 'the best' : '');
    const rule = trial.rule ? ` (${trial.rule}${trial.because_of === null ? '' : `, trial ${trial.because_of}`})` : '';
    const lines = trial.last_lines.length > 1
      ? el('details', {}, el('summary', {}, 'last lines'), el('pre', {}, trial.last_lines.join('\n'))) : null;
    return el('tr', { class: best ? 'best' : trial.status === 'fits' ? '' : 'bad' },
      columns.map(([, , show]) => el('td', { class: 'number' }, String(show(trial)))),
      el('td', {}, trial.metrics ? bar(trial.metrics) : trial.status.replaceAll('_', ' ')),
      el('td', { class: 'why' }, why + rule, lines),
      trial.knobs.map((knob) => el('td', { class: 'number' }, knob.value)), el('td', {}, trial.origin));
  };
  const draw = () => {
    const match = (trial) => (!status || trial.status === status) && filter.split(/\s+/).every((word) => `${knobText(trial)} ${trial.why || ''} ${trial.origin}`.includes(word));
    const list = study.trials.filter(match).sort((a, b) => {
      const [x, y] = [columns[sort[0]][1](a), columns[sort[0]][1](b)];
      return (x === y ? a.number - b.number : x < y ? -1 : 1) * sort[1];
    });
    body.replaceChildren(...list.slice(0, shown).map(row));
    more.style.display = list.length > shown ? '' : 'none';
  };
  const head = el('tr', {}, columns.map(([name], index) => el('th', { class: 'number',
    onclick: () => { sort = [index, sort[0] === index ? -sort[1] : 1]; draw(); } }, name)),
    el('th', {}, 'where the time goes'), el('th', { class: 'why' }, 'why it loses'),
    // Long names may break between their words.
    study.knobs.map((knob) => el('th', { class: 'words' }, knob.name.replaceAll('_', '_\u200b'))), el('th', {}, 'origin'));
  const statuses = [...new Set(study.trials.map((trial) => trial.status))].sort();
  const controls = el('div', { class: 'controls' },
    el('input', { placeholder: 'filter: tp=4 bubble', oninput: (event) => { filter = event.target.value.trim(); draw(); } }),
    el('select', { onchange: (event) => { status = event.target.value; draw(); } }, el('option', { value: '' }, 'all'),
      statuses.map((name) => el('option', { value: name }, name.replaceAll('_', ' ')))));
  const legend = el('div', { class: 'legend' }, PARTS.map(([name, color]) => el('span', {}, el('i', { style: `background: var(${color})` }), name)));
  draw();
  return card('Trials', controls, legend, el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, head), body)), more);
}
