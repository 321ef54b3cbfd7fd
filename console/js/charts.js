// Lines over time, in SVG: the last minutes to days, newest at the right.

import { h, s, setText } from "./dom.js";
import { ago } from "./format.js";
import { ownZone, timeTicks } from "./time-axis.js";

/**
 * One point in time; values in the order of the chart's series, `null` where there is none.
 *
 * @typedef {{ at: number, values: (number | null)[] }} Point
 *
 * @typedef {{ label: string, series: { name: string, class: string }[], area?: boolean, log?: boolean,
 *   format: (value: number) => string, minTop: number, spanMs: number, heightPx?: number }} ChartOptions
 */

const HEIGHT_PX = 112;
const LEFT = 0;
const RIGHT = 46;
const TOP = 8;
const BOTTOM = 16;
const MINUTE_MS = 60_000;

export class Chart {
  /** @type {Point[]} */
  #points = [];
  #now = 0;
  #spanMs = 0;
  /** Points further apart are not joined, ms. */
  #gapMs = 2500;
  #width = 300;
  #height = HEIGHT_PX;

  /** @param {ChartOptions} options */
  constructor(options) {
    this.options = options;
    this.#height = options.heightPx ?? HEIGHT_PX;
    this.#spanMs = options.spanMs;
    this.grid = s("g", { class: "chart-grid" });
    this.lines = s("g", {});
    this.cursor = s("line", { class: "chart-cursor", y1: TOP, y2: this.#height - BOTTOM, visibility: "hidden" });
    this.svg = s("svg", { class: "chart", role: "img", "aria-label": options.label, height: this.#height },
      this.grid, this.lines, this.cursor);
    this.tip = h("div", { class: "chart-tip", hidden: true });
    this.element = h("div", {
      class: "chart-frame",
      onpointermove: (/** @type {PointerEvent} */ event) => this.#hover(event),
      onpointerleave: () => this.#leave(),
    }, this.svg, this.tip);
    new ResizeObserver(([entry]) => {
      this.#width = Math.max(120, Math.floor(entry?.contentRect.width ?? 300));
      this.#draw();
    }).observe(this.element);
  }

  /**
   * Another span of time; drawn with the next points.
   *
   * @param {number} spanMs
   * @param {number} stepMs between points
   * @param {string} label
   */
  setSpan(spanMs, stepMs, label) {
    this.#spanMs = spanMs;
    this.#gapMs = 2.5 * stepMs;
    if (this.svg.getAttribute("aria-label") !== label) this.svg.setAttribute("aria-label", label);
  }

  /**
   * @param {Point[]} points oldest first
   * @param {number} now right edge, ms since 1970
   */
  update(points, now) {
    this.#points = points;
    this.#now = now;
    this.#draw();
  }

  #draw() {
    const scale = this.#scale();
    this.svg.setAttribute("viewBox", `0 0 ${this.#width} ${this.#height}`);
    this.svg.setAttribute("width", String(this.#width));
    this.grid.replaceChildren(...scale.ticks.flatMap((tick) => this.#gridLine(tick, scale.y(tick))), ...this.#timeLabels());
    this.lines.replaceChildren(...this.options.series.flatMap(({ class: kind }, index) => this.#line(index, kind, scale)));
  }

  #scale() {
    const values = this.#points.flatMap((point) => point.values.filter((value) => value !== null));
    const { minTop, log } = this.options;
    const highest = Math.max(minTop, ...values);
    const bottom = this.#height - BOTTOM;
    if (!log) {
      const step = niceStep(highest / 3);
      const top = Math.ceil(highest / step) * step;
      const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
      return { ticks, y: (/** @type {number} */ value) => bottom - ((bottom - TOP) * value) / top };
    }
    const lowest = Math.min(highest / 10, ...values.filter((value) => value > 0));
    const from = Math.floor(Math.log10(lowest));
    const to = Math.max(from + 1, Math.ceil(Math.log10(highest)));
    const every = Math.ceil((to - from) / 4);
    const ticks = [];
    for (let power = from; power <= to; power += every) ticks.push(10 ** power);
    const share = (/** @type {number} */ value) => (Math.log10(Math.max(value, 10 ** from)) - from) / (to - from);
    return { ticks, y: (/** @type {number} */ value) => bottom - (bottom - TOP) * share(value) };
  }

  /**
   * @param {number} tick
   * @param {number} y
   */
  #gridLine(tick, y) {
    const right = this.#width - RIGHT;
    return [
      s("line", { x1: LEFT, x2: right, y1: y, y2: y }),
      s("text", { x: right + 6, y: y + 3.5 }, this.options.format(tick)),
    ];
  }

  #timeLabels() {
    const y = this.#height - 3;
    const right = this.#width - RIGHT;
    const now = s("text", { x: right, y, "text-anchor": "end" }, "now");
    const minutes = Math.round(this.#spanMs / MINUTE_MS);
    if (minutes < 60) return [s("text", { x: LEFT, y }, `${minutes} min ago`), now];
    const ticks = timeTicks(this.#now - this.#spanMs, this.#now, Math.max(2, Math.floor(right / 110)), ownZone());
    const places = ticks.map(({ at, label }) => ({ x: this.#x(at), label })).filter(({ x }) => x > 16 && x < right - 60);
    return [...places.map(({ x, label }) => s("text", { x, y, "text-anchor": "middle" }, label)), now];
  }

  /**
   * One series: a path per run of values, a dot where a value stands alone.
   *
   * @param {number} series
   * @param {string} kind
   * @param {{ y: (value: number) => number }} scale
   */
  #line(series, kind, { y }) {
    const bottom = this.#height - BOTTOM;
    /** @type {SVGElement[]} */
    const parts = [];
    for (const run of this.#runs(series)) {
      const [only] = run;
      if (run.length === 1 && only) {
        parts.push(s("circle", { class: `dot-${kind}`, cx: this.#x(only.at), cy: y(only.value), r: 1.6 }));
        continue;
      }
      const path = run.map(({ at, value }) => `${this.#x(at).toFixed(1)},${y(value).toFixed(1)}`).join("L");
      if (this.options.area) {
        const [start, end] = [run[0], run.at(-1)];
        if (start && end) parts.push(s("path", { class: `area-${kind}`, d: `M${this.#x(start.at).toFixed(1)},${bottom}L${path}L${this.#x(end.at).toFixed(1)},${bottom}Z` }));
      }
      parts.push(s("path", { class: `line-${kind}`, d: `M${path}` }));
    }
    return parts;
  }

  /** @param {number} series */
  #runs(series) {
    /** @type {{ at: number, value: number }[][]} */
    const runs = [];
    let last = -Infinity;
    for (const { at, values } of this.#points) {
      const value = values[series] ?? null;
      if (value === null) continue;
      if (at - last > this.#gapMs || runs.length === 0) runs.push([]);
      runs.at(-1)?.push({ at, value });
      last = at;
    }
    return runs;
  }

  /** @param {number} at */
  #x(at) {
    const width = this.#width - LEFT - RIGHT;
    return LEFT + width * (1 - (this.#now - at) / this.#spanMs);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    /** @type {Point | null} */
    let nearest = null;
    for (const point of this.#points) {
      if (!nearest || Math.abs(this.#x(point.at) - x) < Math.abs(this.#x(nearest.at) - x)) nearest = point;
    }
    if (!nearest) return;
    const { at, values } = nearest;
    const place = this.#x(at);
    this.cursor.setAttribute("x1", String(place));
    this.cursor.setAttribute("x2", String(place));
    this.cursor.setAttribute("visibility", "visible");
    const parts = this.options.series.map(({ name }, index) => {
      const value = values[index] ?? null;
      return `${name} ${value === null ? "–" : this.options.format(value)}`;
    });
    setText(this.tip, `${parts.join("  ")}  ·  ${this.#spanMs < 60 * MINUTE_MS ? `${Math.round((this.#now - at) / 1000)} s` : ago(this.#now - at)} ago`);
    this.tip.hidden = false;
    this.tip.style.left = `${Math.min(Math.max(place - 70, 0), Math.max(0, this.#width - this.tip.offsetWidth))}px`;
  }

  #leave() {
    this.cursor.setAttribute("visibility", "hidden");
    this.tip.hidden = true;
  }
}

/**
 * 1, 2 or 5 times a power of ten, not below `value`.
 *
 * @param {number} value
 */
export function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return (([1, 2, 5].find((factor) => factor * power >= value)) ?? 10) * power;
}
