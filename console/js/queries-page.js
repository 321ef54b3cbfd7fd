// Queries: what runs and waits now, and what took long, ended last or failed; with a way to stop it.

import { ApiError, cancelQuery } from "./api.js";
import { h, icon, setText } from "./dom.js";
import { ago, bytes, count, dateTime, dollars, duration, oneLine, percent, short } from "./format.js";
import { paint } from "./highlight.js";
import { Listing } from "./listing.js";
import { isActive } from "./live.js";
import { Progress } from "./progress.js";
import { QueryPlan } from "./query-plan.js";
import { showSql } from "./show-sql.js";
import { ENDED, RUNNING } from "./statements.js";

/** @typedef {import("./api.js").QueryInfo} QueryInfo */
/** @typedef {import("./statements.js").Ended} Ended */
/** @typedef {import("./show-sql.js").SqlActions} SqlActions */

const CHOICES = /** @type {const} */ ([["slow", "Slowest"], ["latest", "Latest"], ["failed", "Failed"]]);

export class QueriesPage {
  /** @type {QueryInfo[]} */
  #all = [];
  /** @type {Ended} */
  #choice = "slow";
  #open = 0;

  /** @param {SqlActions & { refresh: () => void }} actions */
  constructor(actions) {
    this.actions = actions;
    this.progress = new Progress();
    this.plan = new QueryPlan();
    const open = (/** @type {QueryInfo} */ query) => this.#show(query.id);
    const key = (/** @type {QueryInfo} */ query) => String(query.id);
    const state = (/** @type {QueryInfo} */ query) => query.state;
    this.active = new Listing({
      label: "Running and queued queries", key, open, state, empty: "Nothing runs, nothing waits.",
      columns: [...common([done(), this.#rate()]), { name: "kill", label: "", value: () => "", paint: (cell, query) => this.#killCell(cell, query) }],
    });
    this.ended = new Listing({ label: "Ended queries", key, open, state, empty: "None.", columns: common() });
    this.counts = h("span", { class: "muted tabular" });
    this.choices = CHOICES.map(([name, label]) => h("button", { type: "button", class: "quiet", "aria-pressed": String(name === this.#choice), onclick: () => this.#choose(name) }, label));
    this.details = h("aside", { class: "page-details", "aria-label": "Query", hidden: true });
    const now = showSql("Running and queued", () => RUNNING, actions);
    this.endedSql = showSql("Ended queries", () => ENDED[this.#choice], actions);
    this.element = h("main", {
      class: "page split", "aria-label": "Queries", hidden: true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.#show(0),
    },
      h("div", { class: "page-main" },
        h("section", { "aria-label": "Now" }, h("h2", {}, "Running and queued", this.counts, h("span", { class: "spring" }), now.button), now.panel, this.active.element),
        h("section", { "aria-label": "Ended" }, h("h2", {}, "Ended lately", h("span", { class: "segments", role: "group", "aria-label": "Which" }, ...this.choices), h("span", { class: "spring" }), this.endedSql.button), this.endedSql.panel, this.ended.element)),
      this.details);
  }

  /**
   * @param {QueryInfo[]} running
   * @param {QueryInfo[]} recent
   */
  showQueries(running, recent) {
    this.#all = [...running, ...recent];
    this.progress.see(running, Date.now());
    const queued = running.filter((query) => query.state === "queued").length;
    setText(this.counts, `${count(running.length - queued)} running · ${count(queued)} queued`);
    this.active.show(running);
    this.ended.show(this.#chosen(recent).slice(0, 100));
    this.#update();
  }

  /** @param {QueryInfo[]} recent */
  #chosen(recent) {
    if (this.#choice === "slow") return recent.toSorted((a, b) => b.elapsed_ms - a.elapsed_ms);
    const wanted = this.#choice === "latest" ? recent : recent.filter((query) => query.state !== "finished");
    return wanted.toSorted((a, b) => b.id - a.id);
  }

  /** @param {Ended} choice */
  #choose(choice) {
    this.#choice = choice;
    for (const [index, [name]] of CHOICES.entries()) this.choices[index]?.setAttribute("aria-pressed", String(name === choice));
    this.ended.sort = null;
    this.ended.show(this.#chosen(this.#all.filter((query) => !isActive(query))).slice(0, 100));
    this.endedSql.update();
  }

  /**
   * @param {HTMLElement} cell
   * @param {QueryInfo} query
   */
  #killCell(cell, query) {
    if (cell.firstChild) return;
    cell.append(h("button", { type: "button", class: "danger kill", "aria-label": `Kill query ${query.id}`, title: `KILL QUERY ${query.id}`, onclick: () => this.#kill(query.id) }, icon("stop"), "Kill"));
  }

  /** @param {number} id */
  async #kill(id) {
    try {
      await cancelQuery(id);
      this.actions.notify(`Query ${id} is being cancelled`);
    } catch (error) {
      this.actions.notify(error instanceof ApiError ? error.message : String(error));
    }
    this.actions.refresh();
  }

  /** @returns {import("./listing.js").Column<QueryInfo>} */
  #rate() {
    const of = (/** @type {QueryInfo} */ query) => this.progress.of(query.id)?.bytes ?? 0;
    return { name: "rate", label: "Read/s", title: "Bytes read per second", numeric: true, value: of, text: (query) => (of(query) === 0 ? "–" : bytes(of(query))) };
  }

  /** @param {number} id `0` closes */
  #show(id) {
    this.#open = this.#open === id ? 0 : id;
    this.details.replaceChildren();
    this.plan.clear();
    this.#update();
  }

  /** Brings the details up to date; a query that is forgotten stays as it was last seen. */
  #update() {
    this.active.mark(String(this.#open));
    this.ended.mark(String(this.#open));
    this.details.hidden = this.#open === 0;
    const query = this.#all.find((candidate) => candidate.id === this.#open);
    if (!query) return;
    this.progress.draw(query.id);
    const text = `${query.id} ${query.state} ${query.elapsed_ms}`;
    if (this.details.dataset["shown"] === text && this.details.firstChild) return;
    this.details.dataset["shown"] = text;
    const scrolled = this.details.querySelector("pre")?.scrollTop ?? 0;
    const focused = /** @type {HTMLElement | null} */ (this.details.contains(document.activeElement) ? document.activeElement : null)?.dataset["action"];
    const rate = this.progress.of(query.id);
    const facts = rate && isActive(query) ? [/** @type {[string, string]} */ (["Now", `${bytes(rate.bytes)}/s read, ${short(Math.round(rate.rows))} rows/s given`])] : [];
    this.details.replaceChildren(...queryDetails(query, facts, {
      open: () => this.actions.openSql(query.sql, `Query ${query.id}`),
      kill: () => this.#kill(query.id),
      close: () => this.#show(0),
    }), ...(isActive(query) ? [this.progress.element] : []), this.plan.of(query));
    this.details.querySelector("pre")?.scrollTo(0, scrolled);
    if (focused) /** @type {HTMLElement | null} */ (this.details.querySelector(`[data-action="${focused}"]`))?.focus();
  }
}

/** @returns {import("./listing.js").Column<QueryInfo>} */
function done() {
  return { name: "progress", label: "Done", title: "Share of the rows of its files that were scanned", numeric: true, value: (query) => query.progress ?? 0, text: (query) => (query.progress === null ? "–" : percent(query.progress)) };
}

/**
 * @param {import("./listing.js").Column<QueryInfo>[]} [more] columns beside what was read
 * @returns {import("./listing.js").Column<QueryInfo>[]}
 */
function common(more = []) {
  return [
    { name: "id", label: "Id", numeric: true, value: (query) => query.id },
    { name: "state", label: "State", value: (query) => query.state },
    { name: "elapsed_ms", label: "Time", numeric: true, value: (query) => query.elapsed_ms, text: (query) => duration(query.elapsed_ms) },
    { name: "rows", label: "Rows", numeric: true, value: (query) => query.rows, text: (query) => count(query.rows) },
    { name: "bytes_read", label: "Read", title: "Bytes read from storage", numeric: true, value: (query) => query.bytes_read, text: (query) => (query.bytes_read === 0 ? "–" : bytes(query.bytes_read)) },
    ...more,
    { name: "requests", label: "Requests", title: "Read requests to storage", numeric: true, value: (query) => query.requests, text: (query) => count(query.requests) },
    { name: "path", label: "Path", title: "Short: answered without the planner", value: (query) => (query.short_path ? "short" : "full") },
    { name: "user", label: "User", value: (query) => `${query.user} ${query.protocol}`, text: (query) => `${query.user} · ${query.protocol}` },
    { name: "sql", label: "Statement", wide: true, value: (query) => query.sql, paint: paintStatement },
  ];
}

/**
 * @param {HTMLElement} cell
 * @param {{ sql: string }} row
 */
export function paintStatement(cell, row) {
  if (cell.firstChild) return;
  const code = h("code", {});
  paint(code, oneLine(row.sql).slice(0, 300));
  cell.append(code);
}

/**
 * @param {QueryInfo} query
 * @param {[string, string][]} more facts
 * @param {{ open: () => void, kill: () => void, close: () => void }} actions
 */
function queryDetails(query, more, actions) {
  const code = h("code", {});
  paint(code, query.sql);
  /** @type {[string, string][]} */
  const facts = [
    ["State", query.state], ["Time", duration(query.elapsed_ms)],
    ["Started", `${dateTime(query.started_unix_ms)}, ${ago(Date.now() - query.started_unix_ms)} ago`],
    ["User", `${query.user} over ${query.protocol}`], ["Rows", count(query.rows)],
    ["Read", `${bytes(query.bytes_read)} in ${count(query.requests)} requests`],
    ...spentFacts(query),
    ["Path", query.short_path ? "short: without the planner" : "full planner"],
    ["Pool", query.pool],
    ["Memory", query.memory_peak_bytes === 0 ? "–" : `${bytes(query.memory_bytes)}, at most ${bytes(query.memory_peak_bytes)}`],
    ...more,
  ];
  return [
    h("header", {}, h("h2", {}, `Query ${query.id}`), h("span", { class: "spring" }),
      h("button", { type: "button", class: "icon-button", "aria-label": "Close", title: "Close (Esc)", "data-action": "close", onclick: actions.close }, icon("close"))),
    isActive(query) && query.progress !== null && progressBar(query.progress),
    h("dl", { class: "facts-list" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    query.error !== null && h("p", { class: "error-message bad" }, h("code", { class: "badge bad" }, query.sqlstate), " ", query.error),
    h("div", { class: "page-actions" },
      h("button", { type: "button", "data-action": "open", onclick: actions.open }, "Open in SQL editor"),
      isActive(query) && h("button", { type: "button", class: "danger", "data-action": "kill", onclick: actions.kill }, icon("stop"), "Kill")),
    h("pre", { class: "statement", tabindex: "0", "data-action": "text", "aria-label": "Statement" }, code),
  ].filter((part) => part instanceof Node);
}

/**
 * What was taken of caches and object stores, if anything.
 *
 * @param {QueryInfo} query
 * @returns {[string, string][]}
 */
function spentFacts({ chunk_hits, chunk_misses, hit_ratio, hedges, ...query }) {
  /** @type {[string, string][]} */
  const facts = [];
  if (hit_ratio !== null) facts.push(["Chunks", `${percent(hit_ratio)} of ${count(chunk_hits + chunk_misses)} in memory`]);
  const kinds = [[query.store_gets, "GET"], [query.store_heads, "HEAD"], [query.store_puts, "PUT"], [query.store_lists, "LIST"], [query.store_deletes, "DELETE"], [query.store_retries, "sent again"], [hedges, "sent twice"]]
    .flatMap(([number, kind]) => (Number(number) > 0 ? [`${count(Number(number))} ${kind}`] : []));
  if (kinds.length > 0) facts.push(["Store", `${kinds.join(", ")}: ${dollars(query.cost_usd)}`]);
  return facts;
}

/** @param {number} share 0 to 1 */
function progressBar(share) {
  const fill = h("span", { class: "bar-fill" });
  fill.style.width = `${100 * share}%`;
  return h("div", { class: "bar progress-bar", role: "progressbar", "aria-label": "Share of the rows of its files that were scanned", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(Math.round(100 * share)) }, fill);
}
