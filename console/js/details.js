// The parts that describe one table: facts, columns, snapshots, properties.

import { h } from "./dom.js";
import { ago, bytes, count, dateTime, sortOrder } from "./format.js";
import { Pager } from "./pager.js";

/** @typedef {import("./api.js").TableDetails} TableDetails */
/** @typedef {import("./api.js").Snapshot} Snapshot */

/** @param {TableDetails} table */
export function facts(table) {
  const number = (/** @type {number | null} */ value, /** @type {(value: number) => string} */ format) => (value === null ? "–" : format(value));
  return factsList([
    ["Rows", number(table.rows, count)],
    ["Fresh rows", table.fresh_rows === 0 ? "none: all are in files" : `${count(table.fresh_rows)}, in the commit log and not yet in files`],
    ["Size", number(table.bytes, bytes)],
    ["Data files", number(table.files, count)],
    ["Partitioned by", table.partitioned_by.join(", ") || "–"],
    ["Sorted by", sortOrder(table.sorted_by) || "–"],
    ["Last commit", table.committed_unix_ms === null ? "–" : `${dateTime(table.committed_unix_ms)} (${agoText(table.committed_unix_ms)})`],
    ["Location", table.location],
    ["Metadata", table.metadata_location],
  ]);
}

/** @param {[string, string][]} all */
export function factsList(all) {
  return h("dl", { class: "facts-list" }, ...all.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** @param {number} unixMs */
export function agoText(unixMs) {
  const age = ago(Date.now() - unixMs);
  return age === "now" ? "just now" : `${age} ago`;
}

/** @param {TableDetails} table */
export function columns(table) {
  return listing("columns", ["Id", "Name", "Type", "Nulls", "Comment"], table.columns, (column) =>
    [column.id === null ? "" : String(column.id), column.name, column.type, column.nullable ? "" : "NOT NULL", column.comment ?? ""]);
}

/**
 * @param {Snapshot[]} all
 * @param {{ look: (snapshot: Snapshot) => void, rollBack: (snapshot: Snapshot) => void }} actions
 */
export function snapshots(all, { look, rollBack }) {
  if (all.length === 0) return h("p", { class: "muted" }, "Nothing was written yet.");
  const number = (/** @type {string | undefined} */ value) => (value === undefined ? "" : count(Number(value)));
  const heads = ["Committed", "Operation", "Rows added", "Rows deleted", "Files added", "Rows in all", "Snapshot"];
  return listing("snapshots", [...heads, "Version"], all, ({ id, committed_unix_ms, operation, current, summary }) => [
    dateTime(committed_unix_ms), operation, number(summary["added-records"]), number(summary["deleted-records"]),
    number(summary["added-data-files"]), number(summary["total-records"]), current ? `${id} (current)` : id, "",
  ], [2, 3, 4, 5], (row, snapshot) => {
    const { id, current } = snapshot;
    row.lastElementChild?.append(
      h("button", { type: "button", class: "link", title: `SELECT … FOR VERSION AS OF ${id}`, onclick: () => look(snapshot) }, "Look at it"),
      current ? "" : h("button", { type: "button", class: "link", title: `ALTER TABLE … ROLLBACK TO VERSION ${id}`, onclick: () => rollBack(snapshot) }, "Roll back"));
  });
}

/** @param {Record<string, string>} all */
export function properties(all) {
  const entries = Object.entries(all);
  return entries.length === 0 ? h("p", { class: "muted" }, "None.") : listing("properties", ["Name", "Value"], entries, (entry) => entry);
}

/**
 * A table, of which a part is shown if it is long.
 *
 * @template T
 * @param {string} what is listed
 * @param {string[]} heads
 * @param {T[]} rows
 * @param {(row: T) => string[]} cells
 * @param {number[]} [numeric]
 * @param {(element: HTMLElement, row: T) => void} [more] what else is in a row
 */
function listing(what, heads, rows, cells, numeric = [], more = () => {}) {
  const kind = (/** @type {number} */ index) => (numeric.includes(index) ? "numeric" : false);
  const body = h("tbody", {});
  const draw = () => body.replaceChildren(...pager.of(rows).map((row) => {
    const element = h("tr", {}, ...cells(row).map((value, index) => h("td", { class: kind(index) }, value)));
    more(element, row);
    return element;
  }));
  const pager = new Pager(what, draw);
  draw();
  return h("div", { class: "listing-frame" }, h("table", { class: "listing" },
    h("thead", {}, h("tr", {}, ...heads.map((head, index) => h("th", { scope: "col", class: kind(index) }, head)))), body), pager.element);
}
