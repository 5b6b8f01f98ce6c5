// The axes of a sweep's plots: their ranges and labels.

/**
 * The scale of an axis with `places` (each with `at`, `low`, `high`); `how` is `auto`, `zero`, `close` or `log`.
 * Intervals that are far longer than the figures themselves are cut off.
 */
function scaleOf(axis, places, how) {
  if (axis.names) return { log: false, min: -0.6, max: axis.values.length - 0.4 };
  if (!axis.figure) {
    const [least, most] = [leastOf(axis.numbers), mostOf(axis.numbers)];
    const log = spanned(axis.numbers);
    const room = log ? (most / least) ** 0.04 : (most - least) * 0.04;
    return log ? { log, min: least / room, max: most * room } : { log, min: least - room, max: most + room };
  }
  const at = places.map((place) => place.at);
  const positive = at.filter((value) => value > 0);
  if (positive.length === 0) return { log: false, min: 0, max: axis.unit };
  const [least, most] = [leastOf(at), mostOf(at)];
  const high = Math.min(mostOf(places.map((place) => place.high)), 2 * most);
  if (how === 'log' || (how === 'auto' && spanned(at))) {
    const first = leastOf(positive);
    const low = leastOf(places.map((place) => (place.low > 0 ? Math.max(place.low, first / 3) : first)));
    const room = Math.max((high / low) ** 0.05, 1.1);
    return { log: true, min: low / room, max: high * room };
  }
  if (how === 'close' || (how === 'auto' && least > 0.7 * most)) {
    const low = Math.max(leastOf(places.map((place) => place.low)), least - (most - least) * 2 - most * 0.02);
    const room = Math.max((high - low) * 0.08, most * 0.002);
    return { log: false, min: Math.max(low - room, 0), max: high + room };
  }
  return { log: false, min: 0, max: high * 1.06 };
}

/** The positions of the labels on an axis of numbers: at the values if there are few, otherwise at round numbers. */
function numberTicks(axis, { log, min, max }, narrow) {
  const most = axis.most ?? Infinity; // above it there is room for points, but not for numbers
  const values = (_, ticks) => axis.ticks(ticks).map((label, n) => (ticks[n] > most * 1.0001 ? '' : label));
  const filter = (_, ticks) => ticks;
  if (!axis.figure && axis.numbers.length <= 12) {
    const unlike = [...new Set(axis.numbers)].sort((a, b) => a - b);
    return { splits: (plot) => roomy(plot, unlike, narrow ? 46 : 60), values, filter };
  }
  if (log) return { splits: () => logSteps(min, max, narrow ? 4 : 8), values, filter };
  return { values };
}

/** Those of the sorted values whose labels are `pixels` apart: from the first on, and the last. */
function roomy(plot, values, pixels) {
  const end = plot.valToPos(values.at(-1), 'x');
  let last = -Infinity;
  return values.filter((value, n) => {
    const at = plot.valToPos(value, 'x');
    const kept = at - last >= pixels && (n === values.length - 1 || end - at >= pixels);
    if (kept) last = at;
    return kept;
  });
}

/** Labels of names: horizontal if they fit, otherwise vertical, and only some of them if those do not fit either. */
function nameTicks(values, { width }) {
  const each = (width - 76) / values.length;
  const ruler = document.createElement('canvas').getContext('2d');
  ruler.font = axisLook(width < 560)[0].font;
  const reach = (names) => mostOf(names.map((name) => ruler.measureText(name).width));
  const names = shortNames(values, 22);
  const flat = reach(names) + 8 <= each;
  const every = Math.ceil(15 / Math.max(each, 1));
  return {
    splits: () => values.map((_, n) => n).filter((n) => flat || n % every === 0),
    values: (_, ticks) => ticks.map((n) => names[n]),
    filter: (_, ticks) => ticks,
    grid: { show: false },
    rotate: flat ? 0 : 90,
    size: flat ? 28 : Math.ceil(reach(names)) + 16,
  };
}

/** Names that fit on an axis: without a table's marks and, if still too long, without their common part. */
function shortNames(names, most) {
  const plainly = (name) =>
    name
      .replace(/[{}"=\s]+/g, ' ')
      .replaceAll(' ,', ',')
      .trim();
  const words = names.map(plainly);
  if (words.every((name) => name.length <= most)) return words;
  const parts = words.map((name) => name.split(/(?<=\s)/));
  const fewest = leastOf(parts.map((part) => part.length));
  const same = (at) => parts.every((part) => part.at(at) === parts[0].at(at));
  let [first, last] = [0, 0];
  while (names.length > 1 && first < fewest - 1 && same(first)) first += 1;
  while (names.length > 1 && last < fewest - 1 - first && same(-1 - last)) last += 1;
  const own = parts.map((part) => {
    const rest = part
      .slice(first, part.length - last)
      .join('')
      .replace(/,?\s*$/, '');
    return `${first ? '…' : ''}${rest}${last ? '…' : ''}`;
  });
  return own.map((name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name));
}
