// A stand-in for the server, for work on the console's looks: serves ../../console and answers the API
// with made-up numbers. `node mock.mjs [PORT]`. It proves nothing about the server.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const CONSOLE = fileURLToPath(new URL("../../console/", import.meta.url));
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
const started = Date.now() - 7_412_000;
const recent = [];
const running = new Map();
let nextId = 1;

const report = `SELECT day, sum(impressions) AS impressions, sum(clicks) AS clicks, sum(cost) AS cost
FROM ad_report WHERE account_id = $1 AND day BETWEEN $2 AND $3 GROUP BY day ORDER BY day`;

const spent = (gets) => ({ chunk_hits: 40, chunk_misses: gets, hit_ratio: 40 / (40 + gets), hedges: 0,
  store_gets: gets, store_heads: 0, store_puts: 0, store_lists: 0, store_deletes: 0, store_retries: 0, store_bytes_read: gets * 40_000, store_bytes_written: 0, cost_usd: gets * 4e-7 });

const wave = (t, base, swing) => Math.max(0, base + swing * Math.sin(t / 37_000) + (Math.sin(t * 12.9898) * 43758.5453 % 1) * swing * 0.6);

function sample(t) {
  const p50 = wave(t, 3.1, 0.8);
  return { unix_ms: t, per_second: Math.round(wave(t, 1240, 180)), failed: 0, running: 3, p50_ms: p50, p95_ms: p50 * 3.2, p99_ms: p50 * 6 + wave(t * 3, 4, 6),
    computing: Math.round(wave(t, 2, 2)), waiting: Math.round(wave(t * 2, 0, 3)), cache_bytes: 310_000_000, hit_ratio: Math.min(1, wave(t, 0.97, 0.02)),
    fresh_rows: Math.round(wave(t, 42_000, 20_000)), rows_per_second: Math.round(wave(t * 2, 9000, 3000)), appends_waiting: 0 };
}

function status(since) {
  const now = Math.floor(Date.now() / 1000) * 1000;
  const history = [];
  for (let t = Math.max(since + 1000, now - 300_000); t <= now; t += 1000) history.push(sample(t));
  const last = sample(now);
  return {
    version: "0.1.0", ready: true, warehouse: "file:///data/warehouse", started_unix_ms: started, uptime_ms: Date.now() - started, now_unix_ms: now,
    not_ready: null, resident_bytes: 431_000_000, cpu_s: 5120.25,
    totals: { running: running.size, started: 9_211_034, finished: 9_210_877, failed: 42, cancelled: 115, rows: 1, bytes_read: 1, requests: 1 },
    rate: { per_second: last.per_second, per_hour: last.per_second * 3600, window_s: 10 },
    latency: { p50_ms: last.p50_ms, p95_ms: last.p95_ms, p99_ms: last.p99_ms, window_s: 10 },
    executors: { executors: 2, slots: 4, running: last.computing, waiting: last.waiting, queue_max: 256, refused: 17, memory_bytes: 12_000_000, memory_bytes_max: 2 ** 31, kept_bytes: 0, overdue: 0 },
    latency_paths: [], machine: { processors: 4, cpu_busy_s: 1, cpu_idle_s: 1, memory_bytes: 2 ** 32, memory_bytes_max: 2 ** 34, disk_bytes_read: 1, disk_bytes_written: 1, bytes_received: 1, bytes_sent: 1, process_cpu_s: 5120, process_bytes_read: 1, process_bytes_written: 1 },
    cluster: null, daemons: [], this_daemon: null, alerts: [], catalog: { reachable: true, since_unix_ms: started }, pools: [], stores: [], http: { requests_running: 1 }, http_requests: [],
    cache: { bytes: last.cache_bytes, bytes_max: 2 ** 29, entries: 18_412, chunk_hits: 9_871_220, chunk_misses: 31_204, hit_ratio: 0.9968, reports_answered: 9_101_200, templates: 23, results_reused: 40_112 },
    log: { place: "/data/log", open: true, stopped: null, fresh_rows: last.fresh_rows, fresh_bytes: 51_000_000, fresh_bytes_max: 2 ** 28, appends_waiting: 0, appends: 81_000, appended_rows: 88_120_400, syncs: 9100, segments: 3, segment_bytes: 190_000_000 },
    ingest: [{ table: "public.ad_report", fresh_rows: last.fresh_rows, fresh_bytes: 51_000_000, oldest_ms: 21_000, flushes: 12, failures: 0, last_error: null }],
    maintenance: { working: true, table: "public.ad_report", work: "compaction", since_unix_ms: now - 4200, compactions: 41, failures: 0, errors: [] },
    history,
  };
}

