// How the input was analysed, and the meaning of terms.

/** How the input was analysed: every value with its source. */
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
    pair('Flows grouped by', setup.granularities.join(', ')),
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

/** Values that only concern captured packets. */
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
      'The most bytes in the queue at the arrival of a packet, without that packet. The chart includes it, so it may be a packet higher.',
    ],
    ['Delay', 'How long a packet waited in the queue before it was sent.'],
    [
      'Burst',
      'A period in which packets waited tau or longer: from the first such packet’s arrival until the last packet left before one that waited less than half of tau.',
    ],
    ['tau', 'The delay from which on a queue is in a burst.'],
    [
      'Culprit',
      'A flow with a large share of the bytes that left the queue during a burst. Other packets had to wait behind them.',
    ],
    ['alpha', 'The share from which on a flow is a culprit.'],
    ['Held at most', 'The most bytes that a flow had in the queue at the arrival of one of its own packets, without that packet.'],
    [
      'In common',
      'What many flows that fill the queue together have in common, such as one destination. Each flow counts in at most one line.',
    ],
    [
      'Rate: ramped 4x',
      'From one period (as long as a window of the sketch) to the next, up to 4 times as much of the flow came. New: it was never seen before. A flow that obeys congestion control rarely more than doubles in a round trip; where windows are longer than that, growth of a start shows too.',
    ],
    ['Rate: new', 'The flow started from nothing: it had sent nothing in the window before.'],
    [
      'Direct, indirect, original',
      'Who made a packet wait: flows that left the queue while it waited; flows that left before it came, since the queue was last empty; flows whose packets raised the queue to where it stood as it came.',
    ],
    ['Goodput', 'Payload that receivers of a simulation got in order, without retransmissions.'],
    ['Packets hit', 'Packets of any flow that waited tau or longer.'],
    ['Precision', 'The share of the packets that the sketch blamed that belonged to a culprit.'],
    ['Recall', 'The share of the culprits’ packets that the sketch found.'],
    [
      '5-tuple, conn, src, dst …',
      'How packets are grouped into flows: by addresses, ports and protocol; by both directions of a connection; by source or destination, or their networks.',
    ],
  ];
  return el(
    'details',
    { id: 'terms' },
    el('summary', {}, 'Glossary'),
    el(
      'dl',
      {},
      list.map(([term, meaning]) => el('div', {}, el('dt', {}, term), el('dd', {}, meaning))),
    ),
  );
}
