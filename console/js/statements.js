// The statements behind the pages: what "Show SQL" shows. All read the schema `system`.

export const RATE = `-- Queries of the last ten seconds, and since the start:
SELECT per_second, per_hour, running - 1 AS running /* without this one */, finished, failed, started, cancelled
FROM system.rate, system.totals`;

/** What the console's own statements call a table, so that they can be told from those of users. */
export const OWN = "console_columns";

/** @param {{ sql: string }} shape */
export function isOwn({ sql }) {
  return sql.includes(OWN);
}

export const LATENCY = `-- Of all queries that finished within the last minute:
SELECT p50_ms, p95_ms, p99_ms
FROM system.latency`;

/** What the charts beside the editor show. */
export const LIVE_RATE_CHART = chartOf("per_second");
export const LIVE_LATENCY_CHART = chartOf("p50_ms, p95_ms, p99_ms");

/** @param {string} columns of the last five minutes */
function chartOf(columns) {
  return `-- The chart:
SELECT at, ${columns}
FROM system.history
WHERE step_s = 1 AND at > now() - INTERVAL '5 minutes'
ORDER BY at`;
}

export const PATHS = `-- Of queries that finished within the last minute:
SELECT path, queries, p50_ms, p95_ms, p99_ms, max_ms
FROM system.latency_paths`;

export const POOLS = `-- Slots now, and latencies of the last minute:
SELECT pool, running, slots, queries, p50_ms, p95_ms, p99_ms, wait_p99_ms
FROM system.pools`;

export const MACHINE_CPU = `SELECT processors, process_cpu_s, cpu_busy_s, cpu_idle_s, memory_bytes, memory_bytes_max
FROM system.machine`;

export const MACHINE_DISK = `SELECT disk_bytes_read, disk_bytes_written, process_bytes_read, process_bytes_written
FROM system.machine`;

export const MACHINE_NETWORK = `SELECT bytes_received, bytes_sent
FROM system.machine`;

export const EXECUTORS = `SELECT executors, slots, running, waiting, queue_max, refused,
       memory_bytes, memory_bytes_max,
       executor_stalls, planner_stalls, io_stalls,
       executor_wait_max_us, planner_wait_max_us, io_wait_max_us
FROM system.executors`;

export const CACHE = `SELECT bytes, bytes_max, entries, chunk_hits, chunk_misses, hit_ratio,
       reports_answered, templates, results_reused
FROM system.cache`;

export const INGEST = `SELECT "table", fresh_rows, fresh_bytes, oldest_ms, flushes, failures, last_error
FROM system.ingest
ORDER BY fresh_rows DESC`;

export const LOG = `SELECT open, stopped, fresh_rows, fresh_bytes, fresh_bytes_max, appends, appended_rows,
       appends_waiting, syncs, segments, segment_bytes,
       (SELECT rows_per_second FROM system.history WHERE step_s = 1 ORDER BY at DESC LIMIT 1) AS rows_per_second
FROM system.log;

SELECT "table", work, since, compactions, errors
FROM system.maintenance;

SELECT reachable, since
FROM system.catalog`;

export const DAEMONS = `SELECT daemon, host, state, is_this, is_reached, round_trip_us, calls, calls_failed,
       pg_address, http_address, flight_address, zone, build
FROM system.daemons
ORDER BY host, daemon
-- system.cluster says what this daemon has of the others.`;

export const CLUSTER_EVENTS = `-- As this daemon saw it; the page merges what all daemons saw.
SELECT at, event, daemon, incarnation, host, "by", detail
FROM system.cluster_events
ORDER BY at DESC`;

const QUERY_COLUMNS = `SELECT id, state, "user", protocol, started, elapsed_ms, progress, rows, bytes_read,
       requests, hit_ratio, store_gets, store_puts, store_retries, hedges, cost_usd,
       path, wait_ms, pool, memory_peak_bytes, sqlstate, error, sql
FROM system.queries`;

export const RUNNING = `${QUERY_COLUMNS}
WHERE state IN ('planning', 'queued', 'running')
ORDER BY started
-- KILL QUERY id stops one of them.`;

/** @typedef {"slow" | "latest" | "failed" | "log"} Ended */

/** @type {Record<Ended, string>} */
export const ENDED = {
  slow: `${QUERY_COLUMNS}
WHERE state NOT IN ('planning', 'queued', 'running')
ORDER BY elapsed_ms DESC`,
  latest: `${QUERY_COLUMNS}
WHERE state NOT IN ('planning', 'queued', 'running')
ORDER BY id DESC`,
  failed: `${QUERY_COLUMNS}
WHERE state IN ('failed', 'cancelled')
ORDER BY id DESC
-- Those that ended last; GET /v1/query-log has those of a week.`,
  log: `-- The log of a week is at GET /v1/query-log; system.queries has what ended last.
${QUERY_COLUMNS}
WHERE state NOT IN ('planning', 'queued', 'running')
ORDER BY id DESC`,
};

/**
 * @param {string} order a column
 * @param {boolean} down
 */
export function shapesStatement(order, down) {
  return `SELECT queries, failed, CAST(short_path AS double) / queries AS short_path_share,
       total_ms, p50_ms, p95_ms, p99_ms, max_ms, CAST(reused AS double) / queries AS reused_share,
       hit_ratio, rows, bytes_read, requests,
       cost_usd, sql
FROM system.query_shapes
WHERE sql NOT LIKE '%${OWN}%' -- the console's own
ORDER BY ${order} ${down ? "DESC" : "ASC"}`;
}

export const TABLES = `-- Sizes and sort quality of one table: SHOW PARTITIONS name, SHOW FILES FROM name.
SELECT namespace, name, kind, rows, fresh_rows, files, bytes, delete_files, partitioned_by,
       sorted_by, committed, snapshots, format_version, error
FROM system.tables
ORDER BY 1, 2`;

/**
 * What shows the sections of a table's page.
 *
 * @param {string} table its name as SQL writes it
 */
export function tableStatements(table) {
  return { overview: `DESCRIBE EXTENDED ${table}`, files: `SHOW FILES FROM ${table}`, snapshots: `SHOW SNAPSHOTS FROM ${table}` };
}
