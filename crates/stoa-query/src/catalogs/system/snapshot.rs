//! What figures are made of: the engine at one moment.
//!
//! `/v1/status` and `/metrics` show the same; HTTP adds what it alone knows.

use std::time::SystemTime;

use chrono::{DateTime, Utc};
use stoa_error::Result;
use stoa_figures::{
    Cache, CatalogFigures, ClusterEvent, Executors, Log, Maintenance, Pool, Refusals, Snapshot,
    Stalls, Totals,
};
use stoa_ingest::{IngestStatus, MaintenanceStatus};

use super::{cluster, ingest, stores};
use crate::access::Caller;
use crate::engine::Engine;
use crate::engine::history::PoolLatency;
use crate::engine::watch::StallStatus;
use crate::run::pool::PoolStatus;

impl Engine {
    /// What is known of it, of all tables; the process, samples and requests are left empty.
    pub fn figures(&self) -> Snapshot {
        let status = self.ingest().map(|ingest| ingest.status());
        let tables = status.iter().flat_map(|status| &status.tables);
        Snapshot {
            ingest: tables.map(ingest::row).collect(),
            log: status.as_ref().map(log_of),
            ..self.figures_of_no_table()
        }
    }

    /// What happened to the cluster, as this daemon saw it, the oldest first.
    pub fn cluster_events(&self) -> Vec<ClusterEvent> {
        cluster::events(self)
    }

    fn figures_of_no_table(&self) -> Snapshot {
        Snapshot {
            totals: totals(self),
            rate: self.rate(),
            latency: self.latency(),
            latency_paths: self.latency_paths(),
            machine: self.machine(),
            executors: executors(self),
            pools: pools(self),
            refusals: refusals(self),
            cache: cache(self),
            catalog: catalog(self),
            stores: stores::stores(self),
            maintenance: maintenance(self),
            cluster: cluster::cluster(self),
            daemons: cluster::daemons(self),
            this_daemon: cluster::this_daemon(self),
            ..Snapshot::default()
        }
    }
}

/// What is known of the engine, of tables that `caller` may see.
///
/// # Errors
/// The catalog's.
pub(crate) async fn seen_by(engine: &Engine, caller: &Caller) -> Result<Snapshot> {
    caller.refresh().await?;
    let status = engine.ingest().map(|ingest| ingest.status());
    let tables = status.as_ref().map(|status| status.tables.as_slice()).unwrap_or_default();
    Ok(Snapshot {
        ingest: ingest::seen(engine, caller, tables).await,
        log: status.as_ref().map(log_of),
        ..engine.figures_of_no_table()
    })
}

/// Whether the catalog answers.
pub(super) fn catalog(engine: &Engine) -> CatalogFigures {
    let catalog = engine.warehouse().catalog();
    let state = catalog.state();
    let unix_ms = |at: SystemTime| DateTime::<Utc>::from(at).timestamp_millis();
    CatalogFigures {
        place: catalog.place().to_owned(),
        reachable: state.reachable,
        since_unix_ms: unix_ms(state.since),
        remembered_until_unix_ms: state.remembered_until.map(unix_ms),
        reconnections: state.reconnections,
        reads_asked: state.reads_asked,
        reads_known: state.reads_known,
        last_error: state.last_error,
    }
}

/// All statements since the start.
pub(super) fn totals(engine: &Engine) -> Totals {
    let totals = engine.queries().totals();
    Totals {
        running: engine.queries().running_count() as u64,
        started: totals.started,
        finished: totals.finished,
        failed: totals.failed,
        cancelled: totals.cancelled,
        rows: totals.rows,
        bytes_read: totals.bytes_read,
        requests: totals.requests,
    }
}

/// Who computes and who waits.
pub(super) fn executors(engine: &Engine) -> Executors {
    let status = engine.admission_status();
    Executors {
        executors: engine.executors().count() as u64,
        slots: status.slots as u64,
        running: status.running as u64,
        waiting: status.waiting as u64,
        queue_max: status.queue_max as u64,
        refused: status.refused,
        memory_bytes: engine.memory_used_bytes() as u64,
        memory_bytes_max: engine.options().memory_limit_bytes as u64,
        kept_bytes: engine.kept_bytes() as u64,
        executor_threads: stalls(engine.executor_stalls()),
        planner_threads: stalls(engine.planner_stalls()),
        io_threads: stalls(engine.io_stalls()),
        overdue: engine.statements_overdue() as u64,
    }
}

