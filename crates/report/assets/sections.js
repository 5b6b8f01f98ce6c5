// The parts of the page, from the most important one to the explanations.

const dropped = (report) => sum(Object.values(report.totals.drops));
const burstsFound = (report) => report.bursts.length + (report.bursts_omitted ?? 0);

/** The name of the report's queue: that of a link, where a simulation has many. */
const queueName = (report) => (report.sim ? `queue of ${report.sim.meter}` : 'queue');

const depthTitle = (report) => (report.sim ? `Depth of the ${queueName(report)} over time` : 'Queue depth over time');

/** The origin of the queue's times, where the page has another time too. */
const depthHint = (report) =>
  report.sim
    ? el(
        'p',
        { class: 'hint' },
        `From here on times count from the first packet that came to this queue after the warm-up, ${moment(report.input.first_ns, 1e7)} into the run.`,
      )
    : null;

/** The verdict: one sentence on the queue, and one on what filled it. */
function headline(report) {
  const { totals, bursts, setup } = report;
  const title = el('h1', {});
  const lead = el('p', { class: 'lead' });
  const drops = dropped(report);
  if (totals.packets === 0) {
    const below = report.skipped.length
      ? 'What was skipped, and why, is listed below.'
      : 'Check that it is the right file.';
    const [why, where] = report.sim
      ? nothingMet(report)
      : ['There was nothing to analyse: the input holds no packets.', below];
    title.append(why);
    lead.append(where);
  } else if (bursts.length === 0) {
    title.append(
      totals.peak_delay_ns === 0
        ? `The ${queueName(report)} stayed empty: no packet had to wait.`
        : `The ${queueName(report)} stayed calm: no packet waited ${duration(setup.tau_ns)} or longer.`,
    );
    if (totals.peak_delay_ns > 0)
      lead.append(
        `The longest delay was ${duration(totals.peak_delay_ns)}, the deepest queue ${bytes(totals.peak_depth_bytes)}. `,
      );
    lead.append(drops ? `${plural(drops, 'packet')} dropped.` : 'Nothing was dropped.');
  } else {
    title.append(
      `The ${queueName(report)} reached `,
      el('b', {}, duration(totals.peak_delay_ns)),
      ` (${bytes(totals.peak_depth_bytes)}) in ${plural(burstsFound(report), 'burst')}.`,
    );
    const { flows: [top] = [], not_shown: hidden } = report.culprits[0] ?? {};
    if (top && hidden?.flows > 0)
      lead.append('Of the flows that --show lists, ', flowName(top.flow), ` filled most: ${percent(top.share)} of it. `);
    else if (top && top.share >= 0.1)
      lead.append(flowName(top.flow), ' filled ', el('b', {}, percent(top.share)), ' of it. ');
    else if (top)
      lead.append('No flow stands out: the largest, ', flowName(top.flow), `, filled ${percent(top.share)} of it. `);
    lead.append(drops ? `${plural(drops, 'packet')} dropped.` : 'Nothing was dropped.');
  }
  return el('section', { class: 'headline', 'aria-label': 'Verdict' }, title, lead);
}

/** Which lists `--show` does not filter, in a sentence. */
function unfiltered(report, flag) {
  const note = flag === 'show' && report.skipped.find(({ reason }) => reason === 'show_not_applied');
  return note ? ` There are ${note.meaning}.` : '';
}

/** What must not be overlooked. */
function notices(report) {
  const notes = [];
  if (report.input.damage)
    notes.push([
      `The input is damaged: ${report.input.damage.trim().replace(/[.:;,]+$/, '')}`,
      'The readable part was analysed.',
    ]);
  if (report.setup.aqm)
    notes.push([`The queue is managed by ${report.setup.aqm}`, 'The captured senders do not react to its drops and marks.']);
  for (const flag of ['input', 'victims', 'show']) {
    const filter = report.setup[`${flag}_filter`];
    if (filter) notes.push([`--${flag} ${filter}`, `Shares are of the whole queue.${unfiltered(report, flag)}`]);
  }
  const { super_packets: merged, packets } = report.totals;
  if (merged > 0)
    notes.push([
      'Merged packets',
      `${count(merged)} of ${plural(packets, 'packet')} ${merged === 1 ? 'is' : 'are'} larger than a link carries: the capturing machine joined them (segmentation offload). Bursts look sharper than they were on the wire.`,
    ]);
  return notes.map(([what, meaning]) => el('p', { class: 'notice' }, el('b', {}, `${what}. `), meaning));
}

