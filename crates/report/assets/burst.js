// The chosen burst: its facts, what its flows have in common, the flows, and what made its worst packet wait.

/** Facts of one burst, and the flows that filled it. */
function burstPanel(report, burst, timeline, colours, go) {
  const at = report.bursts.indexOf(burst);
  const step = (to, text) =>
    button(text, () => go(report.bursts[to]), { class: 'quiet', disabled: !report.bursts[to] });
  const source = timeline.ofBurst(burst) ?? timeline.whole;
  const slots = new Map(source.flows.map(({ flow, slot }) => [flow, slot]));
  const fact = (name, value, note) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, value, note ? el('small', {}, note) : null));
  const tau = burst.tau_ns ?? report.setup.tau_ns;
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
      fact('Packets hit', count(burst.packets_over_tau), ` waited ${duration(tau)} or longer`),
      fact('Departures', bytes(burst.bytes), ` ${plural(burst.packets, 'packet')}`),
      fact('Drops', count(burst.drops)),
    ),
    inCommon(burst),
    culpritsTables(burst.culprits, slots, report.setup.alpha, { ramps: true }),
    worst(report, burst, slots),
  );
}

/** What flows have in common, above the flows themselves: an incast is one line. A single listed flow is not repeated. */
function inCommon(burst) {
  const listed = new Set((burst.culprits[0]?.flows ?? []).map(({ flow }) => flow));
  const groups = (burst.groups ?? []).filter(({ reading }) => !listed.has(reading));
  if (groups.length === 0) return null;
  return el(
    'div',
    { class: 'in-common culprits' },
    el('h3', {}, 'In common', el('small', {}, 'what flows that fill the queue together share')),
    groupsTable(groups, 'What flows have in common'),
    groups.some((group) => group.heavy.length)
      ? el('p', { class: 'hint' }, 'Indented: flows of the line above that are heavy on their own.')
      : null,
    groups.some((group) => group.overlaps)
      ? el('p', { class: 'hint' }, 'Overlapping: its flows may be in other lines too. All other lines are disjoint.')
      : null,
    groups.some((group) => !group.counted)
      ? el(
          'p',
          { class: 'hint' },
          'There were too many flows to track all of them: shares are estimates with the given bounds, and the numbers of sources and destinations are lower bounds.',
        )
      : null,
  );
}

/** What a group of flows has in common: how many they are, which, and other facts about them. */
function groupReading(group) {
  const good = (error) => (error > 0 ? ` ±${bound(error)}` : '');
  const notes = [
    group.overlaps ? 'overlapping' : null,
    group.share_error > 0 ? `share${good(group.share_error)}` : null,
    group.packets_share >= 0.1 && group.packets_share >= 1.5 * group.share
      ? `${percent(group.packets_share)}${good(group.packets_share_error)} of the packets`
      : null,
  ].filter(Boolean);
  return [
    el('b', { class: 'reading' }, group.explosion ? `${group.explosion}: ` : '', group.description),
    notes.length ? el('small', {}, ` ${notes.join('; ')}`) : null,
    shareBar(group.share),
  ];
}

/** Groups, each with its heavy flows below it; `narrow` omits what the reading says already. */
function groupsTable(groups, label, narrow = false) {
  const figures = (part, flows) => [
    narrow ? null : td(flows === null ? '' : 'flows', flows === null ? '' : count(flows), { class: 'figure' }),
    td('', el('b', {}, percent(part.share)), { class: 'figure' }),
    td('sent', bytes(part.bytes, true), { class: 'figure' }),
    narrow ? null : td('pkts', count(part.packets), { class: 'figure' }),
  ];
  const rows = groups.flatMap((group) => [
    el(
      'tr',
      { role: 'row', class: group.heavy.length ? 'group parent' : 'group' },
      td('', groupReading(group).filter(Boolean), { class: 'who' }),
      figures(group, group.flows),
    ),
    ...group.heavy.map((part) =>
      el(
        'tr',
        { role: 'row', class: 'heavy' },
        td('', [el('span', { class: 'unseen' }, 'of these: '), flowName(part.flow)], { class: 'who' }),
        figures(part, null),
      ),
    ),
  ]);
  const head = [
    th('Flows with this in common'),
    narrow ? null : th('Flows', { class: 'figure' }),
    th('Share', { class: 'figure' }),
    th('Sent', { class: 'figure' }),
    narrow ? null : th('Packets', { class: 'figure' }),
  ];
  return table(label, head.filter(Boolean), rows, { class: 'groups' });
}

const KINDS = [
  ['direct', 'Direct', 'Left the queue while it waited: the link sent these packets first.'],
  [
    'indirect',
    'Indirect',
    'Left before it came, since the queue was last empty: without them, the queue would have been shorter.',
  ],
  [
    'original',
    'Original',
    'Raised the queue to its levels at the packet’s arrival: they are the cause, even if their own packets left long before.',
  ],
];

/** What made the packet with the longest delay wait: three kinds of culprits, as a monitor with little memory reports them. */
function worst(report, burst, slots) {
  const found = burst.worst;
  if (!found) return null;
  const busy = burst.peak_at_ns - found.since_ns;
  return el(
    'div',
    { class: 'worst' },
    el('h3', { id: 'worst-title' }, 'Who made the worst packet wait'),
    el(
      'p',
      {},
      `The packet with the longest delay came at ${moment(burst.peak_at_ns, 1e5)} and waited ${duration(burst.peak_delay_ns)}. `,
      busy > 0 ? `By then the queue had not been empty for ${duration(busy)}.` : 'The queue was empty until then.',
    ),
    el(
      'p',
      { class: 'hint' },
      'The figures below are estimated, from a monitor with bounded memory.',
      hasCommand(report) ? ' For the exact answer, run this command, with all other options of this report:' : null,
    ),
    hasCommand(report) ? command(whyCommand(report, burst)) : null,
    el(
      'div',
      { class: 'kinds' },
      KINDS.map(([key, name, meaning]) =>
        el('div', { class: 'kind culprits', 'data-kind': key }, ofKind(name, meaning, found[key], slots)),
      ),
    ),
  );
}

