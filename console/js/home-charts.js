// The charts of Home: what each draws of a sample, how, and the statement that gives the same.

import { Chart } from "./charts.js";
import { h } from "./dom.js";
import { bytes, percent, rate, short, shortDuration } from "./format.js";
import { LIVE } from "./ranges.js";

/** @typedef {import("./api.js").Sample} Sample */
/** @typedef {import("./ranges.js").Range} Range */

/**
 * `series`: name, class and column of each.
 *
 * @typedef {{ title: string, series: [string, string, keyof Sample & string][], format: (value: number) => string,
 *   area?: boolean, log?: boolean, minTop: number, heightPx?: number }} Description
 */

const SMALL_PX = 84;

/** By card. @satisfies {Record<string, Description>} */
const ALL = {
  rate: { title: "Queries per second", series: [["queries/s", "rate", "per_second"], ["reused/s", "p50", "reused_per_second"]], format: rate, area: true, minTop: 3 },
  latency: { title: "Latency percentiles, logarithmic", series: [["p50", "p50", "p50_ms"], ["p95", "p95", "p95_ms"], ["p99", "p99", "p99_ms"]], format: shortDuration, log: true, minTop: 1 },
  paths: {
    title: "99th percentile by path, logarithmic",
    series: [["short path", "p50", "short_p99_ms"], ["planned", "p95", "planned_p99_ms"], ["reused", "rate", "reused_p99_ms"], ["waiting", "p99", "wait_p99_ms"]],
    format: shortDuration, log: true, minTop: 1,
  },
  executors: { title: "Queries that compute and that wait", series: [["compute", "rate", "computing"], ["wait", "p99", "waiting"]], format: rate, heightPx: SMALL_PX, minTop: 3 },
  cache: { title: "Hit ratio of the cache", series: [["hits", "p50", "hit_ratio"]], format: (value) => `${Math.round(value * 100)} %`, heightPx: SMALL_PX, minTop: 1 },
  ingest: { title: "Rows written per second", series: [["rows/s", "rate", "rows_per_second"]], format: short, area: true, heightPx: SMALL_PX, minTop: 3 },
  fresh: { title: "Fresh rows", series: [["fresh rows", "p95", "fresh_rows"]], format: short, heightPx: SMALL_PX, minTop: 3 },
  cpu: { title: "Processors in use", series: [["server", "rate", "process_cpu_ratio"], ["machine", "p95", "machine_cpu_ratio"]], format: percent, heightPx: SMALL_PX, minTop: 1 },
  disk: {
    title: "Bytes per second of disks",
    series: [["machine reads", "rate", "disk_read_per_second"], ["machine writes", "p95", "disk_written_per_second"], ["server reads", "p50", "process_read_per_second"], ["server writes", "p99", "process_written_per_second"]],
    format: bytes, heightPx: SMALL_PX, minTop: 1024,
  },
  network: { title: "Bytes per second of the network", series: [["received", "rate", "received_per_second"], ["sent", "p95", "sent_per_second"]], format: bytes, heightPx: SMALL_PX, minTop: 1024 },
};

/** @typedef {keyof typeof ALL} ChartName */

export class HomeCharts {
  constructor() {
    this.all = Object.entries(ALL).map(([name, one]) => {
      /** @type {Description} */
      const description = one;
      const { title, series, ...more } = description;
      const chart = new Chart({ label: labelOf(title, LIVE), series: series.map(([label, kind]) => ({ name: label, class: kind })), spanMs: LIVE.spanMs, ...more });
      // The figures above the latencies have their colours already.
      const names = series.length < 2 || name === "latency" ? [] : series.map(([label, kind]) => h("span", { class: kind }, label));
      const element = h("div", {}, chart.element, names.length > 0 && h("div", { class: "chart-legend" }, ...names));
      return { name, title, columns: series.map(([, , column]) => column), chart, element };
    });
  }

  /** @param {ChartName} name */
  element(name) {
    return this.#find(name).element;
  }

  /** @param {ChartName} name */
  #find(name) {
    const found = this.all.find((one) => one.name === name);
    if (!found) throw new Error(`there is no chart ${name}`);
    return found;
  }

  /**
   * @param {Sample[]} samples oldest first
   * @param {Range} range
   * @param {number} now right edge, ms since 1970
   */
  update(samples, range, now) {
    for (const { title, columns, chart } of this.all) {
      chart.setSpan(range.spanMs, range.stepS * 1000, labelOf(title, range));
      chart.update(samples.map((sample) => ({ at: sample.unix_ms, values: columns.map((column) => sample[column]) })), now);
    }
  }

  /**
   * The statement whose rows are what a chart shows.
   *
   * @param {ChartName} name
   * @param {Range} range
   */
  statement(name, range) {
    return `-- The chart:
SELECT at, ${this.#find(name).columns.join(", ")}
FROM system.history
WHERE step_s = ${range.stepS} AND at > now() - INTERVAL '${range.interval}'
ORDER BY at`;
  }
}

/**
 * @param {string} title
 * @param {Range} range
 */
function labelOf(title, range) {
  return `${title} over ${range.text}`;
}
