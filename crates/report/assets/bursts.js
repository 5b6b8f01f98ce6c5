// The bursts, one row each.

/** The bursts, sortable by every column. A click on a row chooses its burst. */
class BurstTable {
  #chosen = null;
  #table;

  constructor(bursts, onpick) {
    this.#table = new SortedTable('Bursts', bursts, burstColumns(bursts), {
      kind: 'bursts',
      by: 'number',
      limit: FIRST_ROWS,
      all: plural(bursts.length, 'burst'),
      dress: (burst) => ({
        'aria-current': String(burst === this.#chosen),
        onclick: (event) => {
          if (!event.target.closest('a') && !String(getSelection())) onpick(burst);
        },
      }),
    });
    this.element = this.#table.element;
  }

  /** Highlights a burst's row. */
  choose(burst) {
    this.#chosen = burst;
    for (const [entry, row] of this.#table.rows) row.setAttribute('aria-current', String(entry === burst));
  }

  /** Shows all rows, as for printing. */
  showAll() {
    this.#table.showAll();
  }
}

function burstColumns(bursts) {
  const top = (burst) => burst.culprits[0]?.flows[0];
  const longest = Math.max(1, ...bursts.map((burst) => burst.peak_delay_ns));
  return [
    { key: 'number', title: '#', value: (burst) => burst.number, up: true, cell: burstNumber },
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
      value: (burst) => burst.peak_delay_ns,
      figure: true,
      cell: (burst) =>
        td('delay', duration(burst.peak_delay_ns, true), {
          class: 'figure barred',
          style: { '--part': (burst.peak_delay_ns / longest).toFixed(3) },
        }),
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
      value: (burst) => burst.packets_over_tau,
      show: (burst) => count(burst.packets_over_tau),
    },
    { key: 'drops', title: 'Drops', value: (burst) => burst.drops, show: (burst) => count(burst.drops) },
    {
      key: 'culprit',
      title: 'Top culprit',
      value: (burst) => top(burst)?.share ?? 0,
      cell: (burst) => {
        const who = top(burst);
        return td('', who ? [flowName(who.flow), ' ', el('b', {}, percent(who.share))] : DASH, { class: 'who' });
      },
    },
  ];
}

function burstNumber(burst) {
  const link = { href: `#burst-${burst.number}`, 'aria-label': `Burst ${burst.number}: show its culprits` };
  return td('', el('a', link, String(burst.number)), { class: 'number' });
}
