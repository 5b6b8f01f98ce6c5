// Tables, and the table of culprits. Roles are written out because rows become blocks on a phone, and browsers forget a
// table's meaning when it is not laid out as one.

function table(label, head, rows, attributes = {}) {
  return el(
    'table',
    { role: 'table', 'aria-label': label, ...attributes },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, head)),
    el('tbody', { role: 'rowgroup' }, rows),
  );
}

const th = (text, attributes = {}) => el('th', { role: 'columnheader', scope: 'col', ...attributes }, text);

/** A cell; `label` is before the value where rows are blocks. */
const td = (label, content, attributes = {}) => el('td', { role: 'cell', 'data-label': label, ...attributes }, content);

/** A share as a bar, in the flow's colour in the chart. */
function shareBar(share, slot) {
  const bar = el('span', { class: 'fill', style: { width: `${Math.min(100, Math.max(0, share * 100)).toFixed(2)}%` } });
  if (slot !== undefined) bar.style.setProperty('background', `var(--flow-${slot})`);
  return el('span', { class: 'track', 'aria-hidden': 'true' }, bar);
}

/** What a table does not list, in a line below it. */
function restLine({ flows, flows_total: total, culprits_total: heavy, not_shown: hidden }, alpha = 0) {
  const rest = total - flows.length;
  if (rest <= 0) return null;
  const share = Math.max(0, 1 - flows.reduce((sum, flow) => sum + flow.share, 0));
  const under = !hidden && alpha > 0 && rest > 1 && flows.length === heavy ? `, each under ${percent(alpha)}` : '';
  return el('p', { class: 'hint' }, `and ${plural(rest, hidden ? 'hidden flow' : 'more flow')}${under}: ${percent(share)} together`);
}

/** How a flow's rate grew, in a word or two; empty if it did not grow, or if that is unknown. */
function growth({ ramp, new: fresh }) {
  const factor = ramp === null || ramp === undefined ? null : ramp < 9.95 ? ramp.toFixed(1).replace(/\.0$/, '') : count(ramp);
  return [fresh ? 'new' : null, factor === null ? null : `ramped ${factor}x`].filter(Boolean).join(', ');
}

/** How a flow behaves, with its main numbers as a hint; nothing if it is unknown. */
function behaviourNote({ behaviour: found }) {
  if (!found) return null;
  const { after_drops: drops, after_marks: marks } = found;
  const parts = [
    `${count(found.round_trips)} round trips`,
    drops.episodes ? `window after drops ${percent(drops.ratio)} of before, ${count(drops.episodes)} times` : null,
    marks.episodes ? `after marks ${percent(marks.ratio)}, ${count(marks.episodes)} times` : null,
    found.pulses ? plural(found.pulses, 'pulse') : null,
    found.floors ? plural(found.floors, 'floor') : null,
    `own backlog ${found.backlog_packets.toFixed(1)} packets`,
  ];
  return el('small', { class: 'behaviour', title: parts.filter(Boolean).join('; ') }, ` ${found.name}`);
}

// Keeps its value when another burst is chosen.
let onlyRamped = false;

/** A switch that hides the rows of flows that did not ramp. */
function rampSwitch(flows, rows) {
  const ramped = flows.map((flow) => growth(flow) !== '');
  const state = el('span', { class: 'state' });
  const fill = () => {
    rows.forEach((row, at) => (row.hidden = onlyRamped && !ramped[at]));
    toggle.setAttribute('aria-pressed', String(onlyRamped));
    const shown = ramped.filter(Boolean).length;
    state.textContent = onlyRamped ? `${count(shown)} of the ${plural(flows.length, 'flow')} named here` : '';
  };
  const toggle = button(
    flows.some((flow) => flow.new) ? 'Only flows that ramped or are new' : 'Only flows that ramped',
    () => {
      onlyRamped = !onlyRamped;
      fill();
      announce(onlyRamped ? state.textContent : 'All flows named.');
    },
    { class: 'quiet toggle' },
  );
  fill();
  return el('p', { class: 'filter' }, toggle, state);
}

/**
 * The culprits at one granularity. `slots` gives flows their colour in the chart. `ramps` marks the flows whose rate
 * grew, if there are any.
 */
function culpritsTable(culprits, slots, alpha, ramps = false) {
  const { granularity, flows } = culprits;
  const title = el('h3', {}, granularity, el('small', {}, granularityWords(granularity)));
  if (flows.length === 0)
    return el('div', { class: 'culprits' }, title, restLine(culprits, alpha) ?? el('p', { class: 'hint' }, 'No packets left.'));
  const ramped = ramps && flows.some((culprit) => growth(culprit) !== '');
  const rows = flows.map((culprit) =>
    el(
      'tr',
      { role: 'row' },
      td('', [flowName(culprit.flow), behaviourNote(culprit), shareBar(culprit.share, slots.get(culprit.flow))], { class: 'who' }),
      td('', el('b', {}, percent(culprit.share)), { class: 'figure' }),
      ramped ? td('', growth(culprit), { class: 'rate' }) : null,
      td('sent', bytes(culprit.bytes, true), { class: 'figure' }),
      td('pkts', count(culprit.packets), { class: 'figure' }),
      td('peak', bytes(culprit.peak_bytes, true), { class: 'figure' }),
    ),
  );
  return el(
    'div',
    { class: ['5tuple', 'conn'].includes(granularity) ? 'culprits long' : 'culprits' },
    title,
    ramped ? rampSwitch(flows, rows) : null,
    table(
      `Culprits by ${granularity}`,
      [
        th('Flow'),
        th('Share', { class: 'figure' }),
        ramped ? th('Rate', { title: 'The largest growth of the flow’s rate from one window to the next' }) : null,
        th('Sent', { class: 'figure' }),
        th('Packets', { class: 'figure' }),
        th('Held at most', { class: 'figure', title: 'The most of the queue that the flow held at once' }),
      ].filter(Boolean),
      rows,
    ),
    restLine(culprits, alpha),
    culprits.share_error > 0
      ? el('p', { class: 'hint' }, `Summed from the heaviest flows that were tracked: a share may be wrong by up to ${bound(culprits.share_error)}.`)
      : null,
  );
}

/** Culprits at every granularity, side by side if there is room; growth is known at the first. */
function culpritsTables(list, firstSlots, alpha, { ramps = false } = {}) {
  return el(
    'div',
    { class: 'side-by-side' },
    list.map((culprits, at) => culpritsTable(culprits, at === 0 ? firstSlots : new Map(), alpha, ramps && at === 0)),
  );
}
