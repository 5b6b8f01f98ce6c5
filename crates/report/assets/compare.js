// The page of one scenario in two worlds: the simulation and the real hosts, with a row for each quantity.

const compared = embeddedModel();

const share = { show: percent, apart: (from, to) => `${signed(100 * (to - from), 2)}${THIN}points`, top: 'share' };
const time = { show: duration, apart: relative, top: 'time' };
const speed = { show: rate, apart: relative, top: 'rate' };

/** The quantities: their names, how they are shown, and which share a scale. */
const QUANTITIES = {
  utilisation: { title: 'Busy', ...share },
  delay_mean_ns: { title: 'Delay, mean', ...time },
  delay_p50_ns: { title: 'Delay, median', ...time },
  delay_p95_ns: { title: 'Delay, 95 %', ...time },
  delay_p99_ns: { title: 'Delay, 99 %', ...time },
  drop_rate: { title: 'Dropped', ...share, top: 'lost' },
  loss_rate: { title: 'Lost on the link', ...share, top: 'lost' },
  mark_rate: { title: 'Marked', ...share, top: 'lost' },
  goodput_bps: { title: 'Goodput', ...speed },
  least_lifetime_goodput_bps: { title: 'Least of a flow, over its lifetime', ...speed, top: 'flow' },
  most_lifetime_goodput_bps: { title: 'Most of a flow, over its lifetime', ...speed, top: 'flow' },
  jain: { title: 'Jain’s index', show: (value) => value.toFixed(3), apart: (from, to) => signed(to - from, 3), top: 'jain' },
  retransmissions: { title: 'Retransmitted', show: count, apart: relative, top: 'again' },
  completion_p50_ns: { title: 'Completion, median', ...time, top: 'completion' },
  completion_p99_ns: { title: 'Completion, 99 %', ...time, top: 'completion' },
};

const WORLDS = ['simulated', 'real'];

