// The data of a simulation's charts: the samples as rows of numbers, and the line of each flow.

// Flows with their own line. The ninth to the twelfth reuse the first colours, dashed.
const LINES = HUES + 4;

/**
 * The lines of the drawn flows, by number: the flows that were present in most samples, the earliest first. A flow has
 * the same colour as in the chart of the queue.
 */
function flowStyles(sim, colours) {
  const there = new Map();
  for (const { flows } of sim.samples) for (const { number } of flows) there.set(number, (there.get(number) ?? 0) + 1);
  const longest = [...there].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, LINES);
  const known = new Map(sim.flows.map((flow) => [flow.number, flow]));
  const drawn = longest.map(([number]) => number).sort((a, b) => a - b);
  const name = (number) => known.get(number)?.name ?? `flow ${number}`;
  const slots = colours.assign(drawn.map(name));
  let dashed = 0;
  return new Map(
    drawn.map((number) => {
      const slot = slots.get(name(number));
      const style = slot === undefined ? { slot: dashed++ % HUES, dashed: true } : { slot, dashed: false };
      return [number, { name: name(number), group: known.get(number)?.group, ...style }];
    }),
  );
}

/** A square in a line's colour, broken if the line is. */
function swatchOf({ slot, dashed }) {
  const square = swatch(slot);
  if (dashed) square.classList.add('broken');
  return square;
}

/** A square in the colour of a line that does not belong to a flow. */
const colourOf = ({ colour }) =>
  el('span', { class: 'swatch', 'aria-hidden': 'true', style: { background: `var(${colour})` } });

/** The samples of a simulation, in columns. */
class Course {
  constructor(sim) {
    this.sim = sim;
    this.at = sim.samples.map((sample) => sample.at_ns);
    // Each sample counts from the one before, or from the end of the warm-up, where counting restarted.
    this.length = this.at.map((at, n) => {
      const before = this.at[n - 1] ?? 0;
      return before < sim.warmup_ns && sim.warmup_ns <= at ? at - sim.warmup_ns : at - before;
    });
    this.step = this.at.reduce((least, at, n) => (n > 0 ? Math.min(least, at - this.at[n - 1]) : least), Infinity);
    this.sampled = new Set(sim.samples.flatMap((sample) => sample.flows.map((flow) => flow.number)));
  }

  /** For a link: how long it takes to send the backlog, what was sent as a share of the rate, and drops and marks per second. */
  link(at) {
    const { rate_bps: bits, overhead_bytes: overhead } = this.sim.links[at];
    const state = this.sim.samples.map((sample) => sample.links[at]);
    const each = (of) => state.map((link, n) => (this.length[n] > 0 ? (of(link) * 1e9) / this.length[n] : null));
    return {
      delay: state.map((link) => ((link.backlog_bytes + link.backlog_packets * overhead) * 8e9) / bits),
      busy: each((link) => ((link.sent_bytes + link.sent_packets * overhead) * 8) / bits),
      drops: each((link) => link.drops),
      marks: each((link) => link.marks),
    };
  }

  /** For the flows `numbers`: `of` of each of their samples; null where a flow is absent. */
  flows(numbers, of) {
    const rows = new Map(numbers.map((number) => [number, new Array(this.at.length).fill(null)]));
    this.sim.samples.forEach((sample, n) => {
      for (const flow of sample.flows) {
        const row = rows.get(flow.number);
        if (row) row[n] = of(flow, n);
      }
    });
    return [...rows.values()];
  }

  /** Bits per second that reached a flow's receiver since the sample before. The warm-up does not affect it. */
  goodput(flow, n) {
    const length = this.at[n] - (this.at[n - 1] ?? 0);
    return length > 0 ? (flow.delivered_bytes * 8e9) / length : null;
  }

  /** Total goodput of the sampled flows of each group. */
  groups() {
    const group = new Map(this.sim.flows.map((flow) => [flow.number, flow.group]));
    const rows = new Map();
    this.sim.samples.forEach((sample, n) => {
      for (const flow of sample.flows) {
        const name = group.get(flow.number);
        if (name === undefined) continue;
        if (!rows.has(name)) rows.set(name, new Array(this.at.length).fill(0));
        rows.get(name)[n] += this.goodput(flow, n) ?? 0;
      }
    });
    // In the order of the groups' table.
    return new Map(this.sim.groups.filter(({ name }) => rows.has(name)).map(({ name }) => [name, rows.get(name)]));
  }

  /** The first sample at or after `ns`. */
  from(ns) {
    let [low, high] = [0, this.at.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at[middle] < ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
