// The parts of the page, from what matters first to what explains it.

const sum = (values) => values.reduce((total, value) => total + value, 0);
const dropped = (report) => sum(Object.values(report.totals.drops));
const burstsFound = (report) => report.bursts.length + (report.bursts_left_out ?? 0);

/** The verdict: one sentence on the queue, one on who filled it. */
function headline(report) {
  const { totals, bursts, setup } = report;
  const title = el('h1', {});
  const lead = el('p', { class: 'lead' });
  const drops = dropped(report);
  if (totals.packets === 0) {
    title.append('There was nothing to analyse: the input holds no packets.');
    lead.append(
      report.skipped.length ? 'What was skipped, and why, stands below.' : 'Check that the file is the one you meant.',
    );
  } else if (bursts.length === 0) {
    title.append(
      totals.peak_delay_ns === 0
        ? 'The queue stayed empty: no packet had to wait.'
        : `The queue stayed calm: no packet waited ${duration(setup.tau_ns)} or longer.`,
    );
    if (totals.peak_delay_ns > 0)
      lead.append(
        `The longest delay was ${duration(totals.peak_delay_ns)}, the deepest queue ${bytes(totals.peak_depth_bytes)}. `,
      );
    lead.append(drops ? `${plural(drops, 'packet')} dropped.` : 'Nothing was dropped.');
  } else {
    title.append(
      `The queue reached `,
      el('b', {}, duration(totals.peak_delay_ns)),
      ` (${bytes(totals.peak_depth_bytes)}) in ${plural(burstsFound(report), 'burst')}.`,
    );
    const [top] = report.culprits[0]?.flows ?? [];
    if (top && top.share >= 0.1)
      lead.append(flowName(top.flow), ' filled ', el('b', {}, percent(top.share)), ' of it. ');
    else if (top)
      lead.append('No flow stands out: the largest, ', flowName(top.flow), `, filled ${percent(top.share)} of it. `);
    lead.append(drops ? `${plural(drops, 'packet')} dropped.` : 'Nothing was dropped.');
  }
  return el('section', { class: 'headline', 'aria-label': 'Verdict' }, title, lead);
}

/** What must not be overlooked. */
function notices(report) {
  const notes = [];
  if (report.input.damage)
    notes.push(['The input ended early', `${report.input.damage} What came before it was analysed.`]);
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
  const share = `${percent(dropped(report) / report.totals.packets)} of packets`;
  return `${share}; ${reasons.map(([why, times]) => (reasons.length === 1 ? why : `${why}: ${count(times)}`)).join(', ')}`;
}

