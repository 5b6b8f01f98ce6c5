// Completion times: for each group, the share of flows that completed within a time.

class CompletionChart {
  #plot = null;

  constructor(sim) {
    const took = new Map();
    for (const flow of sim.flows) {
      if (flow.finished_ns === null || flow.finished_ns <= sim.warmup_ns) continue;
      if (!took.has(flow.group)) took.set(flow.group, []);
      took.get(flow.group).push(Math.max(flow.finished_ns - flow.started_ns, 1));
    }
    this.groups = [...took].map(([name, times], at) => ({
      name,
      times: times.sort((a, b) => a - b),
      colour: at < HUES ? `--flow-${at}` : '--flow-other',
    }));
    this.empty = this.groups.length === 0;
    if (this.empty) return;
    const all = this.groups.flatMap((group) => group.times);
    this.times = [...new Set(all)].sort((a, b) => a - b);
    // Room on both sides, even if all took the same; a log axis has no zero.
    this.range = [this.times[0] / 1.25, this.times.at(-1) * 1.25];
    this.shares = this.groups.map((group) => shares(this.times, group.times));
    this.host = el('div', { class: 'plot still', role: 'img', 'aria-label': this.#words() });
    this.readout = el('p', { class: 'readout', 'aria-hidden': 'true' });
    const entries = this.groups.map((group) =>
      el('li', {}, el('span', { class: 'key' }, colourOf(group), `${group.name} (${count(group.times.length)})`)),
    );
    this.element = el(
      'div',
      { class: 'completion' },
      el(
        'h3',
        {},
        'Completion times',
        el('small', {}, 'the share of flows that finished within a time; the time axis is logarithmic'),
      ),
      this.readout,
      this.host,
      el('ul', { class: 'legend', 'aria-label': 'Groups in the chart' }, entries),
    );
    new ResizeObserver(() => requestAnimationFrame(() => this.#resize())).observe(this.host);
  }

  /** Redraws, for instance after a change of colours. */
  refresh(width) {
    if (this.host.clientWidth > 0 || width) this.#build(width);
  }

  /** The chart's content in words, for screen readers. */
  #words() {
    const of = ({ name, times }) => `${name}: half within ${duration(times[(times.length - 1) >> 1])}`;
    return `Completion times of ${plural(sum(this.groups.map((group) => group.times.length)), 'flow')}. ${this.groups.map(of).join('; ')}.`;
  }

  #size(width = this.host.clientWidth) {
    return { width: Math.max(width, 200), height: width < 560 ? 170 : 210 };
  }

  #resize() {
    if (!this.#plot) this.#build();
    else if (this.#size().width !== this.#plot.width) this.#plot.setSize(this.#size());
  }

  #build(width) {
    this.#plot?.destroy();
    const size = this.#size(width);
    const narrow = size.width < 560;
    const [axis] = axisLook(narrow);
    const options = {
      ...size,
      padding: [6, 16, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, distr: 3, range: () => this.range }, y: { range: () => [0, 1.02] } },
      axes: [
        {
          ...axis,
          size: 30,
          splits: () => logSteps(...this.range, narrow ? 4 : 9),
          values: (_, ticks) => ticks.map((ns) => oneUnit(ns)),
          filter: (_, ticks) => ticks,
        },
        {
          ...axis,
          size: narrow ? 52 : 60,
          splits: () => [0, 0.25, 0.5, 0.75, 1],
          values: (_, ticks) => ticks.map((share) => (share === 0 ? '0' : percent(share))),
        },
      ],
      series: [
        {},
        ...this.groups.map(({ colour }) => ({
          stroke: cssVariable(colour),
          width: 2,
          points: { show: this.times.length === 1 },
          paths: uPlot.paths.stepped({ align: 1 }),
        })),
      ],
      hooks: { setCursor: [() => this.#read()] },
    };
    this.#plot = new uPlot(options, [this.times, ...this.shares], this.host);
    this.#read();
  }

  #read() {
    if (!this.#plot) return;
    const { left, idx } = this.#plot.cursor;
    if (!(left >= 0) || idx === null || idx === undefined) return this.readout.replaceChildren();
    const at = [el('span', {}, 'within ', el('b', {}, duration(this.times[idx])))];
    const parts = this.groups.map((group, n) =>
      el('span', {}, `${group.name} `, el('b', {}, percent(this.shares[n][idx]))),
    );
    this.readout.replaceChildren(...at, ...parts);
  }
}

/** For each of `times`, the share of `own` (sorted) that is not longer. */
function shares(times, own) {
  let done = 0;
  return times.map((time) => {
    while (done < own.length && own[done] <= time) done += 1;
    return done / own.length;
  });
}
