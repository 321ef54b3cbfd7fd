// The rows of a result as lines or bars, in SVG. Numbers are those that came; nothing is summed up.

import { bars, linear, lines, logarithmic, number, stacked, stackedAreas, stackedBars, tickText } from "./chart-marks.js";
import { h, s, setText } from "./dom.js";
import { count, plural } from "./format.js";
import { savePicture } from "./picture.js";
import { drawnOf } from "./series.js";
import { hasZone, isTime, ownZone, timeOf, timeText, timeTicks } from "./time-axis.js";

/** @typedef {import("./api.js").SqlResult} SqlResult */
/** @typedef {import("./api.js").ResultColumn} ResultColumn */

/** What is drawn: `x`, `y` and `by` are numbers of columns; `by` makes a series of each of its values; `zone` is that of moments. @typedef {{ kind: "line" | "bar", x: number, y: number[], by?: number, log?: boolean, isStacked?: boolean, zone?: string }} ChartChoice */

/** @typedef {import("./chart-marks.js").Scale} Scale */

const POINTS_MAX = { line: 2000, bar: 200 };
const SERIES_MAX = 6;
const DAY_MS = 86_400_000;
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
  /** Whether the axis is one of times. */
  isTime = false;
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
    this.zone = this.#zones();
    this.log = h("input", { type: "checkbox", checked: choice.log ?? false, onchange: () => this.#choose({ log: this.log.checked }) });
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
    const stack = h("input", { type: "checkbox", checked: this.choice.isStacked ?? false, onchange: () => this.#choose({ isStacked: stack.checked }) });
    return h("div", { class: "chart-controls" }, kind, h("span", { class: "muted" }, "by"), x, by,
      h("span", { class: "series", role: "group", "aria-label": "Values" }, ...series),
      h("label", { title: "One series upon the other: bars, or areas where there are lines" }, stack, "stacked"),
      h("label", { title: "Zero and negative values are not drawn" }, this.log, "logarithmic"), this.zone,
      h("button", { type: "button", class: "quiet", onclick: () => savePicture(this.svg, `${this.#xName()} chart`) }, "Save picture"));
  }

  /** The zone whose clocks label the axis, for columns of moments. */
  #zones() {
    const own = ownZone();
    const all = ["UTC", own, ...Intl.supportedValuesOf("timeZone")];
    const zone = h("select", { "aria-label": "Time zone of the axis", onchange: () => this.#choose({ zone: zone.value }) },
      ...[...new Set(all)].map((name) => h("option", { value: name, selected: name === this.#zone }, name === own ? `${name} (here)` : name)));
    return zone;
  }

  get #zone() {
    return this.choice.zone ?? "UTC";
  }

  get #isStacked() {
    return this.choice.isStacked === true && this.#drawn.y.length > 1;
  }

  /** Whether the axis may be one of times. */
  get #times() {
    const type = this.#drawn.columns[this.#drawn.x]?.type ?? "";
    return this.choice.x >= 0 && isTime(type);
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
    return this.#drawn.rows.slice(0, this.isTime ? POINTS_MAX.line : POINTS_MAX[this.choice.kind]);
  }

  /** Brings the rows into the order of time, where the axis is one; whether it is. */
  #order() {
    const at = this.#drawn.x;
    if (!this.#times || this.#drawn.rows.some((row) => timeOf(row[at]) === null)) return false;
    // Two bars at one time would hide each other: they stand side by side, as if the times were names.
    if (this.choice.kind === "bar" && new Set(this.#drawn.rows.map((row) => timeOf(row[at]))).size < this.#drawn.rows.length) return false;
    this.#drawn = { ...this.#drawn, rows: this.#drawn.rows.toSorted((a, b) => (timeOf(a[at]) ?? 0) - (timeOf(b[at]) ?? 0)) };
    return true;
  }

  draw() {
    const { kind } = this.choice;
    this.#drawn = drawnOf(this.result, this.choice, SERIES_MAX);
    this.isTime = this.#order();
    const { columns, y } = this.#drawn;
    const rows = this.#rows;
    this.zone.hidden = !this.isTime || !hasZone(columns[this.#drawn.x]?.type ?? "");
    // A stack has no place on such an axis: its parts would look smaller the higher they are.
    this.log.disabled = this.#isStacked;
    const scale = this.#scale(rows);
    this.svg.setAttribute("viewBox", `0 0 ${this.#width} ${this.#height}`);
    this.svg.setAttribute("width", String(this.#width));
    this.svg.setAttribute("height", String(this.#height));
    this.svg.setAttribute("aria-label", `${this.#isStacked ? (kind === "line" ? "Stacked areas" : "Stacked bars") : kind === "line" ? "Lines" : "Bars"} of ${y.map((index) => columns[index]?.name).join(", ") || "nothing"} by ${this.#xName()}, ${count(rows.length)} points`);
    const cursor = s("line", { class: "chart-cursor", y1: scale.top, y2: scale.bottom, visibility: "hidden" });
    const marks = this.#isStacked ? (kind === "line" ? stackedAreas : stackedBars)(rows, y, scale)
      : y.flatMap((column, place) => (kind === "line" ? lines(rows, column, place, scale) : bars(rows, column, place, y.length, scale)));
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
   * @returns {Scale & { ticks: number[], from?: number, to?: number }}
   */
  #scale(rows) {
    const { x, y } = this.#drawn;
    const values = rows.flatMap((row) => (this.#isStacked ? stacked(row, y).flat() : y.map((column) => number(row[column])))).filter((value) => value !== null);
    const { ticks, share } = this.choice.log && !this.#isStacked ? logarithmic(values) : linear(values);
    const [left, right, top, bottom] = [LEFT, this.#width - RIGHT, TOP, this.#height - BOTTOM];
    const bar = this.choice.kind === "bar";
    const place = (/** @type {unknown[] | undefined} */ row) => timeOf(row?.[x]) ?? 0;
    const y_ = (/** @type {number} */ value) => bottom - (bottom - top) * share(value);
    if (!this.isTime) {
      const step = (right - left) / Math.max(1, rows.length - (bar ? 0 : 1));
      return { ticks, left, right, top, bottom, step, y: y_, x: (nth) => left + step * (bar ? nth + 0.5 : nth) };
    }
    const times = rows.map(place);
    const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
    // A bar is as wide as the time to the next one, and has half of that on each side.
    const each = times.reduce((least, at, nth) => (nth > 0 ? Math.min(least, at - (times[nth - 1] ?? 0)) : least), Infinity);
    const margin = !bar || rows.length === 0 ? 0 : Number.isFinite(each) ? each / 2 : DAY_MS / 2;
    const [from, to] = [first - margin, last + margin];
    const at = (/** @type {number} */ time) => left + (from === to ? 0.5 : (time - from) / (to - from)) * (right - left);
    return { ticks, left, right, top, bottom, step: bar ? at(from + 2 * margin) - left : 1, from, to, y: y_, x: (nth) => at(times[nth] ?? 0) };
  }

  /**
   * @param {unknown[][]} rows
   * @param {Scale & { ticks: number[], from?: number, to?: number }} scale
   */
  #axes(rows, scale) {
    const across = scale.ticks.flatMap((tick) => [
      s("line", { x1: scale.left, x2: scale.right, y1: scale.y(tick), y2: scale.y(tick), class: tick === 0 ? "zero" : false }),
      s("text", { x: scale.left - 8, y: scale.y(tick) + 3.5, "text-anchor": "end" }, tickText(tick)),
    ]);
    if (scale.from !== undefined && scale.to !== undefined) return s("g", { class: "chart-grid" }, ...across, ...this.#timeAxis(scale, scale.from, scale.to));
    const every = Math.max(1, Math.ceil((rows.length * LABEL_PX) / (scale.right - scale.left)));
    const along = rows.flatMap((row, place) => (place % every === 0 ? [s("text", { x: scale.x(place), y: scale.bottom + 18, "text-anchor": "middle" }, cut(this.#label(row, place)))] : []));
    return s("g", { class: "chart-grid" }, ...across, ...along);
  }

  /**
   * @param {Scale} scale
   * @param {number} from
   * @param {number} to
   */
  #timeAxis({ left, right, top, bottom }, from, to) {
    const ticks = from === to ? [{ at: from, label: timeText(from, this.#clock) }] : timeTicks(from, to, Math.max(2, Math.floor((right - left) / LABEL_PX)), this.#clock);
    return ticks.flatMap(({ at, label }) => {
      const x = left + (from === to ? 0.5 : (at - from) / (to - from)) * (right - left);
      return [s("line", { class: "tick", x1: x, x2: x, y1: top, y2: bottom + 4 }), s("text", { class: "time", x, y: bottom + 18, "text-anchor": "middle" }, label)];
    });
  }

  /** The zone that labels are in: times without one are as they are written. */
  get #clock() {
    return hasZone(this.#drawn.columns[this.#drawn.x]?.type ?? "") ? this.#zone : "UTC";
  }

  /**
   * @param {unknown[]} row
   * @param {number} place
   */
  #label(row, place) {
    if (this.choice.x < 0) return String(place + 1);
    const value = row[this.#drawn.x];
    if (value === null || value === undefined) return "NULL";
    return this.isTime && this.#clock !== "UTC" ? timeText(timeOf(value) ?? 0, this.#clock) : String(value);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const scale = this.#scale(this.#rows);
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    if (this.isTime) {
      const away = this.#rows.map((_, nth) => Math.abs(scale.x(nth) - x));
      return this.#point(away.indexOf(Math.min(...away)));
    }
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

/** @param {string} label */
function cut(label) {
  return label.length > 14 ? `${label.slice(0, 13)}…` : label;
}
