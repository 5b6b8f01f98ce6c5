// The bursts, one row each.

// Bursts that are shown without being asked for; on a phone they are not in a frame of their own.
const FIRST_ROWS = matchMedia('(max-width: 680px)').matches ? 20 : 200;

/** The bursts, sortable by every column; a row chooses its burst. */
class BurstTable {
  #sort = { key: 'number', up: true };
  #rows = new Map();
  #limit = FIRST_ROWS;
  #chosen = null;

  constructor(bursts, onpick) {
    this.bursts = bursts;
    this.onpick = onpick;
    const top = (burst) => burst.culprits[0]?.flows[0];
    this.columns = [
      { key: 'number', title: '#', value: (burst) => burst.number, up: true },
      {
        key: 'start',
        title: 'Start',
        value: (burst) => burst.start_ns,
        up: true,
        show: (burst) => moment(burst.start_ns, 1e6),
      },
      {
        key: 'length',
        title: 'Length',
        value: (burst) => burst.length_ns,
        show: (burst) => duration(burst.length_ns, true),
      },
      {
        key: 'delay',
        title: 'Longest delay',
        label: 'delay',
        value: (burst) => burst.peak_delay_ns,
        show: (burst) => duration(burst.peak_delay_ns, true),
        bar: true,
      },
      {
        key: 'depth',
        title: 'Deepest queue',
        label: 'depth',
        value: (burst) => burst.peak_depth_bytes,
        show: (burst) => bytes(burst.peak_depth_bytes, true),
      },
      {
        key: 'hit',
        title: 'Packets hit',
        value: (burst) => burst.packets_hit,
        show: (burst) => count(burst.packets_hit),
      },
      { key: 'drops', title: 'Drops', value: (burst) => burst.drops, show: (burst) => count(burst.drops) },
      { key: 'culprit', title: 'Top culprit', value: (burst) => top(burst)?.share ?? 0, who: top },
    ];
    this.longest = Math.max(1, ...bursts.map((burst) => burst.peak_delay_ns));
    this.heads = new Map(
      this.columns.map((column) => [
        column.key,
        th(
          button(column.title, () => this.#by(column)),
          { class: column.who ? null : 'figure' },
        ),
      ]),
    );
    this.table = table('Bursts', [...this.heads.values()], [], { class: 'bursts' });
    this.more = button(
      '',
      () => {
        this.#limit = Infinity;
        this.#fill();
      },
      { class: 'quiet' },
    );
    this.element = el(
      'div',
      {},
      el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of bursts' }, this.table),
      this.more,
    );
    this.#fill();
  }

  /** Marks a burst's row. */
  choose(burst) {
    this.#chosen = burst;
    for (const [entry, row] of this.#rows) row.setAttribute('aria-current', String(entry === burst));
  }

  /** All rows, as for printing. */
  showAll() {
    this.#limit = Infinity;
    this.#fill();
  }

  #by(column) {
    const same = this.#sort.key === column.key;
    this.#sort = { key: column.key, up: same ? !this.#sort.up : Boolean(column.up) };
    this.#fill();
  }

  #fill() {
    const column = this.columns.find((entry) => entry.key === this.#sort.key);
    const sign = this.#sort.up ? 1 : -1;
    const sorted = [...this.bursts].sort((a, b) => sign * (column.value(a) - column.value(b)) || a.number - b.number);
    for (const [key, head] of this.heads) {
      head.setAttribute('aria-sort', key !== column.key ? 'none' : this.#sort.up ? 'ascending' : 'descending');
    }
    this.table.tBodies[0].replaceChildren(...sorted.slice(0, this.#limit).map((burst) => this.#row(burst)));
    this.more.hidden = sorted.length <= this.#limit;
    this.more.textContent = `Show all ${count(sorted.length)} bursts`;
  }

  #row(burst) {
    if (!this.#rows.has(burst)) {
      const cells = this.columns.map((column) => {
        if (column.key === 'number') {
          return td(
            '',
            el(
              'a',
              { href: `#burst-${burst.number}`, 'aria-label': `Burst ${burst.number}: show its culprits` },
              String(burst.number),
            ),
            { class: 'number' },
          );
        }
        if (column.who) {
          const who = column.who(burst);
          return td('', who ? [flowName(who.flow), ' ', el('b', {}, percent(who.share))] : DASH, { class: 'who' });
        }
        const cell = td(column.label ?? column.title.toLowerCase(), column.show(burst), {
          class: column.bar ? 'figure barred' : 'figure',
        });
        if (column.bar) cell.style.setProperty('--part', (column.value(burst) / this.longest).toFixed(3));
        return cell;
      });
      const row = el(
        'tr',
        {
          role: 'row',
          'aria-current': String(burst === this.#chosen),
          onclick: (event) => {
            if (!event.target.closest('a') && !String(getSelection())) this.onpick(burst);
          },
        },
        cells,
      );
      this.#rows.set(burst, row);
    }
    return this.#rows.get(burst);
  }
}
