// Latencies of the last minute by path and by pool, as small tables.

import { h, reconcile, setText } from "./dom.js";
import { count, shortDuration } from "./format.js";
import { pathExplained, pathText } from "./paths.js";

/** @typedef {import("./api.js").LatencyPath} LatencyPath */
/** @typedef {import("./api.js").Pool} Pool */

const ms = (/** @type {number | null} */ value) => (value === null ? "–" : shortDuration(value));

/**
 * A table of which each row is known by its first cell.
 *
 * @template T
 * @param {string} label
 * @param {string[]} heads
 * @param {(row: T) => { key: string, name: string, title: string, cells: string[] }} of
 */
function small(label, heads, of) {
  const body = h("tbody", {});
  const [first = "", ...others] = heads;
  // Where there is little room it scrolls, also by keyboard.
  const element = h("div", { class: "small-frame", tabindex: "0", role: "group", "aria-label": label },
    h("table", { class: "small-table", "aria-label": label },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, first), ...others.map((head) => h("th", { scope: "col", class: "numeric" }, head)))), body));
  const show = (/** @type {T[]} */ rows) => reconcile(body, rows, (row) => of(row).key,
    (row) => h("tr", {}, h("th", { scope: "row", title: of(row).title }, of(row).name), ...others.map(() => h("td", { class: "numeric tabular" }))),
    (line, row) => {
      for (const [index, text] of of(row).cells.entries()) {
        const cell = line.children[index + 1];
        if (cell) setText(cell, text);
      }
    });
  return { element, show };
}

/** @returns {{ element: HTMLElement, show: (rows: LatencyPath[]) => void }} */
export function pathTable() {
  return small("Latency by path", ["Path", "Queries", "p50", "p95", "p99", "Longest"], (row) => ({
    key: row.path, name: pathText(row.path), title: pathExplained(row.path),
    cells: [count(row.queries), ms(row.p50_ms), ms(row.p95_ms), ms(row.p99_ms), ms(row.max_ms)],
  }));
}

/** @returns {{ element: HTMLElement, show: (rows: Pool[]) => void }} */
export function poolTable() {
  return small("Latency by pool", ["Pool", "Slots busy", "Queries", "p50", "p95", "p99", "Wait p99"], (row) => ({
    key: row.pool, name: row.pool, title: "",
    cells: [`${count(row.running)} of ${count(row.slots)}`, count(row.queries), ms(row.p50_ms), ms(row.p95_ms), ms(row.p99_ms), ms(row.wait_p99_ms)],
  }));
}
