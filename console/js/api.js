// The HTTP API, as docs/openapi.yaml describes it.

/**
 * @typedef {{ code: string, kind: string, message: string, detail: string | null,
 *   hint: string | null, position: number | null, retryable: boolean }} ApiErrorBody
 *
 * @typedef {{ name: string, type: string, nullable: boolean }} ResultColumn
 *
 * @typedef {{ columns: ResultColumn[], rows: unknown[][], row_count: number, truncated: boolean,
 *   command?: string, rows_affected?: number, notices?: string[], elapsed_ms: number,
 *   bytes_read: number, query_id: number | null, result?: KeptResult }} SqlResult
 *
 * A result that the server keeps: rows so far, and whether these are all.
 *
 * @typedef {{ id: string, rows: number, bytes: number, state: "running" | "complete" | "cut" | "failed",
 *   reason: string | null }} KeptResult
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
 *   columns: TableColumn[], properties: Record<string, string>, snapshots: Snapshot[],
 *   snapshots_total: number }} TableDetails
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
 * @typedef {{ name: string, value: number, unit: "count" | "bytes" | "ns" }} PlanMetric
 *
 * @typedef {{ name: string, detail: string, rows: number | null, compute_ms: number | null,
 *   metrics: PlanMetric[], inputs: PlanNode[] }} PlanNode
 *
 * @typedef {Query} QueryInfo
 *
 * @typedef {Daemon & { answered: boolean, trouble: string | null }} ClusterDaemon
 *
 * @typedef {{ group: string, key: string | null, name: string, kind: string, unit: string, help: string,
 *   sum: number | null, min: number | boolean, max: number | boolean,
 *   of: Record<string, number | boolean> }} ClusterFigure
 *
 * @typedef {{ now_unix_ms: number, daemons: ClusterDaemon[], figures: ClusterFigure[],
 *   latency: { p50_ms: number | null, p95_ms: number | null, p99_ms: number | null, window_s: number },
 *   shapes: Shape[] | null, alerts: Alert[], events: ClusterEvent[] }} AllDaemons
 */

// figures: begin. Written from crates/stoa-figures: `stoa figures --types` prints it.
/**
 * @typedef {object} Totals
 * @property {number} running Queries that run or wait now.
 * @property {number} started Queries started.
 * @property {number} finished Queries that finished without an error.
 * @property {number} failed Queries that ended with an error.
 * @property {number} cancelled Queries that were cancelled.
 * @property {number} rows Rows returned or written.
 * @property {number} bytes_read Bytes that scans read from storage.
 * @property {number} requests Requests of scans to storage.
 */

/**
 * @typedef {object} Rate
 * @property {number} per_second Queries that finished.
 * @property {number} per_hour Queries that finished, by the hour.
 * @property {number} window_s Length of the window.
 */

/**
 * @typedef {object} Latency
 * @property {number | null} p50_ms What half of them did not exceed.
 * @property {number | null} p95_ms What 95 % did not exceed.
 * @property {number | null} p99_ms What 99 % did not exceed.
 * @property {number} window_s Length of the window.
 */

/**
 * @typedef {object} LatencyPath
 * @property {string} path `short`: reports on the short path; `planned`: queries that a plan computed, without the time that they waited for a slot; `reused`: given the answer of an equal one; `other`: statements without a plan; `waiting`: what planned queries waited for a slot.
 * @property {number} queries Queries that finished within the last minute.
 * @property {number | null} p50_ms What half of them did not exceed.
 * @property {number | null} p95_ms What 95 % did not exceed.
 * @property {number | null} p99_ms What 99 % did not exceed.
 * @property {number | null} max_ms The longest.
 */

