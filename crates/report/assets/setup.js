// How the input was analysed, and what the words mean.

/** How the input was analysed: every value, and where it came from. */
function setupSection(report) {
  const { input, setup, totals } = report;
  const { sketch } = setup;
  const pair = (name, value, note) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, value, note ? el('small', {}, note) : null));
  const facts = [
    pair('Input', input.name === '-' ? 'standard input' : input.name, input.format),
    report.sim
      ? pair('First packet', moment(input.first_ns, 1e5), 'of the simulation, after the warm-up; times count from here')
      : pair('First packet', date(input.first_ns), 'all times count from here'),
    pair(
      report.sim ? 'Rate of the link' : 'Link rate',
      setup.rate_bps === null ? 'none' : rate(setup.rate_bps),
      report.sim
        ? report.sim.meter
        : setup.rate_bps === null
          ? 'the input says when packets left'
          : 'packets were sent one by one at this rate',
    ),
    setup.aqm ? pair('Queue managed by', setup.aqm, 'the captured senders do not react to drops and marks') : null,
    pair(report.sim ? 'Queue' : 'Queue limit', setup.limit),
    ...(report.sim ? [] : capturePairs(setup, pair)),
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

/** What only concerns packets that were captured. */
function capturePairs(setup, pair) {
  const fast = setup.speedup === '1' ? 'packets sent as fast as captured' : 'times faster than captured';
  return [
    pair('Speed-up', setup.speedup, fast),
    pair('Overhead', setup.overhead, 'of each packet on the link, not in the queue'),
  ];
}

function terms() {
  const list = [
    ['Queue', 'Packets that arrived at the link and wait to be sent. Its depth is their size in bytes.'],
    ['Depth in the chart', 'The size of all packets that wait at that time.'],
    [
      'Deepest queue',
      'The most that stood in the queue as a packet arrived, not counting that packet. The chart counts it, so it may stand a packet higher.',
    ],
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
    ['Held at most', 'The most of the queue that a flow occupied as one of its own packets arrived, not counting that packet.'],
    [
      'In common',
      'What joins many flows that fill the queue together, such as one destination. Each flow counts in one line at most.',
    ],
    [
      'Rate: ramped 4x',
      'From one stretch of time (as long as a window of the sketch) to the next, up to 4 times as much of the flow came. New: it was never seen before. A flow that obeys congestion control rarely more than doubles in a round trip; where windows are longer than that, growth of a start shows too.',
    ],
    ['Rate: new', 'The flow came up from nothing: it had sent nothing in the window before.'],
    [
      'Direct, indirect, original',
      'Who made a packet wait: flows that left the queue while it waited; flows that left before it came, since the queue was last empty; flows whose packets raised the queue to where it stood as it came.',
    ],
    ['Goodput', 'Payload that receivers of a simulation got in order, without what was sent again.'],
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