/** The few numbers to know. */
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
  const about = (flow) => `${flow.exact ? '' : '≈'}${count(flow.flows)}`;
  const inBursts = sum(bursts.map((burst) => burst.length_ns));
  // The queue may empty only after the last packet came.
  const whole = Math.max(totals.duration_ns, 1, ...bursts.slice(-1).map((burst) => burst.start_ns + burst.length_ns));
  const tiles = [
    tile(
      'Link rate',
      setup.rate_bps === null ? 'not given' : rate(setup.rate_bps),
      setup.rate_bps === null
        ? 'departure times were in the input'
        : `queue limit: ${setup.limit.replace(/(\d) (?=\w+$)/, `$1${THIN}`)}`,
    ),
    totals.utilisation === null
      ? tile('Offered', totals.offered_bps === null ? 'all at once' : rate(totals.offered_bps), 'mean over the input')
      : tile('Utilisation', percent(totals.utilisation), offered(totals)),
    tile('Packets', count(totals.packets), `${bytes(totals.bytes)} in ${duration(totals.duration_ns)}`),
    flows
      ? tile(
          'Flows',
          about(flows),
          coarser.length
            ? coarser.map((flow) => `${flow.granularity.replaceAll('-', '\u2011')}:\u00a0${about(flow)}`).join(', ')
            : `by ${flows.granularity}`,
        )
      : null,
    tile('Drops', count(drops), dropsNote(report)),
    tile(
      'In bursts',
      bursts.length ? (report.bursts_left_out ? '≥' + THIN : '') + percent(inBursts / whole) : 'never',
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

/** What one burst was and who filled it. */
function burstPanel(report, burst, timeline, colours, go) {
  const at = report.bursts.indexOf(burst);
  const step = (to, text) =>
    button(text, () => go(report.bursts[to]), { class: 'quiet', disabled: !report.bursts[to] });
  const source = timeline.ofBurst(burst) ?? timeline.whole;
  const slots = new Map(source.flows.map(({ flow, slot }) => [flow, slot]));
  const fact = (name, value, note) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, value, note ? el('small', {}, note) : null));
  return el(
    'section',
    { class: 'burst-panel', id: 'burst', 'aria-labelledby': 'burst-title' },
    el(
      'div',
      { class: 'bar' },
      el(
        'h2',
        { id: 'burst-title', tabindex: '-1' },
        `Burst ${burst.number}`,
        el('small', {}, ` of ${count(report.bursts.length)}: who filled the queue`),
      ),
      el(
        'div',
        { class: 'tools' },
        step(at - 1, '‹ Previous'),
        step(at + 1, 'Next ›'),
        button('Close', () => go(null), { class: 'quiet' }),
      ),
    ),
    el(
      'dl',
      { class: 'line-facts' },
      fact('Start', moment(burst.start_ns, 1e5)),
      fact('Length', duration(burst.length_ns)),
      fact('Longest delay', duration(burst.peak_delay_ns), ` at ${moment(burst.peak_at_ns, 1e5)}`),
      fact('Deepest queue', bytes(burst.peak_depth_bytes), ` ${plural(burst.peak_depth_packets, 'packet')}`),
      fact('Packets hit', count(burst.packets_hit), ` waited ${duration(report.setup.tau_ns)} or longer`),
      fact('Left in it', bytes(burst.bytes), ` ${plural(burst.packets, 'packet')}`),
      fact('Drops', count(burst.drops)),
    ),
    culpritsTables(burst.culprits, slots, report.setup.alpha),
  );
}

/** The culprits over all bursts. */
function overall(report, colours) {
  if (report.bursts.length === 0) return null;
  const slots = new Map((report.series?.flows ?? []).map(({ flow }) => [flow, colours.slot(flow)]));
  return section(
    'culprits',
    report.bursts.length === 1
      ? 'Who filled the queue'
      : `Who filled the queue, over all ${count(burstsFound(report))} bursts`,
    el('p', { class: 'hint' }, 'A flow’s share is its part of the bytes that left the queue during bursts.'),
    culpritsTables(report.culprits, slots, report.setup.alpha),
  );
}

/** The bursts one by one. */
function burstsSection(report, rows) {
  const left = report.bursts_left_out ?? 0;
  const kept = left
    ? ` ${plural(left, 'smaller burst')} ${left === 1 ? 'is' : 'are'} counted above but not kept one by one.`
    : '';
  return section(
    'bursts',
    plural(report.bursts.length, 'burst'),
    el('p', { class: 'hint' }, `Choose one to see who filled the queue in it; a column’s name sorts by it.${kept}`),
    rows,
  );
}

const ESTIMATORS = {
  inner: 'counts only snapshots that lie wholly within the packet’s wait, so it errs low',
  outer: 'counts every snapshot that touches the packet’s wait, so it errs high',
  overlap: 'counts the snapshots at both ends by how much of them the wait covers',
};

/** How right the sketch was, in words and numbers. */
function sketchSection(report) {
  if (report.sketch.length === 0) return null;
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
  const asked = scores[0].asked;
  const best = scores
    .filter((score) => score.precision !== null && score.recall !== null)
    .reduce((a, b) => (a === null || both(b) > both(a) ? b : a), null);
  const verdict =
    asked === 0
      ? 'It was not asked: no packet waited long enough.'
      : best
        ? `The best here is ${best.estimator} by ${best.granularity}: ${share(best.precision)} of the packets that it blamed were rightly blamed, and it found ${share(best.recall)} of those to blame.`
        : 'There was nothing to compare: no flow was to blame, or none was blamed.';
  return section(
    'sketch',
    'How right a switch’s sketch would have been',
    el(
      'p',
      { class: 'hint' },
      `The culprits above are counted exactly. A switch has no memory for that: it keeps a sketch (here ${bytes(setup.sketch.bytes)}) and, for each packet, estimates how much of the queue the packet’s own flow holds; with ${percent(setup.alpha)} or more, it blames the flow. For the ${count(asked)} packets that waited ${duration(setup.tau_ns)} or longer, this is how often it was right.`,
    ),
    el('p', {}, verdict),
    table(
      'Precision and recall of the sketch',
      [
        th('Estimator'),
        th('Flows by'),
        th('Precision', { class: 'figure', title: 'Of the packets that it blamed, how many rightly' }),
        th('Recall', { class: 'figure', title: 'Of the packets to blame, how many it found' }),
        th('Mean error', { class: 'figure', title: 'How far the estimated size of a flow in the queue was off' }),
      ],
      rows,
      { class: 'sketch' },
    ),
  );
}

