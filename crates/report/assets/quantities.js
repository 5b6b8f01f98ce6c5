// The axes that a sweep's plots can have: a figure, or a swept parameter.

const share = (value) => (value === null ? DASH : `${number(value * 100, 3)}${THIN}%`);
const time = (value) => duration(Math.round(value), true);
const plain = (value) => value.toFixed(3);

// A figure's name in the data, its column's title, its format, its description, and its own name.
const OF_QUEUE = [
  ['goodput_bps', 'Goodput', rate, 'What the receivers of all flows got in order', 'Goodput'],
  ['utilisation', 'Busy', share, 'What the link sent, as a share of what its rate allows', 'Utilisation'],
  ['delay_mean_ns', 'Delay', time, 'The mean time that packets waited in the queue', 'Mean delay'],
  ['delay_p95_ns', '95 %', time, 'The time that 95 % of packets waited at most', '95 % delay'],
  ['delay_p99_ns', '99 %', time, 'The time that 99 % of packets waited at most', '99 % delay'],
  ['drop_rate', 'Dropped', share, 'Packets that the queue dropped, as a share of what came to it', 'Drop rate'],
  ['loss_rate', 'Lost', share, 'Packets lost on the link by chance, as a share of what it sent', 'Loss rate'],
  ['mark_rate', 'Marked', share, 'Packets marked, as a share of what came to the queue', 'Mark rate'],
  ['jain', 'Jain', plain, 'Jain’s index of the goodput of all flows: 1 where all got the same', 'Jain’s index'],
];
const OF_FLOWS = [
  ['completion_mean_ns', 'Mean', time, 'The mean flow completion time', 'Mean completion time'],
  ['completion_p50_ns', 'Median', time, 'The median flow completion time', 'Median completion time'],
  [
    'completion_p95_ns',
    '95 %',
    time,
    'The flow completion time that 95 % of flows took at most',
    '95 % completion time',
  ],
  [
    'completion_p99_ns',
    '99 %',
    time,
    'The flow completion time that 99 % of flows took at most',
    '99 % completion time',
  ],
];

/** The shown figures of a queue. Few links lose packets; the others need no column for that. */
function ofQueue({ rows }) {
  const isLossy = rows.some(({ figures }) => figures.loss_rate?.mean > 0);
  return OF_QUEUE.filter(([key]) => isLossy || key !== 'loss_rate');
}

// An axis is logarithmic if its numbers span more than one and a half decades.
const FACTORS = 10 ** 1.5;

const leastOf = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);
const mostOf = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);
const spanned = (values) => leastOf(values) > 0 && mostOf(values) / leastOf(values) > FACTORS;

/** A figure as an axis. */
function figureAxis([key, , show, about, title]) {
  const most = show === share || show === plain ? 1 : Infinity; // the largest possible value
  const kind = new Map([
    [rate, 'rate'],
    [share, 'share'],
    [time, 'time'],
    [plain, 'count'],
  ]).get(show);
  const of = (row) => {
    const figure = row.figures[key];
    if (figure === null) return null;
    const half = figure.half_width ?? 0;
    return { at: figure.mean, low: Math.max(figure.mean - half, 0), high: Math.min(figure.mean + half, most) };
  };
  const words = (row) => figureWords(row.figures[key], show);
  const unit = { [share]: 0.01, [plain]: 1 }[show] ?? 1e6; // the range of an axis where all values are zero
  const name = key === 'jain' ? title : title.toLowerCase();
  return { key, title, name, about, figure: true, of, words, ticks: ticksOf(kind), most, unit };
}

/** A figure with half of its confidence interval, in words. */
function figureWords(mean, show) {
  if (mean === null) return DASH;
  const half = mean.half_width === null ? '' : ` ±${THIN}${mean.half_width === 0 ? 0 : show(mean.half_width)}`;
  return `${show(mean.mean)}${half}`;
}

