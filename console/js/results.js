// What came back: rows, a plan, a completion, an error, or the wait for one of them.

import { h, icon, iconButton } from "./dom.js";
import { bytes, count, duration, plural, sentence } from "./format.js";
import { Grid } from "./grid.js";
import { parsePlan, planText, planView } from "./plan.js";
import { firstChoice, ResultChart } from "./result-chart.js";
import { asCurl, download, toCsv } from "./download.js";
import { ApiError, keptResult, resultRows } from "./api.js";

/** @typedef {import("./api.js").SqlResult} SqlResult */
/** @typedef {import("./api.js").ApiErrorBody} ApiErrorBody */
/** @typedef {import("./api.js").Statement} Statement */
/** @typedef {import("./result-chart.js").ChartChoice} ChartChoice */

/**
 * What a tab shows in its result panel.
 *
 * @typedef {{ kind: "nothing" }
 *   | { kind: "running", sql: string, since: number }
 *   | { kind: "result", statement: Statement, result: SqlResult, title: string, chart?: ChartChoice | null, charted?: boolean }
 *   | { kind: "error", sql: string, offset: number, error: ApiErrorBody, ms: number }
 *   | { kind: "cancelled", ms: number }} View
 */

/**
 * @typedef {{ goTo: (index: number) => void, notify: (text: string) => void,
 *   confirm: (question: string, yes: string) => Promise<boolean> }} ResultActions
 */

export class Results {
  #timer = 0;
  /** @type {View} */
  #view = { kind: "nothing" };

