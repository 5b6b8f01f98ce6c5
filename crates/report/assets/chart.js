// The chart: depth stacked by flow, the longest delay as a line, bursts and drops in two lanes above. Two things
// determine what is drawn: the range in view and the chosen burst.

const NARROWEST = 1.5; // width of a bucket in CSS pixels
const FEWEST = 8; // buckets that stay in view at the deepest zoom

class Chart {
  #plot = null;
  #source = null;
  #hidden = new Set();
  touched = false;
  #chosen = null;
  #values = new Map();

  constructor(report, timeline, onpick) {
    Object.assign(this, { report, timeline, onpick });
    this.rate = timeline.rate;
    this.range = [timeline.start, timeline.end];
    this.host = el('div', {
      class: 'plot',
      tabindex: '0',
      role: 'group',
      'aria-describedby': 'chart-keys',
      'aria-label': 'Chart of queue depth over time. The tables below have the same data.',
    });
    this.readout = el('p', { class: 'readout', 'aria-hidden': 'true' });
    this.legend = el('ul', { class: 'legend', 'aria-label': 'Flows in the chart; press one to hide or show it' });
    this.caption = el('p', { class: 'caption' });
    this.whole = button('All', () => this.reset(), { class: 'quiet', 'aria-label': 'Show the whole time' });
    this.tools = el(
      'div',
      { class: 'tools', role: 'group', 'aria-label': 'Zoom' },
      button('−', () => this.zoom(2), { class: 'quiet square', 'aria-label': 'Zoom out' }),
      button('+', () => this.zoom(0.5), { class: 'quiet square', 'aria-label': 'Zoom in' }),
      this.whole,
    );
    const keys = el('p', { class: 'hint', id: 'chart-keys' });
    const coarse = matchMedia('(pointer: coarse)').matches;
    this.reach = coarse ? 12 : 6; // pixels beside a burst at which the pointer still selects it
    keys.textContent = coarse
      ? 'Pinch to zoom, drag sideways to move.'
      : 'Drag to zoom; Ctrl + wheel, + and − too. ← → to move, 0 for all.';
    if (report.bursts.length)
      keys.textContent += coarse ? ' Tap a burst to see who filled it.' : ' Click a burst to see who filled it.';
    this.element = el('div', { class: 'chart' }, this.caption, this.readout, this.host, this.legend, keys);
    listen(this);
    new ResizeObserver(() => requestAnimationFrame(() => this.#resize())).observe(this.host);
  }

  /** Shows a burst; null shows none in particular. */
  choose(burst) {
    this.#chosen = burst;
    const [from, to] = this.range;
    const within = burst && from <= burst.start_ns && burst.start_ns + burst.length_ns <= to;
    // Without a depth over time there is nothing more to see at a closer range.
    if (burst && !(within && this.timeline.whole.outline && !this.timeline.ofBurst(burst)))
      this.show(...this.timeline.around(burst));
    else this.#plot?.redraw();
    this.#describe();
  }

  reset() {
    this.show(this.timeline.start, this.timeline.end);
  }

  /** Brings a range into view, from the series that shows it best. */
  show(from, to) {
    const { start, end } = this.timeline;
    const shortest = Math.min(end - start, this.timeline.best(from, to).bucket * FEWEST);
    let length = Math.min(Math.max(to - from, shortest), end - start);
    const middle = (from + to) / 2;
    from = Math.min(Math.max(middle - length / 2, start), end - length);
    this.range = [from, from + length];
    const source = this.timeline.forRoom(...this.range, Math.max(this.host.clientWidth, 200) / NARROWEST);
    // A finger's events go to the element that it touched first, so that element must stay until the finger is lifted.
    if (!this.#plot || (source !== this.#source && !this.touched)) this.#build(source);
    else this.#plot.setScale('x', { min: this.range[0], max: this.range[1] });
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

  /** Redraws, for instance after a change of colours. */
  refresh(width) {
    if (this.#source) this.#build(this.#source, width);
  }

  #size(width = this.host.clientWidth) {
    return { width: Math.max(width, 200), height: Math.round(Math.min(Math.max(width * 0.38, 270), 430)) };
  }

  #resize() {
    const size = this.#size();
    if (!this.#plot) this.show(...this.range);
    else if (size.width !== this.#plot.width) this.#plot.setSize(size);
  }

  // Drawing.

  #build(source, width) {
    this.#plot?.destroy();
    this.#source = source;
    const layers = source.layers(this.#hidden);
    const [ink, soft] = [cssVariable('--ink'), cssVariable('--ink-soft')];
    // At a known rate both axes are proportional: a delay is the depth before the packet divided by the rate.
    const tied = this.rate !== null;
    const delay = Float64Array.from(source.edges, (_, at) => source.delay[Math.min(at, source.delay.length - 1)] ?? 0);
    const line = tied ? delay.map((ns) => (ns * this.rate) / 8e9) : delay;
    const paths = uPlot.paths.stepped({ align: 1 });
    const surface = cssVariable('--surface');
    // Between narrow steps, seams and a thick line would hide what they mark.
    const crowded = (plot) =>
      !source.outline && (this.range[1] - this.range[0]) / source.bucket > plot.bbox.width / uPlot.pxRatio / 4;
    const seam = (plot) => (crowded(plot) ? 'transparent' : surface);
    const size = this.#size(width);
    const narrow = size.width < 560;
    const [axis, room] = axisLook(narrow);
    const options = {
      ...size,
      padding: [LANES, 0, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 5 },
        bind: { dblclick: () => () => this.reset() },
      },
      scales: {
        x: { time: false, range: (_, min, max) => [min, max] },
        y: { range: (_, min, max) => [0, max > 0 ? max * 1.06 : 1] },
        delay: tied
          ? { from: 'y', range: (_, min, max) => [(min * 8e9) / this.rate, (max * 8e9) / this.rate] }
          : { range: (_, min, max) => [0, max > 0 ? max * 1.06 : 1] },
      },
      axes: [
        {
          ...axis,
          size: 30,
          incrs: STEPS,
          space: narrow ? 74 : 96,
          values: (plot, ticks, _a, _s, step) => ticks.map((ns) => moment(ns, step, plot.scales.x.max)),
        },
        {
          ...axis,
          scale: 'y',
          size: room(narrow ? 52 : 64),
          space: 34,
          values: (_, ticks) => ticks.map((value) => (value === 0 ? '0' : bytes(value))),
        },
        {
          ...axis,
          scale: 'delay',
          side: 1,
          size: room(narrow ? 50 : 60),
          space: 34,
          grid: { show: false },
          values: (_, ticks) => ticks.map((ns) => (ns === 0 ? '0' : oneUnit(ns))),
        },
      ],
      series: [
        {},
        ...layers.map(({ slot }) => ({
          scale: 'y',
          fill: flowColour(slot),
          stroke: seam,
          width: 0.5,
          points: { show: false },
          paths,
        })),
        {
          scale: tied ? 'y' : 'delay',
          stroke: (plot) => (crowded(plot) ? soft : ink),
          width: 1,
          points: { show: false },
          paths,
        },
      ],
      hooks: {
        drawAxes: [(plot) => drawShades(plot, this.#view())],
        draw: [(plot) => drawLanes(plot, this.#view())],
        setCursor: [() => this.#read()],
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
    this.#plot = new uPlot(options, [source.edges, ...layers.map((layer) => layer.top), line], this.host);
    this.#plot.setScale('x', { min: this.range[0], max: this.range[1] });
    this.#key_to_colours();
  }

  #view() {
    const { range, timeline, report } = this;
    const tau = this.#chosen?.tau_ns ?? report.setup.tau_ns;
    return { range, bursts: timeline.bursts, tau, source: this.#source, chosen: this.#chosen };
  }

  /** The time at a position on the page, and the duration of one pixel. */
  time(clientX) {
    const box = this.#plot.over.getBoundingClientRect();
    const pixel = (this.range[1] - this.range[0]) / box.width;
    return { share: (clientX - box.left) / box.width, ns: this.range[0] + (clientX - box.left) * pixel, pixel };
  }

  /** The burst under a position on the page. */
  burstUnder(clientX) {
    const { ns, share, pixel } = this.time(clientX);
    return share >= 0 && share <= 1 ? this.timeline.burstAt(ns, pixel * this.reach) : null;
  }

  /** Whether the whole range is in view. */
  get all() {
    return this.range[1] - this.range[0] >= (this.timeline.end - this.timeline.start) * 0.999;
  }

  // Text around the drawing.

  #describe() {
    const source = this.#source;
    if (!source) return;
    const [from, to] = this.range;
    this.whole.disabled = this.all;
    const span = this.all
      ? `The whole ${this.report.sim ? 'time' : 'capture'}`
      : `${moment(from, (to - from) / 100, to)} to ${moment(to, (to - from) / 100, to)}`;
    this.caption.textContent = source.outline
      ? `${span}. Depth over time was not recorded: each block is a burst with its length and largest depth.`
      : source.deepest
        ? `${span}, in steps of ${duration(source.bucket)}, each as high as its deepest queue. Zoom in for details.`
        : `${span}, in steps of ${duration(source.bucket)}, each as high as its mean queue.`;
    this.#read();
  }

  /** Values under the cursor; without a cursor, the extremes of the view. */
  #read() {
    const source = this.#source;
    const plot = this.#plot;
    if (!source || !plot) return;
    const left = plot.cursor.left;
    const at = left >= 0 ? source.at(plot.posToVal(left, 'x')) : -1;
    const parts = [];
    if (at >= 0) {
      parts.push(['at', moment(source.edges[at], source.bucket, this.range[1])]);
      parts.push([source.outline || source.deepest ? 'deepest' : 'mean depth', bytes(source.total[at] ?? 0)]);
      parts.push(['longest delay', duration(source.delay[at] ?? 0)]);
      if (source.drops[at]) parts.push(['drops', count(source.drops[at])]);
      const burst = this.timeline.burstAt(source.edges[at], source.bucket);
      if (burst) parts.push(['burst', `#${burst.number}`]);
    } else {
      const first = Math.max(0, source.at(this.range[0]));
      let [longest, dropped] = [0, 0];
      for (let step = first; step < source.total.length && source.edges[step] < this.range[1]; step += 1) {
        longest = Math.max(longest, source.delay[step] ?? 0);
        dropped += source.drops[step] ?? 0;
      }
      const [from, to] = this.range;
      const bursts = this.timeline.bursts.filter(
        (burst) => burst.start_ns <= to && burst.start_ns + burst.length_ns >= from,
      ).length;
      parts.push(['in view: bursts', count(bursts)], ['longest delay', duration(longest)], ['drops', count(dropped)]);
    }
    this.readout.replaceChildren(...parts.map(([name, value]) => el('span', {}, `${name} `, el('b', {}, value))));
    for (const [flow, cell] of this.#values) {
      const mean =
        flow === null
          ? at >= 0 && source.others(at)
          : at >= 0 && source.flows.find((entry) => entry.flow === flow)?.mean[at];
      cell.textContent = at >= 0 ? bytes(mean ?? 0) : '';
    }
  }

  /** The legend: the flows from the top of the stack down, each with a switch. */
  #key_to_colours() {
    const source = this.#source;
    this.#values.clear();
    const entry = (name, slot, flow) => {
      const value = el('span', { class: 'value' });
      this.#values.set(flow, value);
      const toggle = button(
        '',
        () => {
          if (!this.#hidden.delete(flow)) this.#hidden.add(flow);
          this.refresh();
          this.legend.querySelectorAll('button')[[...this.#values.keys()].indexOf(flow)]?.focus();
        },
        { 'aria-pressed': String(!this.#hidden.has(flow)) },
      );
      toggle.append(swatch(slot), name, value);
      return el('li', {}, toggle);
    };
    const entries = source.flows.map(({ flow, slot }) => entry(flowName(flow), slot, flow));
    const others = source.outline || source.total.some((_, at) => source.others(at) > 0);
    if (others)
      entries.push(
        entry(source.outline ? 'all flows' : source.flows.length ? 'other flows' : 'all flows', undefined, null),
      );
    entries.push(
      el(
        'li',
        {},
        el(
          'span',
          { class: 'key' },
          el('span', { class: 'swatch line', 'aria-hidden': 'true' }),
          'longest delay of arriving packets (right axis)',
        ),
      ),
    );
    this.legend.replaceChildren(...entries);
  }
}
