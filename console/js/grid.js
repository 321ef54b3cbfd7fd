// A table of any size: only the cells in view exist. Cells can be walked and selected by keyboard or
// pointer, and copied; rows sorted by a column, columns made wider, and pinned so that they stay in view.

import { h, icon } from "./dom.js";
import { Pins } from "./pins.js";
import { sortedBy } from "./row-order.js";

/** @typedef {import("./api.js").ResultColumn} ResultColumn */
/** @typedef {import("./row-order.js").Sort} Sort */
/** @typedef {{ row: number, column: number }} Cell */

const ROW_PX = 26;
const HEAD_PX = 40;
const MARGIN_ROWS = 6;
const SAMPLE_ROWS = 120;
const WIDTH_MIN = 56;
const WIDTH_MAX = 420;
const NUMERIC = /^(smallint|integer|bigint|real|double|decimal|numeric|U?Int|Float|Decimal)/;

export class Grid {
  /** @type {ResultColumn[]} */
  #columns = [];
  /** In the order in which they came. @type {unknown[][]} */
  #rows = [];
  /** @type {Sort | null} */
  #sort = null;
  /** Which row is at each place, if they are sorted. @type {Uint32Array | null} */
  #order = null;
  /** Left edge of each column, and the right edge of the last. @type {number[]} */
  #edges = [0];
  /** @type {Cell | null} */
  #active = null;
  /** Where the selection began. @type {Cell | null} */
  #anchor = null;
  #gutter = 40;
  #frame = 0;
  #pins = new Pins();
  /** Left edges of pinned columns, as the view is now. @type {Map<number, number>} */
  #pinned = new Map();

