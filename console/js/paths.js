// On which way a query was answered, in words.

/** By the names of `system.latency_paths`. @type {Record<string, string>} */
const TEXTS = {
  short: "Short path", planned: "Planned", reused: "Results reused", other: "Without a plan", waiting: "Waiting for a slot",
};

/** @param {string} path as the server calls it */
export function pathText(path) {
  return TEXTS[path] ?? path;
}

/** @param {string} path as the server calls it */
export function pathExplained(path) {
  return {
    short: "Reports answered without the planner",
    planned: "Computed by a plan; without the time that they waited for a slot",
    reused: "Given the answer of an equal statement, as the data had not changed",
    other: "Settings, DDL, small writes",
    waiting: "What planned queries waited until they could compute",
  }[path] ?? "";
}
