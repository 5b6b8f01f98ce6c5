// A simulation: its scenario, the results of links, groups and flows, and how to run it again.

/**
 * The report of the queue whose number is in the address, with the simulation; that of the first, if the number has no
 * queue. `queues` has the `names` of all queues' links, and `which` is the chosen one.
 */
function chosenQueue(data) {
  const { sim, input, others } = data;
  const wanted = Number(new URLSearchParams(location.search).get('queue'));
  const other = others[wanted - 1];
  const queues = { names: [sim.meter, ...others.map((entry) => entry.link)], which: other ? wanted : 0 };
  if (!other) return { ...data, queues };
  const report = other.report;
    return { ...report, sim: { ...sim, meter: other.link }, input: { ...report.input, name: input.name }, queues };
}

/** Why no packet was analysed, and where to look. */
function nothingMet(report) {
  if (report.sim.meter === 'none') return ['No queue was analysed.', 'The results of links and flows are below.'];
  return [
    `There was nothing to analyse: no packet passed the ${queueName(report)} after the warm-up.`,
    'Other queues may have had packets; their results are below.',
  ];
}

/** The sections of a simulation, and its charts. */
function simulation(report, colours) {
  const { sim } = report;
  const styles = flowStyles(sim, colours);
  const course = sim.samples.length > 1 ? new SimCharts(sim, styles) : null;
  const times = new CompletionChart(sim);
  const sections = [simHead(report), simLinks(sim), simGroups(sim), course?.section, simFlows(sim, styles, times)];
  return { sections, charts: [course, times.empty ? null : times].filter(Boolean) };
}

/** What was run, and the scenario for another run. */
function simHead(report) {
  const { sim, queues } = report;
  const fact = (name, value, note) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, value, note ? el('small', {}, note) : null));
  const flows = sum(sim.groups.map((group) => group.flows));
  const real = sim.real_time;
  return section(
    'sim',
    real ? `Link: ${sim.name}` : `Simulation: ${sim.name}`,
    sim.about ? el('p', {}, sim.about) : null,
    real?.is_limited_by_machine ? limited(real) : null,
    el(
      'dl',
      { class: 'line-facts' },
      fact(real ? 'Ran for' : 'Simulated', duration(sim.duration_ns)),
      fact('Warm-up', sim.warmup_ns ? duration(sim.warmup_ns) : 'none', sim.warmup_ns ? 'does not count below' : null),
      fact('Seed', sim.seed),
      fact('Flows', count(flows), sim.groups.length ? `in ${plural(sim.groups.length, 'group')}` : null),
      fact('Packet hops', count(sim.hops), 'packets that left a link'),
      fact('Analysed queue', queueLinks(queues), 'bursts and culprits are of this queue'),
      ...(real ? lateness(real, fact) : []),
    ),
    scenario(report),
  );
}

/** Why a link was slower than configured. */
function limited({ packets, late_packets, unread_packets, machine_limit: held }) {
  const carried = held ? ` ${heldBack(held)}` : '';
  const meaning = `${carried} ${plural(late_packets, 'packet')} of ${count(packets)} more than 1 ms late, ${count(unread_packets)} lost before the link. Other work beside it, or a rate that is too high for it, does that.`;
  return el('p', { class: 'notice' }, el('b', {}, 'This machine was the bottleneck at times, not the link.'), meaning);
}

/** The offered and the carried load of a link, and what the machine did meanwhile. */
function heldBack(held) {
  const idle = held.idle_share === null ? '' : `, processors were idle for ${percent(held.idle_share)}`;
  const time = `${duration(held.limited_ns)} of ${duration(held.active_ns)}`;
  const asked = `${held.link} was offered ${rate(held.offered_bps)} and carried ${rate(held.carried_bps)} in ${time}`;
  return `${asked}, in which no link was full and this machine had no time left (moving packets kept one thread busy for ${percent(held.busy_share)} of it${idle}).`;
}

/** How late packets of a link in real time were sent. */
function lateness(real, fact) {
  const { packets, error_p50_ns, error_p99_ns, error_worst_ns, sleep_p50_ns, sleep_p99_ns } = real;
  return [
    fact('Packets late by', duration(error_p50_ns), `median of ${count(packets)}`),
    fact('99 % within', duration(error_p99_ns), `worst ${duration(error_worst_ns)}`),
    fact('Sleeps here late by', duration(sleep_p50_ns), `99 % within ${duration(sleep_p99_ns)}`),
  ];
}

