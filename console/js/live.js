// What the server does now: rate, latency, running and recent queries.

import { ApiError, cancelQuery } from "./api.js";
import { Chart } from "./charts.js";
import { h, icon, reconcile, setText } from "./dom.js";
import { ago, bytes, count, duration, oneLine, plural, rate, short, shortDuration } from "./format.js";
import { paint } from "./highlight.js";
import { pathText } from "./paths.js";
import { points, SPAN_MS } from "./samples.js";
import { showSql } from "./show-sql.js";
import { LATENCY, LIVE_LATENCY_CHART, LIVE_RATE_CHART, RATE } from "./statements.js";

/** @typedef {import("./api.js").Status} Status */
/** @typedef {import("./api.js").QueryInfo} QueryInfo */

export class Live {
  /** @type {Map<number, string>} */
  #titles = new Map();

  /** @param {import("./show-sql.js").SqlActions & { open: (sql: string) => void }} actions */
  constructor(actions) {
    this.actions = actions;
    const rateSql = showSql("Queries per second", () => `${RATE};\n\n${LIVE_RATE_CHART}`, actions);
    const latencySql = showSql("Latency", () => `${LATENCY};\n\n${LIVE_LATENCY_CHART}`, actions);
    this.rateNumber = h("span", { class: "figure", id: "rate" }, "0");
    this.rateHour = h("span", { class: "muted tabular" }, "");
    this.rateChart = new Chart({
      label: "Queries per second over the last five minutes", series: [{ name: "queries/s", class: "rate" }],
      area: true, format: rate, minTop: 3, spanMs: SPAN_MS,
    });
    this.percentiles = ["p50", "p95", "p99"].map((name) => ({ name, value: h("span", { class: "figure small" }, "–") }));
    this.latencyChart = new Chart({
      label: "Latency percentiles over the last five minutes, logarithmic",
      series: ["p50", "p95", "p99"].map((name) => ({ name, class: name })),
      log: true, format: shortDuration, minTop: 1, spanMs: SPAN_MS,
    });
    this.runningCount = h("span", { class: "count" }, "0");
    this.runningList = h("ul", { class: "queries", id: "running" });
    this.recentList = h("ul", { class: "queries", id: "recent" });
    this.totals = h("span", { class: "muted tabular" });
    this.parts = [
      h("section", { class: "card", "aria-label": "Rate" },
        h("h2", {}, "Queries per second", h("span", { class: "muted" }, "last 10 seconds"), rateSql.button), rateSql.panel,
        h("div", { class: "figures" }, this.rateNumber, this.rateHour), this.rateChart.element),
      h("section", { class: "card", "aria-label": "Latency" },
        h("h2", {}, "Latency", h("span", { class: "muted" }, "last minute"), latencySql.button), latencySql.panel,
        h("div", { class: "figures" }, ...this.percentiles.map(({ name, value }) =>
          h("span", { class: `percentile ${name}` }, h("span", { class: "key" }, name), value))),
        this.latencyChart.element),
      h("section", { class: "card list", "aria-label": "Running queries" },
        h("h2", {}, "Running", this.runningCount), this.runningList),
      h("section", { class: "card list grow", "aria-label": "Recent queries" },
        h("h2", {}, "Recent", this.totals), this.recentList),
    ];
  }

  /**
   * @param {Status} status
   * @param {import("./samples.js").Samples} samples
   */
  showStatus(status, samples) {
    setText(this.rateNumber, rate(status.rate.per_second));
    setText(this.rateHour, `${short(status.rate.per_hour)} per hour`);
    const { latency } = status;
    for (const [index, value] of [latency.p50_ms, latency.p95_ms, latency.p99_ms].entries()) {
      const place = this.percentiles[index];
      if (place) setText(place.value, value === null ? "–" : duration(value));
    }
    const now = samples.newest || status.now_unix_ms;
    this.rateChart.update(points(samples, (sample) => [sample.per_second]), now);
    this.latencyChart.update(points(samples, (sample) => [sample.p50_ms, sample.p95_ms, sample.p99_ms]), now);
    setText(this.totals, `${short(status.totals.finished)} finished · ${short(status.totals.failed)} failed`);
  }

  /**
   * @param {QueryInfo[]} running
   * @param {QueryInfo[]} recent
   */
  showQueries(running, recent) {
    setText(this.runningCount, count(running.length));
    const make = (/** @type {QueryInfo} */ query) => this.#make(query);
    reconcile(this.runningList, running.slice(0, 50), (query) => String(query.id), make, (element, query) => this.#update(element, query));
    reconcile(this.recentList, recent, (query) => String(query.id), make, (element, query) => this.#update(element, query));
    const known = new Set([...running, ...recent].map((query) => query.id));
    for (const id of this.#titles.keys()) if (!known.has(id)) this.#titles.delete(id);
  }

  /** @param {QueryInfo} query */
  #make(query) {
    const code = h("code", {});
    paint(code, oneLine(query.sql).slice(0, 300));
    const open = h("button", { type: "button", class: "query", onclick: () => this.actions.open(query.sql) },
      code, h("span", { class: "facts" }, h("span", { class: "state" }), h("span", { class: "what" }), h("span", { class: "time" })));
    const cancel = isActive(query) &&
      h("button", { type: "button", class: "cancel", "aria-label": `Cancel query ${query.id}`, title: "Cancel", onclick: () => this.#cancel(query.id) }, icon("stop"));
    return h("li", {}, open, cancel);
  }

  /**
   * @param {HTMLElement} element
   * @param {QueryInfo} query
   */
  #update(element, query) {
    element.dataset["state"] = query.state;
    const [state, what, time] = ["state", "what", "time"].map((name) => /** @type {HTMLElement} */ (element.querySelector(`.${name}`)));
    if (!state || !what || !time) return;
    const running = isActive(query);
    setText(state, query.sqlstate ?? (query.state === "finished" || query.state === "running" ? duration(query.elapsed_ms) : query.state));
    setText(what, `${plural(query.rows, "row")}${query.bytes_read > 0 ? ` · ${bytes(query.bytes_read)}` : ""}${query.path === "reused" ? ` · ${pathText("reused").toLowerCase()}` : ""}`);
    setText(time, running ? query.protocol : `${query.protocol} · ${ago(Date.now() - query.started_unix_ms)}`);
    this.#title(element, query);
  }

  /**
   * @param {HTMLElement} element
   * @param {QueryInfo} query
   */
  #title(element, query) {
    const title = `${query.sql}\n\nquery ${query.id}, ${query.state}, ${query.user} over ${query.protocol}${query.error === null ? "" : `\n${query.sqlstate}: ${query.error}`}`;
    if (this.#titles.get(query.id) === title) return;
    this.#titles.set(query.id, title);
    element.querySelector(".query")?.setAttribute("title", title);
  }

  /** @param {number} id */
  async #cancel(id) {
    try {
      await cancelQuery(id);
      this.actions.notify(`Query ${id} is being cancelled`);
    } catch (error) {
      this.actions.notify(error instanceof ApiError ? error.message : String(error));
    }
  }
}

/**
 * Whether it runs or waits for an executor.
 *
 * @param {QueryInfo} query
 */
export function isActive(query) {
  return query.state === "running" || query.state === "queued" || query.state === "planning";
}
