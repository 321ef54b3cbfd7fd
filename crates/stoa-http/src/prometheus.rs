//! `GET /metrics`: the numbers of console and `/v1/status` in Prometheus' text format.
//!
//! Every metric is declared in this file and nowhere else.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use stoa_query::{Engine, IngestStatus, LatencyHistogram, MaintenanceStatus, PoolStatus};

use crate::app::App;
use crate::process;

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], text(&app)).into_response()
}

fn text(app: &App) -> String {
    let mut out = Exposition::default();
    let version = env!("CARGO_PKG_VERSION");
    out.family("stoa_build_info", "gauge", "Always 1; the version is a label.");
    out.value("stoa_build_info", &format!("version=\"{version}\""), 1.0);
    out.gauge("stoa_process_ready", "Whether statements are taken.", f64::from(app.is_ready()));
    let uptime = app.started.elapsed().as_secs_f64();
    out.gauge("stoa_process_uptime_seconds", "Time since start.", uptime);
    if let Some(bytes) = process::resident_bytes() {
        out.gauge("stoa_process_resident_memory_bytes", "Resident memory.", bytes as f64);
    }
    if let Some(seconds) = process::cpu_seconds() {
        out.counter("stoa_process_cpu_seconds_total", "CPU time used.", seconds);
    }
    queries(app, &mut out);
    admission(&app.engine, &mut out);
    reports(&app.engine, &mut out);
    stores(app, &mut out);
    requests(app, &mut out);
    if let Some(ingest) = app.engine.ingest() {
        fresh_rows(&ingest.status(), !app.engine.asks_for_login(), &mut out);
    }
    if let Some(status) = app.engine.maintenance_status() {
        maintenance(&status, &mut out);
    }
    out.0
}

fn queries(app: &App, out: &mut Exposition) {
    let registry = app.engine.queries();
    let totals = registry.totals();
    let running = registry.running_count() as f64;
    out.gauge("stoa_query_running_queries", "Queries that run now.", running);
    out.counter("stoa_query_started_queries_total", "Queries started.", totals.started as f64);
    out.family("stoa_query_ended_queries_total", "counter", "Queries ended, by how they ended.");
    let ends =
        [("finished", totals.finished), ("failed", totals.failed), ("cancelled", totals.cancelled)];
    for (state, count) in ends {
        let label = format!("state=\"{state}\"");
        out.value("stoa_query_ended_queries_total", &label, count as f64);
    }
    out.counter("stoa_query_rows_total", "Rows returned or written.", totals.rows as f64);
    let read = totals.bytes_read as f64;
    out.counter("stoa_query_read_bytes_total", "Bytes that scans read from storage.", read);
    let requests = totals.requests as f64;
    out.counter("stoa_query_read_requests_total", "Requests of scans to storage.", requests);
    let reserved = app.engine.memory_used_bytes() as f64;
    out.gauge("stoa_query_memory_reserved_bytes", "Memory that queries hold.", reserved);
    let limit = app.engine.options().memory_limit_bytes as f64;
    out.gauge("stoa_query_memory_limit_bytes", "Memory that queries may hold.", limit);
    latencies(&registry.latency().snapshot(), out);
}

/// The registry's buckets grow by a quarter of a power of two; here by a whole one.
fn latencies(counts: &[u64], out: &mut Exposition) {
    const NAME: &str = "stoa_query_duration_seconds";
    const BUCKETS_PER_LIMIT: usize = 4;
    out.family(NAME, "histogram", "Time of finished queries; the sum is estimated from buckets.");
    let mut seen = 0;
    let mut sum = 0.0;
    for (index, count) in counts.iter().enumerate() {
        seen += count;
        // The middle of the bucket, as ratios go.
        let upper_s = LatencyHistogram::bucket_upper_us(index) / 1e6;
        sum += *count as f64 * upper_s / 2_f64.powf(0.5 / BUCKETS_PER_LIMIT as f64);
        let is_limit = index % BUCKETS_PER_LIMIT == BUCKETS_PER_LIMIT - 1;
        if is_limit && (6..30).contains(&(index / BUCKETS_PER_LIMIT)) {
            out.value(&format!("{NAME}_bucket"), &format!("le=\"{upper_s}\""), seen as f64);
        }
    }
    out.value(&format!("{NAME}_bucket"), "le=\"+Inf\"", seen as f64);
    out.value(&format!("{NAME}_sum"), "", sum);
    out.value(&format!("{NAME}_count"), "", seen as f64);
}