/** The queue of this page, and links to the others. */
function queueLinks({ names, which }) {
  if (names.length < 2) return names[0];
  const link = (name, number) =>
    el('li', {}, number === which ? name : el('a', { href: `?queue=${number}` }, name));
  return el('ul', { class: 'queues', 'aria-label': 'Analysed queues' }, names.map(link));
}

function scenario({ sim, input }) {
  const code = el('code', {}, sim.scenario);
  const frame = { tabindex: '0', role: 'region', 'aria-label': 'The scenario as TOML' };
  const senders = { 'link of a command': 'the command', 'link between interfaces': 'the hosts behind its interfaces' }[input.format];
  return el(
    'details',
    { id: 'scenario' },
    el('summary', {}, senders ? 'The link as a scenario' : 'The whole scenario, to run it again'),
    el(
      'p',
      { class: 'hint' },
      senders
        ? `With all defaults. Its traffic was that of ${senders}, which no scenario contains.`
        : sim.real_time
        ? 'The scenario of this run, with all defaults. To compare it with a simulation, if it has flows, save it, here as scenario.toml, beside the files that it names, if any:'
        : 'The scenario of this run, with all defaults. The same scenario and seed give the same report. To run it again, save it, here as scenario.toml, beside the files that it names, if any:',
    ),
    senders ? null : command(sim.real_time ? 'queuescope compare scenario.toml' : 'queuescope sim scenario.toml'),
    el('div', { class: 'source' }, copyButton('scenario', code), el('pre', frame, code)),
  );
}

// Links and groups.

/** A name, and what is below it. */
const named = (name, note, ...more) =>
  td('', [el('b', { class: 'reading' }, name), note ? el('small', {}, note) : null, ...more], { class: 'who' });

/** Packets by reason, as shares of all arrivals. */
function reasons(packets, offered) {
  const rows = Object.entries(packets).sort((a, b) => b[1] - a[1]);
  return rows.map(([why, times]) =>
    el('small', {}, `${why.replaceAll('_', ' ')}: ${count(times)} (${percent(times / Math.max(offered, 1))})`),
  );
}

/** A time from `times`; none where nothing passed. */
const timeOf = (times, of) => duration(times?.count ? Math.round(of(times)) : null, true);

const inAll = (packets) => sum(Object.values(packets));

function simLinks(sim) {
  if (sim.links.length === 0) {
    return section('sim-links', 'Links', el('p', { class: 'hint' }, 'No link’s queue was measured.'));
  }
  const counted = (title, of, share) => ({
    key: title,
    title,
    value: share,
    figure: true,
    about: 'Packets, as a number and as a share of arrivals',
    cell: (link) =>
      td(
        title.toLowerCase(),
        inAll(of(link))
          ? [`${count(inAll(of(link)))} (${percent(share(link))})`, ...reasons(of(link), link.offered_packets)]
          : '0',
        { class: 'figure reasons' },
      ),
  });
  const sojourn = (title, label, of) => ({
    key: label,
    title,
    label,
    value: (link) => (link.sojourn.count ? of(link.sojourn) : -1),
    show: (link) => timeOf(link.sojourn, of),
  });
  const wasted = (link) =>
    link.wasted_ns ? el('small', {}, `${duration(link.wasted_ns)} of its time lost to drops behind the queue`) : null;
  const rows = new SortedTable(
    'Links',
    sim.links,
    [
      {
        key: 'name',
        title: 'Link',
        value: (link) => link.name,
        up: true,
        cell: (link) => named(link.name, `${link.discipline}, ${duration(link.delay_ns)} long`, wasted(link)),
      },
      { key: 'rate', title: 'Rate', value: (link) => link.rate_bps, show: (link) => rate(link.rate_bps) },
      { key: 'busy', title: 'Busy', value: (link) => link.utilisation, show: (link) => percent(link.utilisation) },
      sojourn('Mean delay', 'mean delay', (times) => times.mean_ns),
      sojourn('95 %', '95 % under', (times) => times.p95_ns),
      sojourn('99 %', '99 % under', (times) => times.p99_ns),
      sojourn('Longest', 'longest', (times) => times.max_ns),
      {
        key: 'queue',
        title: 'Deepest',
        about: 'The longest queue at the arrival of a packet',
        value: (link) => link.peak_backlog_bytes,
        show: (link) => bytes(link.peak_backlog_bytes, true),
      },
      counted(
        'Dropped',
        (link) => link.drops,
        (link) => link.drop_rate,
      ),
      sim.links.some((link) => link.lost_packets)
        ? {
            key: 'lost',
            title: 'Lost',
            figure: true,
            about: 'Packets randomly lost on the link, as a number and as a share of packets sent',
            value: (link) => link.loss_rate,
            show: (link) => (link.lost_packets ? `${count(link.lost_packets)} (${percent(link.loss_rate)})` : '0'),
          }
        : null,
      counted(
        'Marked',
        (link) => link.marks,
        (link) => link.mark_rate,
      ),
    ],
    { kind: 'sim-table' },
  );
  const counting = sim.links.filter((link) => Object.keys(link.counters).length > 0);
  return section(
    'sim-links',
    'Links',
    el('p', { class: 'hint' }, 'Delay is the time that packets waited in the queue. A column’s name sorts by it.'),
    rows.element,
    sim.links.some((link) => link.groups.length) ? linkGroups(sim.links) : null,
    counting.length ? counters(counting) : null,
  );
}

