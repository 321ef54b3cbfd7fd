// A part of a long list, the number of all, and ways to the other parts: a page of the console never has more rows than a
// screen can use, however long the list is.

import { h, setText } from "./dom.js";
import { count } from "./format.js";

/** Rows that are shown at once. */
export const PAGE_ROWS = 100;

export class Pager {
  /** Number of the first row that is shown. */
  #from = 0;
  #all = 0;

  /**
   * @param {string} what is listed, for who cannot see it
   * @param {() => void} changed
   */
  constructor(what, changed) {
    this.changed = changed;
    this.text = h("span", { class: "muted tabular", role: "status" });
    const button = (/** @type {string} */ label, /** @type {() => number} */ to) =>
      h("button", { type: "button", class: "quiet", onclick: () => this.#go(to()) }, label);
    this.back = button("Previous", () => this.#from - PAGE_ROWS);
    this.on = button("Next", () => this.#from + PAGE_ROWS);
    this.first = button("First", () => 0);
    this.last = button("Last", () => this.#all);
    this.element = h("div", { class: "pager", role: "group", "aria-label": `Parts of ${what}`, hidden: true }, this.text, this.first, this.back, this.on, this.last);
  }

  /**
   * The rows to show of all.
   *
   * @template T
   * @param {T[]} rows
   * @returns {T[]}
   */
  of(rows) {
    this.#all = rows.length;
    this.#from = this.#bounded(this.#from);
    const to = Math.min(this.#from + PAGE_ROWS, this.#all);
    this.element.hidden = this.#all <= PAGE_ROWS;
    setText(this.text, `${count(this.#from + 1)} to ${count(to)} of ${count(this.#all)}`);
    for (const button of [this.first, this.back]) button.disabled = this.#from === 0;
    for (const button of [this.on, this.last]) button.disabled = to === this.#all;
    return rows.slice(this.#from, to);
  }

  /**
   * Goes to the part that has a row.
   *
   * @param {number} row
   */
  goTo(row) {
    this.#from = this.#bounded(row);
  }

  /**
   * Goes on or back by a part.
   *
   * @param {1 | -1} parts
   * @returns {boolean} whether there is one
   */
  turn(parts) {
    const to = this.#from + parts * PAGE_ROWS;
    if (to < 0 || to >= this.#all) return false;
    this.#go(to);
    return true;
  }

  /** @param {number} from */
  #go(from) {
    this.#from = this.#bounded(from);
    this.changed();
  }

  /** @param {number} row */
  #bounded(row) {
    const lastPage = Math.floor(Math.max(0, this.#all - 1) / PAGE_ROWS);
    return Math.min(Math.max(0, Math.floor(row / PAGE_ROWS)), lastPage) * PAGE_ROWS;
  }
}
