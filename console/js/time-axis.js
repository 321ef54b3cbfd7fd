// Times along an axis: where they are, and ticks at full hours, days and months of a time zone.

/** Types whose values are times; those with a zone are moments, the others are as they are written. */
const TIMES = /^(date|timestamp)/i;
const WITH_ZONE = /^(timestamptz|timestamp.* with time zone)/i;

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
/** Steps of less than a month, ms. */
const STEPS = [1, 2, 5, 10, 15, 30].map((n) => n * SECOND)
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14].map((n) => n * DAY));
const MONTHS = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000];

/** @param {string} type of a column */
export function isTime(type) {
  return TIMES.test(type);
}

/** @param {string} type of a column */
export function hasZone(type) {
  return WITH_ZONE.test(type);
}

/**
 * Milliseconds since 1970; of times without a zone as if they were in UTC.
 *
 * @param {unknown} value as the server writes it
 * @returns {number | null}
 */
export function timeOf(value) {
  const found = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(\.\d+)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/.exec(String(value));
  if (!found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part ?? 0));
  const wall = Date.UTC(year ?? 0, (month ?? 1) - 1, day ?? 1, hour, minute, second) + Math.round(Number(found[7] ?? 0) * 1000);
  const zone = /^([+-])(\d\d):?(\d\d)?$/.exec(found[8] ?? "");
  const offset = zone ? (zone[1] === "-" ? -1 : 1) * (Number(zone[2]) * 60 + Number(zone[3] ?? 0)) * MINUTE : 0;
  return Number.isFinite(wall) ? wall - offset : null;
}

/** @type {Map<string, Intl.DateTimeFormat>} */
const FORMATS = new Map();

/**
 * What a clock of the zone shows, as if it were in UTC.
 *
 * @param {number} at ms since 1970
 * @param {string} zone such as `Europe/Berlin`
 */
export function wallOf(at, zone) {
  if (zone === "UTC") return at;
  let format = FORMATS.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" });
    FORMATS.set(zone, format);
  }
  /** @type {Record<string, number>} */
  const parts = {};
  for (const { type, value } of format.formatToParts(at)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((at % SECOND) + SECOND) % SECOND);
}

/**
 * When the clock of the zone shows this; where it never does, as clocks are put forward, just after that.
 *
 * @param {number} wall
 * @param {string} zone
 */
function momentOf(wall, zone) {
  const first = wall - (wallOf(wall, zone) - wall);
  const second = wall - (wallOf(first, zone) - first);
  return wallOf(first, zone) === wall ? first : second;
}

/**
 * Ticks of an axis, at most so many.
 *
 * @param {number} from ms since 1970
 * @param {number} to
 * @param {number} most
 * @param {string} zone
 * @returns {{ at: number, label: string }[]}
 */
export function timeTicks(from, to, most, zone) {
  const span = Math.max(to - from, 1);
  const step = STEPS.find((each) => span / each <= most);
  const [first, last] = [wallOf(from, zone), wallOf(to, zone)];
  /** @type {number[]} */
  const walls = [];
  if (step !== undefined) {
    // Weeks begin on Mondays: 1970-01-05 was one.
    const origin = step >= 7 * DAY ? 4 * DAY : 0;
    for (let wall = Math.ceil((first - origin) / step) * step + origin; wall <= last; wall += step) walls.push(wall);
  } else {
    const months = MONTHS.find((each) => span / (each * 30.4 * DAY) <= most) ?? 12_000;
    const begin = new Date(first);
    for (let month = Math.ceil((begin.getUTCFullYear() * 12 + begin.getUTCMonth()) / months) * months; ; month += months) {
      const wall = new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1);
      if (wall > last) break;
      if (wall >= first) walls.push(wall);
    }
  }
  // Hours that clocks leave out have no tick; days begin a little later then.
  const ticks = walls.map((wall) => ({ at: momentOf(wall, zone), wall, label: labelOf(wall, step) }))
    .filter(({ at, wall }) => step === undefined || step >= DAY || wallOf(at, zone) === wall);
  return ticks.filter(({ at }, index) => at >= from && at <= to && (index === 0 || at > (ticks[index - 1]?.at ?? -Infinity)));
}

/**
 * @param {number} wall
 * @param {number | undefined} step in ms, if it is less than a month
 */
function labelOf(wall, step) {
  const text = new Date(wall).toISOString();
  const [date = "", time = ""] = [text.slice(0, 10), text.slice(11, 19)];
  if (step === undefined) return date.endsWith("-01-01") ? date.slice(0, 4) : date.slice(0, 7);
  if (step >= DAY || time === "00:00:00") return date;
  return step >= MINUTE ? time.slice(0, 5) : time;
}

/** The zone of this browser. */
export function ownZone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/**
 * A moment as a clock of the zone shows it.
 *
 * @param {number} at
 * @param {string} zone
 */
export function timeText(at, zone) {
  return new Date(wallOf(at, zone)).toISOString().replace("T", " ").replace(/(?:\.000)?Z$/, "").replace(/(\.\d+)Z$/, "$1");
}
