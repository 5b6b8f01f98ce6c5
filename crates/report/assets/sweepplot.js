// A plot of a sweep: a figure against a parameter, or against another figure. A point is a combination of values,
// whiskers are intervals over seeds; lines or panels separate the combinations.

// The pointer selects a point within this many pixels.
const REACH = 32;

// Most points that have whiskers on both sides.
const WHISKERS = 80;

const SCALES = [
  ['auto', 'automatic'],
  ['zero', 'from 0'],
  ['close', 'close up'],
  ['log', 'logarithmic'],
];

class SweepPlot {
  #plots = [];
  #hidden = new Set();
  #width = 0;
  #pointed = null;

  /** `across` and `up` are axes to choose from, and the first choice: `{ axes, first }`. */
  constructor(sweep, parameters, { id, title, across, up }) {
    Object.assign(this, { sweep, id, how: 'auto' });
    this.offered = { across: across.axes, up: up.axes };
    this.across = across.axes[across.first];
    this.up = up.axes[up.first];
    this.scatter = Boolean(this.across.figure);
    this.roles = new Roles(parameters, sweep.rows[0], this.scatter);
    this.roles.place(this.scatter ? null : this.across);
    const coarse = matchMedia('(pointer: coarse)').matches;
    this.host = el('div', {
      class: 'sweep-plot plot still',
      tabindex: '0',
      role: 'application',
      'aria-roledescription': 'plot',
      'aria-describedby': `${id}-keys`,
    });
    this.caption = el('p', { class: 'caption' });
    this.legend = el('div', {});
    this.others = el('div', { class: 'choices' });
    this.tip = el('div', { class: 'tip', 'aria-hidden': 'true', hidden: true });
    const ways = this.scatter
      ? '← → go across, ↑ ↓ from colour to colour'
      : '← → go along a line, ↑ ↓ from line to line';
    const keys = coarse
      ? 'Tap a point to see its combination.'
      : `Point at a point to see its combination; ${ways}.`;
    this.section = el(
      'section',
      { id, class: 'sweep-section', 'aria-labelledby': `${id}-title` },
      el('h2', { id: `${id}-title` }, title),
      this.#axes(),
      this.others,
      this.caption,
      this.host,
      this.legend,
      el('p', { class: 'hint keys', id: `${id}-keys` }, keys),
    );
    this.#offer();
    this.#listen();
    new ResizeObserver(() => requestAnimationFrame(() => this.#resize())).observe(this.host);
  }

  // The choices.

  #select(name, label, entries, chosen, onchange) {
    const options = entries.map(([value, text]) => el('option', { value, selected: value === chosen }, text));
    const select = el('select', { class: 'quiet', 'data-choice': name }, options);
    select.addEventListener('change', () => {
      onchange(select.value);
      announce(`${label}: ${select.selectedOptions[0].textContent}.`);
    });
    return el('label', {}, el('span', {}, label), ' ', select);
  }

  #axes() {
    const axis = (name, label) => {
      const axes = this.offered[name];
      const entries = axes.map(({ key, title }) => [key, title]);
      return this.#select(`${this.id}-${name}`, label, entries, this[name].key, (key) => {
        this[name] = axes.find((one) => one.key === key);
        if (name === 'across' && !this.scatter) {
          this.roles.place(this.across);
          this.#hidden.clear();
          this.#offer();
        }
        this.refresh();
      });
    };
    const scale = this.#select(`${this.id}-scale`, this.scatter ? 'Axes' : 'Axis', SCALES, this.how, (how) => {
      this.how = how;
      this.refresh();
    });
    const [up, against] = this.scatter ? ['Upwards', 'Across'] : ['Figure', 'Against'];
    const single = !this.scatter && this.offered.across.length === 1;
    return el('div', { class: 'choices' }, axis('up', up), single ? null : axis('across', against), scale);
  }

  /** The possible roles of the parameters that are on no axis. */
  #offer() {
    const selects = this.roles.others.map((axis) => {
      const entries = this.roles.choices(axis);
      return this.#select(`${this.id}-${axis.key}`, axis.title, entries, this.roles.role(axis), (role) => {
        this.roles.choose(axis, role);
        this.#hidden.clear();
        this.refresh();
      });
    });
    this.others.replaceChildren(...selects);
    this.others.hidden = selects.length === 0;
  }

  // Drawing.

  /** Redraws, for instance after a change of colours or of what is drawn. */
  refresh(width) {
    if (this.host.clientWidth > 0 || width) this.#build(width);
  }

  #resize() {
    if (this.host.clientWidth !== this.#width) this.refresh();
  }

  /** The rows as panels of lines of points, each with its position on both axes. */
  #arrange() {
    const fixed = this.roles.fixed();
    const rows = this.roles.rows(this.sweep.rows);
    const panels = this.roles.parted(rows, 'panels');
    const lines = this.roles.parted(rows, 'lines');
    const marked = this.scatter ? lines : lines.slice(0, MARKED);
    const drawn = new Set(marked.map((line) => line.number));
    this.missing = 0;
    // The chosen combinations that have no cell.
    const size = (axis) => (fixed.includes(axis) ? 1 : axis.values.length);
    this.absent = Math.max(0, this.roles.axes.reduce((all, axis) => all * size(axis), 1) - rows.length);
    this.panels = panels.slice(0, PANELS).map(({ rows: own }) => ({
      row: own[0],
      lines: this.roles
        .parted(own, 'lines')
        .filter((line) => drawn.has(line.number))
        .map((line) => ({ ...line, look: lookOf(line.number), points: this.#points(line.rows) })),
    }));
    this.lines = marked;
    this.more = { panels: Math.max(0, panels.length - PANELS), lines: lines.length - marked.length };
  }

  #points(rows) {
    const points = [];
    for (const row of rows) {
      const [across, up] = [this.across.of(row), this.up.of(row)];
      if (across === null || up === null) this.missing += 1;
      else points.push({ row, across, up, gap: false });
    }
    points.sort((a, b) => a.across.at - b.across.at || a.up.at - b.up.at);
    if (this.scatter) return points;
    // A line has a gap where a value has no point.
    points.forEach((point, n) => {
      point.gap = n > 0 && this.across.rank(point.across.at) > this.across.rank(points[n - 1].across.at) + 1;
    });
    return points;
  }

  #build(width) {
    for (const plot of this.#plots) plot.destroy();
    this.#point(null);
    this.#width = this.host.clientWidth;
    this.#arrange();
    const seen = this.panels.flatMap((panel) => panel.lines.filter((line) => !this.#hidden.has(line.number)));
    const points = seen.flatMap((line) => line.points);
    this.whiskers = !this.scatter || points.length <= WHISKERS;
    this.scales = ['across', 'up'].map((name) => {
      const places = points.map((point) => point[name]);
      return scaleOf(this[name], places, this.how);
    });
    const several = this.panels.length > 1;
    const frames = this.panels.map((panel) => {
      const values = this.roles
        .of('panels')
        .flatMap((axis) => [el('small', {}, axis.title), ` ${axis.words(panel.row)} `]);
      return el('div', { class: 'panel' }, several ? el('h3', {}, values) : null);
    });
    const grid = el('div', { class: several ? `multiples${frames.length === 4 ? ' four' : ''}` : null }, frames);
    this.host.replaceChildren(
      el('p', { class: 'axis-title up', title: this.up.about }, this.up.title),
      grid,
      el('p', { class: 'axis-title across', title: this.across.about }, this.across.title),
      this.tip,
    );
    const size = this.#size(several, frames[0]?.clientWidth ?? 0, width);
    this.labels = this.across.names ? nameTicks(this.across.values, size) : null;
    size.height += Math.max(0, (this.labels?.size ?? 0) - 28);
    this.#plots = this.panels.map((panel, n) => this.#plot(panel, frames[n], size));
    this.#describe();
    this.#keys();
  }

  #size(several, inside, paper) {
    const width = Math.max(paper ? (several ? paper / 2 - 12 : paper) : inside, 200);
    return { width, height: several ? 230 : Math.round(Math.min(Math.max(width * 0.4, 260), 400)) };
  }

  #plot(panel, frame, size) {
    const narrow = size.width < 560;
    const [axis, room] = axisLook(narrow);
    const [across, up] = this.scales;
    const scale = ({ log, min, max }) => ({ time: false, distr: log ? 3 : 1, range: () => [min, max] });
    const below = this.labels ?? numberTicks(this.across, across, narrow);
    const options = {
      ...size,
      padding: [8, this.across.names ? 8 : 24, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: { x: scale(across), y: scale(up) },
      axes: [
        { ...axis, size: 28, space: narrow ? 62 : 80, ...below },
        { ...axis, scale: 'y', size: room(narrow ? 44 : 56), space: 34, ...numberTicks(this.up, up, false) },
      ],
      series: [{}, { scale: 'y', paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => this.#draw(plot, panel)] },
    };
    const ends = [across.min, across.max];
    // The library draws only the axes.
    return new uPlot(options, [ends, [null, null]], frame);
  }

  #draw(plot, panel) {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    const [across, up] = this.scales;
    // A log axis has no 0: a point of 0 is at its end, and an interval continues beyond it.
    const pixels = (value, key, { log, min }, none = min) => plot.valToPos(log && value <= 0 ? none : value, key, true);
    ctx.save();
    if (this.across.names) this.#between(plot, ratio);
    ctx.beginPath();
    ctx.rect(bbox.left - 6 * ratio, bbox.top - 6 * ratio, bbox.width + 12 * ratio, bbox.height + 12 * ratio);
    ctx.clip();
    const shown = panel.lines.filter((line) => !this.#hidden.has(line.number));
    const all = this.lines.filter((line) => !this.#hidden.has(line.number)).map((line) => line.number);
    const apart = this.#apart(plot, all.length) * ratio;
    const style = { whiskers: this.whiskers, ratio, paper: cssVariable('--surface'), box: bbox };
    // What has no colour of its own is in the background.
    for (const line of [...shown].reverse()) {
      const shift = (all.indexOf(line.number) - (all.length - 1) / 2) * apart;
      for (const point of line.points) {
        point.x = pixels(point.across.at, 'x', across) + shift;
        point.y = pixels(point.up.at, 'y', up);
        point.off = [
          [point.across.at, across],
          [point.up.at, up],
        ].some(([at, { log }]) => log && at <= 0);
        point.wide = [point.up.low, point.up.high].map((value) => pixels(value, 'y', up, up.min / 2));
        point.long = [point.across.low, point.across.high].map((value) => pixels(value, 'x', across, across.min / 2));
      }
      const joined = !this.scatter && !this.across.names;
      const points = line.points.map(({ x, y, gap, off, wide, long }) => {
        return { x, y, gap, off, up: wide, across: this.scatter ? long : null };
      });
      drawMarks(ctx, points, { ...style, look: line.look, joined });
    }
    ctx.restore();
  }

  /** The distance of points at the same place, so that their whiskers can be distinguished. */
  #apart(plot, lines) {
    if (this.scatter || lines < 2) return 0;
    const width = plot.bbox.width / uPlot.pxRatio;
    const places = [...new Set(this.across.numbers)].map((value) => plot.valToPos(value, 'x')).sort((a, b) => a - b);
    const gaps = places.slice(1).map((place, n) => place - places[n]);
    const least = Math.min(width, leastOf(gaps));
    return this.across.names ? Math.min((least * 0.7) / lines, 28) : Math.min((least * 0.3) / lines, 4);
  }

  /** Lines between names. */
  #between(plot, ratio) {
    const { ctx, bbox } = plot;
    ctx.strokeStyle = cssVariable('--rule');
    ctx.lineWidth = ratio;
    ctx.beginPath();
    for (let n = 0.5; n < this.across.values.length - 1; n += 1) {
      const x = Math.round(plot.valToPos(n, 'x', true));
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
    }
    ctx.stroke();
  }

  // Text around the drawing.

  #describe() {
    this.caption.textContent = captionOf(this);
    const points = sum(this.panels.flatMap((panel) => panel.lines.map((line) => line.points.length)));
    const panels = this.panels.length > 1 ? ` in ${plural(this.panels.length, 'panel')}` : '';
    const label = `${this.caption.textContent} ${plural(points, 'point')}${panels}. The table below has all of it.`;
    this.host.setAttribute('aria-label', label);
  }

  /** The legend: a switch for each line. */
  #keys() {
    const parted = this.roles.of('lines');
    if (parted.length === 0 || this.lines.length === 0) return this.legend.replaceChildren();
    const marked = this.lines.slice(0, MARKED);
    const entries = marked.map((line) => {
      const toggle = button('', () => this.#toggle(line.number), {
        'aria-pressed': String(!this.#hidden.has(line.number)),
        'data-line': line.number,
      });
      toggle.append(markOf(lookOf(line.number)), el('span', { class: 'name' }, line.name));
      return el('li', {}, toggle);
    });
    const rest = this.lines.length - marked.length;
    if (rest > 0)
      entries.push(el('li', {}, el('span', { class: 'key' }, markOf(lookOf(MARKED)), `${count(rest)} more`)));
    const paths = parted.map((axis) => axis.title).join(', ');
    const title = el('li', { class: 'legend-title', 'aria-hidden': 'true' }, paths);
    this.legend.replaceChildren(
      el(
        'ul',
        {
          class: 'legend',
          'aria-label': `${this.scatter ? 'Colours' : 'Lines'} by ${paths}; press one to hide or show it`,
        },
        title,
        entries,
      ),
    );
  }

  #toggle(number) {
    if (!this.#hidden.delete(number)) this.#hidden.add(number);
    this.refresh();
    this.legend.querySelector(`[data-line="${number}"]`)?.focus();
  }

  // Which point is selected.

  #listen() {
    const { host } = this;
    const near = (event) => this.#point(this.#under(event.clientX, event.clientY));
    host.addEventListener('pointermove', near);
    host.addEventListener('pointerdown', near);
    host.addEventListener('pointerleave', (event) => {
      if (event.pointerType === 'mouse') this.#point(null);
    });
    host.addEventListener('focus', () => {
      if (host.matches(':focus-visible') && !this.#pointed) this.#go(0, 0);
    });
    host.addEventListener('blur', () => this.#point(null));
    const steps = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      Home: [0, -Infinity],
      End: [0, Infinity],
    };
    host.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'Escape' && this.#pointed) this.#point(null);
      if (!steps[event.key]) return;
      event.preventDefault();
      this.#go(...steps[event.key]);
    });
  }

  /** All drawn points, line by line, panel by panel. */
  #drawn() {
    return this.panels.flatMap((panel, at) =>
      panel.lines
        .filter((line) => !this.#hidden.has(line.number) && line.points.length > 0)
        .map((line) => line.points.map((point) => ({ point, line, panel: at }))),
    );
  }

  /** Moves the selection by lines, or by points of a line. */
  #go(lines, points) {
    const drawn = this.#drawn();
    if (drawn.length === 0) return;
    const same = (one) => one.point === this.#pointed?.point;
    const from = drawn.findIndex((line) => line.some(same));
    let next = drawn[0][0];
    if (from >= 0) {
      const line = drawn[Math.min(Math.max(from + lines, 0), drawn.length - 1)];
      const at = drawn[from].findIndex(same);
      const { x } = this.#pointed.point;
      const nearest = (a, b) => Math.abs(a.point.x - x) - Math.abs(b.point.x - x);
      next = lines ? [...line].sort(nearest)[0] : line[Math.min(Math.max(at + points, 0), line.length - 1)];
    }
    this.#point(next);
    announce(this.#words(next).flat().join(', '));
  }

  #under(clientX, clientY) {
    let [best, found] = [REACH ** 2, null];
    const boxes = this.#plots.map((plot) => plot.ctx.canvas.getBoundingClientRect());
    for (const one of this.#drawn().flat()) {
      const [x, y] = this.#place(one, boxes[one.panel]);
      const far = (x - clientX) ** 2 + (y - clientY) ** 2;
      if (far < best) [best, found] = [far, one];
    }
    return found;
  }

  /** The position of a point in the window. */
  #place({ point, panel }, box = this.#plots[panel].ctx.canvas.getBoundingClientRect()) {
    return [box.left + point.x / uPlot.pxRatio, box.top + point.y / uPlot.pxRatio];
  }

  /** A point in words: its combination, and its figures. */
  #words({ point: { row } }) {
    const values = this.sweep.parameters.map(({ path }, at) => [path, row.values[at]]);
    const figures = [this.up, this.across].filter((axis) => axis.figure).map((axis) => [axis.title, axis.words(row)]);
    const few = row.cells < this.sweep.seeds ? [['seeds', `${count(row.cells)} of ${count(this.sweep.seeds)}`]] : [];
    return [...figures, ...values, ...few];
  }

  /** Shows the selected point; null for none. */
  #point(one) {
    if (one?.point === this.#pointed?.point) return;
    this.#pointed = one;
    this.tip.hidden = one === null;
    this.host.classList.toggle('over-point', one !== null);
    if (one === null) return;
    const pairs = this.#words(one).map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)));
    const ring = el('span', { class: 'ring' });
    this.tip.replaceChildren(el('dl', {}, pairs), ring);
    const [x, y] = this.#place(one);
    const box = this.host.getBoundingClientRect();
    const [left, top] = [x - box.left, y - box.top];
    const { offsetWidth: wide, offsetHeight: high } = this.tip.firstChild;
    const right = left + 14 + wide <= box.width;
    const beside = right ? 14 : Math.max(-14 - wide, -left);
    // Beside the point; above or below it if neither side has room.
    const above = right || left - 14 - wide >= 0 ? -high / 2 : top - high - 14 >= -40 ? -high - 14 : 14;
    this.tip.style.setProperty('left', `${left}px`);
    this.tip.style.setProperty('top', `${top}px`);
    this.tip.firstChild.style.setProperty('left', `${beside}px`);
    this.tip.firstChild.style.setProperty('top', `${above}px`);
  }
}
