// Queries: what runs and waits now, and what took long, ended last or failed; with a way to stop it. Failed ones and
// those of the log are kept by the server for days.

import { ApiError, cancelQuery, queryLog, shapes } from "./api.js";
import { h, icon, setText } from "./dom.js";
import { ago, bytes, count, dateTime, dollars, duration, durationsOf, oneLine, percent, sentence, short, sizesOf, timeOfDay } from "./format.js";
import { paint } from "./highlight.js";
import { Listing } from "./listing.js";
import { HiveSessions } from "./hive-sessions.js";
import { isActive } from "./live.js";
import { LogFilter } from "./log-filter.js";
import { pathText } from "./paths.js";
import { Progress } from "./progress.js";
import { QueryPlan } from "./query-plan.js";
import { matcherOf } from "./shape-text.js";
import { showSql } from "./show-sql.js";
import { ENDED, RUNNING } from "./statements.js";

/** @typedef {import("./api.js").QueryInfo} QueryInfo */
/** @typedef {import("./statements.js").Ended} Ended */
/** @typedef {import("./show-sql.js").SqlActions} SqlActions */

const CHOICES = /** @type {const} */ ([["slow", "Slowest"], ["latest", "Latest"], ["failed", "Failed"], ["log", "Log"]]);
const FAILED = { state: "failed,cancelled", most: 1000 };
const SHAPES_MAX = 1000;

export class QueriesPage {
  /** @type {QueryInfo[]} */
  #all = [];
  /** Entries of the log, as its filter left them. @type {QueryInfo[]} */
  #logged = [];
  /** @type {Ended} */
  #choice = "slow";
  /** @type {string} */
  #open = "";
  /** The query that was looked for in the log. */
  #sought = "";
  isPaused = false;

