// The page itself: reads the data, assembles the parts, and keeps chart, table, panel and address consistent.

const data = embeddedModel();
const report = data.sim ? chosenQueue(data) : data;
const colours = new Colours(report);
const timeline = new Timeline(report, colours);
const main = document.getElementById('main');
const root = document.documentElement;

const file = document.getElementById('file');
file.textContent =
  report.input.name === '-' ? 'standard input' : report.input.name.split(/[\\/]/).pop() || report.input.name;
file.title = report.input.name;
document
  .getElementById('footer')
  .append(el('p', {}, `Made with queuescope ${VERSION}. This page is one file: it loads nothing and sends nothing.`));

const somethingToDraw = report.totals.packets > 0 && (report.series?.mean_bytes.length > 0 || report.bursts.length > 0);
const chart = somethingToDraw ? new Chart(report, timeline, pick) : null;
const bursts = report.bursts.length ? new BurstTable(report.bursts, pick) : null;
const panel = el('div', { id: 'panel' });
const simulated = report.sim ? simulation(report, colours) : { sections: [], charts: [] };
const charts = [chart, ...simulated.charts].filter(Boolean);

const parts = [
  headline(report),
  ...notices(report),
  keyNumbers(report),
  ...simulated.sections,
  chart &&
    el(
      'section',
      { id: 'depth', 'aria-labelledby': 'depth-title' },
      el('div', { class: 'bar' }, el('h2', { id: 'depth-title' }, depthTitle(report)), chart.tools),
      depthHint(report),
      chart.element,
      panel,
    ),
  overall(report, colours),
  bursts && burstsSection(report, bursts.element),
  sketchSection(report),
  tapSection(report),
  skippedSection(report),
  setupSection(report),
];
main.append(...parts.filter(Boolean));
if (!bursts) document.querySelector('.skip').remove();

// The address contains the chosen burst, so that it can be linked to and the back button works.

function pick(burst) {
  location.hash = burst ? `#burst-${burst.number}` : '#all';
}

let chosen = null;
function follow(first) {
  const number = /^#burst-(\d+)$/.exec(location.hash)?.[1];
  const burst = report.bursts.find((entry) => String(entry.number) === number) ?? null;
  if (burst === chosen) return;
  const before = chosen;
  chosen = burst;
  panel.replaceChildren(...(burst ? [burstPanel(report, burst, timeline, colours, pick)] : []));
  bursts?.choose(burst);
  chart?.choose(burst);
  if (!burst && before) chart?.reset();
  root.dataset.burst = burst ? burst.number : '';
  if (!burst) return announce('No burst chosen.');
  const [top] = burst.culprits[0]?.flows ?? [];
  announce(
    `Burst ${burst.number}: longest delay ${duration(burst.peak_delay_ns)}.${top ? ` ${top.flow} filled ${percent(top.share)}.` : ''}`,
  );
  // Chart and culprits must be visible together.
  const section = document.getElementById('depth');
  const { top: y } = section.getBoundingClientRect();
  const below = panel.getBoundingClientRect().top > innerHeight * 0.7 && y > 20;
  if (first || y < -80 || below)
    section.scrollIntoView({
      behavior: first || matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth',
    });
}

addEventListener('hashchange', () => follow(false));
addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && chosen) pick(null);
});
follow(true);

followTheme(charts);
onPaper(charts, () => bursts?.showAll());
root.dataset.ready = 'true';
