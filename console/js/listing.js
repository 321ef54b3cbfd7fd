// A table that can be sorted and walked through by keyboard; it keeps its rows between updates. Of long ones, a part is shown.

import { h, reconcile, setText } from "./dom.js";
import { Pager } from "./pager.js";

/**
 * A column; a `spare` one is left out where there is little room. `value` is what is sorted by, `text` what is shown; `unit` makes one unit for all
 * values of the column; `paint` fills cells that are more than
 * text.
 *
 * @template T
 * @typedef {{ name: string, label: string, title?: string, numeric?: boolean, wide?: boolean, spare?: boolean,
 *   value: (row: T) => number | string, text?: (row: T, inUnit: (value: number) => string) => string, unit?: (values: number[]) => (value: number) => string,
 *   paint?: (cell: HTMLElement, row: T) => void }} Column
 */

/**
 * @template T
 * @typedef {{ label: string, columns: Column<T>[], key: (row: T) => string, empty: string,
 *   sort?: { name: string, down: boolean }, state?: (row: T) => string,
 *   open: (row: T) => void, sorted?: () => void }} ListingOptions
 */

/** @template T */
export class Listing {
  /** @type {T[]} */
  #rows = [];
  /** @type {T | undefined} */
  #last;
  /** @type {Map<string, T>} */
  #byKey = new Map();
  #open = "";
  /** How values of each column are shown. @type {((value: number) => string)[]} */
  #units = [];

  /** @param {ListingOptions<T>} options */
  constructor(options) {
    this.options = options;
    /** @type {{ name: string, down: boolean } | null} */
    this.sort = options.sort ?? null;
    this.heads = options.columns.map((column) => this.#head(column));
    this.body = h("tbody", {
      onclick: (/** @type {MouseEvent} */ event) => this.#clicked(event),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    });
    this.empty = h("p", { class: "muted listing-empty" }, options.empty);
    this.pager = new Pager(options.label.toLowerCase(), () => this.#draw());
    this.element = h("div", { class: "listing-frame" },
      h("table", { class: "listing rows", role: "grid", "aria-label": options.label },
        h("thead", {}, h("tr", {}, ...this.heads)), this.body),
      this.empty, this.pager.element);
    this.#markSorted();
  }

  /**
   * @param {T[]} rows in the order in which they are shown where no column is sorted by
   * @param {T} [last] of all together: stays below the others
   */
  show(rows, last) {
    this.#rows = rows;
    this.#last = last;
    this.#draw();
  }

  /**
   * Marks the row whose details are shown.
   *
   * @param {string} key `""` for none
   */
  mark(key) {
    const isNew = key !== this.#open;
    this.#open = key;
    if (isNew && key !== "") {
      const place = this.#sorted().findIndex((row) => this.options.key(row) === key);
      if (place >= 0) this.pager.goTo(place);
    }
    this.#draw();
  }

  #draw() {
    const { columns, key, state } = this.options;
    const part = this.pager.of(this.#sorted());
    const rows = this.#last === undefined ? part : [...part, this.#last];
    this.#byKey = new Map(rows.map((row) => [key(row), row]));
    this.#units = columns.map(({ unit, value }) => unit?.(this.#rows.concat(this.#last ?? []).map((row) => Number(value(row)))) ?? String);
    this.empty.hidden = rows.length > 0;
    reconcile(this.body, rows, key, () => h("tr", { tabindex: "-1" }, ...columns.map((column) => h("td", { class: kind(column) }))), (element, row) => {
      element.setAttribute("aria-selected", String(key(row) === this.#open));
      if (state) element.dataset["state"] = state(row);
      for (const [index, column] of columns.entries()) this.#fill(element.children[index], column, row, this.#units[index] ?? String);
    });
    const all = this.#elements();
    if (!all.some((element) => element.tabIndex === 0) && all[0]) all[0].tabIndex = 0;
  }

  /**
   * @param {Element | undefined} cell
   * @param {Column<T>} column
   * @param {T} row
   * @param {(value: number) => string} inUnit
   */
  #fill(cell, column, row, inUnit) {
    if (!(cell instanceof HTMLElement)) return;
    if (column.paint) column.paint(cell, row);
    else setText(cell, column.text ? column.text(row, inUnit) : column.unit ? inUnit(Number(column.value(row))) : String(column.value(row)));
  }

  #sorted() {
    const column = this.options.columns.find((candidate) => candidate.name === this.sort?.name);
    if (!column) return this.#rows;
    const sign = this.sort?.down ? -1 : 1;
    return this.#rows.toSorted((left, right) => {
      const [a, b] = [column.value(left), column.value(right)];
      return a === b ? 0 : a < b ? -sign : sign;
    });
  }

  /** @param {Column<T>} column */
  #head(column) {
    return h("th", { scope: "col", class: kind(column), "data-column": column.name },
      h("button", { type: "button", class: "sort", title: column.title ?? `Sort by ${column.label.toLowerCase()}`, onclick: () => this.#sortBy(column) },
        column.label, h("span", { class: "arrow", "aria-hidden": "true" })));
  }

  /** @param {Column<T>} column */
  #sortBy(column) {
    const down = this.sort?.name === column.name ? !this.sort.down : column.numeric === true;
    this.sort = { name: column.name, down };
    this.pager.goTo(0);
    this.#markSorted();
    this.#draw();
    this.options.sorted?.();
  }

  #markSorted() {
    for (const head of this.heads) {
      const here = head.dataset["column"] === this.sort?.name;
      if (here) head.setAttribute("aria-sort", this.sort?.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      setText(/** @type {HTMLElement} */ (head.querySelector(".arrow")), here ? (this.sort?.down ? "↓" : "↑") : "");
    }
  }

  #elements() {
    return /** @type {HTMLElement[]} */ ([...this.body.children]);
  }

  /** @param {Event} event */
  #clicked(event) {
    const target = /** @type {Element} */ (event.target);
    if (target.closest("button")) return;
    const element = /** @type {HTMLElement | null} */ (target.closest("tr"));
    if (element) this.#openRow(element);
  }

  /** @param {HTMLElement} element */
  #openRow(element) {
    this.#focus(element);
    const row = this.#byKey.get(element.dataset["key"] ?? "");
    if (row !== undefined) this.options.open(row);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const all = this.#elements();
    const index = all.findIndex((element) => element === document.activeElement);
    if (index < 0) return;
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: all.length - 1 }[event.key];
    const element = all[index];
    // Beyond the ends are the other parts of a long list.
    if (event.key === "ArrowDown" && index === all.length - 1 && this.pager.turn(1)) this.#focus(this.#elements()[0]);
    else if (event.key === "ArrowUp" && index === 0 && this.pager.turn(-1)) this.#focus(this.#elements().at(-1));
    else if (to !== undefined) this.#focus(all[to]);
    else if ((event.key === "Enter" || event.key === " ") && element) this.#openRow(element);
    else return;
    event.preventDefault();
  }

  /** @param {HTMLElement | undefined} element */
  #focus(element) {
    if (!element) return;
    for (const other of this.#elements()) other.tabIndex = -1;
    element.tabIndex = 0;
    element.focus();
  }
}

/**
 * @template T
 * @param {Column<T>} column
 */
function kind(column) {
  return [column.numeric && "numeric", column.wide && "wide", column.spare && "spare"].filter(Boolean).join(" ") || false;
}