/** How much was dropped, and why. */
function dropsNote(report) {
  const reasons = Object.entries(report.totals.drops).filter(([, times]) => times > 0);
  if (reasons.length === 0) return 'no packet was dropped';
  const share = report.totals.drops_unfiltered
    ? 'of all packets, including those that --input excludes'
    : `${percent(dropped(report) / report.totals.packets)} of packets`;
  return `${share}; ${reasons.map(([why, times]) => (reasons.length === 1 ? why : `${why}: ${count(times)}`)).join(', ')}`;
}

/** The most important numbers. */
function keyNumbers(report) {
  const { totals, setup, bursts } = report;
  if (totals.packets === 0) return null;
  const drops = dropped(report);
  const percentile = (wanted) => totals.delay_percentiles.find(([p]) => p === wanted)?.[1];
  const tile = (name, value, note) =>
    el(
      'div',
      { class: 'tile' },
      el('dt', {}, name),
      el('dd', {}, value),
      note ? el('dd', { class: 'note' }, note) : null,
    );
  const [flows, ...coarser] = totals.flows;
  const about = (flow) => `${flow.exact ? '' : flow.unknown_packets ? '≥ ' : '≈'}${count(flow.flows)}`;
  const inBursts = sum(bursts.map((burst) => burst.length_ns));
  // The queue may empty only after the last packet arrived.
  const whole = Math.max(totals.duration_ns, 1, ...bursts.slice(-1).map((burst) => burst.start_ns + burst.length_ns));
  const tiles = [
    tile(
      'Link rate',
      setup.rate_bps === null ? 'not given' : rate(setup.rate_bps),
      setup.rate_bps === null
        ? 'departure times were in the input'
        : report.sim
          ? `queue: ${setup.limit}`
          : `queue limit: ${setup.limit.replace(/(\d) (?=\w+$)/, `$1${THIN}`)}`,
    ),
    totals.utilisation === null
      ? tile(
          report.input.format === 'interface' ? 'Sent' : 'Offered',
          totals.offered_bps === null ? 'all at once' : rate(totals.offered_bps),
          'mean over the input',
        )
      : tile('Utilisation', percent(totals.utilisation), offered(totals)),
    tile('Packets', count(totals.packets), `${bytes(totals.bytes)} in ${duration(totals.duration_ns)}`),
    flows
      ? tile(
          'Flows',
          about(flows),
          coarser.length
            ? coarser.map((flow) => `${about(flow)}\u00a0by\u00a0${flow.granularity.replaceAll('-', '\u2011')}`).join(', ')
            : `by ${flows.granularity}`,
        )
      : null,
    tile('Drops', count(drops), dropsNote(report)),
    tile(
      'In bursts',
      bursts.length ? (report.bursts_omitted ? '≥' + THIN : '') + percent(inBursts / whole) : 'never',
      bursts.length ? `of the time: ${duration(inBursts)}` : `no wait of ${duration(setup.tau_ns)}`,
    ),
    el(
      'div',
      { class: 'tile wide' },
      [
        ['Median delay', percentile(50)],
        ['99 % under', percentile(99)],
        ['Longest', totals.peak_delay_ns],
      ].map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, duration(value)))),
      el('dd', { class: 'note' }, `${percent(totals.waited_share)} of packets waited at all`),
    ),
  ];
  return el('dl', { class: 'tiles' }, tiles);
}

function offered(totals) {
  return totals.offered_bps === null ? 'all at once' : `${rate(totals.offered_bps)} offered`;
}

/** The culprits over all bursts. */
function overall(report, colours) {
  if (report.bursts.length === 0) return null;
  const slots = new Map((report.series?.flows ?? []).map(({ flow }) => [flow, colours.slot(flow)]));
  return section(
    'culprits',
    report.bursts.length === 1
      ? 'Who filled the queue'
      : report.bursts_omitted
        ? `Who filled the queue, over the ${count(report.bursts.length)} bursts with the longest delays`
        : `Who filled the queue, over all ${count(report.bursts.length)} bursts`,
    el('p', { class: 'hint' }, 'A flow’s share is its part of the bytes that left the queue during bursts.'),
    culpritsTables(report.culprits, slots, report.setup.alpha),
  );
}

