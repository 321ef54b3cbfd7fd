// The rows of a result as lines or bars, in SVG. Numbers are those that came; nothing is summed up.

import { niceStep } from "./charts.js";
import { h, s, setText } from "./dom.js";
import { count, plural, short } from "./format.js";
import { savePicture } from "./picture.js";
import { drawnOf } from "./series.js";

/** @typedef {import("./api.js").SqlResult} SqlResult */
/** @typedef {import("./api.js").ResultColumn} ResultColumn */

/** What is drawn: `x`, `y` and `by` are numbers of columns; `by` makes a series of each of its values. @typedef {{ kind: "line" | "bar", x: number, y: number[], by?: number, log?: boolean }} ChartChoice */

/** @typedef {{ left: number, right: number, top: number, bottom: number, y: (value: number) => number, x: (place: number) => number, step: number }} Scale */

const POINTS_MAX = { line: 2000, bar: 200 };
const SERIES_MAX = 6;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 16, 12, 30];
/** Room that a label of the axis takes, in pixels. */
const LABEL_PX = 92;

/** @param {ResultColumn} column */
export function isNumeric({ type }) {
  return /^(tinyint|smallint|int|integer|bigint|real|float|double|decimal|numeric|u?int\d+)/i.test(type);
}

/**
 * What to draw first, or `null` where no column is a number.
 *
 * @param {SqlResult} result
 * @returns {ChartChoice | null}
 */
export function firstChoice({ columns, rows }) {
  const places = columns.map((_, index) => index);
  const named = places.find((index) => !isNumeric(at(columns, index)));
  const numbers = places.filter((index) => isNumeric(at(columns, index)));
  const x = named ?? (numbers.length > 1 ? (numbers[0] ?? -1) : -1);
  const y = numbers.filter((index) => index !== x).slice(0, 1);
  if (y.length === 0 || rows.length === 0) return null;
  const kind = x >= 0 && /^(date|time|int|bigint|smallint|double|real|decimal|numeric)/i.test(at(columns, x).type) ? "line" : "bar";
  return { kind, x, y };
}

/**
 * @template T
 * @param {T[]} all
 * @param {number} index which is one of theirs
 */
function at(all, index) {
  return /** @type {T} */ (all[index]);
}

export class ResultChart {
  #width = 600;
  #height = 300;
  #cursor = -1;
  /** @type {import("./series.js").Drawn} */
  #drawn;