/**
 * @typedef {object} Machine
 * @property {number} processors That the process may use.
 * @property {number | null} cpu_busy_s Time since the machine's start that its processors worked, of all together; null where the system does not tell, here and below.
 * @property {number | null} cpu_idle_s Time that they had nothing to do, or waited for a disk.
 * @property {number | null} memory_bytes Memory of the machine in use that cannot be had at once.
 * @property {number | null} memory_bytes_max All memory of the machine.
 * @property {number | null} disk_bytes_read What the machine's disks read since its start; of partitions and layers above disks, only the disks count.
 * @property {number | null} disk_bytes_written What they wrote.
 * @property {number | null} bytes_received What the machine received over the network since its start, loopback left out; in a container, what the container received.
 * @property {number | null} bytes_sent What it sent.
 * @property {number | null} process_cpu_s CPU time of this process since its start.
 * @property {number | null} process_bytes_read What this process read from disks since its start; what was in the system's memory does not count.
 * @property {number | null} process_bytes_written What it wrote to them.
 */

/**
 * @typedef {object} Executors
 * @property {number} executors Threads that compute.
 * @property {number} slots Queries that may compute at the same time.
 * @property {number} running Queries that have a slot.
 * @property {number} waiting Queries that wait for a slot.
 * @property {number} queue_max Queries that may wait; one more is refused.
 * @property {number} refused Queries refused because too many waited.
 * @property {number} memory_bytes Memory that queries hold.
 * @property {number} memory_bytes_max Memory that queries may hold.
 * @property {number} kept_bytes Prepared statements and values bound to them, about.
 * @property {number} executor_stalls Times that no executor took up a task for a second.
 * @property {number} executor_wait_max_us The longest that a task waited for an executor.
 * @property {number} planner_stalls Times that no thread that plans took up a task for a second.
 * @property {number} planner_wait_max_us The longest that a task waited for a thread that plans.
 * @property {number} io_stalls Times that no thread that serves connections took up a task for a second.
 * @property {number} io_wait_max_us The longest that a task waited for a thread that serves connections.
 * @property {number} overdue Statements that were cancelled a second ago or more and still compute.
 */

/**
 * @typedef {object} Pool
 * @property {string} pool Name of the pool.
 * @property {number} slots Queries that may compute at the same time.
 * @property {number} running Queries that have a slot.
 * @property {number} waiting Queries that wait for a slot.
 * @property {number} queue_max Queries that may wait; one more is refused.
 * @property {number} refused Queries refused because too many of the pool waited.
 * @property {number} memory_bytes Memory of queries.
 * @property {number | null} memory_bytes_max Bound on it; null where the pool has none of its own.
 * @property {number} ended Statements ended because they took too long or read too much.
 * @property {number} queries Queries of the pool that finished within the last minute.
 * @property {number | null} p50_ms What half of these did not exceed, waiting for a slot included; null where there were none, here and below.
 * @property {number | null} p95_ms What 95 % of them did not exceed.
 * @property {number | null} p99_ms What 99 % of them did not exceed.
 * @property {number | null} wait_p99_ms What 99 % of those that needed a slot waited for it at most.
 */

/**
 * @typedef {object} Refusals
 * @property {number} logins_failed Attempts to log in with a wrong password, or as a role that must not (28P01).
 * @property {number} logins_paused Attempts that were not checked, after too many that failed (53400).
 * @property {number} too_large Statements that were too long, too complex, or had too large a result (54000, 54001).
 * @property {number} out_of_memory Statements for which there was too little memory (53200).
 * @property {number} denied Statements without a right on what they name (42501).
 */

/**
 * @typedef {object} RefusedConnections
 * @property {string} listener The listener: its protocol.
 * @property {number} connections Connections that a listener refused, by listener.
 */