const columns = [
  ["day", "date"], ["account_id", "bigint"], ["campaign_id", "bigint"], ["device", "string"], ["region", "string"],
  ["impressions", "bigint"], ["clicks", "bigint"], ["conversions", "bigint"], ["cost", "decimal(18, 4)"], ["revenue", "decimal(18, 4)"],
];
const summary = (name, rows, bytes, files, partitioned_by, sorted_by) =>
  ({ name, comment: null, rows, fresh_rows: name === "ad_report" ? 42_118 : 0, bytes, files, partitioned_by, sorted_by, committed_unix_ms: Date.now() - 3_600_000 });
const namespaces = [
  { name: "public", tables: [summary("ad_report", 10_000_000, 312_000_000, 396, ["day"], ["account_id"]), summary("fhv_daily", 88_413, 1_400_000, 12, ["month(pickup_date)"], ["base"]), summary("query_log", 75_274_825, 2_100_000_000, 41, [], ["row", "family"])] },
  { name: "staging", tables: [summary("Import 2026", 1204, 90_100, 1, [], [])] },
];

const shape = (sql, queries, p50, short) => ({ sql, queries, failed: Math.round(queries / 9000), short_path: Math.round(queries * short), rows: queries * 31, bytes_read: queries * 12_000, requests: queries * 3, ...spent(queries * 3), total_ms: queries * p50 * 1.4, p50_ms: p50, p95_ms: p50 * 3, p99_ms: p50 * 6, max_ms: p50 * 40 });
const shapes = () => [
  shape("SELECT day, sum(impressions) AS impressions, sum(clicks) AS clicks, sum(cost) AS cost\nFROM ad_report WHERE account_id = $1 AND day BETWEEN $2 AND $3 GROUP BY day ORDER BY day", 9_101_200, 0.41, 1),
  shape("SELECT region, sum(clicks) FROM ad_report WHERE account_id = $L0i GROUP BY region", 51_230, 3.2, 0.98),
  shape("SELECT campaign_id, sum(cost) FROM ad_report GROUP BY campaign_id ORDER BY $L0i DESC LIMIT $L1i", 214, 812, 0),
  shape("INSERT INTO ad_report VALUES ('2026-01-01', 17)", 81_000, 1.1, 0),
];

function details(namespace, name) {
  const table = namespaces.find((n) => n.name === namespace)?.tables.find((t) => t.name === name);
  return table && {
    ...table, namespace, location: `file:///data/warehouse/${namespace}/${name}`, metadata_location: `file:///data/warehouse/${namespace}/${name}/metadata/00002.metadata.json`,
    columns: columns.map(([column, type], index) => ({ id: index + 1, name: column, type, nullable: index > 1, comment: null })),
    properties: { "write.format.default": "orc" },
    snapshots: [{ id: "4419380254117", parent_id: null, committed_unix_ms: Date.now() - 3_600_000, operation: "append", current: true, summary: { "added-records": "10000000", "total-records": "10000000", "added-data-files": "396" } }],
  };
}

/** Twelve months with files side by side, the last one with some on top of each other. */
function files() {
  const all = Array.from({ length: 40 }, (_, n) => {
    const [month, place] = n < 36 ? [Math.floor(n / 3), n % 3] : [11, n - 36];
    const from = 1_000_000 + place * 33_000;
    return {
      path: `file:///data/warehouse/public/ad_report/data/day_month=2025-${String(month + 1).padStart(2, "0")}/0000${place}-0fa775e9-37c8-40d9-a5cc-be47d5d99a63.orc`,
      partition: `day_month=2025-${String(month + 1).padStart(2, "0")}`, rows: 250_000 + n * 311, bytes: 7_800_000 + n * 9173, stripes: 1, sorted: true,
      depth: month === 11 ? 2 + (n % 2) : 1, snapshot_id: "4419380254117", bounds: { account_id: [String(from), String(from + 33_000)], day: [`2025-${String(month + 1).padStart(2, "0")}-01`, `2025-${String(month + 1).padStart(2, "0")}-28`] },
    };
  });
  const partitions = [...new Set(all.map((file) => file.partition))].map((partition) => {
    const own = all.filter((file) => file.partition === partition);
    const sum = (of) => own.reduce((total, file) => total + of(file), 0);
    return { partition, files: own.length, rows: sum((file) => file.rows), bytes: sum((file) => file.bytes), overlapping: own.filter((file) => file.depth > 1).length, depth_max: Math.max(...own.map((file) => file.depth)) };
  });
  return { snapshot_id: "4419380254117", files_total: 40, rows: 10_000_000, bytes: 312_000_000, columns: ["account_id", "day"],
    sort: { columns: ["account_id", "day"], compared: 40, overlapping: 7, depth_max: 3, depth_mean: 1.25 }, partitions_total: partitions.length, partitions, files: all };
}