function signed(value, digits) {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits)}`;
}

function relative(from, to) {
  if (from === to) return `0${THIN}%`;
  return from === 0 ? DASH : `${signed(100 * (to / from - 1), 1)}${THIN}%`;
}

const mean = (values) => (values.length ? sum(values) / values.length : null);

/** A figure, and the range of its runs if they differ. */
function worldCell(label, values, show) {
  const value = mean(values);
  const span = new Set(values.map(show)).size > 1 ? el('small', {}, `${show(Math.min(...values))} to ${show(Math.max(...values))}`) : null;
  return td(label, [value === null ? DASH : show(value), span], { class: 'figure' });
}

/** Both worlds on one scale, from zero to `top`: their means, and the ranges of their runs. */
function pairPlot(row, top, show) {
  const [width, height] = [240, 24];
  const place = (value) => (8 + (width - 16) * (top > 0 ? value / top : 0)).toFixed(1);
  const label = WORLDS.map((world) => `${world} ${row[world].length ? show(mean(row[world])) : DASH}`).join(', ');
  const svg = drawn('svg', { viewBox: `0 0 ${width} ${height}`, class: 'pair', role: 'img', 'aria-label': label });
  svg.append(drawn('line', { x1: place(0), x2: place(top), y1: height / 2, y2: height / 2, class: 'rail' }));
  WORLDS.forEach((world, at) => {
    const values = row[world];
    if (values.length === 0) return;
    const y = height / 2 + (at === 0 ? -4 : 4);
    const ends = { x1: place(Math.min(...values)), x2: place(Math.max(...values)), y1: y, y2: y };
    if (values.length > 1) svg.append(drawn('line', { ...ends, class: `span ${world}` }));
    svg.append(drawn('circle', { cx: place(mean(values)), cy: y, r: 4.2, class: `dot ${world}` }));
  });
  return svg;
}

function drawn(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** The rows of a subject as a table; rows of one kind share a scale. */
function comparedTable(label, rows, first) {
  const tops = new Map();
  for (const row of rows) {
    const { top } = QUANTITIES[row.quantity];
    tops.set(top, Math.max(tops.get(top) ?? 0, ...row.simulated, ...row.real));
  }
  const bodies = rows.map((row) => {
    const { title, show, apart, top } = QUANTITIES[row.quantity];
    const both = WORLDS.map((world) => mean(row[world]));
    return el(
      'tr',
      { role: 'row' },
      td('', first(row, title), { class: 'who' }),
      worldCell('simulated', row.simulated, show),
      worldCell('real', row.real, show),
      td('difference', both.includes(null) ? DASH : apart(...both), { class: 'figure' }),
      td('', pairPlot(row, tops.get(top), show), { class: 'paired' }),
    );
  });
  const head = ['', 'Simulated', 'Real', 'Difference'].map((text, at) => th(text, { class: at ? 'figure' : null }));
  head.push(th(el('span', { class: 'unseen' }, 'Both on one scale'), { class: 'paired' }));
  return el('div', { class: 'scroll' }, table(label, head, bodies, { class: 'sim-table compared' }));
}

/** Sections in the order of the rows: one for each link, one for each group, and one for all flows. */
function subjects() {
  const sections = new Map();
  for (const row of compared.rows) {
    const key = row.subject === 'flow' ? 'flow' : `${row.subject} ${row.name} ${row.detail}`;
    if (!sections.has(key)) sections.set(key, []);
    sections.get(key).push(row);
  }
  return [...sections.values()].map((rows, at) => {
    const [{ subject, name, detail }] = rows;
    const id = `compared-${at}`;
    if (subject === 'flow')
      return section(id, 'Goodput of each flow', comparedTable('Goodput of each flow', rows, (row) => row.name));
    const title = [subject === 'link' ? `Queue of ${name}` : name, ' ', el('small', {}, detail)];
    const whole = el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title));
    whole.append(comparedTable(`${name} ${detail}`, rows, (_, quantity) => quantity));
    return whole;
  });
}

function runs() {
  const many = compared.real_time.length;
  const seeds = many > 1 ? `${plural(many, 'run')} in each world, from seed ${compared.seed} on` : `seed ${compared.seed}`;
  const warmup = compared.warmup_ns ? `, of which ${duration(compared.warmup_ns)} are warm-up` : '';
  const over = many > 1 ? ' Figures are means of the runs, with the least and the most below.' : '';
  return `${duration(compared.duration_ns)}${warmup}; ${seeds}.${over}`;
}

/** The offered and the carried load of a link, if the machine was too slow. */
function carried(held) {
  if (!held) return '';
  const time = `${duration(held.limited_ns)} of ${duration(held.active_ns)}`;
  return ` ${held.link} was offered ${rate(held.offered_bps)} and carried ${rate(held.carried_bps)} in ${time}, in which this machine had no time left.`;
}

/** How exact the real runs were. */
function exactness() {
  const items = compared.real_time.map((real) => {
    const late = `half of ${plural(real.packets, 'packet')} late by ${duration(real.error_p50_ns)} at most, 99 % by ${duration(real.error_p99_ns)}, the worst by ${duration(real.error_worst_ns)}`;
    const limited = real.is_limited_by_machine
      ? el('b', {}, ` This machine was the bottleneck at times: ${plural(real.late_packets, 'packet')} more than 1 ms late, ${count(real.unread_packets)} lost before the link.${carried(real.machine_limit)}`)
      : null;
    return el('li', {}, `${late}; sleeps on this machine end late by ${duration(real.sleep_p50_ns)}, 99 % by ${duration(real.sleep_p99_ns)}.`, limited);
  });
  return section('exact', 'Timing accuracy of the real link', el('ul', {}, items));
}

function leftOut() {
  if (compared.skipped.length === 0) return null;
  const each = compared.skipped.map(({ count: times, reason, meaning }) =>
    el('li', {}, `${count(times)} ${reason.replaceAll('_', ' ')}: ${meaning}`),
  );
  return section('notes', 'Irregularities', el('ul', {}, each));
}

document.getElementById('file').textContent = `${compared.name}, simulated and real`;
document
  .getElementById('footer')
  .append(el('p', {}, `Made with queuescope ${VERSION}. This page is one file: it loads nothing and sends nothing.`));
document.querySelector('.skip').remove();

const legend = el(
  'p',
  { class: 'worlds' },
  WORLDS.map((world) => el('span', {}, el('i', { class: `dot ${world}`, 'aria-hidden': 'true' }), world)),
);
document.getElementById('main').append(
  ...[
    el(
      'header',
      { class: 'headline' },
      el('h1', {}, compared.about ?? compared.name),
      el('p', { class: 'lead' }, runs()),
      legend,
    ),
    ...subjects(),
    exactness(),
    leftOut(),
    section(
      'scenario',
      'Setup',
      el(
        'details',
        {},
        el('summary', {}, 'The whole scenario, to run it again'),
        el('div', { class: 'source' }, el('pre', { tabindex: '0', role: 'region', 'aria-label': 'The scenario' }, compared.scenario)),
      ),
    ),
  ].filter(Boolean),
);
followTheme([]);
onPaper([], () => {});
document.documentElement.dataset.ready = 'true';
