// What was run from this browser, newest first.

import { load, save } from "./storage.js";

/** @typedef {{ sql: string, at: number, ms: number | null, rows: number | null, error: string | null }} HistoryEntry */

const ENTRIES_MAX = 200;
const TEXT_MAX = 20_000;

/** @returns {HistoryEntry[]} */
export function entries() {
  const stored = load("history", /** @type {HistoryEntry[]} */ ([]));
  return Array.isArray(stored) ? stored.filter((entry) => typeof entry?.sql === "string") : [];
}

/**
 * Remembers a run; the same text run again moves to the front.
 *
 * @param {HistoryEntry} entry
 */
export function remember(entry) {
  if (entry.sql.length > TEXT_MAX) return;
  const others = entries().filter((other) => other.sql !== entry.sql);
  save("history", [entry, ...others].slice(0, ENTRIES_MAX));
}

export function clear() {
  save("history", []);
}