const PLAN = `SortPreservingMergeExec: [day ASC NULLS LAST], metrics=[output_rows=31, elapsed_compute=42.1µs]
  SortExec: expr=[day ASC NULLS LAST], preserve_partitioning=[true], metrics=[output_rows=31, elapsed_compute=88.4µs, spill_count=0]
    AggregateExec: mode=FinalPartitioned, gby=[day as day], aggr=[sum(impressions), sum(clicks)], metrics=[output_rows=31, elapsed_compute=312.7µs]
      RepartitionExec: partitioning=Hash([day], 2), input_partitions=2, metrics=[fetch_time=2.1ms, repartition_time=21.3µs, send_time=3.1µs]
        AggregateExec: mode=Partial, gby=[day as day], aggr=[sum(impressions), sum(clicks)], metrics=[output_rows=31, elapsed_compute=1.12ms]
          OrcScanExec: table=public.ad_report, projection=[day, impressions, clicks], predicate=account_id = 17 AND day >= 2025-12-01, metrics=[output_rows=2417, elapsed_compute=4.81ms, files_total=396, files_pruned=365, stripes_total=31, stripes_pruned=0, row_groups_total=93, row_groups_pruned=62, bytes_read=1.2MiB, requests=62]`;

function run(sql) {
  if (/information_schema/.test(sql)) {
    const rows = namespaces.flatMap((n) => n.tables.flatMap((t) => columns.map(([column]) => [n.name, t.name, column])));
    return { columns: ["table_schema", "table_name", "column_name"].map((name) => ({ name, type: "text", nullable: false })), rows };
  }
  if (/GROUP BY day/i.test(sql)) {
    const rows = Array.from({ length: 60 }, (_, i) => [new Date(Date.UTC(2025, 9, 1 + i)).toISOString().slice(0, 10), Math.round(9000 + 2000 * Math.sin(i / 4) + (i * 7919) % 900), Math.round(500 + 90 * Math.cos(i / 5))]);
    return { columns: [["day", "date"], ["impressions", "bigint"], ["clicks", "bigint"]].map(([name, type]) => ({ name, type, nullable: true })), rows };
  }
  if (/^explain/i.test(sql.trim())) return { columns: [{ name: "QUERY PLAN", type: "Utf8", nullable: false }], rows: PLAN.split("\n").map((line) => [line]) };
  const names = [["day", "date"], ["account_id", "bigint"], ["region", "text"], ["device", "text"], ["impressions", "bigint"], ["clicks", "bigint"], ["ctr", "double"], ["cost", "decimal(18,4)"]];
  const rows = Array.from({ length: 10_000 }, (_, i) => {
    const impressions = 9000 + ((i * 7919) % 51_000);
    const clicks = Math.round(impressions * 0.021 + (i % 13) * 9);
    return [new Date(Date.UTC(2025, 11, 1 + (i % 31))).toISOString().slice(0, 10), 17, i % 11 === 3 ? null : ["tokyo", "osaka", "nagoya", "sapporo"][i % 4], ["phone", "desktop", "tablet"][i % 3], impressions, clicks, clicks / impressions, (clicks * 0.4123).toFixed(4)];
  });
  return { columns: names.map(([name, type]) => ({ name, type, nullable: true })), rows, truncated: true };
}

async function answer(request, response) {
  const url = new URL(request.url, "http://localhost");
  const send = (code, value) => response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (url.pathname === "/v1/status") return send(200, status(Number(url.searchParams.get("since"))));
  if (url.pathname === "/v1/tables") return send(200, { namespaces });
  if (url.pathname.endsWith("/files") && url.pathname.startsWith("/v1/tables/")) return send(200, files());
  if (url.pathname.startsWith("/v1/tables/")) return send(200, details(...url.pathname.split("/").slice(3).map(decodeURIComponent)));
  if (url.pathname === "/v1/shapes") return send(200, { shapes: shapes().slice(0, Number(url.searchParams.get("most"))), known: 4 });
  if (url.pathname === "/v1/queries") return send(200, { running: [...running.values()].map(({ info }) => ({ ...info, elapsed_ms: Date.now() - info.started_unix_ms })), recent: recent.slice(0, Number(url.searchParams.get("recent"))) });
  if (url.pathname.endsWith("/plan")) return plan(Number(url.pathname.split("/")[3]), send);
  if (url.pathname.startsWith("/v1/queries/")) return running.get(Number(url.pathname.split("/")[3]))?.cancel(), response.writeHead(204).end();
  if (url.pathname === "/v1/sql") return sql(request, response, send);
  if (url.pathname.startsWith("/v1/sessions")) return request.method === "POST" ? send(201, { session: "mock" }) : response.writeHead(204).end();
  if (url.pathname === "/api/v1/sessions" || url.pathname === "/api/v1/queries/active") return send(200, []);
  if (url.pathname.startsWith("/v1/results/")) return kept(url, request, response, send);
  const path = normalize(url.pathname === "/" ? "/index.html" : url.pathname);
  try {
    const content = await readFile(join(CONSOLE, path));
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/plain", "cache-control": "no-store", "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'" }).end(content);
  } catch {
    send(404, { error: { code: "42704", kind: "not_found", message: `nothing at ${path}`, detail: null, hint: null, position: null, retryable: false } });
  }
}

