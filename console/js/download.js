// Results as files: the server keeps the rows, so no statement runs again.

import { bodyOf } from "./api.js";

/** @typedef {import("./api.js").Statement} Statement */

/**
 * Lets the browser save a result that the server keeps; bytes go straight to disk.
 *
 * @param {string} id
 * @param {"csv" | "arrow" | "ndjson"} format
 * @param {string} name
 * @param {boolean} partial whether the first rows will do, of a result that was cut
 */
export function download(id, format, name, partial) {
  const file = `${name.replace(/[^\w.-]+/g, "-") || "result"}.${format === "arrow" ? "arrows" : format}`;
  const link = document.createElement("a");
  link.href = `/v1/results/${id}/rows?format=${format}&partial=${partial}&file=${encodeURIComponent(file)}`;
  link.download = file;
  link.click();
}

/**
 * Rows as CSV text, as the server writes it: NULL is nothing, the empty string is `""`.
 *
 * @param {string[]} names
 * @param {unknown[][]} rows
 */
export function toCsv(names, rows) {
  return [names, ...rows].map((row) => row.map(field).join(",")).join("\n") + "\n";
}

/** @param {unknown} value */
function field(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text === "" || /[",\r\n]|^ | $/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * The same request for a shell.
 *
 * @param {Statement} statement
 */
export function asCurl(statement) {
  const { type, body } = bodyOf(statement);
  const quoted = body.replaceAll("'", `'\\''`);
  return `curl -sS --fail-with-body '${location.origin}/v1/sql?format=csv' -H 'content-type: ${type.replace(/;.*/, "")}' --data-binary '${quoted}'`;
}
