// What a chart of rows is made of: axes of values, and marks for them.

import { niceStep } from "./charts.js";
import { s } from "./dom.js";
import { short } from "./format.js";

/** @typedef {{ left: number, right: number, top: number, bottom: number, y: (value: number) => number, x: (place: number) => number, step: number }} Scale */

/**
 * An axis from zero, or through it.
 *
 * @param {number[]} values
 */
export function linear(values) {
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
export function logarithmic(values) {
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
export function lines(rows, column, series, scale) {
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
export function bars(rows, column, series, all, scale) {
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
export function number(value) {
  if (value === null || value === undefined || value === "") return null;
  const read = Number(value);
  return Number.isFinite(read) ? read : null;
}

/** @param {number} tick */
export function tickText(tick) {
  return Math.abs(tick) >= 10_000 ? `${tick < 0 ? "−" : ""}${short(Math.abs(tick))}` : String(Number(tick.toPrecision(6)));
}

/**
 * The values of a row upon each other: where each begins and ends, those below zero downwards.
 *
 * @param {unknown[]} row
 * @param {number[]} columns
 * @returns {([number, number] | null)[]}
 */
export function stacked(row, columns) {
  let [up, down] = [0, 0];
  return columns.map((column) => {
    const value = number(row[column]);
    if (value === null) return null;
    const from = value < 0 ? down : up;
    if (value < 0) down += value;
    else up += value;
    return [from, from + value];
  });
}

/**
 * Bars upon each other.
 *
 * @param {unknown[][]} rows
 * @param {number[]} columns
 * @param {Scale} scale
 */
export function stackedBars(rows, columns, scale) {
  const width = Math.max(1, scale.step * 0.8);
  return rows.flatMap((row, place) => stacked(row, columns).flatMap((part, series) => {
    if (part === null) return [];
    const [a, b] = [scale.y(part[0]), scale.y(part[1])];
    return [s("rect", { class: `mark series-${series}`, x: (scale.x(place) - width / 2).toFixed(1), width: Math.max(1, width - 1).toFixed(1), y: Math.min(a, b).toFixed(1), height: Math.max(Math.abs(a - b), 0.5).toFixed(1) })];
  }));
}

/**
 * Areas upon each other; NULL counts as nothing.
 *
 * @param {unknown[][]} rows
 * @param {number[]} columns
 * @param {Scale} scale
 */
export function stackedAreas(rows, columns, scale) {
  const parts = rows.map((row) => stacked(columns.map((column) => number(row[column]) ?? 0), columns.map((_, index) => index)));
  return columns.map((_, series) => {
    const point = (/** @type {number} */ place, /** @type {0 | 1} */ end) => `${scale.x(place).toFixed(1)},${scale.y(parts[place]?.[series]?.[end] ?? 0).toFixed(1)}`;
    const places = rows.map((_, place) => place);
    // One point alone has no area: it is as wide as a line.
    const path = `M${places.map((place) => point(place, 1)).join("L")}L${places.toReversed().map((place) => point(place, 0)).join("L")}Z`;
    return s("path", { class: `mark area series-${series}`, d: path });
  });
}
