// Home: how the server is, at a glance. Cards lead to the pages that say more.

import { showDaemons } from "./daemon-lines.js";
import { h, reconcile, setText } from "./dom.js";
import { firstSteps } from "./first-steps.js";
import { ago, bytes, count, duration, oneLine, percent, plural, rate, short, shortDuration } from "./format.js";
import { paint } from "./highlight.js";
import { HomeCharts } from "./home-charts.js";
import { pathTable, poolTable } from "./latency-tables.js";
import { RangeChoice } from "./ranges.js";
import { showSql } from "./show-sql.js";
import {
  CACHE, DAEMONS, EXECUTORS, INGEST, isOwn, LATENCY, LOG, MACHINE_CPU, MACHINE_DISK, MACHINE_NETWORK, PATHS, POOLS, RATE, shapesStatement,
} from "./statements.js";

/** @typedef {import("./api.js").Status} Status */
/** @typedef {import("./api.js").Shape} Shape */
/** @typedef {import("./samples.js").Samples} Samples */
/** @typedef {import("./show-sql.js").SqlActions & { openShape: (sql: string) => void }} HomeActions */

/** Of many tables with fresh rows, so many are named. */
const TABLES_NAMED_MAX = 20;

export class Home {
  /** @type {[Status, Samples] | null} */
  #shown = null;
  /** Bring the statements in view up to date. @type {(() => void)[]} */
  sqls = [];

  /** @param {HomeActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.charts = new HomeCharts();
    this.ranges = new RangeChoice(() => this.#draw());
    this.byPath = pathTable();
    this.byPool = poolTable();
    /** @type {Map<string, HTMLElement>} */
    this.places = new Map();
    this.fill = h("span", { class: "bar-fill" });
    this.fresh = h("span", { class: "bar-fill" });
    this.shapes = h("ul", { class: "top-shapes" });
    this.daemons = h("ul", { class: "daemons" });
    this.cluster = this.#card("Cluster", "wide two", DAEMONS, null, [
      this.#figures(["daemons-up", "daemons up"], ["copied-rows", "rows of others in no file"], ["orphaned", "logs without a daemon"], ["exact", ""]), this.daemons]);
    this.cluster.hidden = true;
    this.note = h("p", { class: "card wide two role-note", hidden: true });
    this.first = firstSteps(actions);
    this.element = h("main", { class: "page home", "aria-label": "Home", hidden: true },
      this.note, this.first,
      h("div", { class: "home-range" }, h("span", { class: "muted" }, "Charts show"), this.ranges.element),
      this.#card("Queries per second", "wide", RATE, "rate", [
        this.#figures(["rate", "", "large"], ["hour", "per hour"], ["running", "running"], ["finished", "finished"], ["failed", "failed"])]),
      this.#card("Latency", "wide", LATENCY, "latency", [
        this.#figures(["p50", "p50"], ["p95", "p95"], ["p99", "p99"])]),
      this.#card("Latency by path", "wide", PATHS, "paths", [this.byPath.element]),
      this.#card("Latency by pool", "wide", POOLS, null, [this.byPool.element]),
      this.#card("Executors", "", EXECUTORS, "executors", [
        this.#figures(["computing", "slots busy"], ["waiting", "wait"], ["refused", "refused"])],
        this.#facts(["executors", "Threads"], ["stalls", "Stalls"], ["waiting-limit", "Queue"], ["query-memory", "Memory of queries"])),
      this.#card("Cache", "", CACHE, "cache", [
        this.#figures(["hit-ratio", "hits"], ["cache-bytes", ""]), meter("Cache in use", this.fill)],
        this.#facts(["entries", "Entries"], ["answered", "Reports on the short path"], ["templates", "Statements known"], ["reused", "Results reused"])),
      this.#card("Ingest", "", LOG, "ingest", [
        this.#figures(["fresh-rows", "fresh rows"], ["rows-per-second", "rows/s"], ["writers", "writers wait"]), meter("Memory for fresh rows in use", this.fresh)],
        this.#facts(["log", "Commit log"], ["written", "Rows since the start"], ["maintenance", "Maintenance"], ["catalog", "Catalog"])),
      this.#card("Fresh rows by table", "", INGEST, "fresh", [], this.#facts(["fresh-tables", "Tables"], ["oldest", "Oldest"], ["flushes", "Trouble"])),
      this.#card("Processors", "third", MACHINE_CPU, "cpu", [], this.#facts(["processors", "Processors"], ["cpu-time", "CPU time of the server"], ["machine-memory", "Memory of the machine"])),
      this.#card("Disks", "third", MACHINE_DISK, "disk", [], this.#facts(["disk-read", "Machine has read"], ["disk-written", "Machine has written"], ["process-read", "Server has read"], ["process-written", "Server has written"])),
      this.#card("Network", "third", MACHINE_NETWORK, "network", [], this.#facts(["received", "Machine has received"], ["sent", "Machine has sent"])),
      this.cluster,
      this.#card("Shapes that take most time", "wide two", shapesStatement("total_ms", true), null, [this.shapes]));
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
    this.#showMachine(status);
    this.byPath.show(status.latency_paths);
    this.byPool.show(status.pools);
    this.#shown = [status, samples];
    this.#draw();
  }