/** The results of each group of flows at each link. */
function linkGroups(links) {
  const figure = (title, of, more = {}) => ({
    key: title,
    title,
    value: (row) => (row.sojourn.count ? of(row.sojourn) : -1),
    show: (row) => timeOf(row.sojourn, of),
    ...more,
  });
  const share = (title, of) => ({
    key: title,
    title,
    value: of,
    about: 'Of its packets that were sent or dropped',
    show: (row) => percent(of(row)),
  });
  const rows = links.flatMap((link) => link.groups.map((group) => ({ ...group, link: link.name })));
  return new SortedTable(
    'Groups of flows at the links',
    rows,
    [
      {
        key: 'group',
        title: 'Group',
        value: (row) => row.name,
        up: true,
        cell: (row) => named(row.name, `at ${row.link}`),
      },
      { key: 'sent', title: 'Packets', value: (row) => row.sojourn.count, show: (row) => count(row.sojourn.count) },
      figure('Mean delay', (times) => times.mean_ns),
      figure('95 %', (times) => times.p95_ns, { label: '95 % under' }),
      figure('99 %', (times) => times.p99_ns, { label: '99 % under' }),
      figure('Longest', (times) => times.max_ns),
      share('Dropped', (row) => row.drop_rate),
      links.some((link) => link.lost_packets)
        ? { ...share('Lost', (row) => row.loss_rate), about: 'On the link, of its packets that were sent' }
        : null,
      share('Marked', (row) => row.mark_rate),
    ],
    { kind: 'sim-table' },
  ).element;
}

/** The disciplines' own counters. */
function counters(links) {
  const words = (link) =>
    Object.entries(link.counters).map(([name, times]) => `${name.replaceAll('_', ' ')}: ${count(times)}`);
  return el(
    'details',
    {},
    el('summary', {}, 'The queues’ own counters'),
    el(
      'dl',
      {},
      links.map((link) => el('div', {}, el('dt', {}, link.name), el('dd', {}, words(link).join(', ')))),
    ),
  );
}

