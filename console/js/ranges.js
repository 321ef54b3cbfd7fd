// How far back charts go: from five minutes, which the live stream brings second by second, to a week, of which the server
// keeps samples in longer steps.

import { history } from "./api.js";
import { h } from "./dom.js";

/** @typedef {import("./api.js").Sample} Sample */
/** @typedef {import("./samples.js").Samples} Samples */

/**
 * `interval` as SQL writes the span.
 *
 * @typedef {{ name: string, text: string, spanMs: number, stepS: number, interval: string }} Range
 */

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

/** @type {Range} */
export const LIVE = { name: "5 min", text: "the last five minutes", spanMs: 5 * MINUTE, stepS: 1, interval: "5 minutes" };

/** @type {Range[]} */
export const RANGES = [
  LIVE,
  { name: "1 h", text: "the last hour", spanMs: HOUR, stepS: 10, interval: "1 hour" },
  { name: "6 h", text: "the last six hours", spanMs: 6 * HOUR, stepS: 60, interval: "6 hours" },
  { name: "24 h", text: "the last day", spanMs: DAY, stepS: 60, interval: "1 day" },
  { name: "7 d", text: "the last week", spanMs: 7 * DAY, stepS: 600, interval: "7 days" },
];

/** The range in view, and its samples. */
export class RangeChoice {
  range = LIVE;
  /** Of a range that the stream does not bring. @type {Sample[]} */
  #kept = [];
  /** A request is under way, or may not be sent before. */
  #waitsUntil = 0;

  /** @param {() => void} changed another range, or new samples of it */
  constructor(changed) {
    this.changed = changed;
    this.buttons = RANGES.map((range) => h("button", { type: "button", class: "quiet", "aria-pressed": String(range === LIVE), onclick: () => this.#choose(range) }, range.name));
    this.element = h("div", { class: "segments ranges", role: "group", "aria-label": "Range of the charts" }, ...this.buttons);
  }

  /** @param {Range} range */
  #choose(range) {
    this.range = range;
    this.#kept = [];
    this.#waitsUntil = 0;
    for (const [index, button] of this.buttons.entries()) button.setAttribute("aria-pressed", String(RANGES[index] === range));
    this.changed();
  }

  /**
   * The samples to draw now; asks the server for those that have come since.
   *
   * @param {Samples} live
   * @param {number} now the server's clock, ms since 1970
   * @returns {Sample[]}
   */
  samples(live, now) {
    if (this.range === LIVE) return live.all;
    const stepMs = this.range.stepS * 1000;
    const newest = this.#kept.at(-1)?.unix_ms ?? 0;
    if (now >= this.#waitsUntil && now - newest > stepMs) {
      this.#waitsUntil = now + Math.min(stepMs, 10_000);
      this.#ask(this.range, newest === 0 ? now - this.range.spanMs : newest);
    }
    return this.#kept;
  }

  /**
   * @param {Range} range
   * @param {number} since
   */
  async #ask(range, since) {
    const found = await history(range.stepS, Math.floor(since)).catch(() => []);
    if (range !== this.range || found.length === 0) return;
    const newest = this.#kept.at(-1)?.unix_ms ?? 0;
    const all = [...this.#kept, ...found.filter((sample) => sample.unix_ms > newest)];
    const last = all.at(-1)?.unix_ms ?? 0;
    this.#kept = all.filter((sample) => sample.unix_ms > last - range.spanMs);
    this.changed();
  }
}