/**
 * @typedef {object} Cache
 * @property {number} bytes Memory that reports keep of data files.
 * @property {number} bytes_max Memory that they may keep.
 * @property {number} entries Chunks, bounds and tails in it.
 * @property {number} chunk_hits Chunks that were there when asked for.
 * @property {number} chunk_misses Chunks that were not.
 * @property {number | null} hit_ratio Share of chunks that were there, since the start; null where none was asked for.
 * @property {number} disk_bytes Chunks of remote files on the local disk.
 * @property {number} disk_bytes_max Room for them; 0 where there is none.
 * @property {number} disk_hits Chunks that were found on the local disk.
 * @property {number} disk_misses Chunks that were not on it.
 * @property {boolean} disk_is_writing Whether chunks are added to it.
 * @property {number} reports_answered Reports answered without the planner.
 * @property {number} templates Statements whose form is known.
 * @property {number} plan_templates Statements whose plan is kept.
 * @property {number} plan_templates_used Statements whose plan was one used before.
 * @property {number} results_reused Statements given the answer of an equal one.
 */

/**
 * @typedef {object} Store
 * @property {string} store `file://` or `s3://bucket`.
 * @property {number} gets Read requests; of a local disk, ranges.
 * @property {number} heads Requests for an object's size only.
 * @property {number} puts PUT and POST: whole objects, parts, beginnings and ends of uploads.
 * @property {number} lists Requests that list.
 * @property {number} deletes Requests that delete, of one object or of many.
 * @property {number} requests Requests of all kinds, retries included.
 * @property {number} retries Failed requests that were sent again.
 * @property {number} hedges Reads sent a second time, as the first was slow.
 * @property {number} errors Requests that failed for a reason that may pass.
 * @property {number} bytes_read Bytes read from stores.
 * @property {number} bytes_written Bytes written to stores.
 * @property {number} wait_ms Time until answers began, summed over requests.
 * @property {number} cost_usd What the requests cost, by the prices set.
 */

/**
 * @typedef {object} Catalog
 * @property {string | null} place The file, or the database without its password.
 * @property {boolean} reachable Whether the catalog answered when it was last asked. While it does not, reports and small writes go on, and other changes wait.
 * @property {number} since_unix_ms Since when that is so.
 * @property {number | null} remembered_until_unix_ms Until when reports are answered from what is remembered of the catalog; nothing while it is reachable.
 * @property {number} reconnections How often the catalog came back after it had not answered.
 * @property {number} reads_asked How often a statement had PostgreSQL asked where a table's metadata is, or for the version of the rights; many share one query.
 * @property {number} reads_known How often it was known, since nobody had changed anything.
 * @property {string | null} last_error The last failure, whether or not it is over.
 */

/**
 * @typedef {object} Cluster
 * @property {number} epoch Changes of members since the cluster began.
 * @property {boolean} exact Whether reads here show everything that any daemon has acknowledged. They wait while they do not.
 * @property {number} up Daemons that take requests.
 * @property {number} logs Commit logs that are in use.
 * @property {number} logs_orphaned Those whose daemon is dead, and which another takes over.
 * @property {number} takeovers Logs that the daemon that was asked has taken over.
 * @property {number} copied_rows Rows of other daemons that are in no file yet, and in memory here.
 * @property {number} copied_bytes Memory that they hold.
 * @property {number} shipping_bytes Memory of records that are in no file yet, kept for daemons that join.
 * @property {number} reports_forwarded Reports that other daemons answered for this one, since their part of the table is in their memory.
 * @property {number} reports_hedged Reports that this daemon began to answer itself, since another one did not, or not soon.
 * @property {number} reports_for_others Reports that this daemon answered for others, or parts of them.
 * @property {number} reports_in_parts Reports over many parts of a table that this daemon answered together with their homes.
 * @property {number} statements_distributed Large statements of this daemon that all daemons computed.
 * @property {number} statements_distributed_failed Of those, statements of which a part failed before the first row, so that this daemon computed them alone.
 * @property {number} statements_for_others Large statements of other daemons of which this one computed parts.
 */

