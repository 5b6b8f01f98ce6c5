// The page of a sweep: the swept parameters and the results, with a row for each combination of values.

const sweep = embeddedModel();
const tables = [];

/** A figure, and half of its confidence interval. */
function figureCell(mean, label, show) {
  if (mean === null) return td(label, DASH, { class: 'figure' });
  const half = mean.half_width === null ? null : el('small', {}, `±${THIN}${mean.half_width === 0 ? 0 : show(mean.half_width)}`);
  return td(label, [show(mean.mean), half], { class: 'figure' });
}

/** The values of the swept parameters, and the figures; each column sorts. */
function figures(name, columns) {
  const few = (row) =>
    row.cells < sweep.seeds ? el('small', {}, `${count(row.cells)} of ${plural(sweep.seeds, 'seed')}`) : null;
  const parameters = sweep.parameters.map(({ path, values }, at) => ({
    key: `parameter-${at}`,
    title: path,
    up: true,
    value: (row) => values.indexOf(row.values[at]),
    cell: (row) => td(path, [el('b', {}, row.values[at]), at === 0 ? few(row) : null], { class: 'who' }),
  }));
  if (parameters.length === 0) {
    const cell = (row) => td('', ['all', few(row)], { class: 'who' });
    parameters.push({ key: 'all', title: 'Seeds', up: true, value: () => 0, cell });
  }
  const measured = columns.map(([key, title, show, about]) => ({
    key,
    title,
    about,
    figure: true,
    value: (row) => row.figures[key]?.mean ?? -1,
    cell: (row) => figureCell(row.figures[key], title.toLowerCase(), show),
  }));
  const all = plural(sweep.rows.length, 'combination');
  const options = { kind: 'sim-table', limit: FIRST_ROWS, all };
  tables.push(new SortedTable(name, sweep.rows, [...parameters, ...measured], options));
  return tables.at(-1).element;
}

function cells() {
  const seeds = sweep.seeds > 1 ? `${plural(sweep.seeds, 'seed')} from ${sweep.seed} on` : `seed ${sweep.seed}`;
  const here = sweep.cells_here < sweep.cells ? `, of which ${count(sweep.cells_here)} are in this report` : '';
  const over =
    sweep.seeds > 1 ? ' Figures are means over the seeds, ± half of the 95 % confidence interval (Student’s t).' : '';
  const meters = [...new Set(sweep.rows.map((row) => row.meter))].sort().join(', ');
  const queue = meters ? ` The queue is that of ${meters}; goodput and Jain’s index are of all flows.` : '';
  return `${plural(sweep.cells, 'cell')}${here}; ${seeds}.${over}${queue}`;
}

function swept() {
  const lists = sweep.parameters.flatMap(({ path, values }) => [el('dt', {}, path), el('dd', {}, values.join(', '))]);
  return lists.length ? el('dl', { class: 'swept' }, lists) : null;
}

function notes() {
  if (sweep.skipped.length === 0) return null;
  const each = sweep.skipped.map(({ count: times, reason, meaning }) =>
    el('li', {}, `${count(times)} ${reason.replaceAll('_', ' ')}: ${meaning}`),
  );
  return section('notes', 'Irregularities in the files', el('ul', {}, each));
}

document.getElementById('file').textContent = `${sweep.name}, a sweep`;
document
  .getElementById('footer')
  .append(el('p', {}, `Made with queuescope ${VERSION}. This page is one file: it loads nothing and sends nothing.`));
document.querySelector('.skip').remove();

const flowsEnd = sweep.rows.some((row) => row.figures.completion_mean_ns !== null);
const plots = sweepPlots(sweep);
const parts = [
  el('header', { class: 'headline' }, el('h1', {}, sweep.about ?? sweep.name), el('p', { class: 'lead' }, cells())),
  ...plots.map((plot) => plot.section),
  section('found', 'Queue and flows', figures('Queue and flows', ofQueue(sweep))),
  flowsEnd ? section('completion', 'Flow completion times', figures('Flow completion times', OF_FLOWS)) : null,
  notes(),
  section(
    'swept',
    'Parameters',
    swept(),
    el(
      'details',
      {},
      el('summary', {}, 'The whole scenario'),
      el('div', { class: 'source' }, el('pre', { tabindex: '0', role: 'region', 'aria-label': 'The scenario' }, sweep.scenario)),
    ),
  ),
];
document.getElementById('main').append(...parts.filter(Boolean));
followTheme(plots);
onPaper(plots, () => tables.forEach((one) => one.showAll()));
document.documentElement.dataset.ready = 'true';