function simGroups(sim) {
  if (sim.groups.length === 0) return null;
  const figure = (title, of, show, more = {}) => ({
    key: title,
    title,
    value: (group) => of(group) ?? -1,
    show: (group) => show(of(group)),
    ...more,
  });
  // A group without flows has no minimum, maximum or fairness.
  const each = (of) => (group) => (group.flows > 0 ? of(group) : null);
  const finished = sim.groups.some((group) => group.finished > 0);
  const completion = (title, of) =>
    sim.groups.some((group) => group.completion)
      ? {
          key: title,
          title,
          about: 'Completion time of the flows that finished after the warm-up',
          value: (group) => (group.completion ? of(group.completion) : -1),
          show: (group) => timeOf(group.completion, of),
        }
      : null;
  const rows = new SortedTable(
    'Groups of flows',
    sim.groups,
    [
      {
        key: 'name',
        title: 'Group',
        value: (group) => group.name,
        up: true,
        cell: (group) => named(group.name, group.transport),
      },
      figure('Flows', (group) => group.flows, count),
      figure('Goodput', (group) => group.goodput_bps, rate, { about: 'Of all its flows together, over the run' }),
      figure(
        'Least',
        each((group) => group.least_lifetime_goodput_bps),
        rate,
        { about: 'Of the flow with the least, over its lifetime' },
      ),
      figure(
        'Most',
        each((group) => group.most_lifetime_goodput_bps),
        rate,
        { about: 'Of the flow with the most, over its lifetime' },
      ),
      figure(
        'Jain',
        each((group) => group.jain),
        (index) => index?.toFixed(3) ?? DASH,
        {
          label: 'Jain',
          about: 'Jain’s index of the flows’ goodput over their lifetimes: 1 if all are equal',
        },
      ),
      figure(
        'RTT',
        (group) => group.rtt_ns,
        (ns) => duration(ns, true),
        {
          label: 'RTT',
          about: 'Mean of the smoothed round-trip times',
        },
      ),
      figure('Resent', (group) => group.retransmissions, count, { about: 'Retransmitted segments' }),
      figure('Timeouts', (group) => group.timeouts, count, { about: 'Retransmission timeouts' }),
      finished ? figure('Finished', (group) => group.finished, count) : null,
      completion('Time, mean', (times) => times.mean_ns),
      completion('Median', (times) => times.p50_ns),
      completion('95 %', (times) => times.p95_ns),
      completion('99 %', (times) => times.p99_ns),
    ],
    { kind: 'sim-table' },
  );
  return section(
    'sim-groups',
    'Groups of flows',
    el(
      'p',
      { class: 'hint' },
      'Goodput is the payload that receivers got in order, over the run without its warm-up. Least and most are of single flows over their lifetimes, and may be above it.',
    ),
    rows.element,
  );
}

// Flows.

// Flows that are shown at first.
const FIRST_FLOWS = 20;

function simFlows(sim, styles, times) {
  if (sim.flows.length === 0) return null;
  const took = (flow) => (flow.finished_ns === null ? null : flow.finished_ns - flow.started_ns);
  const ends = sim.flows.some((flow) => flow.finished_ns !== null);
  const figure = (key, title, of, show, more = {}) => ({
    key,
    title,
    value: (flow) => of(flow) ?? -1,
    show: (flow) => show(of(flow)),
    ...more,
  });
  const all = sim.flows.length + sim.flows_omitted;
  const rows = new SortedTable(
    'Flows',
    sim.flows,
    [
      {
        key: 'name',
        title: 'Flow',
        value: (flow) => flow.number,
        up: true,
        cell: (flow) => {
          const style = styles.get(flow.number);
          return td('', [style ? swatchOf(style) : null, flowName(flow.name), el('small', {}, flow.group)], {
            class: 'who',
          });
        },
      },
      figure('goodput', 'Goodput', (flow) => flow.goodput_bps, rate, { about: 'Over the run, without the warm-up' }),
      figure('lifetime', 'Over lifetime', (flow) => flow.lifetime_goodput_bps, rate, {
        about: 'From its start until it finished: flows live at different times, so this does not add up',
      }),
      figure(
        'delivered',
        'Delivered',
        (flow) => flow.delivered_bytes,
        (size) => bytes(size, true),
      ),
      figure('resent', 'Resent', (flow) => flow.retransmissions, count, { about: 'Retransmitted segments' }),
      figure('timeouts', 'Timeouts', (flow) => flow.timeouts, count),
      figure(
        'rtt',
        'RTT',
        (flow) => flow.rtt_ns,
        (ns) => duration(ns, true),
        { label: 'RTT', about: 'Smoothed, at its end' },
      ),
      figure(
        'started',
        'Started',
        (flow) => flow.started_ns,
        (ns) => moment(ns, 1e6, sim.duration_ns),
        { up: true },
      ),
      ends
        ? figure(
            'size',
            'Size',
            (flow) => flow.bytes,
            (size) => bytes(size, true),
            { about: 'Bytes to send' },
          )
        : null,
      ends
        ? figure('took', 'Took', took, (ns) => duration(ns, true), { about: 'Until its receiver had received everything' })
        : null,
    ],
    { kind: 'sim-table', by: 'goodput', limit: FIRST_FLOWS, all: plural(sim.flows.length, 'flow') },
  );
  const more = sim.flows_omitted ? ` The first ${count(sim.flows.length)} to start are listed.` : '';
  return section(
    'sim-flows',
    plural(all, 'flow'),
    more ? el('p', { class: 'hint' }, more.trim()) : null,
    times.empty ? null : times.element,
    rows.element,
  );
}