/**
 * @typedef {object} Daemon
 * @property {string} daemon The daemon's id, which it keeps when it starts again.
 * @property {string} host The name of its machine.
 * @property {string} state `joining`: it does not have all rows of the others yet. `up`: it takes requests. `draining`: it ends. `dead`: it has left, or did not answer; its log was taken over, or will be.
 * @property {boolean} is_this Whether it is the daemon that was asked.
 * @property {boolean} is_reached Whether the daemon that was asked reaches it: it answered the last probes.
 * @property {number} incarnation Which of its lives it is: one more with each start, counted over all daemons that were removed, too.
 * @property {number | null} joined_unix_ms When it joined, by the clock of the database.
 * @property {number | null} state_since_unix_ms Since when it has its state.
 * @property {string} peer_address Where other daemons reach it.
 * @property {string} pg_address Where clients of the PostgreSQL protocol reach it.
 * @property {string} http_address Where HTTP clients reach it.
 * @property {string} flight_address Where clients of Arrow Flight SQL reach it.
 * @property {string} zone Its availability zone, as it was set.
 * @property {string} build The version that it runs.
 * @property {number} executors Threads that compute.
 * @property {number} cache_bytes Memory for data that reports use again.
 * @property {number} calls Calls of the daemon that was asked to it.
 * @property {number} calls_failed Those that had no answer, or not in time.
 * @property {number} calls_in_flight Those that wait for an answer.
 * @property {number} round_trip_us How long an answer takes, smoothed; the work that was asked for included.
 */

/**
 * @typedef {object} ThisDaemon
 * @property {string} daemon Its id.
 * @property {string} host The name of its machine.
 * @property {string} zone Its availability zone, as it was set.
 * @property {string} build The version that it runs.
 * @property {boolean} is_member Whether it is a member: not once the others have declared it dead.
 */

/**
 * @typedef {object} ClusterEvent
 * @property {number} at_unix_ms When, by the clock of the database.
 * @property {string} event `joined`, `up`, `suspected` (a daemon does not reach it), `draining`, `left` (in order), `died`, `took over` (`by` has brought its log into files), `alert`, `resolved`.
 * @property {string | null} daemon The daemon it is about.
 * @property {number | null} incarnation Which of its lives.
 * @property {string | null} host The name of its machine.
 * @property {string | null} by The daemon that did or saw it, where that matters.
 * @property {string | null} detail More about it.
 */

/**
 * @typedef {object} Alert
 * @property {string} alert The rule.
 * @property {string} about The daemon it is about; empty for the one that is asked.
 * @property {number} since_unix_ms Since when.
 * @property {string} summary What is wrong.
 * @property {boolean} is_on Whether it is on: resolved ones are not listed.
 */

/**
 * @typedef {object} Log
 * @property {string} place The directory or URL.
 * @property {boolean} open Whether rows are taken.
 * @property {string | null} stopped The I/O error that the log has met, if it has.
 * @property {boolean} is_stopped Whether the log has met an I/O error.
 * @property {number} fresh_rows Rows in the commit log and in no file yet.
 * @property {number} fresh_bytes Memory of fresh rows.
 * @property {number} fresh_bytes_max Memory for them.
 * @property {number} appends Small writes.
 * @property {number} appended_rows Rows that small writes brought.
 * @property {number} appended_bytes Bytes of their records.
 * @property {number} appends_waiting Small writes that wait for room.
 * @property {number} syncs Syncs of the commit log.
 * @property {number} segments Segments of the log.
 * @property {number} segment_bytes Bytes of the log's segments.
 */

/**
 * @typedef {object} IngestTable
 * @property {string} table Namespace and name of the table.
 * @property {number} fresh_rows Rows in the commit log and in no file yet.
 * @property {number} fresh_bytes Memory that they take.
 * @property {number | null} oldest_ms How long the oldest of them has been there; null where there are none.
 * @property {number} flushes Flushes that succeeded.
 * @property {number} flushed_rows Rows that they brought into files.
 * @property {number | null} last_flush_unix_ms When the last of them ended.
 * @property {number} failures Flushes that failed since the last good one.
 * @property {string | null} last_error Why the last flush failed; null once one has succeeded.
 */

