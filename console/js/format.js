// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** @param {number} value */
export function count(value) {
  return whole.format(value);
}

/**
 * 1,234 → `1.2 K`; exact below 10,000.
 *
 * @param {number} value
 */
export function short(value) {
  if (value < 10_000) return whole.format(value);
  return scaled(value, 1000, ["", " K", " M", " B", " T"]);
}

/** @param {number} value */
export function bytes(value) {
  return scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]);
}

/**
 * @param {number} value
 * @param {number} base
 * @param {string[]} units
 */
function scaled(value, base, units) {
  let unit = 0;
  while (value >= base && unit < units.length - 1) {
    value /= base;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return value.toFixed(digits) + units[unit];
}

/**
 * Two digits that count: `$0`, `$1.23`, `$0.00000040`.
 *
 * @param {number} value
 */
export function dollars(value) {
  if (value <= 0) return "$0";
  const digits = Math.max(2, 1 - Math.floor(Math.log10(value)));
  return `$${value.toFixed(Math.min(digits, 12))}`;
}

/**
 * A duration: `0.42 ms`, `12.4 ms`, `1.53 s`, `2 m 05 s`, `3 h 12 m`.
 *
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${ms.toFixed(0)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(2)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${pad(Math.floor(seconds % 60))} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} m`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * A duration in three digits at most: `420 µs`, `12.4 ms`, `1.5 s`.
 *
 * @param {number} ms
 */
export function shortDuration(ms) {
  if (ms < 1) return `${Number((ms * 1000).toPrecision(3))} µs`;
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`;
  return `${Number((ms / 1000).toPrecision(3))} s`;
}

/**
 * One unit for all values of a column: that of the largest, with three digits that count.
 *
 * @param {number[]} values
 * @param {[number, string][]} units how many of what is given each has, and its name; ascending
 * @returns {(value: number) => string}
 */
function inOneUnit(values, units) {
  const largest = Math.max(0, ...values.filter(Number.isFinite));
  const [size, name] = units.findLast(([each]) => largest >= each) ?? units[0] ?? [1, ""];
  return (value) => {
    const scaled = value / size;
    const digits = scaled === 0 ? 0 : Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(scaled)))));
    const text = grouped(digits).format(scaled);
    return scaled !== 0 && Number(scaled.toFixed(digits)) === 0 ? `< ${grouped(digits).format(10 ** -digits)} ${name}` : `${text} ${name}`;
  };
}

/** @type {Intl.NumberFormat[]} */
const BY_DIGITS = [];

/** @param {number} digits behind the point */
function grouped(digits) {
  return (BY_DIGITS[digits] ??= new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
}

/**
 * Durations of one column, in one unit.
 *
 * @param {number[]} all milliseconds
 */
export function durationsOf(all) {
  return inOneUnit(all, [[0.001, "µs"], [1, "ms"], [1000, "s"]]);
}

/**
 * Sizes of one column, in one unit.
 *
 * @param {number[]} all bytes
 */
export function sizesOf(all) {
  return inOneUnit(all, [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"], [1024 ** 4, "TiB"]]);
}

/**
 * A share of 0 to 1: `–`, `0 %`, `7.3 %`, `98 %`, `99.6 %`; never rounded up to all.
 *
 * @param {number | null} value
 */
export function percent(value) {
  if (value === null) return "–";
  const hundredths = 100 * value;
  const digits = (hundredths > 0 && hundredths < 10) || (hundredths > 99 && hundredths < 100) ? 1 : 0;
  const shown = Math.floor(hundredths * 10 ** digits) / 10 ** digits;
  return `${shown.toFixed(digits)} %`;
}

/**
 * How long ago: `now`, `12 s`, `4 m`, `2 h`, `3 d`.
 *
 * @param {number} ms
 */
export function ago(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 1) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/**
 * A rate per second: `0`, `0.25`, `3.4`, `1,284`.
 *
 * @param {number} value
 */
export function rate(value) {
  return value < 10 ? String(Number(value.toPrecision(2))) : whole.format(value);
}

/** @param {number} unixMs */
export function dateTime(unixMs) {
  const date = new Date(unixMs);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/**
 * @param {number} value
 * @param {string} one
 */
export function plural(value, one) {
  return `${count(value)} ${one}${value === 1 ? "" : "s"}`;
}

/** @param {number} value */
function pad(value) {
  return String(value).padStart(2, "0");
}

/**
 * A sort order without what goes without saying: ascending means NULLs first, descending last.
 *
 * @param {string[]} terms
 */
export function sortOrder(terms) {
  return terms.map((term) => term.replace(/ ASC NULLS FIRST$/, "").replace(/ DESC NULLS LAST$/, " DESC").replace(/ ASC /, " ")).join(", ");
}

/**
 * A statement on one line, without runs of blanks.
 *
 * @param {string} sql
 */
export function oneLine(sql) {
  return sql.replace(/\s+/g, " ").trim();
}

/**
 * Hours, minutes and seconds of a time.
 *
 * @param {number} unixMs
 */
export function timeOfDay(unixMs) {
  return new Date(unixMs).toLocaleTimeString("en-GB");
}

/**
 * A message as a sentence: errors of the server begin small and have no full stop.
 *
 * @param {string} message
 */
export function sentence(message) {
  const text = /^[a-z][a-z]*(\s|$)/.test(message) ? message.charAt(0).toUpperCase() + message.slice(1) : message;
  return /[.!?…:]$/.test(text) ? text : `${text}.`;
}
