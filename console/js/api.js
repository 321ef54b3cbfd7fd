// The HTTP API, as docs/openapi.yaml describes it.

/**
 * @typedef {{ code: string, kind: string, message: string, detail: string | null,
 *   hint: string | null, position: number | null, retryable: boolean }} ApiErrorBody
 *
 * @typedef {{ name: string, type: string, nullable: boolean }} ResultColumn
 *
 * @typedef {{ columns: ResultColumn[], rows: unknown[][], row_count: number, truncated: boolean,
 *   command?: string, rows_affected?: number, notices?: string[], elapsed_ms: number,
 *   bytes_read: number, query_id: number | null }} SqlResult
 *
 * @typedef {{ name: string, comment: string | null, rows: number | null, fresh_rows: number,
 *   bytes: number | null, files: number | null, partitioned_by: string[], sorted_by: string[],
 *   committed_unix_ms: number | null }} TableSummary
 *
 * @typedef {{ name: string, tables: TableSummary[] }} Namespace
 *
 * @typedef {{ id: number | null, name: string, type: string, nullable: boolean,
 *   comment: string | null }} TableColumn
 *
 * @typedef {{ id: string, parent_id: string | null, committed_unix_ms: number, operation: string,
 *   current: boolean, summary: Record<string, string> }} Snapshot
 *
 * @typedef {TableSummary & { namespace: string, location: string, metadata_location: string,
 *   columns: TableColumn[], properties: Record<string, string>, snapshots: Snapshot[] }} TableDetails
 *
 * @typedef {{ partition: string, files: number, rows: number, bytes: number, overlapping: number,
 *   depth_max: number | null }} TablePartition
 *
 * @typedef {{ path: string, partition: string, rows: number, bytes: number, stripes: number | null,
 *   sorted: boolean, depth: number | null, snapshot_id: string | null,
 *   bounds: Record<string, [string, string] | null> }} DataFile
 *
 * @typedef {{ snapshot_id: string | null, files_total: number, rows: number, bytes: number,
 *   columns: string[], sort: { columns: string[], compared: number, overlapping: number,
 *     depth_max: number, depth_mean: number } | null,
 *   partitions_total: number, partitions: TablePartition[], files: DataFile[] }} TableFiles
 *
 * @typedef {{ chunk_hits: number, chunk_misses: number, hit_ratio: number | null, hedges: number,
 *   store: { gets: number, heads: number, puts: number, lists: number, deletes: number,
 *     retries: number, bytes_read: number, bytes_written: number, cost_usd: number } }} Spent
 *
 * @typedef {Spent & { id: number, sql: string, user: string, protocol: string, state: string,
 *   started_unix_ms: number, elapsed_ms: number, rows: number, bytes_read: number, requests: number,
 *   short_path: boolean, progress: number | null, pool: string, memory_bytes: number,
 *   memory_peak_bytes: number, error: { code: string, message: string } | null }} QueryInfo
 *
 * @typedef {{ name: string, value: number, unit: "count" | "bytes" | "ns" }} PlanMetric
 *
 * @typedef {{ name: string, detail: string, rows: number | null, compute_ms: number | null,
 *   metrics: PlanMetric[], inputs: PlanNode[] }} PlanNode
 *
 * @typedef {Spent & { sql: string, queries: number, failed: number, short_path: number, rows: number,
 *   bytes_read: number, requests: number, total_ms: number, p50_ms: number | null, p95_ms: number | null,
 *   p99_ms: number | null, max_ms: number }} Shape
 *
 * @typedef {{ unix_ms: number, per_second: number, failed: number, running: number,
 *   p50_ms: number | null, p95_ms: number | null, p99_ms: number | null,
 *   admission: { running: number, waiting: number },
 *   cache: { bytes: number, hit_ratio: number | null },
 *   ingest: { fresh_rows: number, rows_per_second: number, waiting: number } | null }} Sample
 *
 * @typedef {{ table: string, fresh_rows: number, fresh_bytes: number, oldest_ms: number | null,
 *   failures: number, last_error: string | null }} FreshTable
 *
 * @typedef {{ open: boolean, stopped: string | null, fresh_bytes: number, fresh_limit_bytes: number,
 *   waiting: number, appends: number, rows: number, syncs: number, segments: number,
 *   segment_bytes: number, tables: FreshTable[] }} Log
 *
 * @typedef {{ now: { table: string, work: string, since_unix_ms: number } | null, compactions: number,
 *   failures: number, errors: Record<string, string> }} Maintenance
 *
 * @typedef {{ version: string, ready: boolean, not_ready: string | null, warehouse: string, started_unix_ms: number,
 *   uptime_ms: number, now_unix_ms: number,
 *   memory: { resident_bytes: number | null, query_reserved_bytes: number | null,
 *     query_limit_bytes: number | null },
 *   queries: { running: number, started: number, finished: number, failed: number,
 *     cancelled: number, rows: number, bytes_read: number, requests: number },
 *   admission: { executors: number, slots: number, running: number, waiting: number,
 *     waiting_limit: number, refused: number },
 *   cache: { bytes: number, limit_bytes: number, entries: number, chunk_hits: number,
 *     chunk_misses: number, hit_ratio: number | null },
 *   reports: { answered: number, templates: number, answers_reused: number },
 *   log: Log | null, maintenance: Maintenance | null,
 *   rate: { per_second: number, per_hour: number, window_s: number },
 *   latency: { p50_ms: number | null, p95_ms: number | null, p99_ms: number | null,
 *     window_s: number },
 *   history: Sample[] }} Status
 */