/**
 * @typedef {object} Maintenance
 * @property {boolean} working Whether a table is being worked on.
 * @property {string | null} table The table that is worked on now.
 * @property {string | null} work What is done to it.
 * @property {number | null} since_unix_ms When that was begun.
 * @property {number} compactions Groups of files made one run.
 * @property {number} compacted_rows Rows that compactions wrote.
 * @property {number} compacted_bytes Bytes that compactions read.
 * @property {number} snapshots_expired Snapshots forgotten.
 * @property {number} files_deleted Files deleted: of forgotten snapshots, and orphans.
 * @property {number} failures Work on tables that failed.
 * @property {string[] | null} errors Why the last work on a table failed, by table; gone once some succeeds.
 */

/**
 * @typedef {object} Http
 * @property {number} requests_running HTTP requests under way.
 */

/**
 * @typedef {object} HttpRequests
 * @property {string} route The path, or where it begins.
 * @property {number} status The answer's status; 499 where the client went away.
 * @property {number} requests HTTP requests, by route and status.
 */

/**
 * @typedef {object} Sample
 * @property {number} unix_ms The end of the step.
 * @property {number} step_s Its length: 1, 10, 60 or 600.
 * @property {number} per_second Queries that finished.
 * @property {number} reused_per_second Those of them that were given the answer of an equal one.
 * @property {number} failed Queries that failed in the step.
 * @property {number} running The most queries that ran or waited at the end of a second.
 * @property {number | null} p50_ms What half of the queries did not exceed, over the step and at least the last ten seconds, as all latencies here.
 * @property {number | null} p95_ms What 95 % did not exceed.
 * @property {number | null} p99_ms What 99 % did not exceed.
 * @property {number | null} short_p99_ms What 99 % of the reports on the short path did not exceed.
 * @property {number | null} planned_p99_ms What 99 % of the planned queries did not exceed, without waiting for a slot.
 * @property {number | null} reused_p99_ms What 99 % of the queries did not exceed that were given the answer of an equal one.
 * @property {number | null} wait_p99_ms What 99 % of the planned queries waited at most for a slot.
 * @property {number} computing The most queries that had a slot at the end of a second.
 * @property {number} waiting The most that waited for one.
 * @property {number} cache_bytes The most memory of the cache.
 * @property {number | null} hit_ratio Share of chunks that were in the cache, over the same time as latencies.
 * @property {number | null} fresh_rows The most rows in no file yet; null without a log, here and in the next two.
 * @property {number | null} rows_per_second Rows that small writes brought.
 * @property {number | null} appends_waiting The most writes that waited for room.
 * @property {number | null} process_cpu_ratio Share of the machine's processors that the process used; null where the system does not tell, here and below.
 * @property {number | null} machine_cpu_ratio Share of its processors that the machine used.
 * @property {number | null} process_read_per_second What the process read from disks.
 * @property {number | null} process_written_per_second What it wrote to them.
 * @property {number | null} disk_read_per_second What the disks of the machine read.
 * @property {number | null} disk_written_per_second What they wrote.
 * @property {number | null} received_per_second What the machine received over the network, loopback left out.
 * @property {number | null} sent_per_second What it sent.
 */

