// The plan of a query of the list: asked for by its text, with times by running it once more.

import { ApiError, runSql } from "./api.js";
import { h } from "./dom.js";
import { isActive } from "./live.js";
import { countOf } from "./parameters.js";
import { operatorsOf, planView } from "./plan.js";

/** @typedef {import("./api.js").QueryInfo} QueryInfo */

const READS = /^\s*(?:select|values|table|with)\b/i;
const WRITES = /\b(?:insert|update|delete|merge)\b/i;

export class QueryPlan {
  #id = 0;
  /** @type {AbortController | null} */
  #asked = null;

  constructor() {
    this.buttons = h("div", { class: "page-actions" });
    this.body = h("div", { class: "query-plan-body", "aria-live": "polite" });
    this.element = h("div", { class: "query-plan" }, h("h3", {}, "Plan"), this.buttons, this.body);
  }

  /** Another query, or none: what was asked is not wanted any more. */
  clear() {
    this.#asked?.abort();
    this.#asked = null;
    this.#id = 0;
    this.body.replaceChildren();
  }

  /**
   * The element for a query; asked again for the same one, it keeps its plan.
   *
   * @param {QueryInfo} query
   */
  of(query) {
    const text = `${query.id} ${isActive(query)}`;
    if (this.element.dataset["shown"] !== text || this.#id !== query.id) this.#draw(query);
    this.element.dataset["shown"] = text;
    this.#id = query.id;
    return this.element;
  }

  /** @param {QueryInfo} query */
  #draw(query) {
    const why = whyNot(query.sql);
    if (why !== "") return this.buttons.replaceChildren(h("span", { class: "muted" }, why));
    const button = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ title, /** @type {string} */ explain) =>
      h("button", { type: "button", "data-action": name, title, onclick: () => this.#ask(`${explain} ${query.sql.replace(/[\s;]+$/, "")}`) }, label);
    this.buttons.replaceChildren(
      button("plan", "Show plan", "EXPLAIN: the plan, without running anything", "EXPLAIN"),
      ...(isActive(query) ? [] : [button("analyze", "Run again with times", "EXPLAIN ANALYZE: runs the statement once more, through the planner", "EXPLAIN ANALYZE")]));
  }

  /** @param {string} sql */
  async #ask(sql) {
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    this.body.replaceChildren(h("p", { class: "muted" }, "…"));
    try {
      const result = await runSql({ sql, parameters: [] }, { maxRows: 100, signal: asked.signal });
      const operators = operatorsOf(result);
      this.body.replaceChildren(operators ? planView(operators) : h("pre", { class: "statement" }, result.rows.map((row) => row.join("\n")).join("\n\n")));
    } catch (error) {
      if (asked.signal.aborted) return;
      this.body.replaceChildren(h("p", { class: "bad" }, error instanceof ApiError ? error.message : String(error)));
    }
  }
}

/**
 * Why a statement's plan cannot be asked for, or nothing.
 *
 * @param {string} sql
 */
function whyNot(sql) {
  const code = sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'/g, " ");
  if (!READS.test(code) || WRITES.test(code)) return "Only of statements that read.";
  if (code.replace(/[\s;]+$/, "").includes(";")) return "Not of several statements at once.";
  if (countOf(sql) > 0) return "The values of its parameters are not kept; open it in the editor to give some.";
  return "";
}
