// One table in full: facts, columns, snapshots, properties.

import { h, icon } from "./dom.js";
import { ago, bytes, count, dateTime, sortOrder } from "./format.js";

/** @typedef {import("./api.js").TableDetails} TableDetails */
/** @typedef {import("./api.js").Snapshot} Snapshot */

/**
 * @param {TableDetails} table
 * @param {{ preview: () => void, close: () => void }} actions
 */
export function tableDetails(table, actions) {
  return h("div", { class: "details", tabindex: "0", "aria-label": `Table ${table.namespace}.${table.name}` },
    h("header", {},
      h("h2", {}, h("span", { class: "muted" }, `${table.namespace}.`), table.name),
      h("button", { type: "button", class: "quiet", onclick: actions.preview }, icon("play"), "First rows"),
      h("span", { class: "spring" }),
      h("button", { type: "button", class: "icon-button", "aria-label": "Close", title: "Close", onclick: actions.close }, icon("close"))),
    table.comment !== null && h("p", { class: "comment" }, table.comment),
    facts(table),
    h("h3", {}, "Columns"), columns(table),
    h("h3", {}, "Snapshots"), snapshots(table.snapshots),
    h("h3", {}, "Properties"), properties(table.properties));
}

/** @param {TableDetails} table */
function facts(table) {
  const number = (/** @type {number | null} */ value, /** @type {(value: number) => string} */ format) => (value === null ? "–" : format(value));
  /** @type {[string, string][]} */
  const all = [
    ["Rows", number(table.rows, count)],
    ["Size", number(table.bytes, bytes)],
    ["Data files", number(table.files, count)],
    ["Partitioned by", table.partitioned_by.join(", ") || "–"],
    ["Sorted by", sortOrder(table.sorted_by) || "–"],
    ["Last commit", table.committed_unix_ms === null ? "–" : `${dateTime(table.committed_unix_ms)} (${agoText(table.committed_unix_ms)})`],
    ["Location", table.location],
    ["Metadata", table.metadata_location],
  ];
  return h("dl", { class: "facts-list" }, ...all.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** @param {number} unixMs */
function agoText(unixMs) {
  const age = ago(Date.now() - unixMs);
  return age === "now" ? "just now" : `${age} ago`;
}

/** @param {TableDetails} table */
function columns(table) {
  return listing(["Id", "Name", "Type", "Nulls", "Comment"], table.columns.map((column) =>
    [column.id === null ? "" : String(column.id), column.name, column.type, column.nullable ? "" : "NOT NULL", column.comment ?? ""]));
}

/** @param {Snapshot[]} all */
function snapshots(all) {
  if (all.length === 0) return h("p", { class: "muted" }, "Nothing was written yet.");
  const number = (/** @type {string | undefined} */ value) => (value === undefined ? "" : count(Number(value)));
  return listing(["Committed", "Operation", "Rows added", "Rows deleted", "Files added", "Rows in all", "Snapshot"], all.map(({ id, committed_unix_ms, operation, current, summary }) => [
    dateTime(committed_unix_ms), operation, number(summary["added-records"]), number(summary["deleted-records"]),
    number(summary["added-data-files"]), number(summary["total-records"]), current ? `${id} (current)` : id,
  ]), [2, 3, 4, 5]);
}

/** @param {Record<string, string>} all */
function properties(all) {
  const entries = Object.entries(all);
  return entries.length === 0 ? h("p", { class: "muted" }, "None.") : listing(["Name", "Value"], entries);
}

/**
 * @param {string[]} heads
 * @param {string[][]} rows
 * @param {number[]} [numeric]
 */
function listing(heads, rows, numeric = []) {
  const kind = (/** @type {number} */ index) => (numeric.includes(index) ? "numeric" : false);
  return h("table", { class: "listing" },
    h("thead", {}, h("tr", {}, ...heads.map((head, index) => h("th", { scope: "col", class: kind(index) }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value, index) => h("td", { class: kind(index) }, value))))));
}
