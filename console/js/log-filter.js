// The fields that choose entries of the query log.

import { h } from "./dom.js";

const RANGES = /** @type {const} */ ([["Last 15 minutes", 15], ["Last hour", 60], ["Last 24 hours", 1440], ["Last 7 days", 10_080]]);
const STATES = /** @type {const} */ ([["Any state", ""], ["Failed or cancelled", "failed,cancelled"], ["Failed", "failed"], ["Cancelled", "cancelled"], ["Finished", "finished"]]);
const TIMES = /** @type {const} */ ([["Any time", 0], ["100 ms or longer", 100], ["1 s or longer", 1000], ["10 s or longer", 10_000]]);
const MOST = 1000;

export class LogFilter {
  /** @param {() => void} changed */
  constructor(changed) {
    /** @type {(label: string, width: string) => HTMLInputElement} */
    const field = (label, width) => h("input", { type: "search", class: width, placeholder: label, "aria-label": label, oninput: () => this.#later(changed) });
    /** @type {(label: string, options: readonly (readonly [string, string | number])[], chosen: string | number) => HTMLSelectElement} */
    const choice = (label, options, chosen) => h("select", { "aria-label": label, onchange: changed },
      ...options.map(([text, value]) => h("option", { value, selected: value === chosen }, text)));
    this.text = field("Statement or error", "text");
    this.user = field("User", "word");
    this.pool = field("Pool", "word");
    this.state = choice("State", STATES, "");
    this.time = choice("Time taken", TIMES, 0);
    this.range = choice("When", RANGES, 1440);
    this.element = h("div", { class: "log-filter", role: "search", "aria-label": "Filter of the log", hidden: true }, this.text, this.user, this.pool, this.state, this.time, this.range);
  }

  #timer = 0;

  /** @param {() => void} changed */
  #later(changed) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(changed, 250);
  }

  /** @returns {Record<string, string | number>} */
  get value() {
    const fields = { text: this.text.value.trim(), user: this.user.value.trim(), pool: this.pool.value.trim(), state: this.state.value };
    const given = Object.entries(fields).filter(([, value]) => value !== "");
    const time = Number(this.time.value);
    return {
      ...Object.fromEntries(given), ...(time > 0 ? { min_ms: time } : {}),
      from: Date.now() - Number(this.range.value) * 60_000, most: MOST,
    };
  }
}