/**
 * @typedef {object} Query
 * @property {number} id Unique in this process, counted from 1.
 * @property {string} state queued, running, finished, failed or cancelled.
 * @property {string} user Who asked.
 * @property {string} protocol postgresql, http, flight, hive, hql or shell.
 * @property {number} started_unix_ms When it was started.
 * @property {number} elapsed_ms Time from start to now or to the end.
 * @property {boolean} short_path Whether it was answered without the planner.
 * @property {string} path short: on the short path; planned: by a plan; reused: with the answer of an equal one; other: without a plan.
 * @property {number} wait_ms How long it waited for a slot, which elapsed_ms includes.
 * @property {number | null} progress Share of its files' rows that were scanned; null where it scans none.
 * @property {number} rows Returned or written so far.
 * @property {number} bytes_read Read from storage so far.
 * @property {number} requests Read requests to storage.
 * @property {number | null} hit_ratio Share of chunks that were in memory; null where none was asked for.
 * @property {number} chunk_hits Chunks that reports and scans found in memory.
 * @property {number} chunk_misses Chunks that they did not.
 * @property {number} store_gets Read requests to object stores, retries included; local files are not counted, here and below.
 * @property {number} store_heads Requests for an object's size only.
 * @property {number} store_puts PUT and POST: whole objects, parts, beginnings and ends of uploads.
 * @property {number} store_lists Requests that list.
 * @property {number} store_deletes Requests that delete.
 * @property {number} store_retries Failed requests that were sent again.
 * @property {number} store_bytes_read Bytes read from object stores.
 * @property {number} store_bytes_written Bytes written to them.
 * @property {number} hedges Reads that were sent a second time because the first was slow.
 * @property {number} cost_usd What the requests cost, by `s3_read_price` and `s3_write_price`.
 * @property {string} pool Whose slots, queue and memory it shares.
 * @property {number} memory_bytes Of sorts, joins and groups, now.
 * @property {number} memory_peak_bytes The most that this came to.
 * @property {string | null} sqlstate Of the error it ended with.
 * @property {string | null} error Message of that error.
 * @property {string} sql The statement, cut at 4 KiB.
 */

/**
 * @typedef {object} Shape
 * @property {number} queries Statements that ended.
 * @property {number} failed Those that ended with an error or were cancelled.
 * @property {number} short_path Those answered without the planner.
 * @property {number} reused Those given the answer of an equal one; latencies are of the others only.
 * @property {number} total_ms Time of all together.
 * @property {number | null} p50_ms What half of those that were computed did not exceed; interpolated, and never above the longest, as the others are.
 * @property {number | null} p95_ms What 95 % did not exceed.
 * @property {number | null} p99_ms What 99 % did not exceed.
 * @property {number} max_ms The longest.
 * @property {number} rows Returned.
 * @property {number} bytes_read Read from storage.
 * @property {number} requests Read requests to storage.
 * @property {number | null} hit_ratio Share of chunks that were in memory; null where none was asked for.
 * @property {number} chunk_hits Chunks that reports and scans found in memory.
 * @property {number} chunk_misses Chunks that they did not.
 * @property {number} store_gets Read requests to object stores, retries included; local files are not counted, here and below.
 * @property {number} store_heads Requests for an object's size only.
 * @property {number} store_puts PUT and POST: whole objects, parts, beginnings and ends of uploads.
 * @property {number} store_lists Requests that list.
 * @property {number} store_deletes Requests that delete.
 * @property {number} store_retries Failed requests that were sent again.
 * @property {number} store_bytes_read Bytes read from object stores.
 * @property {number} store_bytes_written Bytes written to them.
 * @property {number} hedges Reads that were sent a second time because the first was slow.
 * @property {number} cost_usd What the requests cost, by `s3_read_price` and `s3_write_price`.
 * @property {string} sql The text with places instead of literals; the last letter is the literal's kind: i integer, n decimal, s text, d date, t timestamp. Of statements that are no plain SELECT, the first 200 characters.
 */