  /** @param {ResultActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.grid = new Grid();
    this.bar = h("div", { class: "result-bar", role: "status", "aria-live": "polite" });
    this.body = h("div", { class: "result-body" });
    this.element = h("section", { class: "results", "aria-label": "Result" }, this.bar, this.body);
    this.bar.hidden = true;
    this.#nothing();
  }

  /** @param {View} view */
  show(view) {
    // The same again (another tab was renamed, say) must not lose the place in the rows.
    if (view === this.#view) return;
    this.#view = view;
    clearInterval(this.#timer);
    this.body.classList.toggle("stale", view.kind === "running");
    this.bar.hidden = view.kind === "nothing";
    switch (view.kind) {
      case "nothing": return this.#nothing();
      case "running": return this.#running(view.since);
      case "result": return this.#result(view);
      case "error": return this.#error(view);
      case "cancelled": return this.#cancelled(view.ms);
    }
  }

  /** Puts the keyboard on the rows, if there are any. */
  focus() {
    if (this.#view.kind === "result") this.grid.scroller.focus();
  }

  #nothing() {
    this.body.replaceChildren(h("div", { class: "blank" },
      h("p", {}, "Results appear here."),
      h("p", { class: "muted" }, h("kbd", {}, "Ctrl ↵"), " runs the statement at the caret, ", h("kbd", {}, "Ctrl ⇧ ↵"), " runs it with EXPLAIN ANALYZE.")));
  }

  /** @param {number} since */
  #running(since) {
    const clock = h("span", { class: "tabular" });
    const tick = () => { clock.textContent = duration(performance.now() - since); };
    tick();
    this.#timer = setInterval(tick, 100);
    this.bar.replaceChildren(h("span", { class: "spinner", "aria-hidden": "true" }), h("b", {}, "Running"), clock);
  }

  /**
   * @param {View & { kind: "result" }} view
   * @param {boolean} [stays] whether the place in the rows stays
   */
  #result(view, stays = false) {
    const { result } = view;
    const plan = planText(result);
    const operators = plan === null ? null : parsePlan(plan);
    if (view.chart === undefined) view.chart = plan === null ? firstChoice(result) : null;
    this.bar.replaceChildren(h("span", { class: "dot ok", "aria-hidden": "true" }), ...facts(result), h("span", { class: "spring" }),
      ...(view.chart ? [this.#choices(view)] : []),
      ...(result.columns.length > 0 ? this.#exports(view) : []));
    if (result.columns.length === 0) {
      this.body.replaceChildren(h("div", { class: "blank" }, h("p", {}, result.command ?? "Done"),
        ...(result.notices ?? []).map((notice) => h("p", { class: "muted" }, notice))));
    } else if (operators) {
      this.body.replaceChildren(planView(operators));
    } else if (plan !== null) {
      this.body.replaceChildren(h("pre", { class: "plan-text", tabindex: "0" }, plan));
    } else if (view.chart && view.charted) {
      this.body.replaceChildren(new ResultChart(result, view.chart).element);
    } else {
      this.body.replaceChildren(this.grid.element, ...this.#more(view));
      this.grid.show(result.columns, result.rows, stays);
    }
  }

  /**
   * Rows or chart.
   *
   * @param {View & { kind: "result" }} view
   */
  #choices(view) {
    const button = (/** @type {boolean} */ charted, /** @type {string} */ label) => h("button", {
      type: "button", class: "quiet", "aria-pressed": String((view.charted ?? false) === charted),
      onclick: () => {
        view.charted = charted;
        this.#result(view);
        /** @type {HTMLElement | null} */ (this.bar.querySelector("[aria-pressed=true]"))?.focus();
      },
    }, label);
    return h("span", { class: "segments", role: "group", "aria-label": "Show as" }, button(false, "Rows"), button(true, "Chart"));
  }

  /** @param {View & { kind: "result" }} view */
  #exports({ statement, result, title }) {
    const kept = result.result?.id;
    const names = result.columns.map((column) => column.name);
    return [
      this.#exportButton("copy", "Copy CSV", "Copy the rows shown as CSV", () => this.#copy(toCsv(names, result.rows), `${plural(result.rows.length, "row")} copied`)),
      ...(kept === undefined ? [] : [
        this.#exportButton("download", "CSV", "Download all rows as CSV; the statement does not run again", () => this.#download(kept, "csv", title)),
        this.#exportButton("download", "Arrow", "Download all rows as an Arrow IPC stream; the statement does not run again", () => this.#download(kept, "arrow", title)),
      ]),
      iconButton("link", "Copy as curl, to run the statement in a shell", () => this.#copy(asCurl(statement), "curl command copied")),
    ];
  }

  /**
   * @param {"copy" | "download"} name
   * @param {string} label
   * @param {string} title
   * @param {() => void} onclick
   */
  #exportButton(name, label, title, onclick) {
    return h("button", { type: "button", class: "quiet", title, onclick }, icon(name), label);
  }

  /**
   * @param {string} text
   * @param {string} done
   */
  async #copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      this.actions.notify(done);
    } catch {
      this.actions.notify("The browser did not allow copying");
    }
  }

  /**
   * @param {string} id
   * @param {"csv" | "arrow"} format
   * @param {string} title
   */
  async #download(id, format, title) {
    try {
      const { state, rows, reason } = await keptResult(id);
      const isPart = state === "cut";
      if (isPart && !(await this.actions.confirm(`The server kept the first ${plural(rows, "row")} of this result: ${reason}.`, "Download these rows"))) return;
      download(id, format, title, isPart);
    } catch (error) {
      this.actions.notify(`Download failed: ${messageOf(error)}`);
    }
  }

