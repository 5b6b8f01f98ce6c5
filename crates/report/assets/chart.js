// The chart: depth stacked by flow, the longest delay as a line, bursts and drops in two lanes above.
// What is drawn follows from two things, the range in view and the chosen burst; everything else is derived.

const LANE = 16; // height of a lane, CSS pixels
const LANES = 2 * LANE + 10;
// Steps between the labels of time; a quarter of a step would need a digit more than its labels have.
const STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const NARROWEST = 1.5; // CSS pixels of a bucket
const MANY_BURSTS = 150; // in view at once
const FEWEST = 8; // buckets that stay in view at the deepest zoom

class Chart {
  #plot = null;
  #source = null;
  #hidden = new Set();
  #chosen = null;
  #values = new Map();

  constructor(report, timeline, onpick) {
    Object.assign(this, { report, timeline, onpick });
    this.rate = report.setup.rate_bps;
    this.range = [timeline.start, timeline.end];
    this.host = el('div', {
      class: 'plot', tabindex: '0', role: 'group', 'aria-describedby': 'chart-keys',
      'aria-label': 'Chart of queue depth over time. The same facts are in the tables below.',
      onkeydown: (event) => this.#key(event),
    });
    this.readout = el('p', { class: 'readout', 'aria-hidden': 'true' });
    this.legend = el('ul', { class: 'legend', 'aria-label': 'Flows in the chart; press one to hide or show it' });
    this.caption = el('p', { class: 'caption' });
    this.whole = button('All', () => this.reset(), { class: 'quiet', 'aria-label': 'Show the whole capture' });
    this.tools = el('div', { class: 'tools', role: 'group', 'aria-label': 'Zoom' },
      button('−', () => this.zoom(2), { class: 'quiet square', 'aria-label': 'Zoom out' }),
      button('+', () => this.zoom(0.5), { class: 'quiet square', 'aria-label': 'Zoom in' }),
      this.whole);
    const keys = el('p', { class: 'hint', id: 'chart-keys' });
    keys.textContent = matchMedia('(pointer: coarse)').matches
      ? 'Pinch to zoom, drag sideways to move, tap a burst to see who filled it.'
      : 'Drag to zoom, Ctrl + wheel or + and − too, ← → to move, 0 for all. Click a burst to see who filled it.';
    this.element = el('div', { class: 'chart' }, this.caption, this.readout, this.host, this.legend, keys);
    this.#gestures();
    new ResizeObserver(() => requestAnimationFrame(() => this.#resize())).observe(this.host);
  }

  /** Shows a burst, or with null no burst in particular. */
  choose(burst) {
    this.#chosen = burst;
    const [from, to] = this.range;
    const within = burst && from <= burst.start_ns && burst.start_ns + burst.length_ns <= to;
    // Without a depth over time there is nothing more to see from near.
    if (burst && !(within && this.timeline.whole.outline && !this.timeline.ofBurst(burst))) this.show(...this.timeline.around(burst));
    else this.#plot?.redraw();
    this.#describe();
  }

  reset() {
    this.show(this.timeline.start, this.timeline.end);
  }

  /** Brings a range into view, from whichever series shows it best. */
  show(from, to) {
    const { start, end } = this.timeline;
    const shortest = Math.min(end - start, this.timeline.best(from, to).bucket * FEWEST);
    let length = Math.min(Math.max(to - from, shortest), end - start);
    const middle = (from + to) / 2;
    from = Math.min(Math.max(middle - length / 2, start), end - length);
    this.range = [from, from + length];
    const source = this.timeline.forRoom(...this.range, Math.max(this.host.clientWidth, 200) / NARROWEST);
    if (source !== this.#source || !this.#plot) this.#build(source);
    else this.#plot.setScale('x', { min: this.range[0], max: this.range[1] });
    this.#describe();
  }

  /** Zooms by a factor around a share of the width. */
  zoom(factor, at = 0.5) {
    const [from, to] = this.range;
    const fixed = from + (to - from) * at;
    this.show(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor);
  }

  /** Moves by a share of the width. */
  pan(share) {
    const by = (this.range[1] - this.range[0]) * share;
    this.show(this.range[0] + by, this.range[1] + by);
  }

  /** Draws anew, as after a change of colours. */
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
    // At a known rate the two axes are one: a delay is the depth in front of the packet, divided by the rate.
    const tied = this.rate !== null;
    const delay = Float64Array.from(source.edges, (_, at) => (source.delay[Math.min(at, source.delay.length - 1)] ?? 0));
    const line = tied ? delay.map((ns) => (ns * this.rate) / 8e9) : delay;
    const paths = uPlot.paths.stepped({ align: 1 });
    const surface = cssVariable('--surface');
    // Between narrow steps, seams and a strong line would hide what they mark.
    const crowded = (plot) => !source.outline && (this.range[1] - this.range[0]) / source.bucket > plot.bbox.width / uPlot.pxRatio / 4;
    const seam = (plot) => (crowded(plot) ? 'transparent' : surface);
    const size = this.#size(width);
    const narrow = size.width < 560;
    const axis = {
      stroke: cssVariable('--ink-soft'), font: `${narrow ? 11 : 12}px ${cssVariable('--font')}`,
      grid: { stroke: cssVariable('--rule'), width: 1 }, ticks: { stroke: cssVariable('--rule'), width: 1, size: 4 }, gap: 4,
    };
    const options = {
      ...size,
      padding: [LANES, 0, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false, dist: 5 }, bind: { dblclick: () => () => this.reset() } },
      scales: {
        x: { time: false, range: (_, min, max) => [min, max] },
        y: { range: (_, min, max) => [0, max > 0 ? max * 1.06 : 1] },
        delay: tied
          ? { from: 'y', range: (_, min, max) => [(min * 8e9) / this.rate, (max * 8e9) / this.rate] }
          : { range: (_, min, max) => [0, max > 0 ? max * 1.06 : 1] },
      },
      axes: [
        { ...axis, size: 30, incrs: STEPS, space: narrow ? 74 : 96, values: (plot, ticks, _a, _s, step) => ticks.map((ns) => moment(ns, step, plot.scales.x.max)) },
        { ...axis, scale: 'y', size: narrow ? 52 : 64, space: 34, values: (_, ticks) => ticks.map((value) => (value === 0 ? '0' : bytes(value))) },
        { ...axis, scale: 'delay', side: 1, size: narrow ? 50 : 60, space: 34, grid: { show: false }, values: (_, ticks) => ticks.map((ns) => (ns === 0 ? '0' : duration(ns))) },
      ],
      series: [
        {},
        ...layers.map(({ slot }) => ({ scale: 'y', fill: flowColour(slot), stroke: seam, width: 0.5, points: { show: false }, paths })),
        { scale: tied ? 'y' : 'delay', stroke: (plot) => (crowded(plot) ? soft : ink), width: 1, points: { show: false }, paths },
      ],
      hooks: {
        drawAxes: [(plot) => this.#shade(plot)],
        draw: [(plot) => this.#lanes(plot)],
        setCursor: [() => this.#read()],
        setSelect: [(plot) => {
          const { left, width: across } = plot.select;
          if (across < 5) return;
          const [from, to] = [plot.posToVal(left, 'x'), plot.posToVal(left + across, 'x')];
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          this.show(from, to);
        }],
      },
    };
    this.#plot = new uPlot(options, [source.edges, ...layers.map((layer) => layer.top), line], this.host);
    this.#plot.setScale('x', { min: this.range[0], max: this.range[1] });
    this.#key_to_colours();
  }

  /** The bursts in view, with where they are drawn, in device pixels. */
  *#spans(plot) {
    const x = (ns) => Math.round(plot.valToPos(ns, 'x', true));
    const [from, to] = this.range;
    const inView = this.timeline.bursts.filter((burst) => burst.start_ns <= to && burst.start_ns + burst.length_ns >= from);
    const narrowest = (inView.length < MANY_BURSTS ? 4 : 1) * uPlot.pxRatio;
    for (const burst of inView) {
      const left = x(burst.start_ns);
      const width = Math.max(x(burst.start_ns + burst.length_ns) - left, narrowest);
      yield { burst, left, width, chosen: burst === this.#chosen, many: inView.length >= MANY_BURSTS };
    }
  }

  /** The bursts as shades behind the depth. */
  #shade(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const { left, width, chosen, many } of this.#spans(plot)) {
      if (many && !chosen) continue; // the lane says it, and the shades would run together
      ctx.fillStyle = cssVariable(chosen ? '--burst-chosen-shade' : '--burst-shade');
      ctx.fillRect(left, bbox.top, width, bbox.height);
    }
    ctx.restore();
  }

  /** The lanes of bursts and drops, and the threshold. */
  #lanes(plot) {
    const { ctx, bbox } = plot;
    const dpr = uPlot.pxRatio;
    const x = (ns) => Math.round(plot.valToPos(ns, 'x', true));
    const [from, to] = [bbox.left, bbox.left + bbox.width];
    const bursts = bbox.top - LANES * dpr + 2 * dpr;
    const drops = bursts + (LANE + 3) * dpr;
    const soft = cssVariable('--ink-soft');
    ctx.save();
    ctx.textBaseline = 'middle';
    ctx.font = `${11 * dpr}px ${cssVariable('--font')}`;
    ctx.fillStyle = soft;
    ctx.textAlign = 'right';
    ctx.fillText('bursts', from - 6 * dpr, bursts + (LANE / 2) * dpr);
    ctx.fillText('drops', from - 6 * dpr, drops + (LANE / 2) * dpr);
    ctx.beginPath();
    ctx.rect(from, bursts - dpr, bbox.width, plot.height * dpr);
    ctx.clip();
    this.#tau(plot, ctx, dpr);
    ctx.textAlign = 'center';
    let free = from; // labels are left out where they would touch
    for (const { burst, left, width, chosen } of this.#spans(plot)) {
      ctx.fillStyle = cssVariable(chosen ? '--accent' : '--burst');
      ctx.fillRect(left, bursts, width, LANE * dpr);
      if (chosen) {
        ctx.fillRect(left, bursts, dpr, bbox.top + bbox.height - bursts);
        ctx.fillRect(left + width - dpr, bursts, dpr, bbox.top + bbox.height - bursts);
      }
      const label = String(burst.number);
      const middle = (Math.max(left, from) + Math.min(left + width, to)) / 2;
      const half = ctx.measureText(label).width / 2;
      if (half * 2 + 4 * dpr <= Math.min(left + width, to) - Math.max(left, from) && middle - half >= free) {
        ctx.fillStyle = cssVariable(chosen ? '--on-accent' : '--on-burst');
        ctx.fillText(label, middle, bursts + (LANE / 2 + 0.5) * dpr);
        free = middle + half + 3 * dpr;
      }
    }
    ctx.fillStyle = cssVariable('--bad');
    const source = this.#source;
    let last = -1;
    for (let at = Math.max(0, source.at(this.range[0])); at < source.drops.length && source.edges[at] <= this.range[1]; at += 1) {
      if (!source.drops[at]) continue;
      const left = x(source.edges[at]);
      const width = source.outline ? 3 * dpr : Math.max(x(source.edges[at + 1]) - left, 2 * dpr);
      if (left + width <= last) continue;
      ctx.fillRect(Math.max(left, last), drops + 3 * dpr, left + width - Math.max(left, last), (LANE - 6) * dpr);
      last = left + width;
    }
    ctx.restore();
  }

  /** The threshold above which a wait belongs to a burst. */
  #tau(plot, ctx, dpr) {
    const tau = this.report.setup.tau_ns;
    const { bbox } = plot;
    if (!(tau > 0) || tau > plot.scales.delay.max) return;
    const y = Math.round(plot.valToPos(tau, 'delay', true));
    ctx.strokeStyle = ctx.fillStyle = cssVariable('--ink');
    ctx.lineWidth = dpr;
    ctx.setLineDash([4 * dpr, 4 * dpr]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y + 0.5);
    ctx.lineTo(bbox.left + bbox.width, y + 0.5);
    ctx.stroke();
    ctx.setLineDash([]);
    const text = `tau ${duration(tau)}`;
    const width = ctx.measureText(text).width;
    const right = bbox.left + bbox.width - 6 * dpr;
    const above = y - 9 * dpr > bbox.top + 8 * dpr ? y - 9 * dpr : y + 9 * dpr;
    ctx.fillStyle = cssVariable('--surface');
    ctx.globalAlpha = 0.8;
    ctx.fillRect(right - width - 4 * dpr, above - 7 * dpr, width + 8 * dpr, 14 * dpr);
    ctx.globalAlpha = 1;
    ctx.fillStyle = cssVariable('--ink');
    ctx.textAlign = 'right';
    ctx.fillText(text, right, above);
  }