/**
 * @typedef {object} Status
 * @property {string} version Version of the program.
 * @property {boolean} ready Whether statements are taken.
 * @property {string | null} not_ready Why it is not ready, as `/ready` says it.
 * @property {string} warehouse Where the tables are.
 * @property {number} started_unix_ms When the server was started.
 * @property {number} now_unix_ms The server's clock.
 * @property {number} uptime_ms Time since the start.
 * @property {number | null} resident_bytes Resident memory; null where the system does not tell.
 * @property {number | null} cpu_s CPU time used since the start; null where the system does not tell.
 * @property {Totals} totals All queries since the start.
 * @property {Rate} rate Queries that finished, over the last `window_s` seconds.
 * @property {Latency} latency How long queries took that finished, over the last `window_s` seconds; null where there were none.
 * @property {LatencyPath[]} latency_paths How long queries took that finished within the last minute, by the way on which they were answered; null where there were none.
 * @property {Machine} machine Processors, memory, disks and network of the machine, and what this process takes of them.
 * @property {Executors} executors Who computes and who waits, in all pools together. Reports on the short path and statements that read no files need no slot.
 * @property {Pool[]} pools Pools: queries that share slots, a queue and memory.
 * @property {Refusals} refusals Logins and statements refused since the start.
 * @property {RefusedConnections[]} refused_connections Connections refused since the start.
 * @property {Cache} cache What reports keep of data files, in memory and on the local disk, and how often it was there; plans and results that were used again.
 * @property {Store[]} stores Every store that was opened, and what it was asked for since the start.
 * @property {Catalog} catalog The database that holds the names of the tables, and whether it answers.
 * @property {Cluster | null} cluster What the daemon that is asked has of its cluster; no row where the catalog is not in PostgreSQL.
 * @property {Daemon[]} daemons The daemons of the cluster, as the one that is asked knows them; no rows where the catalog is not in PostgreSQL.
 * @property {ThisDaemon | null} this_daemon The daemon that is asked, as a member of its cluster; nothing where the catalog is not in PostgreSQL.
 * @property {Alert[]} alerts Alerts that are on, as the daemon that is asked sees them. `alert_webhook` sends them to people.
 * @property {Log | null} log The commit log and the memory for fresh rows, which are in it and in no file yet; nothing where there is no log.
 * @property {IngestTable[]} ingest Tables that small writes went to since the start, with the rows that are in no file yet.
 * @property {Maintenance | null} maintenance What is done to tables in the background; nothing where that is off.
 * @property {Http} http The HTTP server.
 * @property {HttpRequests[]} http_requests HTTP requests since the start.
 * @property {Sample[]} history Samples, oldest first: of each second of the last ten minutes, 10 s of the last hour, minute of the last day and 10 minutes of the last week. `/v1/status` has those of a second.
 */