function ofKind(name, meaning, ranked, slots) {
  const title = (size) => el('h4', {}, name, size ? el('small', {}, size) : null);
  if (!ranked)
    return [
      title(),
      el('p', { class: 'meaning' }, meaning),
      el('p', {}, 'Not available: another packet waited longer before the queue was empty again, or packets overtook one another.'),
    ];
  if (ranked.bytes === 0) return [title(), el('p', { class: 'meaning' }, meaning), el('p', {}, 'None.')];
  return [
    title(`${bytes(ranked.bytes)}${ranked.packets === null ? '' : `, ${plural(ranked.packets, 'packet')}`}`),
    el('p', { class: 'meaning' }, meaning),
    ranked.groups.length ? groupsTable(ranked.groups, `${name} culprits: what they have in common`, true) : null,
    ranked.by.flatMap((parts, at) => partsTable(parts, name, at === 0 ? slots : new Map())),
    ranked.classes.length ? classesLine(ranked.classes) : null,
  ].flat();
}

/** The flows of one kind at one granularity. */
function partsTable(parts, name, slots) {
  const { granularity, flows } = parts;
  const packets = flows.some((part) => part.packets !== null);
  const rows = flows.map((part) =>
    el(
      'tr',
      { role: 'row' },
      td('', [flowName(part.flow), shareBar(part.share, slots.get(part.flow))], { class: 'who' }),
      td('', el('b', {}, percent(part.share)), { class: 'figure' }),
      td('sent', bytes(part.bytes, true), { class: 'figure' }),
      packets ? td('pkts', count(part.packets), { class: 'figure' }) : null,
    ),
  );
  const head = [
    th(`Flow (${granularity})`),
    th('Share', { class: 'figure' }),
    th('Sent', { class: 'figure' }),
    packets ? th('Packets', { class: 'figure' }) : null,
  ];
  return [table(`${name} culprits by ${granularity}`, head.filter(Boolean), rows), restLine(parts)];
}

function classesLine(classes) {
  const each = classes.map((entry) => `class ${entry.class}: ${percent(entry.share)}`);
  return el('p', { class: 'hint' }, `By class of service: ${each.join(', ')}`);
}

// The command for the exact answer.

/** Whether there is one: `why` reads captures with a tail-drop queue, and tables. */
function hasCommand(report) {
  return !report.tap && !report.sim && !report.setup.aqm;
}

/** The `queuescope why` command for the arrival of the burst's worst packet, with the settings of this report. */
function whyCommand(report, burst) {
  const { input, setup } = report;
  const words = ['queuescope', 'why', quoted(input.name === '-' ? 'FILE' : input.name)];
  if (setup.rate_bps === null) words.push('--departures');
  else {
    words.push('--rate', rateArgument(setup.rate_bps));
    const tight = (text) => text.replace(/\s+/g, '');
    if (!/^1(\.0+)?s$/.test(tight(setup.limit))) words.push('--limit', quoted(tight(setup.limit)));
    if (setup.speedup !== '1') words.push('--speedup', quoted(setup.speedup));
    if (setup.overhead !== 'none') words.push('--overhead', quoted(tight(setup.overhead)));
    if (setup.inner) words.push('--inner');
    if (setup.split_gso) words.push('--split-gso');
    const by = setup.granularities.join(',');
    if (by !== '5tuple,dst') words.push('--by', quoted(by));
  }
  if (setup.input_filter) words.push('--input', quoted(setup.input_filter, 'EXPRESSION'));
  words.push('--at', timeArgument(burst.peak_at_ns));
  return words.join(' ');
}

/** A word quoted for a shell. A name that could act on a terminal when it is pasted is left for the user to fill in. */
function quoted(word, hidden = 'FILE') {
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(word)) return hidden;
  if (/^[\w./:@%+,=-]+$/.test(word)) return word.startsWith('-') && word !== '-' ? `./${word}` : word;
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** `100mbps`: exact for every rate. */
function rateArgument(bits) {
  const units = ['bps', 'kbps', 'mbps', 'gbps', 'tbps'];
  let at = 0;
  while (at < units.length - 1 && bits % 1000 === 0) {
    bits /= 1000;
    at += 1;
  }
  return `${bits}${units[at]}`;
}

/** A time in seconds to the nanosecond. */
function timeArgument(ns) {
  const text = `${Math.floor(ns / 1e9)}.${String(Math.round(ns % 1e9)).padStart(9, '0')}`;
  return `${text.replace(/\.?0+$/, '')}s`;
}

/** A command to copy: a click selects all of it. */
function command(text) {
  const code = el('code', { tabindex: '0' }, text);
  return el('div', { class: 'command' }, code, copyButton('command', code));
}

/** Copies the text of `from`, which is a `what`. */
function copyButton(what, from) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(from.textContent);
      press.textContent = 'Copied';
      announce(`The ${what} is copied.`);
    } catch {
      // Browsers may deny pages the clipboard. Selected text can be copied by hand.
      getSelection().selectAllChildren(from);
      announce(`The ${what} is selected.`);
    }
  };
  const press = button('Copy', copy, { class: 'quiet', 'aria-label': `Copy the ${what}` });
  return press;
}