  constructor() {
    this.head = h("div", { class: "grid-head", role: "row" });
    this.body = h("div", { class: "grid-body", role: "presentation" });
    this.canvas = h("div", { class: "grid-canvas", role: "presentation" }, this.head, this.body);
    this.scroller = h("div", {
      class: "grid", role: "grid", tabindex: "0", "aria-label": "Rows", "aria-multiselectable": "true",
      onscroll: () => this.#later(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
      onpointerdown: (/** @type {PointerEvent} */ event) => this.#pointer(event, !event.shiftKey),
      onpointermove: (/** @type {PointerEvent} */ event) => { if (event.buttons === 1) this.#pointer(event, false); },
      oncopy: (/** @type {ClipboardEvent} */ event) => this.#copy(event),
    }, this.canvas);
    this.value = h("div", { class: "cell-value", hidden: true });
    this.said = h("span", { class: "visually-hidden", role: "status" });
    this.head.addEventListener("click", (event) => this.#headClicked(event));
    this.head.addEventListener("pointerdown", (event) => this.#beginResize(event));
    this.head.addEventListener("dblclick", (event) => this.#fitColumn(event));
    this.element = h("div", { class: "grid-frame" }, this.scroller, this.value, this.said);
    new ResizeObserver(() => this.#later()).observe(this.scroller);
  }

  /**
   * @param {ResultColumn[]} columns
   * @param {unknown[][]} rows
   * @param {boolean} [stays] whether the place stays: there are more rows of the same
   */
  show(columns, rows, stays = false) {
    // The same statement again keeps its pins.
    if (columns.map(({ name }) => name).join("\n") !== this.#columns.map(({ name }) => name).join("\n")) this.#pins.all = [];
    this.#columns = columns;
    this.#rows = rows;
    if (!stays) this.#active = this.#anchor = null;
    this.#gutter = 20 + 8 * String(rows.length).length;
    if (!stays) {
      this.#sort = null;
      this.#edges = edges(columns, rows, this.#gutter);
    }
    this.#order = this.#sort && sortedBy(rows, columns, this.#sort);
    this.canvas.style.width = `${this.#edges.at(-1)}px`;
    this.canvas.style.height = `${HEAD_PX + rows.length * ROW_PX}px`;
    this.scroller.setAttribute("aria-rowcount", String(rows.length + 1));
    this.scroller.setAttribute("aria-colcount", String(columns.length));
    if (!stays) this.scroller.scrollTo(0, 0);
    if (!stays) this.value.hidden = true;
    this.#draw();
  }

  #later() {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw() {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.scroller;
    const firstRow = Math.max(0, Math.floor(scrollTop / ROW_PX) - MARGIN_ROWS);
    const lastRow = Math.min(this.#rows.length, Math.ceil((scrollTop + clientHeight) / ROW_PX) + MARGIN_ROWS);
    this.#pinned = this.#pins.places((column) => this.#natural(column), scrollLeft + this.#gutter, scrollLeft + clientWidth);
    const columns = this.#columnsBetween(scrollLeft, scrollLeft + clientWidth);
    this.head.replaceChildren(this.#corner(scrollLeft), ...columns.map((column) => this.#headCell(column)));
    const rows = [];
    for (let row = firstRow; row < lastRow; row += 1) rows.push(this.#row(row, columns, scrollLeft));
    this.body.replaceChildren(...rows);
    if (this.#active) this.scroller.setAttribute("aria-activedescendant", cellId(this.#active.row, this.#active.column));
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  /**
   * @param {number} left
   * @param {number} right
   */
  #columnsBetween(left, right) {
    const columns = [];
    for (let column = 0; column < this.#columns.length; column += 1) {
      const isInView = (this.#edges[column + 1] ?? 0) >= left && (this.#edges[column] ?? 0) <= right;
      if (isInView || this.#pinned.has(column)) columns.push(column);
    }
    return columns;
  }

  /** @param {number} scrollLeft */
  #corner(scrollLeft) {
    const cell = h("div", { class: "gutter", "aria-hidden": "true" });
    cell.style.width = `${this.#gutter}px`;
    cell.style.left = `${scrollLeft}px`;
    return cell;
  }

  /** @param {number} index */
  #headCell(index) {
    const column = this.#columns[index];
    const sort = this.#sort?.column === index ? this.#sort : null;
    const isPinned = this.#pins.has(index);
    const cell = h("div", {
      class: `head${numeric(column) ? " numeric" : ""}${isPinned ? " pinned" : ""}`, role: "columnheader", "aria-colindex": index + 1, title: `${column?.name}  ${column?.type}: click sorts the rows shown`,
      "aria-sort": sort && (sort.down ? "descending" : "ascending"), "data-column": index,
    },
      h("span", { class: "name" }, column?.name, sort && h("span", { class: "arrow", "aria-hidden": "true" }, sort.down ? " ↓" : " ↑")),
      h("span", { class: "type" }, column?.type),
      h("button", { type: "button", class: "pin", tabindex: "-1", "aria-pressed": String(isPinned), "aria-label": `Pin ${column?.name}`, title: isPinned ? "Let the column scroll" : "Keep the column in view" }, icon("pin")),
      h("span", { class: "resize", "aria-hidden": "true" }));
    this.#place(cell, index);
    return cell;
  }

  /**
   * @param {number} index
   * @param {number[]} columns
   * @param {number} scrollLeft
   */
  #row(index, columns, scrollLeft) {
    const place = this.#order?.[index] ?? index;
    const values = this.#rows[place] ?? [];
    const number = h("div", { class: "gutter", "aria-hidden": "true" }, place + 1);
    number.style.width = `${this.#gutter}px`;
    number.style.left = `${scrollLeft}px`;
    const row = h("div", { class: index % 2 === 1 ? "row odd" : "row", role: "row", "aria-rowindex": index + 2 }, number,
      ...columns.map((column) => this.#cell(index, column, values[column])));
    row.style.top = `${HEAD_PX + index * ROW_PX}px`;
    return row;
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {unknown} value
   */
  #cell(row, column, value) {
    let classes = numeric(this.#columns[column]) ? "cell numeric" : "cell";
    if (this.#pins.has(column)) classes += " pinned";
    if (value === null) classes += " null";
    if (this.#isSelected(row, column)) classes += " selected";
    if (this.#active?.row === row && this.#active.column === column) classes += " active";
    const cell = h("div", { class: classes, role: "gridcell", id: cellId(row, column), "aria-colindex": column + 1 }, shown(value));
    cell.dataset["row"] = String(row);
    cell.dataset["column"] = String(column);
    this.#place(cell, column);
    return cell;
  }

  /**
   * @param {HTMLElement} cell
   * @param {number} column
   */
  #place(cell, column) {
    const { left, width } = this.#natural(column);
    cell.style.left = `${this.#pinned.get(column) ?? left}px`;
    cell.style.width = `${width}px`;
  }

  /**
   * Where a column is if it is not pinned.
   *
   * @param {number} column
   */
  #natural(column) {
    const left = this.#edges[column] ?? 0;
    return { left, width: (this.#edges[column + 1] ?? left) - left };
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  #isSelected(row, column) {
    const box = this.#selection();
    return box !== null && row >= box.top && row <= box.bottom && column >= box.left && column <= box.right;
  }

  #selection() {
    const [a, b] = [this.#anchor, this.#active];
    if (!a || !b) return null;
    return {
      top: Math.min(a.row, b.row), bottom: Math.max(a.row, b.row),
      left: Math.min(a.column, b.column), right: Math.max(a.column, b.column),
    };
  }

  /**
   * @param {PointerEvent} event
   * @param {boolean} fresh
   */
  #pointer(event, fresh) {
    const target = event.target instanceof Element ? event.target.closest(".cell") : null;
    if (!(target instanceof HTMLElement)) return;
    // Drawing replaces the cell under the pointer, and the browser may then find nothing there to focus.
    this.scroller.focus({ preventScroll: true });
    this.#activate({ row: Number(target.dataset["row"]), column: Number(target.dataset["column"]) }, fresh, false);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = { row: this.#rows.length - 1, column: this.#columns.length - 1 };
    if (last.row < 0) return;
    const modified = event.ctrlKey || event.metaKey;
    if (modified && event.key.toLowerCase() === "a") {
      this.#anchor = { row: 0, column: 0 };
      this.#active = last;
      this.#draw();
      event.preventDefault();
      return;
    }
    if (this.#active && !modified && this.#columnKey(event, this.#active.column)) {
      event.preventDefault();
      return;
    }
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_PX) - 2);
    const from = this.#active ?? { row: 0, column: 0 };
    const to = step(event.key, modified, from, last, page);
    if (!to) return;
    event.preventDefault();
    this.#activate(this.#active ? to : from, !event.shiftKey, true);
  }

  /** @param {number} index */
  #rowAt(index) {
    return this.#rows[this.#order?.[index] ?? index] ?? [];
  }

  /**
   * Keys that are for a column.
   *
   * @param {KeyboardEvent} event
   * @param {number} column
   * @returns {boolean} whether it was one
   */
  #columnKey(event, column) {
    if (event.key === "s" && !event.altKey) this.#sortBy(column);
    else if (event.key === "p" && !event.altKey) this.#pin(column);
    else if (event.altKey && event.key === "ArrowLeft") this.#widen(column, -24);
    else if (event.altKey && event.key === "ArrowRight") this.#widen(column, 24);
    else return false;
    return true;
  }

  /** @param {Event} event */
  #headClicked(event) {
    const target = /** @type {Element} */ (event.target);
    const column = columnOf(target);
    if (column === null || target.closest(".resize")) return;
    if (target.closest(".pin")) this.#pin(column);
    else this.#sortBy(column);
  }

  /** @param {number} column */
  #pin(column) {
    this.#pins.toggle(column);
    this.said.textContent = `${this.#columns[column]?.name} ${this.#pins.has(column) ? "stays in view" : "scrolls"}`;
    this.#draw();
  }

  /**
   * Up, then down, then as the rows came.
   *
   * @param {number} column
   */
  #sortBy(column) {
    const before = this.#sort?.column === column ? this.#sort : null;
    this.#sort = before?.down ? null : { column, down: before !== null };
    this.#order = this.#sort && sortedBy(this.#rows, this.#columns, this.#sort);
    this.said.textContent = this.#sort === null ? "Rows as they came" : `Rows sorted by ${this.#columns[column]?.name}, ${this.#sort.down ? "descending" : "ascending"}`;
    this.#draw();
    if (this.#active) this.#activate(this.#active, true, false);
  }

  /** @param {PointerEvent} event */
  #beginResize(event) {
    const target = /** @type {Element} */ (event.target);
    const column = target.closest(".resize") ? columnOf(target) : null;
    if (column === null) return;
    event.preventDefault();
    this.head.setPointerCapture(event.pointerId);
    let from = event.clientX;
    const move = (/** @type {PointerEvent} */ moved) => {
      this.#widen(column, moved.clientX - from);
      from = moved.clientX;
    };
    this.head.addEventListener("pointermove", move);
    this.head.addEventListener("lostpointercapture", () => this.head.removeEventListener("pointermove", move), { once: true });
  }

  /** @param {Event} event */
  #fitColumn(event) {
    const target = /** @type {Element} */ (event.target);
    const column = target.closest(".resize") ? columnOf(target) : null;
    const described = column === null ? undefined : this.#columns[column];
    if (column === null || !described) return;
    const [left = 0, right = 0] = edges([described], this.#rows.map((row) => [row[column]]), 0, Infinity);
    this.#widen(column, right - left - ((this.#edges[column + 1] ?? 0) - (this.#edges[column] ?? 0)));
  }

  /**
   * @param {number} column
   * @param {number} px more, or less
   */
  #widen(column, px) {
    const width = (this.#edges[column + 1] ?? 0) - (this.#edges[column] ?? 0);
    const by = Math.max(width + px, WIDTH_MIN) - width;
    this.#edges = this.#edges.map((edge, index) => (index > column ? edge + by : edge));
    this.canvas.style.width = `${this.#edges.at(-1)}px`;
    this.#draw();
  }

  /**
   * @param {Cell} cell
   * @param {boolean} fresh whether the selection starts anew
   * @param {boolean} reveal
   */
  #activate(cell, fresh, reveal) {
    this.#active = cell;
    if (fresh || !this.#anchor) this.#anchor = cell;
    if (reveal) this.#reveal(cell);
    this.#draw();
    const column = this.#columns[cell.column];
    const value = this.#rowAt(cell.row)[cell.column];
    this.value.hidden = false;
    this.value.replaceChildren(
      h("span", { class: "name" }, column?.name), h("span", { class: "type" }, column?.type),
      h("span", { class: value === null ? "text null" : "text" }, text(value)));
  }

  /** @param {Cell} cell */
  #reveal({ row, column }) {
    const view = this.scroller;
    const top = row * ROW_PX;
    if (top < view.scrollTop) view.scrollTop = top;
    const bottom = top + ROW_PX + HEAD_PX;
    if (bottom > view.scrollTop + view.clientHeight) view.scrollTop = bottom - view.clientHeight;
    if (this.#pinned.has(column)) return;
    const covered = this.#pins.cover(column, (one) => this.#natural(one));
    const left = (this.#edges[column] ?? 0) - this.#gutter - (this.#pinned.size > 0 ? covered.left : 0);
    const right = (this.#edges[column + 1] ?? 0) + (this.#pinned.size > 0 ? covered.right : 0);
    if (left < view.scrollLeft) view.scrollLeft = left;
    if (right > view.scrollLeft + view.clientWidth) view.scrollLeft = right - view.clientWidth;
  }

  /** @param {ClipboardEvent} event */
  #copy(event) {
    const box = this.#selection();
    if (!box || !event.clipboardData) return;
    const rows = Array.from({ length: box.bottom - box.top + 1 }, (_, index) => this.#rowAt(box.top + index));
    const lines = rows.map((row) =>
      row.slice(box.left, box.right + 1).map((value) => (value === null ? "" : text(value).replace(/[\t\r\n]+/g, " "))).join("\t"));
    event.clipboardData.setData("text/plain", lines.join("\n"));
    event.preventDefault();
  }
}

/**
 * Where a key leads.
 *
 * @param {string} key
 * @param {boolean} far
 * @param {Cell} from
 * @param {Cell} last
 * @param {number} page
 * @returns {Cell | null}
 */
function step(key, far, { row, column }, last, page) {
  /** @type {(row: number, column: number) => Cell} */
  const at = (r, c) => ({ row: Math.min(Math.max(r, 0), last.row), column: Math.min(Math.max(c, 0), last.column) });
  switch (key) {
    case "ArrowUp": return at(far ? 0 : row - 1, column);
    case "ArrowDown": return at(far ? last.row : row + 1, column);
    case "ArrowLeft": return at(row, far ? 0 : column - 1);
    case "ArrowRight": return at(row, far ? last.column : column + 1);
    case "PageUp": return at(row - page, column);
    case "PageDown": return at(row + page, column);
    case "Home": return at(far ? 0 : row, 0);
    case "End": return at(far ? last.row : row, last.column);
    default: return null;
  }
}

/**
 * Column edges from the widths of heads and a sample of values.
 *
 * @param {ResultColumn[]} columns
 * @param {unknown[][]} rows
 * @param {number} start
 * @param {number} [most] widest column
 */
function edges(columns, rows, start, most = WIDTH_MAX) {
  const pen = document.createElement("canvas").getContext("2d");
  const font = getComputedStyle(document.body).fontFamily;
  /** @type {(value: string, font: string) => number} */
  const measure = (value, style) => {
    if (!pen) return value.length * 8;
    pen.font = `${style} ${font}`;
    // Digits are set in figures of one width, which the canvas does not know.
    return 1.05 * pen.measureText(value.replace(/\d/g, "0")).width;
  };
  const result = [start];
  columns.forEach((column, index) => {
    let width = Math.max(measure(column.name, "600 12.5px"), measure(column.type, "400 10.5px"));
    for (const row of rows.slice(0, SAMPLE_ROWS)) {
      width = Math.max(width, measure(shown(row[index]).slice(0, 80), "400 12.5px"));
    }
    result.push((result.at(-1) ?? 0) + Math.ceil(Math.min(Math.max(width + 24, WIDTH_MIN), most)));
  });
  return result;
}

/**
 * The column that a part of the head belongs to.
 *
 * @param {Element} part
 */
function columnOf(part) {
  const head = /** @type {HTMLElement | null} */ (part.closest(".head"));
  return head ? Number(head.dataset["column"]) : null;
}

/** @param {ResultColumn | undefined} column */
function numeric(column) {
  return column !== undefined && NUMERIC.test(column.type);
}

/** @param {unknown} value */
function text(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {unknown} value */
function shown(value) {
  const whole = text(value);
  const cut = whole.length > 400 ? `${whole.slice(0, 400)}…` : whole;
  return cut.replace(/\r?\n/g, " ↵ ");
}

/**
 * @param {number} row
 * @param {number} column
 */
function cellId(row, column) {
  return `cell-${row}-${column}`;
}
