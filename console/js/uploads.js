// Files on their way to the server: what their columns are, and their rows.

import { ApiError, request, unreachable } from "./api.js";

/**
 * What the server infers of a file: its format, and columns for a table.
 *
 * @typedef {{ format: string, compression: string, columns: { name: string, type: string }[] }} FileColumns
 */

/** Bytes that a text file's columns are inferred from. */
const SAMPLE_BYTES = 1 << 20;
/** Bytes that a request of the server takes without being told otherwise. */
const FOOTER_BYTES_MAX = 15 << 20;

/**
 * @param {File} file of which a part is sent
 * @param {Record<string, string>} options of the load
 * @returns {Promise<FileColumns>}
 */
export async function columnsOfFile(file, options) {
  const part = /\.(parquet|pq|parq)$/i.test(file.name) || options["format"] === "parquet" ? await footerOf(file) : file.slice(0, SAMPLE_BYTES);
  const query = new URLSearchParams({ ...options, name: file.name, cut: String(part.size < file.size) });
  return (await request(`/v1/file-columns?${query}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: part })).json();
}

/**
 * The end of a Parquet file: its footer, whose length is in the last 8 bytes.
 *
 * @param {File} file
 */
async function footerOf(file) {
  const end = new DataView(await file.slice(-8).arrayBuffer());
  const bytes = end.byteLength === 8 ? end.getUint32(0, true) + 8 : file.size;
  if (bytes > FOOTER_BYTES_MAX && bytes <= file.size) throw unreachable(`${file.name} has a footer of ${bytes} bytes`, "load it on the server's machine with stoa load");
  return file.slice(-Math.min(bytes, FOOTER_BYTES_MAX));
}

/**
 * Adds the rows of a file to a table: all of them, or none. The browser reads the file as it sends it.
 *
 * @param {string} namespace
 * @param {string} table
 * @param {File} file
 * @param {Record<string, string>} options of the load
 * @param {AbortSignal} signal
 * @param {(share: number) => void} progress is told which share was sent
 * @returns {Promise<{ rows: number }>}
 */
export function uploadRows(namespace, table, file, options, signal, progress) {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open("POST", `/v1/tables/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}/rows?${new URLSearchParams(options)}`);
    call.setRequestHeader("content-type", "application/octet-stream");
    call.upload.onprogress = ({ loaded, total }) => progress(total > 0 ? loaded / total : 0);
    call.onerror = () => reject(unreachable("the server does not answer", "see whether `stoa server` still runs; nothing was loaded if it has stopped"));
    call.onabort = () => reject(new DOMException("given up", "AbortError"));
    call.onload = () => (call.status === 200 ? resolve(JSON.parse(call.responseText)) : reject(problemIn(call, file.name)));
    signal.addEventListener("abort", () => call.abort(), { once: true });
    call.send(file);
  });
}

/**
 * @param {XMLHttpRequest} call
 * @param {string} name what the server calls `stdin`
 */
function problemIn(call, name) {
  try {
    const { error } = JSON.parse(call.responseText);
    if (error?.message) return new ApiError({ ...error, message: error.message.replace(/\bstdin\b/i, name) });
  } catch {
    // Not one of our error documents.
  }
  return unreachable(`the server answered ${call.status} ${call.statusText}`, "");
}