/** Of 10,000 rows, all are shown; there is nothing more. */
function kept(url, request, response, send) {
  if (request.method === "DELETE") return response.writeHead(204).end();
  if (!url.pathname.endsWith("/rows")) return send(200, { id: "mock", rows: 10_000, bytes: 1, state: "complete", reason: null });
  response.writeHead(200, { "content-type": "text/csv", "content-disposition": "attachment" }).end("day\n2026-01-01\n");
}

function plan(id, send) {
  const query = running.get(id)?.info;
  if (!query) return send(404, { error: { code: "42704", kind: "not_found", message: `query ${id} has no plan`, detail: null, hint: null, position: null, retryable: false } });
  const ms = Date.now() - query.started_unix_ms;
  const scan = { name: "OrcScanExec", detail: "table=public.ad_report, columns=[day, clicks]", rows: ms * 900, compute_ms: ms * 0.7, inputs: [],
    metrics: [{ name: "files_total", value: 396, unit: "count" }, { name: "files_pruned", value: 365, unit: "count" }, { name: "bytes_read", value: ms * 4000, unit: "bytes" }, { name: "cost_nanodollars", value: ms * 4, unit: "count" }] };
  send(200, { query, plan: { name: "AggregateExec", detail: "mode=Single, gby=[day as day]", rows: 31, compute_ms: ms * 0.2, metrics: [], inputs: [scan] } });
}

async function sql(request, response, send) {
  let text = "";
  for await (const part of request) text += part;
  if (request.headers["content-type"]?.startsWith("application/json")) text = JSON.parse(text).sql;
  const id = nextId++;
  const info = { id, sql: text, user: "stoa", protocol: "http", state: "running", started_unix_ms: Date.now(), elapsed_ms: 0, rows: 0, bytes_read: 0, requests: 0, ...spent(0), short_path: false, progress: 0.4, pool: "default", memory_bytes: 0, memory_peak_bytes: 0, sqlstate: null, error: null };
  const end = (state, more) => {
    running.delete(id);
    recent.unshift({ ...info, state, elapsed_ms: Date.now() - info.started_unix_ms, ...more });
  };
  const fail = (code, error) => {
    end(error.kind === "cancelled" ? "cancelled" : "failed", { sqlstate: error.code, error: error.message });
    send(code, { error: { detail: null, hint: null, position: null, retryable: false, ...error } });
  };
  const wrong = /slick/.exec(text);
  if (wrong) return fail(400, { code: "42703", kind: "invalid", message: 'no column "slick" in table "public.ad_report"', hint: 'did you mean "clicks"?', position: wrong.index + 1 });
  const wait = /sleep/.test(text) ? 600_000 : 12;
  const timer = setTimeout(() => {
    const result = run(text);
    end("finished", { rows: result.rows.length, bytes_read: 1_253_376 });
    send(200, { truncated: false, result: { id: "mock", rows: result.rows.length, bytes: 1, state: "complete", reason: null }, row_count: result.rows.length, elapsed_ms: 12.417, bytes_read: 1_253_376, query_id: id, ...result });
  }, wait);
  running.set(id, { info, cancel: () => { clearTimeout(timer); fail(499, { code: "57014", kind: "cancelled", message: "canceling statement due to user request" }); } });
  response.on("close", () => { clearTimeout(timer); if (running.has(id)) end("cancelled", {}); });
}

setInterval(() => {
  const id = nextId++;
  recent.unshift({ id, sql: report, user: "report", protocol: "postgresql", state: "finished", started_unix_ms: Date.now(), elapsed_ms: 1 + Math.random() * 12, rows: 31, bytes_read: 402_112, requests: 3, ...spent(3), short_path: true, progress: null, pool: "default", memory_bytes: 0, memory_peak_bytes: 0, sqlstate: null, error: null });
  recent.length = Math.min(recent.length, 256);
}, 700);

const server = createServer(answer);
server.listen(Number(process.argv[2] ?? 15999), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