  /**
   * @param {SqlResult} result
   * @param {ChartChoice} choice kept by the caller; changed here as the user chooses
   */
  constructor(result, choice) {
    this.result = result;
    this.choice = choice;
    this.#drawn = drawnOf(result, choice, SERIES_MAX);
    this.svg = s("svg", { class: "result-chart", role: "img" });
    this.tip = h("div", { class: "chart-tip", hidden: true, "aria-live": "polite" });
    this.note = h("p", { class: "muted" });
    this.legend = h("ul", { class: "legend" });
    this.frame = h("div", {
      class: "result-chart-frame", tabindex: "0", role: "group", "aria-label": "Chart; left and right arrow walk through its points",
      onpointermove: (/** @type {PointerEvent} */ event) => this.#hover(event),
      onpointerleave: () => this.#point(-1),
      onblur: () => this.#point(-1),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    }, this.svg, this.tip);
    this.element = h("div", { class: "result-chart-box" }, this.#controls(), this.legend, this.frame, this.note);
    new ResizeObserver(([entry]) => {
      this.#width = Math.max(240, Math.floor(entry?.contentRect.width ?? 600));
      this.#height = Math.max(140, Math.floor(entry?.contentRect.height ?? 300));
      this.draw();
    }).observe(this.frame);
  }

  #controls() {
    const { columns } = this.result;
    const kind = h("select", { "aria-label": "Kind of chart", onchange: () => this.#choose({ kind: /** @type {"line" | "bar"} */ (kind.value) }) },
      ...["line", "bar"].map((name) => h("option", { value: name, selected: name === this.choice.kind }, name === "line" ? "Lines" : "Bars")));
    const x = h("select", { "aria-label": "Along the axis", onchange: () => this.#choose({ x: Number(x.value) }) },
      h("option", { value: "-1", selected: this.choice.x < 0 }, "row number"),
      ...columns.map((column, index) => h("option", { value: String(index), selected: index === this.choice.x }, column.name)));
    const series = columns.flatMap((column, index) => {
      if (!isNumeric(column)) return [];
      const box = h("input", { type: "checkbox", checked: this.choice.y.includes(index), onchange: () => this.#toggle(index, box) });
      return [h("label", {}, box, column.name)];
    });
    const by = h("select", { "aria-label": "A series for each", onchange: () => this.#choose({ by: Number(by.value) }) },
      h("option", { value: "-1", selected: (this.choice.by ?? -1) < 0 }, "one series per value column"),
      ...columns.map((column, index) => h("option", { value: String(index), selected: index === this.choice.by }, `a series for each ${column.name}`)));
    const log = h("input", { type: "checkbox", checked: this.choice.log ?? false, onchange: () => this.#choose({ log: log.checked }) });
    return h("div", { class: "chart-controls" }, kind, h("span", { class: "muted" }, "by"), x, by,
      h("span", { class: "series", role: "group", "aria-label": "Values" }, ...series),
      h("label", { title: "Zero and negative values are not drawn" }, log, "logarithmic"),
      h("button", { type: "button", class: "quiet", onclick: () => savePicture(this.svg, `${this.#xName()} chart`) }, "Save picture"));
  }

  /** @param {Partial<ChartChoice>} change */
  #choose(change) {
    Object.assign(this.choice, change);
    this.draw();
  }

  /**
   * @param {number} column
   * @param {HTMLInputElement} box
   */
  #toggle(column, box) {
    const others = this.choice.y.filter((other) => other !== column);
    if (box.checked && others.length >= SERIES_MAX) box.checked = false;
    this.#choose({ y: box.checked ? [...others, column].toSorted((a, b) => a - b) : others });
  }

  get #rows() {
    return this.#drawn.rows.slice(0, POINTS_MAX[this.choice.kind]);
  }

  draw() {
    const { kind } = this.choice;
    this.#drawn = drawnOf(this.result, this.choice, SERIES_MAX);
    const { columns, y } = this.#drawn;
    const rows = this.#rows;
    const scale = this.#scale(rows);
    this.svg.setAttribute("viewBox", `0 0 ${this.#width} ${this.#height}`);
    this.svg.setAttribute("width", String(this.#width));
    this.svg.setAttribute("height", String(this.#height));
    this.svg.setAttribute("aria-label", `${kind === "line" ? "Lines" : "Bars"} of ${y.map((index) => columns[index]?.name).join(", ") || "nothing"} by ${this.#xName()}, ${count(rows.length)} points`);
    const cursor = s("line", { class: "chart-cursor", y1: scale.top, y2: scale.bottom, visibility: "hidden" });
    const marks = y.flatMap((column, place) => (kind === "line" ? lines(rows, column, place, scale) : bars(rows, column, place, y.length, scale)));
    this.svg.replaceChildren(this.#axes(rows, scale), s("g", {}, ...marks), cursor);
    this.legend.replaceChildren(...y.map((column, place) => h("li", {}, h("span", { class: `swatch series-${place}` }), columns[column]?.name ?? "")));
    const notes = [
      this.#drawn.rows.length > rows.length ? `The first ${count(rows.length)} points are drawn.` : "",
      this.#drawn.left > 0 ? `The ${SERIES_MAX} largest series are drawn; ${plural(this.#drawn.left, "other")} have no room.` : "",
      this.result.truncated ? "Rows that were not fetched are not drawn." : "",
    ];
    setText(this.note, notes.filter((note) => note !== "").join(" "));
    this.#point(-1);
  }

  #xName() {
    return this.choice.x < 0 ? "row number" : (this.#drawn.columns[this.#drawn.x]?.name ?? "");
  }

  /**
   * @param {unknown[][]} rows
   * @returns {Scale & { ticks: number[] }}
   */
  #scale(rows) {
    const values = rows.flatMap((row) => this.#drawn.y.map((column) => number(row[column]))).filter((value) => value !== null);
    const { ticks, share } = this.choice.log ? logarithmic(values) : linear(values);
    const [left, right, top, bottom] = [LEFT, this.#width - RIGHT, TOP, this.#height - BOTTOM];
    const bar = this.choice.kind === "bar";
    const step = (right - left) / Math.max(1, rows.length - (bar ? 0 : 1));
    return {
      ticks, left, right, top, bottom, step,
      y: (value) => bottom - (bottom - top) * share(value),
      x: (place) => left + step * (bar ? place + 0.5 : place),
    };
  }

  /**
   * @param {unknown[][]} rows
   * @param {Scale & { ticks: number[] }} scale
   */
  #axes(rows, scale) {
    const across = scale.ticks.flatMap((tick) => [
      s("line", { x1: scale.left, x2: scale.right, y1: scale.y(tick), y2: scale.y(tick), class: tick === 0 ? "zero" : false }),
      s("text", { x: scale.left - 8, y: scale.y(tick) + 3.5, "text-anchor": "end" }, tickText(tick)),
    ]);
    const every = Math.max(1, Math.ceil((rows.length * LABEL_PX) / (scale.right - scale.left)));
    const along = rows.flatMap((row, place) => (place % every === 0 ? [s("text", { x: scale.x(place), y: scale.bottom + 18, "text-anchor": "middle" }, cut(this.#label(row, place)))] : []));
    return s("g", { class: "chart-grid" }, ...across, ...along);
  }

  /**
   * @param {unknown[]} row
   * @param {number} place
   */
  #label(row, place) {
    if (this.choice.x < 0) return String(place + 1);
    const value = row[this.#drawn.x];
    return value === null || value === undefined ? "NULL" : String(value);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const scale = this.#scale(this.#rows);
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    const place = (x - scale.left) / scale.step;
    this.#point(Math.min(Math.max(this.choice.kind === "bar" ? Math.floor(place) : Math.round(place), 0), this.#rows.length - 1));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.#rows.length - 1;
    const to = { ArrowLeft: Math.max(0, this.#cursor - 1), ArrowRight: Math.min(last, this.#cursor + 1), Home: 0, End: last }[event.key];
    if (to === undefined || event.target !== this.frame) return;
    this.#point(to);
    event.preventDefault();
  }

  /** @param {number} place `-1` for none */
  #point(place) {
    this.#cursor = place;
    const cursor = this.svg.querySelector(".chart-cursor");
    const row = this.#rows[place];
    this.tip.hidden = row === undefined;
    cursor?.setAttribute("visibility", row === undefined ? "hidden" : "visible");
    if (row === undefined) return;
    const x = this.#scale(this.#rows).x(place);
    cursor?.setAttribute("x1", String(x));
    cursor?.setAttribute("x2", String(x));
    const values = this.#drawn.y.map((column) => `${this.#drawn.columns[column]?.name} ${row[column] ?? "NULL"}`);
    setText(this.tip, [this.#label(row, place), ...values].join("  ·  "));
    this.tip.style.left = `${Math.min(Math.max(x - this.tip.offsetWidth / 2, 0), this.#width - this.tip.offsetWidth)}px`;
  }
}

/**
 * An axis from zero, or through it.
 *
 * @param {number[]} values
 */
function linear(values) {
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values, low === 0 && values.every((value) => value === 0) ? 1 : -Infinity);
  const every = niceStep((high - low) / 5);
  const [from, to] = [Math.floor(low / every), Math.ceil(high / every)];
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => (from + index) * every);
  return { ticks, share: (/** @type {number} */ value) => (value - from * every) / ((to - from) * every) };
}

/**
 * An axis of powers of ten; what is not above zero has no place on it.
 *
 * @param {number[]} values
 */
function logarithmic(values) {
  const positive = values.filter((value) => value > 0).map(Math.log10);
  const from = Math.floor(Math.min(...positive, positive.length === 0 ? 0 : Infinity));
  const to = Math.max(from + 1, Math.ceil(Math.max(...positive, -Infinity)));
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index));
  return { ticks, share: (/** @type {number} */ value) => (value > 0 ? (Math.log10(value) - from) / (to - from) : NaN) };
}

/**
 * One series: a line per run of values, a dot where one stands alone.
 *
 * @param {unknown[][]} rows
 * @param {number} column
 * @param {number} series
 * @param {Scale} scale
 */
function lines(rows, column, series, scale) {
  /** @type {string[][]} */
  const runs = [[]];
  for (const [place, row] of rows.entries()) {
    const value = number(row[column]);
    if (value === null || !Number.isFinite(scale.y(value))) runs.push([]);
    else runs.at(-1)?.push(`${scale.x(place).toFixed(1)},${scale.y(value).toFixed(1)}`);
  }
  return runs.filter((run) => run.length > 0).map((run) => {
    const [x = "0", y = "0"] = (run[0] ?? "").split(",");
    return run.length === 1 ? s("circle", { class: `mark series-${series}`, cx: x, cy: y, r: 2.4 }) : s("path", { class: `mark line series-${series}`, d: `M${run.join("L")}` });
  });
}

/**
 * @param {unknown[][]} rows
 * @param {number} column
 * @param {number} series
 * @param {number} all how many stand side by side
 * @param {Scale} scale
 */
function bars(rows, column, series, all, scale) {
  const width = Math.max(1, (scale.step * 0.8) / all);
  const zero = Number.isFinite(scale.y(0)) ? scale.y(0) : scale.bottom;
  return rows.flatMap((row, place) => {
    const value = number(row[column]);
    if (value === null || !Number.isFinite(scale.y(value))) return [];
    const y = scale.y(value);
    const x = scale.x(place) - (width * all) / 2 + series * width;
    return [s("rect", { class: `mark series-${series}`, x: x.toFixed(1), width: Math.max(1, width - 1).toFixed(1), y: Math.min(y, zero).toFixed(1), height: Math.max(Math.abs(zero - y), 0.5).toFixed(1) })];
  });
}

/**
 * Large integers and decimals come as text; lines need no more digits than a double has.
 *
 * @param {unknown} value
 */
function number(value) {
  if (value === null || value === undefined || value === "") return null;
  const read = Number(value);
  return Number.isFinite(read) ? read : null;
}

/** @param {number} tick */
function tickText(tick) {
  return Math.abs(tick) >= 10_000 ? `${tick < 0 ? "−" : ""}${short(Math.abs(tick))}` : String(Number(tick.toPrecision(6)));
}

/** @param {string} label */
function cut(label) {
  return label.length > 14 ? `${label.slice(0, 13)}…` : label;
}
