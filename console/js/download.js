// Results as files: asked for again in the wanted format, so that nothing is cut.

import { bodyOf, postSql } from "./api.js";

/** @typedef {import("./api.js").Statement} Statement */

/**
 * Runs the statement again and saves its result. Where the browser can, bytes go straight to disk;
 * elsewhere they are gathered in memory first.
 *
 * @param {Statement} statement
 * @param {"csv" | "arrow" | "ndjson"} format
 * @param {string} name
 */
export async function download(statement, format, name) {
  const file = `${name.replace(/[^\w.-]+/g, "-") || "result"}.${format === "arrow" ? "arrows" : format}`;
  const picker = /** @type {{ showSaveFilePicker?: (options: object) => Promise<{ createWritable(): Promise<WritableStream> }> }} */ (
    /** @type {unknown} */ (window)).showSaveFilePicker;
  if (picker) {
    const handle = await picker.call(window, { suggestedName: file });
    const response = await postSql(statement, `format=${format}`);
    if (response.body) await response.body.pipeTo(await handle.createWritable());
    return;
  }
  const response = await postSql(statement, `format=${format}`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
