// Home: how the server is, at a glance. Cards lead to the pages that say more.

import { Chart } from "./charts.js";
import { h, reconcile, setText } from "./dom.js";
import { ago, bytes, count, duration, oneLine, percent, plural, rate, short, shortDuration } from "./format.js";
import { paint } from "./highlight.js";
import { points, SPAN_MS } from "./samples.js";
import { showSql } from "./show-sql.js";
import { CACHE, DAEMONS, EXECUTORS, INGEST, isOwn, LATENCY, LOG, RATE, shapesStatement } from "./statements.js";

/** @typedef {import("./api.js").Status} Status */
/** @typedef {import("./api.js").Shape} Shape */
/** @typedef {import("./api.js").Daemon} Daemon */
/** @typedef {import("./samples.js").Samples} Samples */
/** @typedef {import("./show-sql.js").SqlActions & { openShape: (sql: string) => void }} HomeActions */

const SMALL_PX = 84;

export class Home {
  /** @param {HomeActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.rateChart = chart("Queries per second over the last five minutes", [["queries/s", "rate"]], rate, { area: true, minTop: 3 });
    this.latencyChart = chart("Latency percentiles over the last five minutes, logarithmic", ["p50", "p95", "p99"].map((name) => [name, name]), shortDuration, { log: true, minTop: 1 });
    this.executorChart = chart("Queries that compute and that wait over the last five minutes", [["compute", "rate"], ["wait", "p99"]], rate, { heightPx: SMALL_PX, minTop: 3 });
    this.hitChart = chart("Hit ratio of the cache over the last five minutes", [["hits", "p50"]], (value) => `${Math.round(value * 100)} %`, { heightPx: SMALL_PX, minTop: 1 });
    this.ingestChart = chart("Rows written per second over the last five minutes", [["rows/s", "rate"]], short, { area: true, heightPx: SMALL_PX, minTop: 3 });
    this.freshChart = chart("Fresh rows over the last five minutes", [["fresh rows", "p95"]], short, { heightPx: SMALL_PX, minTop: 3 });
    /** @type {Map<string, HTMLElement>} */
    this.places = new Map();
    this.fill = h("span", { class: "bar-fill" });
    this.fresh = h("span", { class: "bar-fill" });
    this.shapes = h("ul", { class: "top-shapes" });
    this.daemons = h("ul", { class: "daemons" });
    this.cluster = this.#card("Cluster", "wide two", DAEMONS, [
      this.#figures(["daemons-up", "daemons up"], ["copied-rows", "rows of others in no file"], ["orphaned", "logs without a daemon"], ["exact", ""]), this.daemons]);
    this.cluster.hidden = true;
    this.note = h("p", { class: "card wide two role-note", hidden: true });
    this.first = firstSteps(actions);
    this.element = h("main", { class: "page home", "aria-label": "Home", hidden: true },
      this.note, this.first,
      this.#card("Queries per second", "wide", RATE, [
        this.#figures(["rate", "", "large"], ["hour", "per hour"], ["running", "running"], ["finished", "finished"], ["failed", "failed"]), this.rateChart.element]),
      this.#card("Latency", "wide", LATENCY, [
        this.#figures(["p50", "p50"], ["p95", "p95"], ["p99", "p99"]), this.latencyChart.element]),
      this.#card("Executors", "", EXECUTORS, [
        this.#figures(["computing", "of slots compute"], ["waiting", "wait"], ["refused", "refused"]), this.executorChart.element,
        this.#facts(["executors", "Threads"], ["stalls", "Stalls"], ["waiting-limit", "Queue"], ["query-memory", "Memory of queries"])]),
      this.#card("Cache", "", CACHE, [
        this.#figures(["hit-ratio", "hits"], ["cache-bytes", ""]), meter("Cache in use", this.fill), this.hitChart.element,
        this.#facts(["entries", "Entries"], ["answered", "Reports on the short path"], ["templates", "Statements known"], ["reused", "Results reused"])]),
      this.#card("Ingest", "", LOG, [
        this.#figures(["fresh-rows", "fresh rows"], ["rows-per-second", "rows/s"], ["writers", "writers wait"]), meter("Memory for fresh rows in use", this.fresh), this.ingestChart.element,
        this.#facts(["log", "Commit log"], ["written", "Rows since the start"], ["maintenance", "Maintenance"], ["catalog", "Catalog"])]),
      this.#card("Fresh rows by table", "", INGEST, [this.freshChart.element, this.#facts(["fresh-tables", "Tables"], ["oldest", "Oldest"], ["flushes", "Trouble"])]),
      this.cluster,
      this.#card("Shapes that take most time", "wide two", shapesStatement("total_ms", true), [this.shapes]));
  }

