// The plan of a query of the list: what its operators have counted until now or when it ended; or asked
// for by its text, with times by running it once more.

import { ApiError, queryPlan, runSql } from "./api.js";
import { h, setText } from "./dom.js";
import { isActive } from "./live.js";
import { countOf } from "./parameters.js";
import { operatorsOf, operatorsOfTree, planView } from "./plan.js";

/** @typedef {import("./api.js").QueryInfo} QueryInfo */

const READS = /^\s*(?:select|values|table|with)\b/i;
const WRITES = /\b(?:insert|update|delete|merge)\b/i;

export class QueryPlan {
  #id = 0;
  /** @type {AbortController | null} */
  #asked = null;
  #following = false;

  constructor() {
    this.when = h("span", { class: "muted" });
    this.buttons = h("div", { class: "page-actions" });
    this.body = h("div", { class: "query-plan-body", "aria-live": "off" });
    this.element = h("div", { class: "query-plan" }, h("h3", {}, "Plan ", this.when), this.buttons, this.body);
  }

  /** Another query, or none: what was asked is not wanted any more. */
  clear() {
    this.#asked?.abort();
    this.#asked = null;
    this.#id = 0;
    setText(this.when, "");
    this.body.replaceChildren();
  }

  /**
   * The element for a query, whose plan is followed while it runs; once it has ended, it keeps its plan.
   *
   * @param {QueryInfo} query
   */
  of(query) {
    const text = `${query.id} ${isActive(query)}`;
    const changed = this.element.dataset["shown"] !== text || this.#id !== query.id;
    if (changed) this.#draw(query);
    this.element.dataset["shown"] = text;
    this.#id = query.id;
    if (changed || isActive(query)) this.#follow(query);
    return this.element;
  }

  /** @param {QueryInfo} query */
  #draw(query) {
    const why = whyNot(query.sql);
    if (isActive(query)) return this.buttons.replaceChildren();
    if (why !== "") return this.buttons.replaceChildren(h("span", { class: "muted" }, why));
    const button = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ title, /** @type {string} */ explain) =>
      h("button", { type: "button", "data-action": name, title, onclick: () => this.#ask(`${explain} ${query.sql.replace(/[\s;]+$/, "")}`) }, label);
    this.buttons.replaceChildren(
      button("plan", "Show plan", "EXPLAIN: the plan, without running anything", "EXPLAIN"),
      button("analyze", "Run again with times", "EXPLAIN ANALYZE: runs the statement once more, through the planner", "EXPLAIN ANALYZE"));
  }

  /**
   * Shows the plan with what it has counted, if the server has it.
   *
   * @param {QueryInfo} query
   */
  async #follow(query) {
    if (this.#following && isActive(query)) return;
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    this.#following = true;
    try {
      const found = await queryPlan(query.id, asked.signal);
      // Not known yet, or not any more: what was seen last stays.
      if (asked.signal.aborted || found === null) return;
      const { query: now, plan } = found;
      setText(this.when, isActive(now) ? "as it runs" : "as it ran");
      this.#show(planView(operatorsOfTree(plan)));
    } catch (error) {
      if (!(error instanceof ApiError) && !asked.signal.aborted) throw error;
    } finally {
      if (this.#asked === asked) this.#following = false;
    }
  }

  /** @param {HTMLElement} plan */
  #show(plan) {
    plan.dataset["action"] = "operators";
    const focused = this.body.firstChild === document.activeElement;
    this.body.replaceChildren(plan);
    if (focused) plan.focus({ preventScroll: true });
  }

  /** @param {string} sql */
  async #ask(sql) {
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    this.#following = false;
    setText(this.when, "");
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