  #draw() {
    if (!this.#shown) return;
    const [status, samples] = this.#shown;
    const now = samples.newest || status.now_unix_ms;
    this.charts.update(this.ranges.samples(samples, now), this.ranges.range, now);
    for (const update of this.sqls) update();
  }

  /** @param {Shape[]} all */
  showShapes(all) {
    const shapes = all.filter((shape) => !isOwn(shape));
    const total = shapes.reduce((sum, shape) => sum + shape.total_ms, 0);
    reconcile(this.shapes, shapes.slice(0, 6), (shape) => shape.sql, (shape) => this.#shape(shape), (element, shape) => {
      const bar = /** @type {HTMLElement} */ (element.querySelector(".bar-fill"));
      bar.style.width = `${(100 * shape.total_ms) / Math.max(total, 1e-9)}%`;
      setText(/** @type {HTMLElement} */ (element.querySelector(".what")),
        `${short(shape.queries)} × ${shape.p50_ms === null ? "–" : shortDuration(shape.p50_ms)} · p99 ${shape.p99_ms === null ? "–" : shortDuration(shape.p99_ms)} · ${percent(shape.short_path / Math.max(shape.queries, 1))} on the short path · ${percent(shape.reused / Math.max(shape.queries, 1))} reused`);
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
    this.#set("computing", `${count(executors.running)} of ${count(executors.slots)}`);
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
    this.#set("fresh-tables", fresh.length === 0 ? "all rows are in files" : namesOf(fresh));
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
    showDaemons(this.daemons, daemons, now_unix_ms);
  }

  /** @param {Status} status */
  #showMachine({ machine }) {
    const size = (/** @type {number | null} */ value) => (value === null ? "–" : bytes(value));
    this.#set("processors", count(machine.processors));
    this.#set("cpu-time", machine.process_cpu_s === null ? "–" : duration(1000 * machine.process_cpu_s));
    this.#set("machine-memory", `${size(machine.memory_bytes)} of ${size(machine.memory_bytes_max)}`);
    this.#set("disk-read", size(machine.disk_bytes_read));
    this.#set("disk-written", size(machine.disk_bytes_written));
    this.#set("process-read", size(machine.process_bytes_read));
    this.#set("process-written", size(machine.process_bytes_written));
    this.#set("received", size(machine.bytes_received));
    this.#set("sent", size(machine.bytes_sent));
  }

  /**
   * @param {string} title
   * @param {string} kind
   * @param {string} statement whose answer has the figures
   * @param {import("./home-charts.js").ChartName | null} chart
   * @param {HTMLElement[]} above the chart
   * @param {...HTMLElement} below
   */
  #card(title, kind, statement, chart, above, ...below) {
    const both = () => (chart === null ? statement : `${statement};\n\n${this.charts.statement(chart, this.ranges.range)}`);
    const { button, panel, update } = showSql(title, both, this.actions);
    let written = "";
    this.sqls.push(() => {
      if (both() !== written) update();
      written = both();
    });
    return h("section", { class: `card ${kind}`, "aria-label": title },
      h("h2", {}, title, button), panel, ...above, chart !== null && this.charts.element(chart), ...below);
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

/**
 * @param {string} label
 * @param {HTMLElement} fill
 */
function meter(label, fill) {
  return h("span", { class: "bar", role: "img", "aria-label": label }, fill);
}

/**
 * Some tables with their fresh rows, those with most first.
 *
 * @param {import("./api.js").IngestTable[]} fresh
 */
function namesOf(fresh) {
  const most = fresh.toSorted((a, b) => b.fresh_rows - a.fresh_rows).slice(0, TABLES_NAMED_MAX);
  const left = fresh.length - most.length;
  return most.map((table) => `${table.table} ${short(table.fresh_rows)}`).concat(left > 0 ? [`and ${count(left)} more`] : []).join(", ");
}
