// A simulation over time: panels one below the other with a common time axis, zoom and cursor.

const WINDOWS = {
  window: ['Congestion window', (flow) => flow.window_bytes, bytes],
  flight: ['Bytes in flight', (flow) => flow.in_flight_bytes, bytes],
  rtt: ['Smoothed round-trip time', (flow) => flow.rtt_ns, duration],
};

class SimCharts {
  #plots = [];
  #values = [];
  #hidden = new Set();
  #panels = [];

  constructor(sim, styles) {
    Object.assign(this, { sim, styles, course: new Course(sim), onpick: () => {} });
    this.end = Math.max(sim.duration_ns, this.course.at.at(-1), 1);
    this.range = [0, this.end];
    this.groups = this.course.groups();
    this.link = Math.max(
      0,
      sim.links.findIndex((link) => link.name === sim.meter),
    );
    this.of = 'window';
    this.by = styles.size < this.course.sampled.size && this.groups.size > 1 ? 'group' : 'flow';
    this.host = el('div', {
      class: 'plot panels',
      tabindex: '0',
      role: 'group',
      'aria-describedby': 'course-keys',
      'aria-label': 'Charts of the simulation over time. The tables have the totals.',
    });
    this.caption = el('p', { class: 'caption' });
    this.legend = el('div', {});
    this.whole = button('All', () => this.reset(), { class: 'quiet', 'aria-label': 'Show the whole simulation' });
    const zooms = el(
      'div',
      { class: 'tools', role: 'group', 'aria-label': 'Zoom' },
      button('−', () => this.zoom(2), { class: 'quiet square', 'aria-label': 'Zoom out' }),
      button('+', () => this.zoom(0.5), { class: 'quiet square', 'aria-label': 'Zoom in' }),
      this.whole,
    );
    const coarse = matchMedia('(pointer: coarse)').matches;
    const keys = coarse
      ? 'Pinch to zoom, drag sideways to move.'
      : 'Drag to zoom; Ctrl + wheel, + and − too. ← → to move, 0 for all.';
    this.section = el(
      'section',
      { id: 'sim-course', 'aria-labelledby': 'sim-course-title' },
      el('div', { class: 'bar' }, el('h2', { id: 'sim-course-title' }, 'The simulation over time'), zooms),
      this.caption,
      this.#choices(),
      this.host,
      this.legend,
      el('p', { class: 'hint', id: 'course-keys' }, keys),
    );
    listen(this);
    new ResizeObserver(() => requestAnimationFrame(() => this.#resize())).observe(this.host);
  }

  /** Choices of what is drawn: the link, the quantity of the flows, and whether flows are separate. */
  #choices() {
    const chosen = (name, label, entries) => {
      const options = entries.map(([value, text]) =>
        el('option', { value, selected: String(this[name]) === value }, text),
      );
      const select = el('select', { class: 'quiet', 'data-choice': name }, options);
      select.addEventListener('change', () => {
        this[name] = name === 'link' ? Number(select.value) : select.value;
        this.refresh();
        announce(`${label}: ${select.selectedOptions[0].textContent}.`);
      });
      return el('label', {}, label, ' ', select);
    };
    const links = this.sim.links.map((link, at) => [String(at), link.name]);
    const flows = this.styles.size > 0;
    return el(
      'div',
      { class: 'choices' },
      links.length > 1 ? chosen('link', 'Link', links) : null,
      flows
        ? chosen(
            'of',
            'Of the flows',
            Object.entries(WINDOWS).map(([key, [title]]) => [key, title]),
          )
        : null,
      flows && this.groups.size > 1
        ? chosen('by', 'Goodput', [
            ['flow', 'of flows'],
            ['group', 'of groups'],
          ])
        : null,
    );
  }

  // What the gestures need.

  reset() {
    this.show(0, this.end);
  }

  /** Brings a range into view. */
  show(from, to) {
    const shortest = Math.min(this.end, this.course.step * FEWEST);
    const length = Math.min(Math.max(to - from, shortest), this.end);
    const start = Math.min(Math.max((from + to) / 2 - length / 2, 0), this.end - length);
    this.range = [start, start + length];
    for (const plot of this.#plots) plot.setScale('x', { min: this.range[0], max: this.range[1] });
    this.#describe();
  }

  /** Zooms by a factor around a share of the width. */
  zoom(factor, at = 0.5) {
    const [from, to] = this.range;
    const fixed = from + (to - from) * at;
    this.show(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor);
  }

  /** Moves the view by a share of the width. */
  pan(share) {
    const by = (this.range[1] - this.range[0]) * share;
    this.show(this.range[0] + by, this.range[1] + by);
  }

  /** The position on the width for a position on the page, as a share. */
  time(clientX) {
    const box = this.#plots[0].over.getBoundingClientRect();
    return { share: (clientX - box.left) / box.width };
  }

  /** This chart has no bursts. */
  burstUnder() {
    return null;
  }

  /** Whether the whole range is in view. */
  get all() {
    return this.range[1] - this.range[0] >= this.end * 0.999;
  }

  // Drawing.

  /** Redraws, for instance after a change of colours or of what is drawn. */
  refresh(width) {
    if (this.host.clientWidth > 0 || width) this.#build(width);
  }

  #size(last, width = this.host.clientWidth) {
    return { width: Math.max(width, 200), height: (width < 560 ? 104 : 124) + (last ? 24 : 0) };
  }

  #resize() {
    if (this.#plots.length === 0) return this.#build();
    this.#plots.forEach((plot, n) => {
      const size = this.#size(n === this.#plots.length - 1);
      if (size.width !== plot.width) plot.setSize(size);
    });
  }

  /** The chosen panels: a title, its lines, the number format, and what summarises the view. */
  #chosen() {
    const panels = [];
    const extreme = (rows, show) => {
      let most = null;
      for (const values of rows)
        for (const value of values) if (value !== null && (most === null || value > most)) most = value;
      return most === null ? '' : `at most ${show(most)}`;
    };
    if (this.sim.links.length > 0) {
      const link = this.sim.links[this.link];
      const { delay, busy, drops, marks } = this.course.link(this.link);
      const mean = ([values]) => {
        const known = values.filter((value) => value !== null);
        return known.length ? `mean ${percent(sum(known) / known.length)}` : '';
      };
      const line = (name, colour, values, stepped = true) => ({ name, colour, values, stepped });
      panels.push({
        id: 'delay',
        title: `Queue delay of ${link.name}`,
        show: duration,
        axis: oneUnit,
        lines: [line('', '--flow-0', delay, false)],
        fill: true,
        sum: (rows) => extreme(rows, duration),
      });
      panels.push({
        id: 'busy',
        title: 'Throughput, as a share of the rate',
        show: percent,
        axis: percent,
        lines: [line('', '--flow-2', busy)],
        sum: mean,
        least: 1,
      });
      const each = (value) => (value >= 1000 ? count(value) : number(value));
      const some = (values) => values.some((value) => value > 0);
      if (some(drops) || some(marks)) {
        const lines = [line('drops', '--bad', drops), line('marks', '--accent', marks)];
        panels.push({
          id: 'lost',
          title: 'a second',
          show: each,
          axis: each,
          lines: lines.filter(({ values }) => some(values)),
          sum: (rows) => extreme(rows, each),
        });
      }
    }
    if (this.styles.size > 0) {
      const numbers = [...this.styles.keys()];
      const lines = (of) =>
        this.course.flows(numbers, of).map((values, n) => {
          const { slot, dashed, name } = this.styles.get(numbers[n]);
          return { name, colour: `--flow-${slot}`, dashed, values, flow: numbers[n] };
        });
      const [title, of, show] = WINDOWS[this.of];
      panels.push({ id: 'window', title, show, axis: show, lines: lines(of), sum: (rows) => extreme(rows, show) });
      const groups = [...this.groups].map(([name, values], at) => ({
        name,
        colour: at < HUES ? `--flow-${at}` : '--flow-other',
        values,
        stepped: true,
      }));
      panels.push({
        id: 'goodput',
        title: this.by === 'group' ? 'Goodput of groups' : 'Goodput',
        show: rate,
        axis: rate,
        lines: this.by === 'group' ? groups : lines((flow, n) => this.course.goodput(flow, n)),
        sum: (rows) => extreme(rows, rate),
      });
    }
    return panels;
  }

  #build(width) {
    for (const plot of this.#plots) plot.destroy();
    this.host.replaceChildren();
    this.#panels = this.#chosen();
    this.#values = [];
    this.#plots = this.#panels.map((panel, n) => {
      const value = el('span', { class: 'value' });
      this.#values.push(value);
      const keys =
        panel.id === 'lost' ? panel.lines.flatMap((line) => [colourOf(line), el('span', {}, line.name)]) : [];
      const title = el(
        'p',
        { class: 'panel-title', 'aria-hidden': 'true' },
        el('b', {}, ...keys, el('span', {}, panel.title)),
        value,
      );
      const inside = el('div', { class: 'panel', 'data-panel': panel.id }, title);
      this.host.append(inside);
      return this.#plot(panel, inside, n === this.#panels.length - 1, width);
    });
    this.show(...this.range);
    this.#keys();
  }

  #plot(panel, inside, last, width) {
    const size = this.#size(last, width);
    const narrow = size.width < 560;
    const [axis] = axisLook(narrow);
    const stepped = uPlot.paths.stepped({ align: -1 });
    const options = {
      ...size,
      padding: [6, 16, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 5 },
        bind: { dblclick: () => () => this.reset() },
        // The cursor is in all panels; a drag is in one.
        sync: { key: 'sim', filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
      },
      scales: {
        x: { time: false, range: (_, min, max) => [min, max] },
        y: { range: (_, min, max) => [0, Math.max(max > 0 ? max * 1.06 : 1, panel.least ?? 0)] },
      },
      axes: [
        {
          ...axis,
          size: last ? 30 : 6,
          incrs: STEPS,
          space: narrow ? 74 : 96,
          values: (plot, ticks, _a, _s, step) => ticks.map((ns) => (last ? moment(ns, step, plot.scales.x.max) : '')),
        },
        {
          ...axis,
          scale: 'y',
          // The same in all panels, so that their times are aligned.
          size: narrow ? 62 : 72,
          space: 30,
          values: (_, ticks) => ticks.map((value) => (value === 0 ? '0' : panel.axis(value))),
        },
      ],
      series: [
        {},
        ...panel.lines.map((line) => ({
          stroke: cssVariable(line.colour),
          fill: panel.fill ? `color-mix(in srgb, ${cssVariable(line.colour)} 22%, transparent)` : undefined,
          width: 1.5,
          dash: line.dashed ? [5, 4] : undefined,
          points: { show: false },
          paths: line.stepped ? stepped : undefined,
          show: !this.#hidden.has(line.flow ?? line.name),
        })),
      ],
      hooks: {
        drawAxes: [(plot) => this.#shade(plot, panel === this.#panels[0])],
        setCursor: panel === this.#panels[0] ? [() => this.#read()] : [],
        setSelect: [
          (plot) => {
            const { left, width: across } = plot.select;
            if (across < 5) return;
            const [from, to] = [plot.posToVal(left, 'x'), plot.posToVal(left + across, 'x')];
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            this.show(from, to);
          },
        ],
      },
    };
    return new uPlot(options, [this.course.at, ...panel.lines.map((line) => line.values)], inside);
  }

  /** Shades the warm-up behind the lines. */
  #shade(plot, labelled) {
    const { ctx, bbox } = plot;
    const until = Math.min(plot.valToPos(this.sim.warmup_ns, 'x', true), bbox.left + bbox.width);
    const width = until - bbox.left;
    if (this.sim.warmup_ns === 0 || width <= 0) return;
    ctx.save();
    ctx.fillStyle = cssVariable('--burst-shade');
    ctx.fillRect(bbox.left, bbox.top, width, bbox.height);
    ctx.font = `${11 * uPlot.pxRatio}px ${cssVariable('--font')}`;
    if (labelled && ctx.measureText('warm-up').width + 12 * uPlot.pxRatio < width) {
      ctx.fillStyle = cssVariable('--ink-soft');
      ctx.textAlign = 'left';
      ctx.textBaseline = 'top';
      ctx.fillText('warm-up', bbox.left + 6 * uPlot.pxRatio, bbox.top + 5 * uPlot.pxRatio);
    }
    ctx.restore();
  }

  // Text around the drawing.

  #describe() {
    const [from, to] = this.range;
    this.whole.disabled = this.all;
    const span = this.all
      ? 'The whole simulation'
      : `${moment(from, (to - from) / 100, to)} to ${moment(to, (to - from) / 100, to)}`;
    const warmup = this.sim.warmup_ns > from ? ' The shade is the warm-up.' : '';
    const delay = this.sim.links.length ? ' The delay is the backlog divided by the link’s rate.' : '';
    this.caption.textContent = `${span}, a sample every ${duration(this.course.step)}.${delay}${warmup}`;
    this.#read();
  }

  /** Values under the cursor; without a cursor, what summarises the view. */
  #read() {
    const [plot] = this.#plots;
    if (!plot || this.#plots.length < this.#panels.length) return;
    const at = plot.cursor.left >= 0 ? plot.cursor.idx : null;
    const [first, end] = [this.course.from(this.range[0]), this.course.from(this.range[1] + 1)];
    this.#panels.forEach((panel, n) => {
      const value = this.#values[n];
      if (at === null) {
        value.textContent = panel.sum(panel.lines.map((line) => line.values.slice(first, end)));
        return;
      }
      const few = panel.lines.length <= 2;
      const words = few
        ? panel.lines.map((line) => `${panel.show(line.values[at])}${line.name ? ` ${line.name}` : ''}`).join(', ')
        : '';
      value.textContent = `${words}${n === 0 || !few ? ` at ${moment(this.course.at[at], this.course.step, this.range[1])}` : ''}`;
    });
    for (const { cell, line, show } of this.cells ?? []) cell.textContent = at === null ? '' : show(line.values[at]);
  }

  /** The legends: the flows, each with a switch, and the groups where they are drawn. */
  #keys() {
    this.cells = [];
    const window = this.#panels.find((panel) => panel.id === 'window');
    const goodput = this.#panels.find((panel) => panel.id === 'goodput');
    if (!window) return this.legend.replaceChildren();
    const entry = (name, line, show, swatch) => {
      const cell = el('span', { class: 'value' });
      this.cells.push({ cell, line, show });
      const hide = line.flow ?? line.name;
      const toggle = button('', () => this.#toggle(hide, toggle), { 'aria-pressed': String(!this.#hidden.has(hide)) });
      toggle.append(swatch, name, cell);
      return el('li', {}, toggle);
    };
    const flows = window.lines.map((line) =>
      entry(flowName(line.name), line, window.show, swatchOf(this.styles.get(line.flow))),
    );
    const rest = this.course.sampled.size - this.styles.size;
    const groups = this.by === 'group' ? goodput.lines.map((line) => entry(line.name, line, rate, colourOf(line))) : [];
    const list = (name, entries) =>
      el('ul', { class: 'legend', 'aria-label': `${name} in the charts; press one to hide or show it` }, entries);
    this.legend.replaceChildren(
      ...[
        list('Flows', flows),
        rest > 0
          ? el('p', { class: 'hint' }, `${plural(rest, 'flow')} more ${rest === 1 ? 'is' : 'are'} not drawn.`)
          : null,
        groups.length ? list('Groups', groups) : null,
      ].filter(Boolean),
    );
  }

  #toggle(hide, toggle) {
    if (!this.#hidden.delete(hide)) this.#hidden.add(hide);
    toggle.setAttribute('aria-pressed', String(!this.#hidden.has(hide)));
    this.#panels.forEach((panel, n) =>
      panel.lines.forEach((line, at) => {
        if ((line.flow ?? line.name) === hide) this.#plots[n].setSeries(at + 1, { show: !this.#hidden.has(hide) });
      }),
    );
  }
}
