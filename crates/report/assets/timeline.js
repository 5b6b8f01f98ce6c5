// Queue depth over time for the chart: the series that covers a range best, and its layers stacked.

/** One series that is ready to draw. `edges` has one entry more than there are buckets. */
class Source {
  constructor(series, colours) {
    const buckets = series.mean_bytes.length;
    this.start = series.start_ns;
    this.bucket = series.bucket_ns;
    this.end = series.start_ns + buckets * series.bucket_ns;
    this.edges = Float64Array.from({ length: buckets + 1 }, (_, at) => series.start_ns + at * series.bucket_ns);
    this.total = series.mean_bytes;
    this.delay = held(series);
    this.drops = series.drops;
    const slots = colours.assign(series.flows.map((flow) => flow.flow));
    // Flows without a colour of their own are among the others.
    this.flows = series.flows
      .filter((flow) => slots.has(flow.flow))
      .map((flow) => ({ flow: flow.flow, slot: slots.get(flow.flow), mean: flow.mean_bytes }));
    this.outline = false;
    this.deepest = false; // whether a step shows its deepest moment, not its mean
  }

  /** Bursts alone, if the depth over time was not kept: each is a block as long and as deep as the burst was. */
  static outline(bursts, end) {
    const source = Object.create(Source.prototype);
    const [edges, total, delay, drops] = [[0], [], [], []];
    const push = (until, depth, longest, dropped) => {
      if (until <= edges.at(-1)) return;
      edges.push(until);
      total.push(depth);
      delay.push(longest);
      drops.push(dropped);
    };
    for (const burst of bursts) {
      push(burst.start_ns, 0, 0, 0);
      push(burst.start_ns + Math.max(burst.length_ns, 1), burst.peak_depth_bytes, burst.peak_delay_ns, burst.drops);
    }
    push(end, 0, 0, 0);
    return Object.assign(source, {
      start: 0,
      end,
      bucket: end / 1e4,
      edges,
      total,
      delay,
      drops,
      flows: [],
      outline: true,
    });
  }

  /** The series with `factor` buckets merged into one: means of the depth, the longest delays, sums of the drops. */
  coarser(factor) {
    if (factor <= 1) return this;
    const buckets = Math.ceil(this.total.length / factor);
    const fold = (values, step, finish = (value) => value) =>
      Array.from({ length: buckets }, (_, at) => {
        const part = values.slice(at * factor, (at + 1) * factor);
        return finish(
          part.reduce((a, b) => step(a, b ?? 0), 0),
          part.length,
        );
      });
    const means = (values) =>
      fold(
        values,
        (a, b) => a + b,
        (total, parts) => total / parts,
      );
    return Object.assign(Object.create(Source.prototype), this, {
      bucket: this.bucket * factor,
      edges: Float64Array.from(
        { length: buckets + 1 },
        (_, at) => this.edges[Math.min(at * factor, this.edges.length - 1)],
      ),
      total: means(this.total),
      delay: fold(this.delay, Math.max),
      drops: fold(this.drops, (a, b) => a + b),
      flows: this.flows.map((flow) => ({ ...flow, mean: means(flow.mean) })),
    });
  }

  /**
   * In steps much longer than the delays, a mean hides bursts. Then each step is as high as its queue was at its deepest,
   * and its flows keep their shares.
   */
  lifted(rate) {
    if (rate === null || this.bucket < 2 * this.delay.reduce((a, b) => Math.max(a, b ?? 0), 0)) return this;
    const lifts = this.total.map((mean, at) =>
      mean > 0 ? Math.max(1, ((this.delay[at] ?? 0) * rate) / 8e9 / mean) : 1,
    );
    const lift = (values) => values.map((value, at) => (value ?? 0) * lifts[at]);
    return Object.assign(Object.create(Source.prototype), this, {
      deepest: true,
      total: lift(this.total),
      flows: this.flows.map((flow) => ({ ...flow, mean: lift(flow.mean) })),
    });
  }

