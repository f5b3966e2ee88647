'use strict';
// The page from top to bottom.
function tile(value, name) {
  return value === '–' ? null : el('div', { class: 'tile' }, el('b', {}, value), el('span', {}, name));
}

function answer() {
  const best = byNumber.get(study.ranking[0]);
  const counts = study.counts;
  const under = el('p', { class: 'under' }, `${study.name} · ${study.cluster || 'clusters of the space'} · ${study.strategy}, seed ${study.seed} · `
    + `${seconds(study.seconds, 3)}; it ended because ${study.ended}`);
  const tally = el('div', { class: 'tiles' },
    tile(String(study.trials.length), `of ${counts.feasible.toLocaleString('en')} feasible points (${counts.combinations.toLocaleString('en')} combinations)`),
    tile(String(counts.executed), 'executed'), counts.simulated ? tile(String(counts.simulated), 'simulated from a trace') : null,
    tile(String(counts.cached), 'cached'), tile(String(counts.pruned), 'pruned'), tile(String(counts.out_of_memory), 'out of memory'),
    counts.stopped ? tile(String(counts.stopped), 'stopped: cannot win') : null, tile(String(counts.failed), 'failed'));
  if (!best) return [el('h1', {}, 'No configuration has a result'), under, card('Trials of the search', tally)];
  const m = best.metrics;
  return [el('h1', {}, `${objective.show(objective.of(m))} ${objective.title === 'step time' ? 'per step' : objective.title}`), under,
    card('Best configuration',
      el('div', { class: 'knobs' }, best.knobs.map((knob) => el('span', { class: 'knob' }, `${knob.name} `, el('b', {}, knob.value)))),
      el('div', { class: 'tiles' },
        tile(interval(m.step_seconds_low, m.step_seconds_high), '80 % interval of the step'),
        tile(`${bytes(m.memory_bytes)} of ${bytes(m.capacity_bytes)}`, 'memory'), tile(percent(m.mfu), 'MFU'),
        tile(OBJECTIVES.tokens_per_second_per_gpu.show(m.tokens_per_second_per_gpu), 'tokens/s/GPU'),
        tile(OBJECTIVES.cost_per_million_tokens.show(m.cost_per_million_tokens), 'per million tokens')),
      el('pre', { class: 'command' }, best.job.command.join(' '))),
    card('Trials of the search', tally)];
}

const notes = study.notes.map((note) => el('div', { class: `note ${note.severity}` }, note.text, note.action ? el('small', {}, note.action) : null));
const pair = (...cards) => { const some = cards.filter(Boolean); return some.length ? el('div', { class: 'pair' }, some) : null; };
document.getElementById('page').append(...[answer(), notes, pair(convergence(), pareto()), pair(costMap(), sensitivity()), trialTable()].flat().filter(Boolean));
