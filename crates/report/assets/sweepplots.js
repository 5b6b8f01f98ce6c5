// The plots of a sweep, and their captions.

/** The plots of a sweep; none if there is nothing to compare. */
function sweepPlots(sweep) {
  const places = sweep.parameters.map(({ values }) => new Map(values.map((value, at) => [value, at])));
  for (const row of sweep.rows) row.at = row.values.map((value, at) => places[at].get(value));
  const parameters = sweep.parameters.map(parameterAxis);
  const several = parameters.filter((axis) => new Set(sweep.rows.map((row) => row.at[axis.parameter])).size > 1);
  const all = [...ofQueue(sweep), ...OF_FLOWS].map(figureAxis);
  const figures = all.filter((axis) => sweep.rows.some((row) => row.figures[axis.key] !== null));
  if (several.length === 0 || figures.length === 0) return [];
  const find = (axes, key) =>
    Math.max(
      0,
      axes.findIndex((axis) => axis.key === key),
    );
  // Numbers make a better axis than names, and many values a better one than few.
  const axis = [...several].sort((a, b) => a.names - b.names || b.values.length - a.values.length)[0];
  const plots = [
    new SweepPlot(sweep, parameters, {
      id: 'against',
      title: 'A figure against a parameter',
      across: { axes: several, first: several.indexOf(axis) },
      up: { axes: figures, first: find(figures, 'delay_mean_ns') },
    }),
  ];
  if (figures.length < 2) return plots;
  const first = find(figures, 'goodput_bps');
  const delay = find(figures, 'delay_mean_ns');
  const scatter = { axes: figures, first };
  const up = { axes: figures, first: delay === first ? 1 : delay };
  plots.push(
    new SweepPlot(sweep, parameters, { id: 'scatter', title: 'Two figures against each other', across: scatter, up }),
  );
  return plots;
}

/** What a plot shows, in words. */
function captionOf(plot) {
  const { sweep, roles, more } = plot;
  const [across, up] = plot.scales;
  const axes = [
    [plot.across, across],
    [plot.up, up],
  ];
  const figures = axes.filter(([axis]) => axis.figure);
  const points = plot.panels.flatMap((panel) => panel.lines.flatMap((line) => line.points));
  const only = roles.fixed().map((axis) => `${axis.title} ${axis.values[Number(roles.role(axis))]}`);
  const log = axes.filter(([, scale]) => scale.log).map(([axis]) => axis.name);
  const close = figures.filter(([, scale]) => !scale.log && scale.min > 0).map(([axis]) => axis.name);
  const spread = points.some(({ row }) => figures.some(([axis]) => row.figures[axis.key].half_width > 0));
  const off = points.some(({ row }) => figures.some(([axis, scale]) => scale.log && axis.of(row).at <= 0));
  const those = (names, one, many) =>
    names.length > 1 ? `The axes of ${names.join(' and ')} ${many}.` : `The axis of ${names[0]} ${one}.`;
  const are = (number, word, rest, one = 'is', many = 'are') =>
    number > 0 ? `${plural(number, word)} ${number === 1 ? one : many} ${rest}` : null;
  const words = [
    `${plot.up.title} against ${plot.across.name}${only.length ? `, only ${only.join(', ')}` : ''}.`,
    spread && plot.whiskers ? 'Whiskers are 95 % confidence intervals over the seeds.' : null,
    spread && !plot.whiskers ? 'Point at a point to see its confidence interval.' : null,
    sweep.seeds === 1 ? 'With one seed there are no intervals.' : null,
    log.length ? those(log, 'is logarithmic', 'are logarithmic') : null,
    off ? 'A hollow point at its end is a 0.' : null,
    close.length ? those(close, 'does not begin at 0', 'do not begin at 0') : null,
    are(plot.absent, 'combination', 'missing.'),
    are(plot.missing, 'combination', 'no value.', 'has', 'have'),
    are(more.lines, 'more line', 'not drawn: choose one value of a parameter, or panels.'),
    are(more.panels, 'more panel', 'not drawn.'),
  ];
  return words.filter(Boolean).join(' ');
}
