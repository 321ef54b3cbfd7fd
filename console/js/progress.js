// How fast running queries go: what they have read and given between two looks at them.

import { Chart } from "./charts.js";
import { h } from "./dom.js";
import { bytes } from "./format.js";

/** @typedef {import("./api.js").QueryInfo} QueryInfo */
/** Per second. @typedef {{ bytes: number, rows: number }} Rate */

const SPAN_MS = 60_000;
/** Two looks closer than this make no rate. */
const BETWEEN_MS_MIN = 400;

/** @typedef {{ at: number, bytes: number, rows: number, rate: Rate | null, points: import("./charts.js").Point[] }} Seen */

export class Progress {
  /** @type {Map<number, Seen>} */
  #seen = new Map();
  #now = 0;

  constructor() {
    this.chart = new Chart({ label: "Bytes read per second over the last minute", series: [{ name: "read/s", class: "rate" }], area: true, format: bytes, minTop: 1024, spanMs: SPAN_MS, heightPx: 84 });
    this.element = h("div", { class: "progress" }, h("h3", {}, "Read per second"), this.chart.element);
  }

  /**
   * @param {QueryInfo[]} running
   * @param {number} now ms since 1970
   */
  see(running, now) {
    this.#now = now;
    /** @type {Map<number, Seen>} */
    const seen = new Map();
    for (const query of running) seen.set(query.id, next(this.#seen.get(query.id), query, now));
    this.#seen = seen;
  }

  /**
   * @param {number} id
   * @returns {Rate | null} `null` before the second look
   */
  of(id) {
    return this.#seen.get(id)?.rate ?? null;
  }

  /** @param {number} id */
  draw(id) {
    this.chart.update(this.#seen.get(id)?.points ?? [], this.#now);
  }
}

/**
 * @param {Seen | undefined} before
 * @param {QueryInfo} query
 * @param {number} now
 * @returns {Seen}
 */
function next(before, query, now) {
  const read = { at: now, bytes: query.bytes_read, rows: query.rows };
  if (!before) return { ...read, rate: null, points: [] };
  const seconds = (now - before.at) / 1000;
  if (seconds * 1000 < BETWEEN_MS_MIN) return before;
  const rate = { bytes: Math.max(0, read.bytes - before.bytes) / seconds, rows: Math.max(0, read.rows - before.rows) / seconds };
  const points = [...before.points, { at: now, values: [rate.bytes] }].filter((point) => point.at > now - SPAN_MS);
  return { ...read, rate, points };
}
