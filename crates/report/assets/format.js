// Numbers for people. Times are in nanoseconds, sizes in bytes, rates in bits per second, shares as fractions.

const THIN = '\u202f'; // narrow no-break space, between a number and its unit
const DASH = '–';

/**
 * `value` to about `digits` significant digits, never with an exponent. Zeros at the end of a fraction are kept only
 * for numbers in a column.
 */
function number(value, digits = 3, column = false) {
  if (value === null || value === undefined || !Number.isFinite(value)) return DASH;
  const size = Math.abs(value);
  const decimals = size >= 10 ** (digits - 1) || size === 0 ? 0 : digits - 1 - Math.floor(Math.log10(size));
  const text = value.toFixed(Math.min(decimals, 9));
  return decimals > 0 && !column ? text.replace(/\.?0+$/, '') : text;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** A whole number with separated thousands. */
function count(value) {
  if (value === null || value === undefined) return DASH;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `3 bursts`, `1 burst`. */
function plural(value, one, many = one + 's') {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'];
const RATES = ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s'];
const TIMES = ['ns', 'µs', 'ms', 's'];

function withUnit(value, units, column, digits = 3) {
  let at = 0;
  // 999.6 would be written as 1000 of the smaller unit.
  while (at < units.length - 1 && Math.abs(value) >= 999.5) {
    value /= 1000;
    at += 1;
  }
  return `${number(value, digits, column && at > 0)}${THIN}${units[at]}`;
}

const bytes = (value, column = false) => (value === null ? DASH : withUnit(value, SIZES, column));
const rate = (value) => (value === null ? DASH : withUnit(value, RATES, false));

/** A duration in one unit, however long, as on an axis. */
const oneUnit = (ns) => withUnit(ns, TIMES, false);

/** A duration. */
function duration(ns, column = false) {
  if (ns === null || ns === undefined) return DASH;
  if (ns === 0) return `0${THIN}s`;
  if (ns < 120e9) return withUnit(ns, TIMES, column);
  const seconds = Math.round(ns / 1e9);
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${count(h)}${THIN}h ${m}${THIN}min` : `${m}${THIN}min${s > 0 ? ` ${s}${THIN}s` : ''}`;
}

/**
 * A point in time, counted from the first packet, fine enough to distinguish points `step` nanoseconds apart. Points
 * that are shown together pass the largest of them as `reach`, so that all have one unit.
 */
function moment(ns, step, reach = ns) {
  const [unit, name] = reach >= 1e9 || reach === 0 ? [1e9, 's'] : reach >= 1e6 ? [1e6, 'ms'] : [1e3, 'µs'];
  const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return `${(ns / unit).toFixed(decimals)}${THIN}${name}`;
}

/** A share as a percentage. Only zero reads as `0 %`, and only the whole as `100 %`. */
function percent(share) {
  if (share === null || share === undefined) return DASH;
  const value = share * 100;
  if (value > 0 && value < 0.1) return `<${THIN}0.1${THIN}%`;
  if (value > 99.9 && value < 100) return `>${THIN}99.9${THIN}%`;
  return `${value < 9.95 || value > 99 ? number(value, 2 + (value > 99)) : value.toFixed(0)}${THIN}%`;
}

/** The largest error of a share as a percentage, rounded up so that the printed bound holds. */
function bound(error) {
  return `${(Math.ceil(error * 1000) / 10).toFixed(1)}${THIN}%`;
}

/** The date `ns` after the Unix epoch. A time that is not a date (a count from some start) is described as such. */
function date(ns) {
  if (ns < 86400e9 * 365) return `${duration(ns)} on the clock of the input (not a date)`;
  const iso = new Date(ns / 1e6).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC`;
}

/** What a granularity distinguishes, in words. */
function granularityWords(name) {
  const [kind, v4, v6] = name.split('/');
  const of = v4 ? ` (IPv4 /${v4}, IPv6 /${v6 ?? v4 * 2})` : '';
  const words = {
    '5tuple': 'addresses, ports and protocol; each direction apart',
    conn: 'connections, both directions as one',
    'src-dst': 'pairs of source and destination',
    src: v4 ? 'source networks' : 'sources',
    dst: v4 ? 'destination networks' : 'destinations',
    dscp: 'the class that packets are marked with',
    vlan: 'virtual networks',
  };
  return (words[kind] ?? '') + of;
}
