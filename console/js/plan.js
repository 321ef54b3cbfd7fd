// A plan as a tree: one line per operator; from EXPLAIN ANALYZE with its rows, its time and what it left out.

import { h } from "./dom.js";
import { bytes, count, dollars, duration } from "./format.js";

/** @typedef {import("./api.js").SqlResult} SqlResult */
/** @typedef {{ depth: number, name: string, detail: string, metrics: Map<string, string>, ms: number | null }} Operator */

const COST = "cost_nanodollars";
const LINE = /^(\s*)([A-Z][A-Za-z0-9]*)(?::\s?|,\s?|$)(.*)$/;
const SKIPPED = new Set(["output_rows", "elapsed_compute", "output_bytes", "output_batches", "start_timestamp", "end_timestamp"]);

/**
 * The plan, if the result is one of EXPLAIN.
 *
 * @param {SqlResult} result
 */
export function planText(result) {
  if (result.columns.length !== 1 || result.columns[0]?.name !== "QUERY PLAN") return null;
  return result.rows.map((row) => String(row[0])).join("\n");
}

/**
 * The operators of a plan, if the result is one of EXPLAIN; `null` where it is none that is known here.
 *
 * @param {SqlResult} result
 */
export function operatorsOf(result) {
  const text = planText(result);
  return text === null ? null : parsePlan(text);
}

/**
 * Reads the physical plan from the text of EXPLAIN ANALYZE; `null` if it is none.
 *
 * @param {string} text
 * @returns {Operator[] | null}
 */
export function parsePlan(text) {
  /** @type {Operator[]} */
  const operators = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const match = LINE.exec(line);
    if (!match) return null;
    const [, indent = "", name = "", rest = ""] = match;
    const { detail, metrics } = splitMetrics(rest);
    operators.push({ depth: indent.length / 2, name, detail, metrics, ms: milliseconds(metrics.get("elapsed_compute")) });
  }
  return operators.length > 0 ? operators : null;
}

/** @param {string} rest */
function splitMetrics(rest) {
  const start = rest.lastIndexOf("metrics=[");
  /** @type {Map<string, string>} */
  const metrics = new Map();
  if (start < 0) return { detail: rest, metrics };
  for (const part of rest.slice(start + "metrics=[".length).replace(/\]\s*$/, "").split(/,\s+(?=[A-Za-z_])/)) {
    const equals = part.indexOf("=");
    if (equals > 0) metrics.set(part.slice(0, equals).trim(), part.slice(equals + 1).trim());
  }
  const cost = metrics.get(COST);
  if (cost !== undefined) metrics.set(COST, dollars(unrounded(cost) / 1e9));
  return { detail: rest.slice(0, start).replace(/,\s*$/, ""), metrics };
}

/**
 * Large counts come rounded: `1.20 K`.
 *
 * @param {string} text
 */
function unrounded(text) {
  const [, digits, unit = ""] = /^([\d.]+)\s*([KMBT]?)$/.exec(text) ?? [];
  return Number(digits ?? 0) * 1000 ** " KMBT".indexOf(unit || " ");
}

/**
 * The operators of a plan that the server describes, inputs below and to the right of what they feed.
 *
 * @param {import("./api.js").PlanNode} node
 * @returns {Operator[]}
 */
export function operatorsOfTree(node, depth = 0) {
  const metrics = new Map(node.metrics.map((metric) => [metric.name, amount(metric)]));
  if (node.rows !== null) metrics.set("output_rows", count(node.rows));
  return [{ depth, name: node.name, detail: node.detail, metrics, ms: node.compute_ms }, ...node.inputs.flatMap((input) => operatorsOfTree(input, depth + 1))];
}

/** @param {import("./api.js").PlanMetric} metric */
function amount({ name, value, unit }) {
  if (name === COST) return dollars(value / 1e9);
  if (unit === "bytes") return bytes(value);
  if (unit === "ns") return duration(value / 1e6);
  // The funnel computes with these.
  return FUNNEL.test(name) ? String(value) : count(value);
}

const UNIT_MS = /** @type {const} */ ({ ns: 1e-6, "µs": 1e-3, "μs": 1e-3, us: 1e-3, ms: 1, s: 1000, m: 60_000 });

/** @param {string | undefined} text */
function milliseconds(text) {
  const match = /^([\d.]+)\s*(ns|µs|μs|us|ms|s|m)$/.exec(text ?? "");
  if (!match) return null;
  return Number(match[1]) * UNIT_MS[/** @type {keyof typeof UNIT_MS} */ (match[2])];
}

/** @param {Operator[]} operators */
export function planView(operators) {
  const slowest = Math.max(...operators.map((operator) => operator.ms ?? 0), Number.MIN_VALUE);
  return h("div", { class: "plan", role: "table", "aria-label": "Plan", tabindex: "0" },
    h("div", { class: "plan-row plan-head", role: "row" },
      h("span", { role: "columnheader" }, "Operator"), h("span", { role: "columnheader", class: "numeric" }, "Rows"),
      h("span", { role: "columnheader", class: "numeric" }, "CPU time"), h("span", { role: "columnheader" }, h("span", { class: "visually-hidden" }, "Share of the time"))),
    ...operators.map((operator) => operatorRow(operator, slowest)));
}

/**
 * @param {Operator} operator
 * @param {number} slowest
 */
function operatorRow(operator, slowest) {
  const bar = h("span", { class: "bar-fill" });
  bar.style.width = `${(100 * (operator.ms ?? 0)) / slowest}%`;
  const facts = [...funnel(operator.metrics), ...[...operator.metrics].filter(([name, value]) => !SKIPPED.has(name) && !FUNNEL.test(name) && !isNothing(value))];
  const name = h("div", { class: "operator" },
    h("div", { class: "operator-name" }, h("b", {}, operator.name), h("span", { class: "muted", title: operator.detail }, operator.detail)),
    facts.length > 0 && h("div", { class: "chips" }, ...facts.map(([key, value]) => h("span", { class: "chip" }, `${key === COST ? "cost" : key.replaceAll("_", " ")} `, h("b", {}, value)))));
  name.style.paddingLeft = `${operator.depth * 18}px`;
  return h("div", { class: "plan-row", role: "row" },
    h("div", { role: "cell" }, name),
    h("span", { role: "cell", class: "numeric" }, operator.metrics.get("output_rows") ?? ""),
    h("span", { role: "cell", class: "numeric" }, operator.ms === null ? "" : duration(operator.ms)),
    h("span", { role: "cell", class: "bar", "aria-hidden": "true" }, bar));
}

const FUNNEL = /_(total|pruned)$/;
const FUNNEL_STEPS = ["manifests", "files", "stripes", "row_groups"];

/**
 * What a scan read of all there was, from the largest parts to the smallest: `files`, `2 of 12`.
 *
 * @param {Map<string, string>} metrics
 * @returns {[string, string][]}
 */
function funnel(metrics) {
  return FUNNEL_STEPS.flatMap((step) => {
    const [total, pruned] = [metrics.get(`${step}_total`), metrics.get(`${step}_pruned`) ?? "0"];
    if (total === undefined) return [];
    const [all, left] = [Number(total), Number(total) - Number(pruned)];
    // Large counts come rounded ("1.2 K"): then they are shown as they are.
    return [/** @type {[string, string]} */ ([step, Number.isNaN(left) ? `${total}, ${pruned} pruned` : `${left} of ${all}`])];
  });
}

/** @param {string} value */
function isNothing(value) {
  return /^(\$?0|0\.0+( ms)?|0 ?B|0\.0 ?B|1ns|0ns)$/.test(value);
}