  /**
   * What is below the rows if these are not all.
   *
   * @param {View & { kind: "result" }} view
   */
  #more(view) {
    const { result } = view;
    const kept = result.result;
    const shown = result.rows.length;
    if (kept?.state === "cut" && !result.truncated) return [h("div", { class: "more" }, h("span", {}, `These are the first ${plural(shown, "row")}: ${kept.reason}.`))];
    if (!result.truncated) return [];
    const next = shown * 10;
    return [h("div", { class: "more" },
      h("span", {}, `The first ${count(shown)} rows are shown.`),
      kept !== undefined && h("button", { type: "button", class: "quiet", onclick: () => this.#showMore(view, kept.id, next) }, `Show up to ${count(next)}`),
      h("span", { class: "muted" }, "Downloads contain all rows."))];
  }

  /**
   * @param {View & { kind: "result" }} view
   * @param {string} id
   * @param {number} rows
   */
  async #showMore(view, id, rows) {
    const { result } = view;
    try {
      const shown = result.rows.length;
      const page = await resultRows(id, shown, rows - shown);
      const all = [...result.rows, ...page.rows];
      const { result: kept = result.result } = page;
      view.result = { ...result, rows: all, row_count: all.length, truncated: page.truncated, ...(kept ? { result: kept } : {}) };
      if (this.#view === view) this.#result(view, true);
    } catch (error) {
      this.actions.notify(messageOf(error));
    }
  }

  /** @param {View & { kind: "error" }} view */
  #error({ sql, offset, error, ms }) {
    this.bar.replaceChildren(h("span", { class: "dot bad", "aria-hidden": "true" }), h("b", {}, "Failed"), h("span", { class: "tabular muted" }, duration(ms)));
    const position = error.position;
    this.body.replaceChildren(h("div", { class: "error", role: "alert" },
      h("div", { class: "error-head" }, h("code", { class: "badge bad" }, error.code), h("span", { class: "muted" }, error.kind.replaceAll("_", " "))),
      h("p", { class: "error-message" }, sentence(error.message)),
      position !== null && codeFrame(sql, position, () => this.actions.goTo(offset + codeUnits(sql, position))),
      error.detail !== null && h("p", { class: "error-detail" }, sentence(error.detail)),
      error.hint !== null && h("p", { class: "error-hint" }, h("b", {}, "Hint"), " ", sentence(error.hint)),
      error.retryable && h("p", { class: "muted" }, "The same statement may succeed later.")));
  }

  /** @param {number} ms */
  #cancelled(ms) {
    this.bar.replaceChildren(h("span", { class: "dot", "aria-hidden": "true" }), h("b", {}, "Cancelled"), h("span", { class: "tabular muted" }, `after ${duration(ms)}`));
    this.body.replaceChildren(h("div", { class: "blank" }, h("p", {}, "The query was cancelled.")));
  }
}

/** @param {unknown} error */
function messageOf(error) {
  if (error instanceof ApiError) return error.body.hint === null ? error.message : `${error.message}: ${error.body.hint}`;
  return error instanceof Error ? error.message : String(error);
}

/** @param {SqlResult} result */
function facts(result) {
  const parts = [];
  if (result.command !== undefined) parts.push(h("b", {}, result.command));
  else parts.push(h("b", {}, result.truncated ? `first ${plural(result.row_count, "row")}` : plural(result.row_count, "row")));
  parts.push(h("span", { class: "tabular" }, duration(result.elapsed_ms)));
  if (result.bytes_read > 0) parts.push(h("span", { class: "tabular muted" }, `${bytes(result.bytes_read)} read`));
  if (result.query_id !== null) parts.push(h("span", { class: "tabular muted" }, `query ${result.query_id}`));
  return parts;
}

/**
 * The line of the error with a mark below its place.
 *
 * @param {string} sql
 * @param {number} position character, counted from 1
 * @param {() => void} goTo
 */
function codeFrame(sql, position, goTo) {
  const index = codeUnits(sql, position);
  const start = sql.lastIndexOf("\n", index - 1) + 1;
  const newline = sql.indexOf("\n", index);
  const line = sql.slice(start, newline < 0 ? undefined : newline);
  const number = sql.slice(0, index).split("\n").length;
  const column = index - start;
  const from = Math.max(0, column - 100);
  const label = `line ${number}, character ${column + 1}`;
  return h("div", { class: "code-frame" },
    h("button", { type: "button", class: "link", onclick: goTo, title: "Go there" }, label),
    h("pre", {}, line.slice(from, from + 200), "\n", " ".repeat(column - from), h("span", { class: "bad" }, "^")));
}

/**
 * The index in a JavaScript string of a character that is counted from 1 in Unicode characters.
 *
 * @param {string} text
 * @param {number} position
 */
export function codeUnits(text, position) {
  let index = 0;
  let seen = 1;
  for (const character of text) {
    if (seen >= position) break;
    index += character.length;
    seen += 1;
  }
  return index;
}