// Units of a scenario's values in lower case, by quantity.
const BITS = ['bps', 'bit', 'b/s', 'bit/s', 'bits/s'];
const UNITS = {
  time: { ns: 1, us: 1e3, '\u00b5s': 1e3, '\u03bcs': 1e3, ms: 1e6, s: 1e9, sec: 1e9, min: 60e9 },
  rate: Object.fromEntries(['', 'k', 'm', 'g', 't'].flatMap((k, n) => BITS.map((unit) => [k + unit, 1000 ** n]))),
  size: {
    b: 1, byte: 1, bytes: 1,
    k: 1e3, m: 1e6, g: 1e9,
    kb: 1e3, mb: 1e6, gb: 1e9,
    kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3,
  },
  packets: { p: 1, pkt: 1, pkts: 1, packet: 1, packets: 1 },
  bdp: { bdp: 1 },
  share: { '%': 0.01 },
  count: { '': 1 },
};
const some = (value, digits) => (Math.abs(value) >= 1000 ? count(value) : number(value, digits));
const SHOWN = {
  time: (ns, digits) => withUnit(ns, TIMES, false, digits),
  rate: (bps, digits) => withUnit(bps, RATES, false, digits),
  size: (size, digits) => withUnit(size, SIZES, false, digits),
  packets: (value, digits) => `${some(value, digits)}${THIN}packets`,
  bdp: (value, digits) => `${some(value, digits)}${THIN}BDP`,
  share: (value, digits) => `${number(value * 100, digits)}${THIN}%`,
  count: some,
};

/** The format of numbers of a kind on an axis: with as many digits as are needed to distinguish them. */
function ticksOf(kind) {
  const label = (value, digits) => (value === 0 ? '0' : SHOWN[kind](value, digits));
  return (values) => {
    let labels = [];
    for (let digits = 3; digits <= 9; digits += 1) {
      labels = values.map((value) => label(value, digits));
      if (new Set(labels).size === values.length) break;
    }
    return labels;
  };
}

// A number in a scenario's notation, and its unit.
const QUANTITY = /^([+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[+-]?\d+)?)\s*([a-z\u00b5\u03bc%/]*)$/i;

/** Values as numbers of one kind; null if they are names. A bare 0 belongs to the kind of the others. */
function measured(values) {
  const read = values.map((value) => {
    const [, digits, unit] = QUANTITY.exec(value.trim()) ?? [];
    if (digits === undefined) return null;
    const kind = Object.keys(UNITS).find((name) => Object.hasOwn(UNITS[name], unit.toLowerCase()));
    if (!kind) return null;
    return { kind, value: Number(digits.replaceAll('_', '')) * UNITS[kind][unit.toLowerCase()] };
  });
  if (read.some((one) => one === null || !Number.isFinite(one.value))) return null;
  const { kind } = read.find((one) => one.kind !== 'count') ?? read[0];
  if (read.some((one) => one.kind !== kind && !(one.kind === 'count' && one.value === 0))) return null;
  return { kind, numbers: read.map((one) => one.value) };
}

/** A swept parameter as an axis: of numbers, or of names side by side. */
function parameterAxis({ path, values }, at) {
  const known = measured(values);
  const names = known === null || new Set(known.numbers).size < 2;
  const numbers = names ? values.map((_, n) => n) : known.numbers;
  const of = (row) => ({ at: numbers[row.at[at]], low: numbers[row.at[at]], high: numbers[row.at[at]] });
  const ticks = names ? null : ticksOf(known.kind);
  const words = (row) => row.values[at];
  const ranks = new Map([...new Set(numbers)].sort((a, b) => a - b).map((value, rank) => [value, rank]));
  const rank = (value) => ranks.get(value); // its index among the values
  return {
    key: `parameter-${at}`,
    parameter: at,
    title: path,
    name: path,
    values,
    names,
    numbers,
    of,
    words,
    ticks,
    rank,
  };
}