// figures: end

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
export function unreachable(message, hint) {
  return new ApiError({
    code: "08006", kind: "unavailable", message, detail: null, hint, position: null, retryable: true,
  });
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
export async function request(path, init) {
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
 * Runs statements and gives the last one's result. With `keep`, it stays on the server for pages and downloads.
 *
 * @param {Statement} statement
 * @param {{ maxRows: number, signal?: AbortSignal, session?: string, keep?: boolean }} options
 * @returns {Promise<SqlResult>}
 */
export async function runSql(statement, { maxRows, signal, session, keep = false }) {
  const { type, body } = bodyOf(statement);
  const more = `${keep ? "&keep=true" : ""}${session === undefined ? "" : `&session=${session}`}`;
  return resultOf(await request(`/v1/sql?application=console&format=json&max_rows=${maxRows}${more}`, {
    method: "POST",
    headers: { "content-type": type },
    body,
    ...(signal ? { signal } : {}),
  }));
}

/**
 * @param {Response} response
 * @returns {Promise<SqlResult>}
 */
async function resultOf(response) {
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
 * More rows of a result that the server keeps.
 *
 * @param {string} id
 * @param {number} from number of the first row, from 0
 * @param {number} maxRows
 * @returns {Promise<SqlResult>}
 */
export async function resultRows(id, from, maxRows) {
  return resultOf(await request(`/v1/results/${id}/rows?format=json&partial=true&from=${from}&max_rows=${maxRows}`));
}

/**
 * @param {string} id
 * @returns {Promise<KeptResult>}
 */
export async function keptResult(id) {
  return (await request(`/v1/results/${id}`)).json();
}

/**
 * Lets the server forget a result, also while the page is left.
 *
 * @param {string} id
 */
export function forgetResult(id) {
  fetch(`/v1/results/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});
}

/** @returns {Promise<string>} a new session */
export async function openSession() {
  return (await (await request("/v1/sessions?application=console", { method: "POST" })).json()).session;
}

/**
 * Ends a session, also while the page is left.
 *
 * @param {string} id
 * @param {number} graceS seconds for which it waits for somebody who comes back
 */
export function endSession(id, graceS) {
  fetch(`/v1/sessions/${id}?grace_s=${graceS}`, { method: "DELETE", keepalive: true }).catch(() => {});
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
 * @param {number} [snapshots] most that are told, the newest
 * @returns {Promise<TableDetails>}
 */
export async function table(namespace, table, snapshots = 0) {
  const path = `/v1/tables/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}`;
  return (await request(`${path}?snapshots=${snapshots}`)).json();
}

/** Files, and table partitions, that are asked for at once; of larger tables, the rest is in SHOW FILES. */
const FILES_MAX = 20_000;

/**
 * @param {string} namespace
 * @param {string} table
 * @returns {Promise<TableFiles>}
 */
export async function tableFiles(namespace, table) {
  const path = `/v1/tables/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}/files?most=${FILES_MAX}`;
  return (await request(path)).json();
}

/**
 * @param {number} id
 * @param {AbortSignal} signal
 * @returns {Promise<{ query: QueryInfo, plan: PlanNode } | null>} with what its operators have counted until now, if there is a plan
 */
export async function queryPlan(id, signal) {
  const answer = await request(`/v1/queries/${id}/plan?optional=true`, { signal });
  return answer.status === 204 ? null : answer.json();
}

/**
 * @param {number} most
 * @returns {Promise<{ shapes: Shape[], known: number }>} those that took most time first
 */
export async function shapes(most) {
  return (await request(`/v1/shapes?most=${most}`)).json();
}

/**
 * Samples of one step, oldest first.
 *
 * @param {number} stepS 1, 10, 60 or 600
 * @param {number} since ms since 1970; those that ended after it
 * @returns {Promise<Sample[]>}
 */
export async function history(stepS, since) {
  /** @type {{ columns: string[], rows: unknown[][] }} */
  const { columns, rows } = await (await request(`/v1/history?step_s=${stepS}&since=${since}`)).json();
  return rows.map((row) => /** @type {any} */ (Object.fromEntries(columns.map((name, index) => [name, row[index]]))));
}

/**
 * A session of a client of HiveServer2, with Hive's names; times in seconds.
 *
 * @typedef {{ sessionId: string, username: string, operationCount: number, activeTime: number, idleTime: number }} HiveSession
 */

/**
 * A query that runs, of whatever session, with Hive's names.
 *
 * @typedef {{ sessionId: string, operationId: string, queryDisplay: { queryString: string } }} HiveOperation
 */

/**
 * An ended query in the log.
 *
 * @typedef {QueryInfo & { ended_unix_ms: number }} LoggedQuery
 */

/**
 * Ended queries of the last days, newest first: all that failed or took long, some of the others.
 *
 * @param {Record<string, string | number>} filter as docs/openapi.yaml lists it
 * @returns {Promise<LoggedQuery[]>}
 */
export async function queryLog(filter) {
  const parameters = new URLSearchParams(Object.entries(filter).map(([name, value]) => [name, String(value)]));
  return (await (await request(`/v1/query-log?${parameters}`)).json()).queries;
}

/**
 * Who asks; `signs_in` where the server asks for passwords.
 *
 * @typedef {{ role: string, superuser: boolean, signs_in: boolean }} Me
 * @returns {Promise<Me>}
 */
export async function me() {
  return (await request("/v1/me")).json();
}

/** @param {number} id */
export async function cancelQuery(id) {
  await request(`/v1/queries/${id}`, { method: "DELETE" });
}