/**
 * A statement to run, with the values of `$1`, `$2`, …; texts, which the server reads as the types it
 * expects.
 *
 * @typedef {{ sql: string, parameters: (string | null)[] }} Statement
 */

/** An error that the server described, or that kept us from reaching it. */
export class ApiError extends Error {
  /** @param {ApiErrorBody} body */
  constructor(body) {
    super(body.message);
    this.body = body;
  }
}

/**
 * @param {string} message
 * @param {string} hint
 */
function unreachable(message, hint) {
  return new ApiError({
    code: "08006", kind: "unavailable", message, detail: null, hint, position: null, retryable: true,
  });
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function request(path, init) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable("the server does not answer", "see whether `stoa server` still runs");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** @param {Response} response */
async function problemOf(response) {
  try {
    const body = await response.json();
    if (body?.error?.message) return new ApiError(body.error);
  } catch {
    // Not one of our error documents.
  }
  return unreachable(`the server answered ${response.status} ${response.statusText}`, "");
}

/**
 * Runs statements and gives the last one's result.
 *
 * @param {Statement} statement
 * @param {{ maxRows: number, signal?: AbortSignal }} options
 * @returns {Promise<SqlResult>}
 */
export async function runSql(statement, { maxRows, signal }) {
  const response = await postSql(statement, `format=json&max_rows=${maxRows}`, signal);
  /** @type {SqlResult & { error?: ApiErrorBody }} */
  let result;
  try {
    result = await response.json();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable("the result was broken off", "the server may have stopped; run it again");
  }
  if (result.error) throw new ApiError(result.error);
  return result;
}

/**
 * Runs statements and gives the response of the last one, for downloads.
 *
 * @param {Statement} statement
 * @param {string} query
 * @param {AbortSignal} [signal]
 */
export function postSql(statement, query, signal) {
  const { type, body } = bodyOf(statement);
  return request(`/v1/sql?application=console&${query}`, {
    method: "POST",
    headers: { "content-type": type },
    body,
    ...(signal ? { signal } : {}),
  });
}

/**
 * The statement as a request's body: plain text unless there are parameters.
 *
 * @param {Statement} statement
 */
export function bodyOf({ sql, parameters }) {
  return parameters.length === 0
    ? { type: "text/plain; charset=utf-8", body: sql }
    : { type: "application/json", body: JSON.stringify({ sql, parameters }) };
}

/** @returns {Promise<{ namespaces: Namespace[] }>} */
export async function tables() {
  return (await request("/v1/tables")).json();
}

/**
 * @param {string} namespace
 * @param {string} table
 * @returns {Promise<TableDetails>}
 */
export async function table(namespace, table) {
  const path = `/v1/tables/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}`;
  return (await request(path)).json();
}

/**
 * @param {string} namespace
 * @param {string} table
 * @returns {Promise<TableFiles>}
 */
export async function tableFiles(namespace, table) {
  const path = `/v1/tables/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}/files`;
  return (await request(path)).json();
}

/**
 * @param {number} recent most ended queries to list
 * @returns {Promise<{ running: QueryInfo[], recent: QueryInfo[] }>} queued ones are among the running
 */
export async function queries(recent) {
  return (await request(`/v1/queries?recent=${recent}`)).json();
}

/**
 * @param {number} id
 * @param {AbortSignal} signal
 * @returns {Promise<{ query: QueryInfo, plan: PlanNode }>} with what its operators have counted until now
 */
export async function queryPlan(id, signal) {
  return (await request(`/v1/queries/${id}/plan`, { signal })).json();
}

/**
 * @param {number} most
 * @returns {Promise<{ shapes: Shape[], known: number }>} those that took most time first
 */
export async function shapes(most) {
  return (await request(`/v1/shapes?most=${most}`)).json();
}

/** @param {number} id */
export async function cancelQuery(id) {
  await request(`/v1/queries/${id}`, { method: "DELETE" });
}

/**
 * @param {number} since only samples taken after this time (ms since 1970)
 * @returns {Promise<Status>}
 */
export async function status(since) {
  return (await request(`/v1/status?since=${since}`)).json();
}