/** The individual bursts. */
function burstsSection(report, rows) {
  const left = report.bursts_omitted ?? 0;
  const kept = left
    ? ` ${plural(left, 'smaller burst')} ${left === 1 ? 'is' : 'are'} counted above but not listed.`
    : '';
  return section(
    'bursts',
    plural(report.bursts.length, 'burst'),
    el('p', { class: 'hint' }, `Choose one to see who filled the queue in it; a column’s name sorts by it.${kept}`),
    rows,
  );
}

const ESTIMATORS = {
  inner: 'counts only snapshots that lie wholly within the packet’s wait, so it underestimates',
  outer: 'counts every snapshot that touches the packet’s wait, so it overestimates',
  overlap: 'counts the snapshots at both ends by how much of them the wait covers',
};

/** The accuracy of the sketch, in words and numbers. */
function sketchSection(report) {
  if (report.sketch.length === 0 || report.totals.packets === 0) return null;
  const { setup, sketch: scores } = report;
  const share = (value) => (value === null ? DASH : `${(value * 100).toFixed(1)}${THIN}%`);
  const both = (score) => (2 * score.precision * score.recall) / (score.precision + score.recall) || 0;
  const explained = new Set();
  const rows = scores.map((score) => {
    const words = explained.has(score.estimator) ? '' : (ESTIMATORS[score.estimator] ?? '');
    explained.add(score.estimator);
    return el(
      'tr',
      { role: 'row' },
      td('', [el('b', {}, score.estimator), words ? el('small', {}, words) : null], { class: 'who' }),
      td('flows by', score.granularity),
      td('precision', share(score.precision), { class: 'figure' }),
      td('recall', share(score.recall), { class: 'figure' }),
      td('mean error', score.mean_error_bytes === null ? DASH : bytes(score.mean_error_bytes, true), {
        class: 'figure',
      }),
    );
  });
  const { queries } = scores[0];
  const best = scores
    .filter((score) => score.precision !== null && score.recall !== null)
    .reduce((a, b) => (a === null || both(b) > both(a) ? b : a), null);
  const verdict =
    queries === 0
      ? 'It was not queried: no packet waited long enough.'
      : best
        ? `The best here is ${best.estimator} by ${best.granularity}: ${share(best.precision)} of the packets that it blamed belonged to culprits, and it found ${share(best.recall)} of all packets of culprits.`
        : 'There was nothing to compare: no flow was a culprit, or the sketch reported none.';
  return section(
    'sketch',
    'Accuracy of a switch’s sketch',
    el(
      'p',
      { class: 'hint' },
      `The culprits above are counted exactly. A switch has no memory for that: it keeps a sketch (here ${bytes(setup.sketch.bytes)}) and, for each packet, estimates how much of the queue the packet’s own flow holds; with ${percent(setup.alpha)} or more, it blames the flow. For the ${count(queries)} packets that waited ${duration(setup.tau_ns)} or longer, this is how often it was right.`,
    ),
    el('p', {}, verdict),
    table(
      'Precision and recall of the sketch',
      [
        th('Estimator'),
        th('Flows by'),
        th('Precision', { class: 'figure', title: 'Share of the packets that it blamed that belonged to culprits' }),
        th('Recall', { class: 'figure', title: 'Share of the culprits’ packets that it found' }),
        th('Mean error', { class: 'figure', title: 'Mean error of the estimated size of a flow in the queue' }),
      ],
      rows,
      { class: 'sketch' },
    ),
  );
}

/** What is not part of the result, and why. */
function skippedSection(report) {
  if (report.skipped.length === 0) {
    return section(
      'skipped',
      'What was skipped',
      el(
        'p',
        {},
        report.sim
          ? `Nothing: every packet that came to the ${queueName(report)} after the warm-up is in this report.`
          : 'Nothing: every packet of the input went into this report as it was captured.',
      ),
    );
  }
  const rows = report.skipped.map((entry) =>
    el(
      'tr',
      { role: 'row' },
      td('', count(entry.count), { class: 'figure number' }),
      td('', entry.reason.replaceAll('_', ' '), { class: 'who' }),
      td('', entry.meaning, { class: 'words' }),
    ),
  );
  return section(
    'skipped',
    'What was skipped or corrected',
    table('What was skipped or corrected', [th('Count', { class: 'figure' }), th('What'), th('What it means')], rows, {
      class: 'skipped',
    }),
  );
}