/** What did not go into the result, and why. */
function skippedSection(report) {
  if (report.skipped.length === 0) {
    return section(
      'skipped',
      'What was skipped',
      el('p', {}, 'Nothing: every packet of the input went into this report as it was captured.'),
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
    'What was skipped or put right',
    table('What was skipped or put right', [th('Count', { class: 'figure' }), th('What'), th('What it means')], rows, {
      class: 'skipped',
    }),
  );
}

/** How the input was analysed: every value, and where it came from. */
function setupSection(report) {
  const { input, setup, totals } = report;
  const { sketch } = setup;
  const pair = (name, value, note) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, value, note ? el('small', {}, note) : null));
  const facts = [
    pair('Input', input.name === '-' ? 'standard input' : input.name, input.format),
    pair('First packet', date(input.first_ns), 'all times count from here'),
    pair(
      'Link rate',
      setup.rate_bps === null ? 'none' : rate(setup.rate_bps),
      setup.rate_bps === null ? 'the input says when packets left' : 'packets were sent one by one at this rate',
    ),
    pair('Queue limit', setup.limit),
    pair(
      'Speed-up',
      setup.speedup,
      setup.speedup === '1' ? 'packets sent as fast as captured' : 'times faster than captured',
    ),
    pair('Overhead', setup.overhead, 'bytes of layer 2 added to every packet'),
    pair('Flows told apart by', setup.granularities.join(', ')),
    pair('tau', duration(setup.tau_ns), setup.tau_source),
    pair('alpha', percent(setup.alpha), 'a flow with at least this share is a culprit'),
    totals.flows_in_queue_mean === null
      ? null
      : pair('Flows in the queue', number(totals.flows_in_queue_mean), 'on average, as seen by packets of bursts'),
    pair(
      'Sketch',
      `${count(sketch.snapshots)} snapshots of ${count(sketch.rows)} × ${count(sketch.columns)} counters`,
      `${bytes(sketch.bytes)}, expiry: ${sketch.expiry}`,
    ),
    pair('Snapshot window', duration(sketch.window_ns), sketch.window_source),
  ];
  return section('setup', 'How it was analysed', el('dl', { class: 'setup' }, facts), terms());
}

function terms() {
  const list = [
    ['Queue', 'Packets that arrived at the link and wait to be sent. Its depth is their size in bytes.'],
    ['Delay', 'How long a packet waited in the queue before it was sent.'],
    [
      'Burst',
      'A stretch of time in which packets waited tau or longer: from the first such packet’s arrival until the last packet left before one that waited less than half of tau.',
    ],
    ['tau', 'The delay from which waiting counts as a burst.'],
    [
      'Culprit',
      'A flow whose bytes made up a good part of what left the queue during a burst. Others had to wait behind them.',
    ],
    ['alpha', 'The share from which a flow is named as a culprit.'],
    ['Held at most', 'The most of the queue that a flow occupied as one of its own packets arrived.'],
    ['Packets hit', 'Packets that waited tau or longer, whoever sent them.'],
    ['Precision', 'Of the packets that the sketch blamed, how many belonged to a flow that was to blame.'],
    ['Recall', 'Of the packets that belonged to a flow to blame, how many the sketch found.'],
    [
      '5-tuple, conn, src, dst …',
      'How finely flows are told apart: by addresses, ports and protocol; by both directions of a connection; by source or destination, or their networks.',
    ],
  ];
  return el(
    'details',
    { id: 'terms' },
    el('summary', {}, 'What the words mean'),
    el(
      'dl',
      {},
      list.map(([term, meaning]) => el('div', {}, el('dt', {}, term), el('dd', {}, meaning))),
    ),
  );
}