  /**
   * Says what a role that is no superuser does not see.
   *
   * @param {import("./api.js").Me} me
   */
  showRole({ role, superuser }) {
    this.note.hidden = superuser;
    setText(this.note, `You are signed in as ${role}: you see your own statements and the tables that you may read. Statements of others, shapes, and some figures of the server are for superusers.`);
  }

  /**
   * Shows what to do first, on a server without tables.
   *
   * @param {boolean} isEmpty
   */
  showEmpty(isEmpty) {
    this.first.hidden = !isEmpty;
  }

  /**
   * @param {Status} status
   * @param {Samples} samples
   */
  showStatus(status, samples) {
    this.#showQueries(status);
    this.#showExecutors(status);
    this.#showCache(status);
    this.#showIngest(status);
    this.#showCluster(status);
    const now = samples.newest || status.now_unix_ms;
    this.rateChart.update(points(samples, (sample) => [sample.per_second]), now);
    this.latencyChart.update(points(samples, (sample) => [sample.p50_ms, sample.p95_ms, sample.p99_ms]), now);
    this.executorChart.update(points(samples, ({ computing, waiting }) => [computing, waiting]), now);
    this.hitChart.update(points(samples, ({ hit_ratio }) => [hit_ratio]), now);
    this.ingestChart.update(points(samples, ({ rows_per_second }) => [rows_per_second]), now);
    this.freshChart.update(points(samples, ({ fresh_rows }) => [fresh_rows]), now);
  }

