// A table of any size: only the cells in view exist. Cells can be walked and selected by keyboard or
// pointer, and copied.

import { h } from "./dom.js";

/** @typedef {import("./api.js").ResultColumn} ResultColumn */
/** @typedef {{ row: number, column: number }} Cell */

const ROW_PX = 26;
const HEAD_PX = 40;
const MARGIN_ROWS = 6;
const SAMPLE_ROWS = 120;
const WIDTH_MIN = 56;
const WIDTH_MAX = 420;
const NUMERIC = /^(integer|bigint|real|double|decimal|U?Int|Float|Decimal)/;

export class Grid {
  /** @type {ResultColumn[]} */
  #columns = [];
  /** @type {unknown[][]} */
  #rows = [];
  /** Left edge of each column, and the right edge of the last. @type {number[]} */
  #edges = [0];
  /** @type {Cell | null} */
  #active = null;
  /** Where the selection began. @type {Cell | null} */
  #anchor = null;
  #gutter = 40;
  #frame = 0;

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
    this.element = h("div", { class: "grid-frame" }, this.scroller, this.value);
    new ResizeObserver(() => this.#later()).observe(this.scroller);
  }

  /**
   * @param {ResultColumn[]} columns
   * @param {unknown[][]} rows
   */
  show(columns, rows) {
    this.#columns = columns;
    this.#rows = rows;
    this.#active = this.#anchor = null;
    this.#gutter = 20 + 8 * String(rows.length).length;
    this.#edges = edges(columns, rows, this.#gutter);
    this.canvas.style.width = `${this.#edges.at(-1)}px`;
    this.canvas.style.height = `${HEAD_PX + rows.length * ROW_PX}px`;
    this.scroller.setAttribute("aria-rowcount", String(rows.length + 1));
    this.scroller.setAttribute("aria-colcount", String(columns.length));
    this.scroller.scrollTo(0, 0);
    this.value.hidden = true;
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
      if ((this.#edges[column + 1] ?? 0) >= left && (this.#edges[column] ?? 0) <= right) columns.push(column);
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
    const cell = h("div", { class: numeric(column) ? "head numeric" : "head", role: "columnheader", "aria-colindex": index + 1, title: `${column?.name}  ${column?.type}` },
      h("span", { class: "name" }, column?.name), h("span", { class: "type" }, column?.type));
    this.#place(cell, index);
    return cell;
  }

  /**
   * @param {number} index
   * @param {number[]} columns
   * @param {number} scrollLeft
   */
  #row(index, columns, scrollLeft) {
    const values = this.#rows[index] ?? [];
    const number = h("div", { class: "gutter", "aria-hidden": "true" }, index + 1);
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
    const left = this.#edges[column] ?? 0;
    cell.style.left = `${left}px`;
    cell.style.width = `${(this.#edges[column + 1] ?? left) - left}px`;
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
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_PX) - 2);
    const from = this.#active ?? { row: 0, column: 0 };
    const to = step(event.key, modified, from, last, page);
    if (!to) return;
    event.preventDefault();
    this.#activate(this.#active ? to : from, !event.shiftKey, true);
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
    const value = this.#rows[cell.row]?.[cell.column];
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
    const left = (this.#edges[column] ?? 0) - this.#gutter;
    const right = this.#edges[column + 1] ?? 0;
    if (left < view.scrollLeft) view.scrollLeft = left;
    if (right > view.scrollLeft + view.clientWidth) view.scrollLeft = right - view.clientWidth;
  }

  /** @param {ClipboardEvent} event */
  #copy(event) {
    const box = this.#selection();
    if (!box || !event.clipboardData) return;
    const lines = this.#rows.slice(box.top, box.bottom + 1).map((row) =>
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
 */
function edges(columns, rows, start) {
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
    result.push((result.at(-1) ?? 0) + Math.ceil(Math.min(Math.max(width + 24, WIDTH_MIN), WIDTH_MAX)));
  });
  return result;
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
