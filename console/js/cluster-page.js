// Cluster: all daemons at once, each figure with its sum, least and greatest; what happened; statements of all.

import { Chart } from "./charts.js";
import { h, icon, reconcile, setText } from "./dom.js";
import { ago, bytes, count, dateTime, dollars, duration, durationsOf, percent, rate, short, shortDuration } from "./format.js";
import { Listing } from "./listing.js";
import { paintStatement } from "./queries-page.js";
import { points, Samples, SPAN_MS } from "./samples.js";
import { showSql } from "./show-sql.js";
import { CLUSTER_EVENTS, DAEMONS } from "./statements.js";

/** @typedef {import("./api.js").AllDaemons} AllDaemons */
/** @typedef {import("./api.js").ClusterDaemon} ClusterDaemon */
/** @typedef {import("./api.js").ClusterFigure} ClusterFigure */
/** @typedef {import("./api.js").ClusterEvent} ClusterEvent */
/** @typedef {import("./api.js").Shape} Shape */
/** @typedef {import("./api.js").Status} Status */

/** A daemon in the list, or `null` for all together. */
/** @typedef {{ daemon: ClusterDaemon | null, of: (figure: string) => number | null }} Line */

const EVENTS_SHOWN = 100;

export class ClusterPage {
  /** @type {AllDaemons | null} */
  #cluster = null;
  /** CPU time and uptime when each daemon answered before the last time. @type {Map<string, { cpu: number, up: number, share: number | null }>} */
  #cpu = new Map();
  #open = "";
  #samples = new Samples();