  /** @param {Shape[]} all */
  showShapes(all) {
    const shapes = all.filter((shape) => !isOwn(shape));
    const total = shapes.reduce((sum, shape) => sum + shape.total_ms, 0);
    reconcile(this.shapes, shapes.slice(0, 6), (shape) => shape.sql, (shape) => this.#shape(shape), (element, shape) => {
      const bar = /** @type {HTMLElement} */ (element.querySelector(".bar-fill"));
      bar.style.width = `${(100 * shape.total_ms) / Math.max(total, 1e-9)}%`;
      setText(/** @type {HTMLElement} */ (element.querySelector(".what")),
        `${short(shape.queries)} × ${shape.p50_ms === null ? "–" : shortDuration(shape.p50_ms)} · p99 ${shape.p99_ms === null ? "–" : shortDuration(shape.p99_ms)} · ${percent(shape.short_path / Math.max(shape.queries, 1))} on the short path`);
    });
  }

  /** @param {Shape} shape */
  #shape(shape) {
    const code = h("code", {});
    paint(code, oneLine(shape.sql).slice(0, 300));
    return h("li", {}, h("button", { type: "button", class: "query", title: shape.sql, onclick: () => this.actions.openShape(shape.sql) },
      code, h("span", { class: "facts" }, h("span", { class: "what" })), h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: "bar-fill" }))));
  }

  /** @param {Status} status */
  #showQueries({ rate: { per_second, per_hour }, latency, totals }) {
    this.#set("rate", rate(per_second));
    this.#set("hour", short(per_hour));
    this.#set("running", count(totals.running));
    this.#set("finished", short(totals.finished));
    this.#set("failed", short(totals.failed));
    for (const [name, value] of /** @type {const} */ ([["p50", latency.p50_ms], ["p95", latency.p95_ms], ["p99", latency.p99_ms]])) {
      this.#set(name, value === null ? "–" : duration(value));
    }
  }

  /** @param {Status} status */
  #showExecutors({ executors }) {
    this.#set("computing", `${count(executors.running)} / ${count(executors.slots)}`);
    this.#set("waiting", count(executors.waiting), executors.waiting > 0);
    this.#set("refused", short(executors.refused), executors.refused > 0);
    this.#set("executors", count(executors.executors));
    const stalls = /** @type {const} */ ([["executors", executors.executor_stalls], ["planning", executors.planner_stalls], ["connections", executors.io_stalls]])
      .flatMap(([of, times]) => (times > 0 ? [`${count(times)} of ${of}`] : []));
    const longest = Math.max(executors.executor_wait_max_us, executors.planner_wait_max_us, executors.io_wait_max_us) / 1000;
    this.#set("stalls", `${stalls.length === 0 ? "none" : stalls.join(", ")} · longest wait ${shortDuration(longest)}`, stalls.length > 0);
    this.#set("waiting-limit", `${count(executors.waiting)} of ${count(executors.queue_max)} places taken`);
    this.#set("query-memory", `${bytes(executors.memory_bytes)} of ${bytes(executors.memory_bytes_max)}`);
  }

  /** @param {Status} status */
  #showCache({ cache }) {
    this.#set("hit-ratio", percent(cache.hit_ratio));
    this.#set("cache-bytes", `${bytes(cache.bytes)} of ${bytes(cache.bytes_max)}`);
    this.fill.style.width = `${(100 * cache.bytes) / Math.max(cache.bytes_max, 1)}%`;
    this.#set("entries", count(cache.entries));
    this.#set("answered", count(cache.reports_answered));
    this.#set("templates", count(cache.templates));
    this.#set("reused", count(cache.results_reused));
  }

  /** @param {Status} status */
  #showIngest({ log, ingest, maintenance, history, now_unix_ms, catalog }) {
    this.#set("catalog", catalog.reachable ? "answers" : `has not answered for ${duration(now_unix_ms - catalog.since_unix_ms)}: changes wait`, !catalog.reachable);
    const work = maintenance?.work ? `${maintenance.work} of ${maintenance.table}, ${duration(now_unix_ms - (maintenance.since_unix_ms ?? now_unix_ms))}` : "working";
    this.#set("maintenance", maintenance === null ? "off" : maintenance.working ? work : `idle · ${plural(maintenance.compactions, "compaction")}`);
    if (log === null) {
      for (const name of ["fresh-rows", "rows-per-second", "writers", "written", "fresh-tables", "oldest", "flushes"]) this.#set(name, "–");
      return this.#set("log", "none: each write is a commit of files");
    }
    const fresh = ingest.filter((table) => table.fresh_rows > 0);
    const last = history.at(-1)?.rows_per_second ?? null;
    this.#set("fresh-rows", short(fresh.reduce((sum, table) => sum + table.fresh_rows, 0)));
    if (last !== null) this.#set("rows-per-second", short(Math.round(last)));
    this.#set("writers", count(log.appends_waiting), log.appends_waiting > 0);
    this.fresh.style.width = `${(100 * log.fresh_bytes) / Math.max(log.fresh_bytes_max, 1)}%`;
    this.#set("log", log.stopped ?? `${plural(log.segments, "segment")}, ${bytes(log.segment_bytes)}`, log.stopped !== null);
    this.#set("written", count(log.appended_rows));
    this.#set("fresh-tables", fresh.length === 0 ? "all rows are in files" : fresh.map((table) => `${table.table} ${short(table.fresh_rows)}`).join(", "));
    const oldest = Math.max(...fresh.map((table) => table.oldest_ms ?? 0));
    this.#set("oldest", fresh.length === 0 ? "–" : ago(oldest));
    const failing = ingest.filter((table) => table.failures > 0);
    const trouble = [...failing.map((table) => `${table.table}: ${table.last_error ?? "flush failed"}`), ...(maintenance?.errors ?? [])];
    this.#set("flushes", trouble.length === 0 ? "none" : trouble.join("; "), trouble.length > 0);
  }

  /** @param {Status} status */
  #showCluster({ cluster, daemons, now_unix_ms }) {
    this.cluster.hidden = cluster === null;
    if (cluster === null) return;
    const alive = daemons.filter((daemon) => daemon.state !== "dead");
    this.#set("daemons-up", `${count(cluster.up)} / ${count(alive.length)}`, cluster.up < alive.length);
    this.#set("copied-rows", short(cluster.copied_rows));
    this.#set("orphaned", count(cluster.logs_orphaned), cluster.logs_orphaned > 0);
    this.#set("exact", cluster.exact ? "reads are exact" : "reads wait", !cluster.exact);
    const order = [...daemons].sort((a, b) => a.host.localeCompare(b.host) || a.daemon.localeCompare(b.daemon));
    reconcile(this.daemons, order, ({ daemon }) => daemon, () => daemonLine(), (line, daemon) => showDaemon(line, daemon, now_unix_ms));
  }

  /**
   * @param {string} title
   * @param {string} kind
   * @param {string} statement
   * @param {(HTMLElement)[]} parts
   */
  #card(title, kind, statement, parts) {
    const { button, panel } = showSql(title, () => statement, this.actions);
    return h("section", { class: `card ${kind}`, "aria-label": title },
      h("h2", {}, title, button), panel, ...parts);
  }

  /** @param {...[string, string, string?]} all name, unit, and class of each */
  #figures(...all) {
    return h("div", { class: "figures" }, ...all.map(([name, unit, size]) => h("span", { class: `percentile ${name}` },
      this.#place(name, size === "large" ? "figure" : "figure small"), h("span", { class: "key muted" }, unit))));
  }

  /** @param {...[string, string]} all name and label of each */
  #facts(...all) {
    return h("dl", { class: "card-facts" }, ...all.flatMap(([name, label]) => [h("dt", {}, label), h("dd", {}, this.#place(name, "tabular"))]));
  }

  /**
   * @param {string} name
   * @param {string} kind
   */
  #place(name, kind) {
    const place = h("span", { class: kind, "data-figure": name }, "–");
    this.places.set(name, place);
    return place;
  }

  /**
   * @param {string} name
   * @param {string} text
   * @param {boolean} [bad] whether somebody should look
   */
  #set(name, text, bad = false) {
    const place = this.places.get(name);
    if (!place) return;
    setText(place, text);
    place.classList.toggle("bad", bad);
  }
}

const SAMPLE = `CREATE TABLE first_report (day date, account_id bigint, impressions bigint, clicks bigint)
PARTITIONED BY (month(day)) ORDER BY (account_id, day);

INSERT INTO first_report
SELECT DATE '2025-12-31' + value, value % 12, value * 1000, value * 21
FROM generate_series(1, 366) AS s(value);

SELECT account_id, sum(impressions) AS impressions, sum(clicks) AS clicks
FROM first_report
WHERE day >= DATE '2026-06-01'
GROUP BY account_id
ORDER BY account_id;
`;

/** @param {HomeActions} actions */
function firstSteps(actions) {
  const host = location.hostname;
  return h("section", { class: "card wide two first-steps", "aria-label": "First steps", hidden: true },
    h("h2", {}, "First steps"),
    h("p", {}, "This server has no tables yet."),
    h("ol", {},
      h("li", {}, "Make a small table, fill it and run a report: ", h("button", { type: "button", onclick: () => actions.openSql(SAMPLE, "First report") }, "Open in SQL editor"), " then choose ", h("b", {}, "Run all"), "."),
      h("li", {}, "Load a file of your own, CSV, TSV, JSON or ORC: ", h("code", {}, "stoa load data.csv --into my_table --create")),
      h("li", {}, "Connect with PostgreSQL's clients, by default on port 5433: ", h("code", {}, `psql -h ${host} -p 5433`))));
}

/**
 * @param {string} label
 * @param {string[][]} series name and class of each
 * @param {(value: number) => string} format
 * @param {{ area?: boolean, log?: boolean, minTop: number, heightPx?: number }} more
 */
function chart(label, series, format, more) {
  return new Chart({ label, series: series.map(([name = "", kind = ""]) => ({ name, class: kind })), format, spanMs: SPAN_MS, ...more });
}

/**
 * @param {string} label
 * @param {HTMLElement} fill
 */
function meter(label, fill) {
  return h("span", { class: "bar", role: "img", "aria-label": label }, fill);
}

function daemonLine() {
  return h("li", {}, h("a", { class: "name" }), h("span", { class: "state" }), h("span", { class: "what muted" }));
}

/**
 * @param {HTMLElement} line
 * @param {Daemon} daemon
 * @param {number} now_unix_ms
 */
function showDaemon(line, daemon, now_unix_ms) {
  const [name, state, what] = /** @type {HTMLElement[]} */ ([...line.children]);
  if (!name || !state || !what) return;
  setText(name, `${daemon.host} ${daemon.daemon.slice(0, 8)}${daemon.is_this ? " (this one)" : ""}`);
  // Its own console; a dead one has none.
  if (daemon.is_this || daemon.state === "dead") name.removeAttribute("href");
  else name.setAttribute("href", `${location.protocol}//${daemon.http_address}/`);
  const bad = daemon.state === "dead" || !daemon.is_reached;
  setText(state, daemon.state === "dead" || daemon.is_reached ? daemon.state : `${daemon.state}, not reached`);
  state.classList.toggle("bad", bad);
  const since = daemon.state_since_unix_ms === null ? "" : `since ${duration(Math.max(0, now_unix_ms - daemon.state_since_unix_ms))} · `;
  const answers = daemon.is_this ? "" : ` · answers in ${shortDuration(daemon.round_trip_us / 1000)}`;
  setText(what, `${since}${daemon.pg_address}${daemon.zone ? ` · ${daemon.zone}` : ""} · ${daemon.build}${answers}`);
}