  // Words around the drawing.

  #describe() {
    const source = this.#source;
    if (!source) return;
    const [from, to] = this.range;
    const all = to - from >= (this.timeline.end - this.timeline.start) * 0.999;
    this.whole.disabled = all;
    const span = all ? 'The whole capture' : `${moment(from, (to - from) / 100, to)} to ${moment(to, (to - from) / 100, to)}`;
    this.caption.textContent = source.outline
      ? `${span}. Depth over time was not kept: each block is a burst, as long and as deep as it was.`
      : `${span}, in steps of ${duration(source.bucket)}: mean depth, longest delay.`;
    this.#read();
  }

  /** Values under the cursor; without one, the extremes of the view. */
  #read() {
    const source = this.#source;
    const plot = this.#plot;
    if (!source || !plot) return;
    const left = plot.cursor.left;
    const at = left >= 0 ? source.at(plot.posToVal(left, 'x')) : -1;
    const parts = [];
    if (at >= 0) {
      parts.push(['at', moment(source.edges[at], source.bucket, this.range[1])]);
      parts.push([source.outline ? 'deepest' : 'mean depth', bytes(source.total[at] ?? 0)]);
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
      const bursts = this.timeline.bursts.filter((burst) => burst.start_ns <= to && burst.start_ns + burst.length_ns >= from).length;
      parts.push(['in view: bursts', count(bursts)], ['longest delay', duration(longest)], ['drops', count(dropped)]);
    }
    this.readout.replaceChildren(...parts.map(([name, value]) => el('span', {}, `${name} `, el('b', {}, value))));
    for (const [flow, cell] of this.#values) {
      const mean = flow === null ? at >= 0 && source.others(at) : at >= 0 && source.flows.find((entry) => entry.flow === flow)?.mean[at];
      cell.textContent = at >= 0 ? bytes(mean ?? 0) : '';
    }
  }

  /** The legend: the flows from the top of the stack down, each a switch. */
  #key_to_colours() {
    const source = this.#source;
    this.#values.clear();
    const entry = (name, slot, flow) => {
      const value = el('span', { class: 'value' });
      this.#values.set(flow, value);
      const toggle = button('', () => {
        if (!this.#hidden.delete(flow)) this.#hidden.add(flow);
        this.refresh();
        this.legend.querySelectorAll('button')[[...this.#values.keys()].indexOf(flow)]?.focus();
      }, { 'aria-pressed': String(!this.#hidden.has(flow)) });
      toggle.append(swatch(slot), name, value);
      return el('li', {}, toggle);
    };
    const entries = source.flows.map(({ flow, slot }) => entry(flowName(flow), slot, flow));
    const others = source.outline || source.total.some((_, at) => source.others(at) > 0);
    if (others) entries.push(entry(source.outline ? 'all flows' : source.flows.length ? 'other flows' : 'all flows', undefined, null));
    entries.push(el('li', {}, el('span', { class: 'key' }, el('span', { class: 'swatch line', 'aria-hidden': 'true' }), 'longest delay (right axis)')));
    this.legend.replaceChildren(...entries);
  }

  // Hands.

  /** A position on the page as a time, and what one pixel is in time. */
  #time(clientX) {
    const box = this.#plot.over.getBoundingClientRect();
    const pixel = (this.range[1] - this.range[0]) / box.width;
    return { share: (clientX - box.left) / box.width, ns: this.range[0] + (clientX - box.left) * pixel, pixel };
  }

  #gestures() {
    const host = this.host;
    let down = null; // where the button went down: a drag is no click
    host.addEventListener('pointerdown', (event) => { down = event.clientX; }, true);
    host.addEventListener('click', (event) => {
      if (down === null || Math.abs(event.clientX - down) > 4) return;
      const { ns, share, pixel } = this.#time(event.clientX);
      const burst = share >= 0 && share <= 1 ? this.timeline.burstAt(ns, pixel * 6) : null;
      if (burst) this.onpick(burst);
    });
    host.addEventListener('mousemove', (event) => {
      const { ns, share, pixel } = this.#time(event.clientX);
      host.classList.toggle('over-burst', share >= 0 && share <= 1 && this.timeline.burstAt(ns, pixel * 6) !== null);
    });
    host.addEventListener('wheel', (event) => {
      // The plain wheel scrolls the page; a pinch on a touchpad comes as Ctrl and wheel.
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), this.#time(event.clientX).share);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !this.whole.disabled) {
        event.preventDefault();
        this.pan(event.deltaX / host.clientWidth);
      }
    }, { passive: false });
    this.#touches(host);
  }

  /** One finger moves the view sideways, two stretch it; up and down stay the page's. */
  #touches(host) {
    let before = null;
    const read = (event) => {
      const fingers = [...event.touches].map((touch) => touch.clientX);
      return fingers.length ? { middle: (Math.min(...fingers) + Math.max(...fingers)) / 2, apart: Math.max(...fingers) - Math.min(...fingers), fingers: fingers.length } : null;
    };
    host.addEventListener('touchstart', (event) => { before = read(event); }, { passive: true });
    host.addEventListener('touchmove', (event) => {
      const now = read(event);
      if (!before || now.fingers !== before.fingers) { before = now; return; }
      const stretch = now.fingers > 1 ? Math.max(before.apart, 10) / Math.max(now.apart, 10) : 1;
      if (now.fingers > 1 && event.cancelable) event.preventDefault();
      if (stretch !== 1) this.zoom(stretch, this.#time(now.middle).share);
      if (!this.whole.disabled) this.pan((before.middle - now.middle) / host.clientWidth);
      before = now;
    }, { passive: false });
    host.addEventListener('touchend', (event) => { before = read(event); }, { passive: true });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2), 0: () => this.reset(),
      ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25), Home: () => this.reset(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