fn stalls(status: StallStatus) -> Stalls {
    Stalls { stalls: status.stalls, wait_max_us: status.wait_max_us }
}

/// Pools of queries: slots, queue, memory, and what was ended by their bounds.
pub(super) fn pools(engine: &Engine) -> Vec<Pool> {
    let mut latencies = engine.pool_latencies();
    let all = engine.pools_status().into_iter();
    all.map(|status| {
        let latency = latencies.remove(&status.name).unwrap_or_default();
        pool(status, &latency)
    })
    .collect()
}

fn pool(status: PoolStatus, PoolLatency { latency, waits }: &PoolLatency) -> Pool {
    let [p50_ms, p95_ms, p99_ms] = latency.percentiles_ms();
    Pool {
        slots: status.admission.slots as u64,
        running: status.admission.running as u64,
        waiting: status.admission.waiting as u64,
        queue_max: status.admission.queue_max as u64,
        refused: status.admission.refused,
        memory_bytes: status.memory_bytes as u64,
        memory_bytes_max: status.memory_bytes_max.map(|max| max as u64),
        ended: status.ended,
        queries: latency.total(),
        p50_ms,
        p95_ms,
        p99_ms,
        wait_p99_ms: waits.percentile_ms(0.99),
        pool: status.name,
    }
}

/// What was refused since the start.
pub(super) fn refusals(engine: &Engine) -> Refusals {
    let status = engine.refusals();
    Refusals {
        logins_failed: status.logins_failed,
        logins_paused: status.logins_paused,
        too_large: status.too_large,
        out_of_memory: status.out_of_memory,
        denied: status.denied,
    }
}

/// What reports keep.
pub(super) fn cache(engine: &Engine) -> Cache {
    let status = engine.cache_status();
    Cache {
        bytes: status.bytes,
        bytes_max: status.bytes_max,
        entries: status.entries,
        chunk_hits: status.chunk_hits,
        chunk_misses: status.chunk_misses,
        disk_bytes: status.disk_bytes,
        disk_bytes_max: status.disk_bytes_max,
        disk_hits: status.disk_hits,
        disk_misses: status.disk_misses,
        disk_is_writing: status.disk_is_writing,
        reports_answered: engine.reports_answered(),
        templates: engine.templates_known() as u64,
        plan_templates: engine.plan_templates_known() as u64,
        plan_templates_used: engine.plan_templates_used(),
        results_reused: engine.results_reused(),
    }
}

/// The commit log and the memory for fresh rows; `None` where there is no log.
pub(super) fn log(engine: &Engine) -> Option<Log> {
    engine.ingest().map(|ingest| log_of(&ingest.status()))
}

fn log_of(status: &IngestStatus) -> Log {
    Log {
        place: status.log.place.clone(),
        open: status.open,
        stopped: status.log.poisoned.clone(),
        fresh_rows: status.tables.iter().map(|table| table.fresh_rows).sum(),
        fresh_bytes: status.fresh_bytes as u64,
        fresh_bytes_max: status.fresh_bytes_max as u64,
        appends: status.appends,
        appended_rows: status.appended_rows,
        appended_bytes: status.log.payload_bytes,
        appends_waiting: status.appends_waiting as u64,
        syncs: status.log.syncs,
        segments: status.log.segments as u64,
        segment_bytes: status.log.segment_bytes,
    }
}

/// The work in the background; none where it is off.
pub(super) fn maintenance(engine: &Engine) -> Option<Maintenance> {
    engine.maintenance_status().map(maintenance_of)
}

fn maintenance_of(status: MaintenanceStatus) -> Maintenance {
    let now = status.now.as_ref();
    let error = |(table, error): (&String, &String)| match table.as_str() {
        "" => format!("listing the tables: {error}"),
        table => format!("{table}: {error}"),
    };
    Maintenance {
        table: now.map(|work| work.table.to_string()),
        work: now.map(|work| work.kind.name().to_owned()),
        since_unix_ms: now.map(|work| work.since_unix_ms),
        compactions: status.compactions,
        compacted_rows: status.compacted_rows,
        compacted_bytes: status.compacted_bytes_read,
        snapshots_expired: status.snapshots_expired,
        files_deleted: status.files_deleted,
        failures: status.failures,
        errors: status.errors.iter().map(error).collect(),
    }
}
