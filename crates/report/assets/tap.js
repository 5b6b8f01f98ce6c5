// A router measured from outside: its captures, their clocks, and what happened to packets.

/** How packets were matched before and behind the router; empty without one. */
function tapSection(report) {
  const { tap } = report;
  if (!tap) return null;
  const links = tap.ingress.map((link) =>
    el(
      'tr',
      { role: 'row' },
      td('', link.name, { class: 'who' }),
      td('', count(link.packets), { class: 'figure number' }),
      td('', count(link.matched), { class: 'figure number' }),
      td('', count(link.lost), { class: 'figure number' }),
      td('', clockWords(link.clock), { class: 'words' }),
    ),
  );
  const fates = tap.counts
    .filter((fate) => fate.packets > 0)
    .map((fate) =>
      el(
        'tr',
        { role: 'row' },
        td('', count(fate.packets), { class: 'figure number' }),
        td('', fate.name.replaceAll('_', ' '), { class: 'who' }),
        td('', fate.meaning, { class: 'words' }),
      ),
    );
  const more = tap.lost_omitted ? ', and of other flows' : '';
  const lost = tap.lost.map((flow) => `${flow.flow} (${count(flow.packets)} packets)`).join(', ');
  const figure = (name) => th(name, { class: 'figure' });
  return section(
    'tap',
    'Captures of the router',
    el(
      'p',
      {},
      `Packets were matched in ${tap.egress} (${count(tap.egress_packets)} packets) by the fields that a router does not change. Delays count from the shortest time through the router.`,
    ),
    table('Links into the router', [th('Link in'), figure('Packets'), figure('Came out'), figure('Lost'), th('Clock')], links, {
      class: 'skipped',
    }),
    table('Outcomes of packets', [figure('Packets'), th('What'), th('What it means')], fates, { class: 'skipped' }),
    tap.lost.length > 0 ? el('p', {}, `Lost in the router: ${lost}${more}.`) : null,
  );
}

function clockWords(clock) {
  if (!clock) return 'unknown: left out, because none of its packets were matched';
  const seconds = (Math.abs(clock.offset_ns) / 1e9).toFixed(9);
  const offset = `the clock behind the router is ${seconds} s ${clock.offset_ns < 0 ? 'behind' : 'ahead'}`;
  const error = clock.drift_error_ppm === null ? '' : ` ± ${Number(clock.drift_error_ppm.toPrecision(2))}`;
  const drift = clock.drift_ppm === null ? 'drift unknown' : `drift ${clock.drift_ppm.toFixed(3)}${error} ppm`;
  const support = percent(clock.intervals_supporting / Math.max(clock.intervals, 1));
  return `${offset}, ${drift}; ${support} of the periods agree within ${duration(clock.within_ns)}`;
}