fn admission(engine: &Engine, out: &mut Exposition) {
    let status = engine.admission_status();
    let executors = engine.executors().count() as f64;
    out.gauge("stoa_admission_executors", "Threads that compute.", executors);
    let slots = status.slots as f64;
    out.gauge("stoa_admission_slots", "Queries that may compute at the same time.", slots);
    let running = status.running as f64;
    out.gauge("stoa_admission_running_queries", "Queries that have a slot.", running);
    let waiting = status.waiting as f64;
    out.gauge("stoa_admission_waiting_queries", "Queries that wait for a slot.", waiting);
    let limit = status.queue_max as f64;
    out.gauge("stoa_admission_waiting_limit_queries", "Queries that may wait.", limit);
    const REFUSED: &str = "stoa_admission_refused_queries_total";
    out.counter(REFUSED, "Queries refused because too many waited.", status.refused as f64);
    pools(&engine.pools_status(), out);
    const STALLS: &str = "stoa_stalls_total";
    out.family(STALLS, "counter", "Times that no thread took up a task for a second.");
    out.value(STALLS, "threads=\"executor\"", engine.executor_stalls().stalls as f64);
    out.value(STALLS, "threads=\"planner\"", engine.planner_stalls().stalls as f64);
    out.value(STALLS, "threads=\"io\"", engine.io_stalls().stalls as f64);
    const OVERDUE: &str = "Statements that were cancelled a second ago or more and still compute.";
    out.gauge("stoa_overdue_statements", OVERDUE, engine.statements_overdue() as f64);
}

fn pools(pools: &[PoolStatus], out: &mut Exposition) {
    let mut family = |name: &str, kind: &str, help: &str, value: fn(&PoolStatus) -> f64| {
        out.family(name, kind, help);
        for pool in pools {
            out.value(name, &format!("pool=\"{}\"", pool.name), value(pool));
        }
    };
    let gauge = "gauge";
    family("stoa_pool_running_queries", gauge, "Queries that have a slot.", |pool| {
        pool.admission.running as f64
    });
    family("stoa_pool_waiting_queries", gauge, "Queries that wait for a slot.", |pool| {
        pool.admission.waiting as f64
    });
    family("stoa_pool_memory_bytes", gauge, "Memory of queries.", |pool| pool.memory_bytes as f64);
    family("stoa_pool_slots", gauge, "Queries that may compute at the same time.", |pool| {
        pool.admission.slots as f64
    });
    const REFUSED: &str = "Queries refused because too many of the pool waited.";
    family("stoa_pool_refused_queries_total", "counter", REFUSED, |pool| {
        pool.admission.refused as f64
    });
    const ENDED: &str = "Statements ended because they took too long or read too much.";
    family("stoa_pool_ended_queries_total", "counter", ENDED, |pool| pool.ended as f64);
}

fn reports(engine: &Engine, out: &mut Exposition) {
    let answered = engine.reports_answered() as f64;
    const ANSWERED: &str = "stoa_report_answered_queries_total";
    out.counter(ANSWERED, "Reports answered without the planner.", answered);
    let templates = engine.templates_known() as f64;
    out.gauge("stoa_report_templates", "Statements whose form is known.", templates);
    let reused = engine.results_reused() as f64;
    const REUSED: &str = "stoa_report_reused_answers_total";
    out.counter(REUSED, "Statements given the answer of an equal one.", reused);
    let cache = engine.cache_status();
    out.gauge("stoa_cache_bytes", "Memory that reports keep of data files.", cache.bytes as f64);
    out.gauge("stoa_cache_limit_bytes", "Memory that they may keep.", cache.bytes_max as f64);
    out.gauge("stoa_cache_entries", "Chunks, bounds and tails in it.", cache.entries as f64);
    let hits = cache.chunk_hits as f64;
    out.counter("stoa_cache_chunk_hits_total", "Chunks that were there when asked for.", hits);
    let misses = cache.chunk_misses as f64;
    out.counter("stoa_cache_chunk_misses_total", "Chunks that were not.", misses);
    out.gauge("stoa_cache_disk_bytes", "Chunks on the local disk.", cache.disk_bytes as f64);
    let hits = cache.disk_hits as f64;
    out.counter("stoa_cache_disk_hits_total", "Chunks that were found on the local disk.", hits);
    let misses = cache.disk_misses as f64;
    out.counter("stoa_cache_disk_misses_total", "Chunks that were not on it.", misses);
    let limit = cache.disk_bytes_max as f64;
    out.gauge("stoa_cache_disk_limit_bytes", "Room for chunks on the local disk.", limit);
    let known = engine.plan_templates_known() as f64;
    out.gauge("stoa_plan_templates", "Statements whose plan is kept.", known);
    let used = engine.plan_templates_used() as f64;
    const USED: &str = "stoa_plan_templates_used_total";
    out.counter(USED, "Statements whose plan was one used before.", used);
}

fn requests(app: &App, out: &mut Exposition) {
    let running = app.requests.running() as f64;
    out.gauge("stoa_http_running_requests", "HTTP requests under way.", running);
    out.family("stoa_http_requests_total", "counter", "HTTP requests, by route and status.");
    for ((route, status), count) in app.requests.counts() {
        let labels = format!("route=\"{route}\",status=\"{status}\"");
        out.value("stoa_http_requests_total", &labels, count as f64);
    }
}