  /** The bucket that contains `ns`, or -1. */
  at(ns) {
    if (!(ns >= this.edges[0] && ns < this.end)) return -1;
    let [low, high] = [0, this.edges.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.edges[middle] <= ns) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The part of a bucket that the flows of this source do not account for. */
  others(at) {
    let rest = this.total[at] ?? 0;
    for (const flow of this.flows) rest -= flow.mean[at] ?? 0;
    // A rounding remainder is not a flow.
    return rest > (this.total[at] ?? 0) * 1e-3 ? rest : 0;
  }

  /**
   * The layers from the top of the stack down. Each is the sum of itself and all below, so drawing them in this order,
   * filled to the ground, shows each flow's part. `hidden` holds the names left out (null: the others).
   */
  layers(hidden) {
    const buckets = this.total.length;
    const below = new Float64Array(buckets);
    const layers = [];
    const push = (slot, part) => {
      const top = new Float64Array(buckets + 1);
      for (let at = 0; at < buckets; at += 1) top[at] = below[at] += part(at);
      if (buckets > 0) top[buckets] = top[buckets - 1];
      layers.unshift({ slot, top });
    };
    for (const flow of this.flows) if (!hidden.has(flow.flow)) push(flow.slot, (at) => flow.mean[at] ?? 0);
    if (!hidden.has(null)) push(undefined, (at) => this.others(at));
    return layers;
  }
}

/** The longest delay of the packets that arrived in each step; if none arrived while others waited, that of the step before. */
function held({ peak_delay_ns: delays, mean_bytes: depths }) {
  let last = 0;
  return delays.map((delay, at) => (last = delay === 0 && depths[at] > 0 ? last : delay));
}

/** All series of a report. */
class Timeline {
  constructor(report, colours) {
    const lastBurst = report.bursts.at(-1);
    const ends = [report.totals.duration_ns, lastBurst ? lastBurst.start_ns + lastBurst.length_ns : 0];
    const series = report.series?.mean_bytes.length > 0 ? report.series : null;
    if (series) ends.push(series.start_ns + series.mean_bytes.length * series.bucket_ns);
    this.start = Math.min(0, series?.start_ns ?? 0);
    this.end = Math.max(...ends, 1);
    this.bursts = report.bursts;
    const { setup, totals: all } = report;
    // Without the link's overhead.
    const onLink = 1 + (setup.overhead_bytes * all.departed_packets) / (all.departed_bytes || 1);
    this.rate = setup.rate_bps && setup.rate_bps / onLink;
    this.colours = colours;
    this.whole = series ? new Source(series, colours) : Source.outline(report.bursts, this.end);
    this.fine = new Map(); // number of a burst to its own series, created when first needed
  }

  /** The finer series of a burst, if it has one. */
  ofBurst(burst) {
    if (!(burst.series?.mean_bytes.length > 0)) return null;
    if (!this.fine.has(burst.number)) this.fine.set(burst.number, new Source(burst.series, this.colours));
    return this.fine.get(burst.number);
  }

  /** The series for a range on a drawing with room for `buckets`: the best one, not finer than visible. */
  forRoom(from, to, buckets) {
    const best = this.best(from, to);
    if (best.outline) return best;
    const wanted = (to - from) / best.bucket / buckets;
    // 1, 2, 3, 4, 6, 8, 12, 16, …: few, so that a moved view mostly keeps its steps.
    let factor = 2 ** Math.max(0, Math.ceil(Math.log2(wanted)));
    if (factor > 2 && factor * 0.75 >= wanted) factor *= 0.75;
    if (!best.cache) best.cache = new Map();
    if (!best.cache.has(factor)) best.cache.set(factor, best.coarser(factor).lifted(this.rate));
    return best.cache.get(factor);
  }

  /** The series that shows a range best: the finest one that covers it. */
  best(from, to) {
    const slack = (to - from) * 0.02;
    let best = this.whole;
    for (const burst of this.bursts) {
      const series = burst.series;
      if (!(series?.mean_bytes.length > 0) || series.start_ns > from + slack) continue;
      if (series.start_ns + series.mean_bytes.length * series.bucket_ns < to - slack) continue;
      if (series.bucket_ns < best.bucket || best.outline) best = this.ofBurst(burst);
    }
    return best;
  }

  /** The range that shows a burst: its own series, or the burst and some room. */
  around(burst) {
    const series = this.ofBurst(burst);
    if (series) return [series.start, series.end];
    const room = Math.max(burst.length_ns * 0.2, this.whole.bucket * 2, 1000);
    return [Math.max(this.start, burst.start_ns - room), Math.min(this.end, burst.start_ns + burst.length_ns + room)];
  }

  /** The burst at `ns`, or the nearest within `reach`. */
  burstAt(ns, reach) {
    let best = null;
    let nearest = reach;
    for (const burst of this.bursts) {
      const away = Math.max(burst.start_ns - ns, ns - burst.start_ns - burst.length_ns, 0);
      if (away <= nearest) [best, nearest] = [burst, away];
      if (away === 0) break;
    }
    return best;
  }
}