  /** @param {import("./show-sql.js").SqlActions & { open: (daemon: string) => void, close: () => void }} actions */
  constructor(actions) {
    this.actions = actions;
    this.known = h("span", { class: "muted tabular", "data-figure": "cluster-summary" });
    this.alerts = h("ul", { class: "alerts", "aria-label": "Alerts" });
    this.daemons = new Listing({
      label: "Daemons", key: (/** @type {Line} */ line) => line.daemon?.daemon ?? "all", empty: "No daemon is known.",
      columns: this.#columns(), open: ({ daemon }) => daemon && this.actions.open(daemon.daemon),
      state: ({ daemon }) => (daemon === null || daemon.answered ? "" : "failed"),
    });
    this.filter = h("input", { type: "search", placeholder: "Filter figures", "aria-label": "Filter figures", oninput: () => this.#showFigures() });
    this.figures = new Listing({ label: "Figures of all daemons", key: figureName, empty: "No figure has this name.", columns: figureColumns(), open: () => {} });
    this.shapes = new Listing({ label: "Shapes of all daemons", key: (/** @type {Shape} */ shape) => shape.sql, empty: "No statement has ended yet, or only superusers may see them.", columns: shapeColumns(), sort: { name: "total_ms", down: true }, open: () => {} });
    this.events = h("ol", { class: "events", "aria-label": "Events" });
    this.title = h("h2", {}, "");
    this.facts = h("dl", { class: "facts-list" });
    this.rateChart = new Chart({ label: "Queries per second of this daemon over the last five minutes", series: [{ name: "queries/s", class: "rate" }], area: true, format: rate, minTop: 3, spanMs: SPAN_MS, heightPx: 84 });
    this.latencyChart = new Chart({ label: "Latency percentiles of this daemon over the last five minutes, logarithmic", series: ["p50", "p95", "p99"].map((name) => ({ name, class: name })), log: true, format: shortDuration, minTop: 1, spanMs: SPAN_MS, heightPx: 84 });
    this.own = h("dl", { class: "facts-list", "aria-label": "Figures of this daemon" });
    this.details = h("aside", { class: "page-details", "aria-label": "Daemon", hidden: true },
      h("header", {}, this.title, h("span", { class: "spring" }),
        h("button", { type: "button", class: "icon-button", "aria-label": "Close", title: "Close (Esc)", onclick: () => this.actions.close() }, icon("close"))),
      this.facts, h("h3", {}, "Queries per second"), this.rateChart.element, h("h3", {}, "Latency"), this.latencyChart.element, h("h3", {}, "Figures"), this.own);
    const sql = showSql("Daemons", () => DAEMONS, actions);
    const eventsSql = showSql("Events", () => CLUSTER_EVENTS, actions);
    this.element = h("main", {
      class: "page split", "aria-label": "Cluster", hidden: true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.actions.close(),
    },
      h("div", { class: "page-main" },
        h("section", { "aria-label": "Daemons" }, h("h2", {}, "Daemons", this.known, h("span", { class: "spring" }), sql.button), sql.panel, this.alerts, this.daemons.element),
        h("section", { "aria-label": "Events" }, h("h2", {}, "Events", h("span", { class: "spring" }), eventsSql.button), eventsSql.panel, this.events),
        h("section", { "aria-label": "Shapes" }, h("h2", {}, "Shapes", h("span", { class: "muted" }, "of all daemons since their start, latencies merged")), this.shapes.element),
        h("section", { "aria-label": "Figures" }, h("h2", {}, "Figures", h("span", { class: "muted" }, "sum, least and greatest of all daemons"), h("span", { class: "spring" }), this.filter), this.figures.element)),
      this.details);
  }

  /** The daemon whose details are shown; `""` for none. */
  get open() {
    return this.#open;
  }

  /** When the newest sample of that daemon was taken (ms since 1970). */
  get newest() {
    return this.#samples.newest;
  }

  /** @param {string[]} place the daemon of the address */
  show([daemon = ""]) {
    if (daemon !== this.#open) {
      this.#samples = new Samples();
      this.own.replaceChildren();
    }
    this.#open = daemon;
    this.details.hidden = daemon === "";
    this.daemons.mark(daemon);
    this.#showDetails();
  }

  /** @param {AllDaemons} cluster */
  showCluster(cluster) {
    this.#cluster = cluster;
    const { daemons, latency, alerts, events, shapes } = cluster;
    const alive = daemons.filter((daemon) => daemon.state !== "dead");
    const ms = (/** @type {number | null} */ value) => (value === null ? "–" : shortDuration(value));
    setText(this.known, `${count(alive.filter(({ state }) => state === "up").length)} of ${count(alive.length)} up · in the last minute p50 ${ms(latency.p50_ms)}, p99 ${ms(latency.p99_ms)}`);
    reconcile(this.alerts, alerts, ({ alert, about }) => `${alert} ${about}`, () => h("li", { class: "bad" }), (line, alert) => {
      setText(line, `${alert.alert}: ${alert.summary}, since ${dateTime(alert.since_unix_ms)}`);
    });
    this.#measureCpu(cluster);
    const lines = daemons.map((daemon) => this.#line(daemon));
    // Sorting leaves the sums at the end.
    this.daemons.show(lines, lines.length > 1 ? this.#line(null) : undefined);
    reconcile(this.events, events.slice(-EVENTS_SHOWN).reverse(), (event) => JSON.stringify(event), (event) => eventLine(event), (line, event) => {
      setText(/** @type {HTMLElement} */ (line.querySelector(".time")), `${ago(cluster.now_unix_ms - event.at_unix_ms)}`);
    });
    this.shapes.show(shapes ?? []);
    this.#showFigures();
    this.#showDetails();
  }

  /**
   * @param {string} daemon
   * @param {Status} status of that daemon
   */
  showDaemon(daemon, status) {
    if (daemon !== this.#open) return;
    this.#samples.add(status);
    const now = this.#samples.newest || status.now_unix_ms;
    this.rateChart.update(points(this.#samples, (sample) => [sample.per_second]), now);
    this.latencyChart.update(points(this.#samples, (sample) => [sample.p50_ms, sample.p95_ms, sample.p99_ms]), now);
  }

  /** @param {AllDaemons} cluster */
  #measureCpu(cluster) {
    const of = (/** @type {string} */ name) => cluster.figures.find((figure) => figure.group === "server" && figure.name === name)?.of ?? {};
    const [cpu, up] = [of("cpu_s"), of("uptime_ms")];
    for (const { daemon } of cluster.daemons) {
      const now = { cpu: Number(cpu[daemon] ?? 0), up: Number(up[daemon] ?? 0) / 1000 };
      const before = this.#cpu.get(daemon);
      if (before && before.up === now.up) continue;
      const share = before && now.up > before.up ? (now.cpu - before.cpu) / (now.up - before.up) : null;
      this.#cpu.set(daemon, { ...now, share });
    }
  }

  /**
   * @param {ClusterDaemon | null} daemon
   * @returns {Line}
   */
  #line(daemon) {
    const figures = new Map((this.#cluster?.figures ?? []).filter(({ key }) => key === null).map((figure) => [figureName(figure), figure]));
    const cpu = (/** @type {string} */ id) => this.#cpu.get(id)?.share ?? null;
    if (daemon !== null) {
      return { daemon, of: (name) => (name === "cpu" ? (daemon.answered ? cpu(daemon.daemon) : null) : number(figures.get(name)?.of[daemon.daemon])) };
    }
    const shares = (this.#cluster?.daemons ?? []).filter(({ answered }) => answered).map((one) => cpu(one.daemon)).filter((share) => share !== null);
    const all = shares.length === 0 ? null : shares.reduce((sum, share) => sum + share, 0);
    return { daemon, of: (name) => (name === "cpu" ? all : number(figures.get(name)?.sum)) };
  }

  /** @returns {import("./listing.js").Column<Line>[]} */
  #columns() {
    /**
     * @param {string} name
     * @param {string} label
     * @param {string} title
     * @param {(value: number) => string} format
     * @returns {import("./listing.js").Column<Line>}
     */
    const figure = (name, label, title, format) => ({
      name, label, title, numeric: true, value: (line) => line.of(name) ?? -1,
      text: (line) => { const value = line.of(name); return value === null ? "–" : format(value); },
    });
    const since = (/** @type {Line} */ { daemon }) => daemon?.state_since_unix_ms ?? 0;
    return [
      { name: "daemon", label: "Daemon", value: ({ daemon }) => (daemon ? nameOf(daemon) : "all"), text: ({ daemon }) => (daemon ? nameOf(daemon) : "All daemons") },
      { name: "state", label: "State", value: ({ daemon }) => daemon?.state ?? "", paint: (cell, { daemon }) => {
        setText(cell, daemon === null ? "" : daemon.answered || daemon.state === "dead" ? daemon.state : `${daemon.state}, no answer`);
        cell.title = daemon?.trouble ?? "";
        cell.classList.toggle("bad", daemon !== null && (daemon.trouble !== null || !daemon.answered));
      } },
      { name: "since", label: "Since", title: "How long it has had its state", numeric: true, value: since, text: (line) => (since(line) === 0 ? "" : ago((this.#cluster?.now_unix_ms ?? 0) - since(line))) },
      { name: "zone", label: "Zone", value: ({ daemon }) => daemon?.zone ?? "" },
      { name: "build", label: "Build", value: ({ daemon }) => daemon?.build ?? "" },
      figure("cpu", "CPU", "Processors in use, since the last look", (value) => value.toFixed(2)),
      figure("server.resident_bytes", "Memory", "Resident memory", bytes),
      figure("cache.bytes", "Cache", "Memory that reports keep of data files", bytes),
      figure("totals.running", "Running", "Queries that run or wait", count),
      figure("executors.waiting", "Waiting", "Queries that wait for a slot", count),
      figure("rate.per_second", "Queries/s", "Queries that finished, per second over the last ten seconds", rate),
      figure("log.fresh_rows", "Not in files", "Rows of its commit log that are in no file yet", short),
      figure("log.segment_bytes", "Log", "Size of its commit log", bytes),
      figure("cluster.copied_rows", "Copies", "Rows of other daemons that it holds in memory", short),
      { name: "round_trip", label: "Answers in", title: "How long an answer to the daemon that was asked takes", numeric: true, value: ({ daemon }) => daemon?.round_trip_us ?? -1, text: ({ daemon }) => (daemon === null || daemon.is_this || daemon.state === "dead" ? "" : shortDuration(daemon.round_trip_us / 1000)) },
    ];
  }

  #showFigures() {
    const wanted = this.filter.value.trim().toLowerCase();
    this.figures.show((this.#cluster?.figures ?? []).filter((figure) => `${figureName(figure)} ${figure.help}`.toLowerCase().includes(wanted)));
  }

  #showDetails() {
    const daemon = this.#cluster?.daemons.find((candidate) => candidate.daemon === this.#open);
    if (!daemon || !this.#cluster) return;
    setText(this.title, nameOf(daemon));
    /** @type {[string, string | HTMLElement][]} */
    const facts = [
      ["State", daemon.trouble ?? daemon.state], ["Id", daemon.daemon], ["Incarnation", count(daemon.incarnation)],
      ["Joined", daemon.joined_unix_ms === null ? "–" : dateTime(daemon.joined_unix_ms)],
      // Its own console; a dead one has none.
      ["HTTP", daemon.is_this || daemon.state === "dead" ? daemon.http_address : h("a", { href: `${location.protocol}//${daemon.http_address}/` }, daemon.http_address)],
      ["PostgreSQL", daemon.pg_address], ["Flight SQL", daemon.flight_address], ["Daemons", daemon.peer_address],
    ];
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    // What it says of others is at the others.
    const own = this.#cluster.figures.filter(({ group, of }) => group !== "daemons" && of[daemon.daemon] !== undefined);
    reconcile(this.own, own.flatMap((figure) => [{ figure, is: "dt" }, { figure, is: "dd" }]), ({ figure, is }) => `${is} ${figureName(figure)}`,
      ({ figure, is }) => (is === "dt" ? h("dt", { title: figure.help }, figureName(figure)) : h("dd", {})),
      (element, { figure, is }) => is === "dd" && setText(element, formatted(figure, figure.of[daemon.daemon])));
  }
}

/** @param {ClusterDaemon} daemon */
function nameOf(daemon) {
  return `${daemon.host} ${daemon.daemon.slice(0, 8)}${daemon.is_this ? " (this one)" : ""}`;
}

/** @param {ClusterFigure} figure */
function figureName({ group, key, name }) {
  return key === null ? `${group}.${name}` : `${group}.${name} of ${key}`;
}

/** @param {unknown} value */
function number(value) {
  return typeof value === "number" ? value : null;
}

/**
 * A value in its figure's unit.
 *
 * @param {ClusterFigure} figure
 * @param {number | boolean | null | undefined} value
 */
function formatted({ unit }, value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return "";
  switch (unit) {
    case "bytes": return bytes(value);
    case "ms": return duration(value);
    case "µs": return duration(value / 1000);
    case "s": return duration(value * 1000);
    case "US$": return dollars(value);
    case "0 to 1": return percent(value);
    default: return Number.isInteger(value) ? short(value) : rate(value);
  }
}

/** @returns {import("./listing.js").Column<ClusterFigure>[]} */
function figureColumns() {
  /**
   * @param {"sum" | "min" | "max"} name
   * @param {string} label
   * @returns {import("./listing.js").Column<ClusterFigure>}
   */
  const column = (name, label) => ({ name, label, numeric: true, value: (figure) => Number(figure[name] ?? -1), text: (figure) => formatted(figure, figure[name]) });
  return [
    { name: "figure", label: "Figure", value: figureName },
    column("sum", "Sum"), column("min", "Least"), column("max", "Greatest"),
    { name: "help", label: "What it is", wide: true, value: ({ help }) => help },
  ];
}

/** @returns {import("./listing.js").Column<Shape>[]} */
function shapeColumns() {
  const unit = durationsOf;
  return [
    { name: "total_ms", label: "Total", numeric: true, unit, value: (shape) => shape.total_ms },
    { name: "queries", label: "Queries", numeric: true, value: (shape) => shape.queries, text: (shape) => count(shape.queries) },
    { name: "failed", label: "Failed", numeric: true, value: (shape) => shape.failed, text: (shape) => count(shape.failed) },
    { name: "p50_ms", label: "p50", numeric: true, unit, value: (shape) => shape.p50_ms ?? -1, text: (shape, inUnit) => (shape.p50_ms === null ? "–" : inUnit(shape.p50_ms)) },
    { name: "p95_ms", label: "p95", numeric: true, unit, value: (shape) => shape.p95_ms ?? -1, text: (shape, inUnit) => (shape.p95_ms === null ? "–" : inUnit(shape.p95_ms)) },
    { name: "p99_ms", label: "p99", numeric: true, unit, value: (shape) => shape.p99_ms ?? -1, text: (shape, inUnit) => (shape.p99_ms === null ? "–" : inUnit(shape.p99_ms)) },
    { name: "max_ms", label: "Longest", numeric: true, unit, value: (shape) => shape.max_ms },
    { name: "hit_ratio", label: "Hits", numeric: true, value: (shape) => shape.hit_ratio ?? -1, text: (shape) => percent(shape.hit_ratio) },
    { name: "sql", label: "Statement", wide: true, value: (shape) => shape.sql, paint: paintStatement },
  ];
}

/** @param {ClusterEvent} event */
function eventLine(event) {
  const about = event.daemon === null ? "" : `${event.host ?? ""} ${event.daemon.slice(0, 8)}`.trim();
  const by = event.by === null ? "" : `by ${event.by.slice(0, 8)}`;
  const bad = ["died", "suspected", "alert"].includes(event.event);
  return h("li", { title: dateTime(event.at_unix_ms) },
    h("span", { class: "time muted tabular" }), h("span", { class: bad ? "what bad" : "what" }, event.event), h("span", {}, about),
    h("span", { class: "muted" }, [by, event.detail ?? ""].filter((part) => part !== "").join(" · ")));
}