  /** @param {SqlActions & { refresh: () => void, open: (...place: string[]) => void, openShape: (sql: string) => void }} actions */
  constructor(actions) {
    this.actions = actions;
    this.progress = new Progress();
    this.plan = new QueryPlan();
    const open = (/** @type {QueryInfo} */ query) => this.#go(keyOf(query));
    const key = keyOf;
    const state = (/** @type {QueryInfo} */ query) => query.state;
    this.active = new Listing({
      label: "Running and queued queries", key, open, state, empty: "Nothing runs, nothing waits.",
      columns: [...common([done(), this.#rate()]), { name: "kill", label: "", value: () => "", paint: (cell, query) => this.#killCell(cell, query) }],
    });
    this.ended = new Listing({ label: "Ended queries", key, open, state, empty: "None.", columns: common() });
    this.counts = h("span", { class: "muted tabular" });
    this.hive = new HiveSessions((id) => this.#go(id));
    this.filter = new LogFilter(() => actions.refresh());
    this.pause = h("button", { type: "button", class: "quiet", "aria-pressed": "false", title: "Stop the lists, to read them", onclick: () => this.#pause() }, "Pause");
    this.choices = CHOICES.map(([name, label]) => h("button", { type: "button", class: "quiet", "aria-pressed": String(name === this.#choice), onclick: () => this.#choose(name) }, label));
    this.details = h("aside", { class: "page-details", "aria-label": "Query", hidden: true });
    const now = showSql("Running and queued", () => RUNNING, actions);
    this.endedSql = showSql("Ended queries", () => ENDED[this.#choice], actions);
    this.element = h("main", {
      class: "page split", "aria-label": "Queries", hidden: true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.#open !== "" && this.#go(""),
    },
      h("div", { class: "page-main" },
        h("section", { "aria-label": "Now" }, h("h2", {}, "Running and queued", this.counts, h("span", { class: "spring" }), this.pause, now.button), now.panel, this.active.element),
        h("section", { "aria-label": "Ended" }, h("h2", {}, "Finished recently", h("span", { class: "segments", role: "group", "aria-label": "Which" }, ...this.choices), h("span", { class: "spring" }), this.endedSql.button), this.endedSql.panel, this.filter.element, this.ended.element),
        this.hive.element),
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
    this.ended.show(this.#chosen(recent));
    this.#update();
  }

  /**
   * What is asked of the log; `null` where the list shows other queries.
   *
   * @returns {Record<string, string | number> | null}
   */
  logFilter() {
    return this.#choice === "failed" ? FAILED : this.#choice === "log" ? this.filter.value : null;
  }

  /** @param {QueryInfo[]} logged entries of the log that its filter left */
  showLog(logged) {
    this.#logged = logged;
    this.ended.show(this.#chosen(this.#all.filter((query) => !isActive(query))));
    this.#update();
  }

  /**
   * Shows the query of the address.
   *
   * @param {string[]} place
   */
  show([key = ""]) {
    if (key === this.#open) return;
    this.#open = key;
    this.details.replaceChildren();
    this.plan.clear();
    this.#update();
  }

  #pause() {
    this.isPaused = !this.isPaused;
    this.pause.setAttribute("aria-pressed", String(this.isPaused));
    setText(this.pause, this.isPaused ? `Paused at ${timeOfDay(Date.now())}: go on` : "Pause");
    if (!this.isPaused) this.actions.refresh();
  }

  /** @param {QueryInfo[]} recent */
  #chosen(recent) {
    if (this.#choice === "slow") return recent.toSorted((a, b) => b.elapsed_ms - a.elapsed_ms);
    if (this.#choice === "latest") return recent.toSorted((a, b) => b.id - a.id);
    if (this.#choice === "log") return this.#logged;
    // What ended just now may not be in the log yet.
    const failed = new Map([...this.#logged, ...recent].filter(({ state }) => state !== "finished").map((query) => [logKey(query), query]));
    return [...failed.values()].toSorted((a, b) => b.started_unix_ms - a.started_unix_ms || b.id - a.id);
  }

  /** @param {Ended} choice */
  #choose(choice) {
    this.#choice = choice;
    for (const [index, [name]] of CHOICES.entries()) this.choices[index]?.setAttribute("aria-pressed", String(name === choice));
    this.ended.sort = null;
    this.filter.element.hidden = choice !== "log";
    this.#logged = [];
    this.ended.show(this.#chosen(this.#all.filter((query) => !isActive(query))));
    this.endedSql.update();
    this.actions.refresh();
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

  /** Looks in the log for the query of the address. */
  async #seek() {
    const key = this.#open;
    if (this.#sought === key) return;
    this.#sought = key;
    const [id = "", started] = key.split(".");
    const found = /^\d+$/.test(id) ? await queryLog({ id: Number(id), most: 20 }).catch(() => []) : [];
    const query = started === undefined ? found[0] : found.find((entry) => logKey(entry) === key);
    if (this.#open !== key) return;
    if (query) this.#logged = [...this.#logged, query];
    if (query && started === undefined) this.#open = keyOf(query);
    if (query) return this.#update();
    this.details.replaceChildren(h("header", {}, h("h2", {}, `Query ${id}`), h("span", { class: "spring" }),
      h("button", { type: "button", class: "icon-button", "aria-label": "Close", onclick: () => this.#go("") }, icon("close"))),
      h("p", { class: "muted" }, "The server does not know this query any more. Quick ones are only sampled; failed and slow ones are kept for a week at most."));
  }

  /** @param {QueryInfo} query */
  async #copyLink(query) {
    const link = new URL(location.href);
    link.hash = `#/queries/${logKey(query)}`;
    try {
      await navigator.clipboard.writeText(link.href);
      this.actions.notify("Link copied");
    } catch {
      this.actions.notify("The browser did not allow copying");
    }
  }

  /** @param {QueryInfo} query */
  async #showShape(query) {
    try {
      const all = (await shapes(SHAPES_MAX)).shapes;
      const shape = all.find(({ sql }) => matcherOf(sql)(query.sql));
      if (shape) this.actions.openShape(shape.sql);
      else this.actions.notify("Its shape has not been counted since the start");
    } catch (error) {
      this.actions.notify(error instanceof ApiError ? error.message : String(error));
    }
  }

  /** @returns {import("./listing.js").Column<QueryInfo>} */
  #rate() {
    const of = (/** @type {QueryInfo} */ query) => this.progress.of(query.id)?.bytes ?? 0;
    return { spare: true, name: "rate", label: "Read/s", title: "Bytes read per second", numeric: true, unit: sizesOf, value: of, text: (query, inUnit) => (of(query) === 0 ? "–" : inUnit(of(query))) };
  }

  /** @param {string} key `""` closes */
  #go(key) {
    this.actions.open(...(key === "" || key === this.#open ? [] : [key]));
  }

  /** Brings the details up to date; a query that is forgotten stays as it was last seen. */
  #update() {
    this.active.mark(this.#open);
    this.ended.mark(this.#open);
    this.details.hidden = this.#open === "";
    const is = (/** @type {QueryInfo} */ query) => keyOf(query) === this.#open || logKey(query) === this.#open;
    const query = this.#all.find(is) ?? this.#logged.find(is);
    if (!query) {
      if (this.#open !== "" && !this.details.firstChild) this.#seek();
      return;
    }
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
      close: () => this.#go(""),
      link: () => this.#copyLink(query),
      shape: () => this.#showShape(query),
    }), ...(isActive(query) ? [this.progress.element] : []), this.plan.of(query));
    this.details.querySelector("pre")?.scrollTo(0, scrolled);
    if (focused) /** @type {HTMLElement | null} */ (this.details.querySelector(`[data-action="${focused}"]`))?.focus();
  }
}

/**
 * What a row is known by: the id, and for queries of an earlier start of the server when they began.
 *
 * @param {QueryInfo} query
 */
function keyOf(query) {
  return "ended_unix_ms" in query ? logKey(query) : String(query.id);
}

/** @param {QueryInfo} query */
function logKey({ id, started_unix_ms }) {
  return `${id}.${started_unix_ms}`;
}

/** @returns {import("./listing.js").Column<QueryInfo>} */
function done() {
  return { spare: true, name: "progress", label: "Done", title: "Share of the rows of its files that were scanned", numeric: true, value: (query) => query.progress ?? 0, text: (query) => (query.progress === null ? "–" : percent(query.progress)) };
}

/**
 * @param {import("./listing.js").Column<QueryInfo>[]} [more] columns beside what was read
 * @returns {import("./listing.js").Column<QueryInfo>[]}
 */
function common(more = []) {
  return [
    { spare: true, name: "id", label: "Id", numeric: true, value: (query) => query.id },
    { name: "state", label: "State", value: (query) => query.state },
    { name: "elapsed_ms", label: "Time", numeric: true, unit: durationsOf, value: (query) => query.elapsed_ms },
    { spare: true, name: "rows", label: "Rows", numeric: true, value: (query) => query.rows, text: (query) => count(query.rows) },
    { spare: true, name: "bytes_read", label: "Read", title: "Bytes read from storage", numeric: true, value: (query) => query.bytes_read, unit: sizesOf, text: (query, inUnit) => (query.bytes_read === 0 ? "–" : inUnit(query.bytes_read)) },
    ...more,
    { spare: true, name: "requests", label: "Requests", title: "Read requests to storage", numeric: true, value: (query) => query.requests, text: (query) => count(query.requests) },
    { spare: true, name: "path", label: "Path", title: "Short: without the planner; reused: the answer of an equal statement; other: without a plan", value: (query) => query.path },
    { spare: true, name: "user", label: "User", value: (query) => `${query.user} ${query.protocol}`, text: (query) => `${query.user} · ${query.protocol}` },
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
 * @param {{ open: () => void, kill: () => void, close: () => void, link: () => void, shape: () => void }} actions
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
    ["Path", pathText(query.path)], ["Waited for a slot", query.wait_ms > 0 ? duration(query.wait_ms) : "–"],
    ["Pool", query.pool],
    ["Memory", query.memory_peak_bytes === 0 ? "–" : `${bytes(query.memory_bytes)}, at most ${bytes(query.memory_peak_bytes)}`],
    ...more,
  ];
  return [
    h("header", {}, h("h2", {}, `Query ${query.id}`), h("span", { class: "spring" }),
      h("button", { type: "button", class: "icon-button", "aria-label": "Close", title: "Close (Esc)", "data-action": "close", onclick: actions.close }, icon("close"))),
    isActive(query) && query.progress !== null && progressBar(query.progress),
    h("dl", { class: "facts-list" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    query.error !== null && h("p", { class: "error-message bad" }, h("code", { class: "badge bad" }, query.sqlstate), " ", sentence(query.error)),
    h("div", { class: "page-actions" },
      h("button", { type: "button", "data-action": "open", onclick: actions.open }, "Open in SQL editor"),
      h("button", { type: "button", class: "quiet", "data-action": "shape", onclick: actions.shape }, "Its shape"),
      h("button", { type: "button", class: "quiet", "data-action": "link", onclick: actions.link }, icon("link"), "Copy link"),
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