fn stores(app: &App, out: &mut Exposition) {
    let usage = app.engine.warehouse().stores().usage();
    let mut family = |name: &str, help: &str, rows: &[(String, f64)]| {
        out.family(name, "counter", help);
        rows.iter().for_each(|(labels, value)| out.value(name, labels, *value));
    };
    let by_kind = usage.iter().flat_map(|used| {
        let totals = &used.totals;
        let kinds = [
            ("get", totals.reads),
            ("head", totals.heads),
            ("put", totals.writes),
            ("list", totals.lists),
            ("delete", totals.deletes),
        ];
        kinds.map(|(kind, count)| {
            (format!("store=\"{}\",kind=\"{kind}\"", used.store), count as f64)
        })
    });
    let by_kind: Vec<_> = by_kind.collect();
    family("stoa_store_requests_total", "Requests to stores, retries included.", &by_kind);
    let mut total = |name: &str, help: &str, value: &dyn Fn(&_) -> f64| {
        let rows: Vec<_> =
            usage.iter().map(|used| (format!("store=\"{}\"", used.store), value(used))).collect();
        family(name, help, &rows);
    };
    total("stoa_store_read_bytes_total", "Bytes read from stores.", &|u| {
        u.totals.bytes_read as f64
    });
    total("stoa_store_written_bytes_total", "Bytes written to stores.", &|u| {
        u.totals.bytes_written as f64
    });
    total("stoa_store_errors_total", "Requests that failed in a way that may pass.", &|u| {
        u.totals.errors as f64
    });
    total("stoa_store_retries_total", "Failed requests that were sent again.", &|u| {
        u.totals.retries as f64
    });
    total("stoa_store_hedges_total", "Reads sent a second time, as the first was slow.", &|u| {
        u.hedges as f64
    });
    total("stoa_store_wait_seconds_total", "Time until answers began.", &|u| {
        u.totals.wait_us as f64 / 1e6
    });
    total("stoa_store_cost_dollars_total", "What the requests cost, by the prices set.", &|u| {
        u.dollars
    });
}

/// `names_tables`: metrics are for everybody, names of tables for who has a right on them.
fn fresh_rows(status: &IngestStatus, names_tables: bool, out: &mut Exposition) {
    let rows: u64 = status.tables.iter().map(|table| table.fresh_rows).sum();
    out.gauge("stoa_fresh_rows", "Rows in the commit log and in no file yet.", rows as f64);
    out.gauge("stoa_fresh_bytes", "Memory of fresh rows.", status.fresh_bytes as f64);
    out.gauge("stoa_fresh_limit_bytes", "Memory for them.", status.fresh_bytes_max as f64);
    let waiting = status.appends_waiting as f64;
    out.gauge("stoa_fresh_waiting_writes", "Small writes that wait for room.", waiting);
    let appended = status.appended_rows as f64;
    out.counter("stoa_log_rows_total", "Rows that small writes brought.", appended);
    out.counter("stoa_log_appends_total", "Small writes.", status.appends as f64);
    let log = &status.log;
    out.counter("stoa_log_bytes_total", "Bytes of their records.", log.payload_bytes as f64);
    out.counter("stoa_log_syncs_total", "Syncs of the commit log.", log.syncs as f64);
    out.gauge("stoa_log_segment_bytes", "Bytes of the log's segments.", log.segment_bytes as f64);
    let stopped = f64::from(u8::from(log.poisoned.is_some()));
    out.gauge("stoa_log_stopped", "1 after the log has met an I/O error.", stopped);
    out.family("stoa_flush_failures", "gauge", "Flushes that failed since the last good one.");
    if !names_tables {
        let failures: u32 = status.tables.iter().map(|table| table.failures).sum();
        out.value("stoa_flush_failures", "", f64::from(failures));
        return;
    }
    for table in &status.tables {
        let labels = format!("table=\"{}\"", table.table);
        out.value("stoa_flush_failures", &labels, f64::from(table.failures));
    }
}

fn maintenance(status: &MaintenanceStatus, out: &mut Exposition) {
    let working = f64::from(u8::from(status.now.is_some()));
    out.gauge("stoa_maintenance_working", "1 while a table is worked on.", working);
    let merged = status.compactions as f64;
    out.counter("stoa_maintenance_compactions_total", "Groups of files made one run.", merged);
    let read = status.compacted_bytes_read as f64;
    out.counter("stoa_maintenance_read_bytes_total", "Bytes that compactions read.", read);
    let failures = status.failures as f64;
    out.counter("stoa_maintenance_failures_total", "Work on tables that failed.", failures);
}

#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &str, value: f64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            _ => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help);
        self.value(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "counter", help);
        self.value(name, "", value);
    }
}
