//! The engine of one process: its data, who may see them, what computes, and what is used again.
//!
//! In: [`EngineOptions`]. Out: what all sessions share, as [`Handles`]. **Invariant:** that is one memory pool, one
//! registry of queries and one cache of file footers. Statements have handles, not the engine; whoever asks the
//! engine from outside asks its methods.
//!
//! Not here: how it is put together (`open`), what statements do.

mod cluster;
pub(crate) mod elsewhere;
pub(crate) mod history;
pub(crate) mod hot_list;
mod logins;
pub(crate) mod logs;
pub(crate) mod machine;
pub(crate) mod no_stores;
mod reports_for_others;
pub(crate) mod resource_plans;
pub(crate) mod spill;
mod spread;
pub(crate) mod table_status;
mod tickets;
pub(crate) mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datafusion::common::config::ConfigOptions;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use stoa_cells::CellTables;
use stoa_env::executors::Executors;
use stoa_error::{Error, Result};
use stoa_ingest::{Ingest, Maintenance, MaintenanceStatus};
use stoa_member::Member;
use stoa_report::{CacheStatus, DiskOptions};
use stoa_sql::temporary::is_temporary;
use stoa_store::S3Options;
use stoa_table::{CatalogPlace, TableIdent, Warehouse};
use url::Url;

use crate::access::{FileAccess, Gate, Rights};
pub use crate::engine::cluster::Joining;
use crate::engine::history::History;
use crate::engine::watch::{Pulses, StallStatus};
use crate::reuse::Reuse;
use crate::run::admission::AdmissionStatus;
use crate::run::backends::{SessionInfo, SharedByAll};
use crate::run::pool::{PoolOptions, PoolStatus};
use crate::run::pools::WorkloadRule;
use crate::run::refusals::RefusalStatus;
use crate::run::registry::{QueryGuard, QueryRegistry};
use crate::run::runner::Runner;
use crate::scripts::ScriptOptions;
use crate::tables::data::Data;
use crate::tables::temporary::prefix_of;

/// Name of the only database, and of the catalog in the warehouse's catalog file.
pub const DATABASE: &str = "stoa";
/// Namespace of tables named without one; made at start.
pub const DEFAULT_NAMESPACE: &str = "public";

/// How long bringing fresh rows into files may take at the end; what is not in files then is in the log.
const FLUSH_GRACE: Duration = Duration::from_secs(30);

/// How long closing the log may take where its rows are not brought into files.
const LOG_GRACE: Duration = Duration::from_secs(5);

/// How long the background work may take to end.
const MAINTENANCE_GRACE: Duration = Duration::from_secs(10);

/// What an [`Engine`] is started with.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Where the tables are: `file:///…`, `s3://…`.
    pub warehouse: Url,
    /// Where the catalog is; in a local warehouse if `None`.
    pub catalog: Option<CatalogPlace>,
    /// How to reach S3.
    pub s3: S3Options,
    /// Memory that all queries together may use for their state, bytes.
    pub memory_limit_bytes: usize,
    /// Where queries and loads spill; the system's temporary folder if `None`.
    pub spill_dir: Option<PathBuf>,
    /// Executors: threads that compute, and plan partitions of a query.
    pub threads: usize,
    /// Queries that may compute at the same time; reports on the short path do not count.
    pub query_slots: usize,
    /// Queries that may wait for a slot; one more is refused.
    pub queue_max: usize,
    /// Where chunks of files in remote stores are kept on a local disk, too; nowhere if `None`.
    pub disk_cache: Option<DiskOptions>,
    /// Whether threads that take up no tasks are counted and logged, as a server wants it.
    pub watch_threads: bool,
    /// The file in which a server notes what reports ask for most, so as to read it into memory again
    /// after a restart; none if `None`.
    pub hot_list: Option<PathBuf>,
    /// The directory in which a server keeps the history of its figures; in memory only if `None`.
    pub history: Option<PathBuf>,
    /// Pools of queries, beside [`DEFAULT_POOL`](crate::DEFAULT_POOL).
    pub pools: Vec<PoolOptions>,
    /// Who goes into which pool; the first rule that is met counts.
    pub workload_rules: Vec<WorkloadRule>,
    /// Rows of a batch.
    pub batch_rows: usize,
    /// Where the commit logs are through which small writes go, one per process; each write is a
    /// commit of files if `None`.
    pub logs: Option<Url>,
    /// Whether the server is to be a member of its catalog's cluster, where the catalog is one that daemons share:
    /// it sends its log to the others. [`Engine::join`] must follow.
    pub cluster: bool,
    /// Reports on tables of at least so many bytes are answered by the daemon of the cluster that has their part of the
    /// table in memory; smaller tables are in everybody's.
    pub home_bytes_min: u64,
    /// In a cluster, bytes of the files that a statement reads from which on other daemons compute parts of it.
    pub spread_bytes_min: u64,
    /// How long a commit log in an object store that does not answer is written to again before it stops.
    pub log_store_wait: Duration,
    /// Memory for rows that are in the log and not yet in files, bytes.
    pub fresh_bytes_max: usize,
    /// Memory for what reports keep of data files: decoded columns, bounds, tails; bytes.
    pub cache_bytes_max: usize,
    /// Whether tables are looked after in the background: compaction, expiry, retention, orphans.
    pub maintenance: bool,
    /// Whether clients must log in as a role, and may do only what was granted to it.
    pub access_control: bool,
    /// Which files of the machine statements may name.
    pub file_access: FileAccess,
    /// Which programs rows may go through, and for whom.
    pub scripts: ScriptOptions,
}

impl EngineOptions {
    /// Options for `warehouse`: 2 GiB of memory, as many threads as there are cores.
    pub fn new(warehouse: Url) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        Self {
            warehouse,
            catalog: None,
            s3: S3Options::default(),
            memory_limit_bytes: 2 << 30,
            spill_dir: None,
            threads,
            query_slots: 2 * threads,
            queue_max: 256,
            disk_cache: None,
            watch_threads: false,
            hot_list: None,
            history: None,
            pools: Vec::new(),
            workload_rules: Vec::new(),
            batch_rows: 8192,
            logs: None,
            cluster: false,
            home_bytes_min: 64 << 20,
            spread_bytes_min: 1 << 30,
            log_store_wait: stoa_ingest::LOG_STORE_WAIT,
            fresh_bytes_max: 256 << 20,
            cache_bytes_max: 512 << 20,
            maintenance: false,
            access_control: false,
            file_access: FileAccess::Off,
            scripts: ScriptOptions::default(),
        }
    }
}

/// What sessions share, each part by the room that it belongs to.
#[derive(Clone)]
pub(crate) struct Handles {
    /// What there is to read and to write.
    pub(crate) data: Arc<Data>,
    /// Who is let in, and what they may do.
    pub(crate) gate: Arc<Gate>,
    /// What plans and computes, and what is known of it.
    pub(crate) runner: Arc<Runner>,
    /// What earlier statements left.
    pub(crate) reuse: Arc<Reuse>,
}

/// Drops a schema of temporary tables. Statements are above the engine.
pub(crate) type DropTemporary = fn(Arc<Engine>, String) -> BoxFuture<'static, Result<()>>;

/// The engine of one process. Open it once; make a [`Session`](crate::Session) per client.
pub struct Engine {
    handles: Handles,
    options: EngineOptions,
    /// With which sessions begin.
    state: SessionState,
    /// What its sessions have together.
    shared: SharedByAll,
    /// What the schemas of its sessions' temporary tables begin with.
    temporary_prefix: String,
    /// What drops one of these schemas.
    drop_temporary: DropTemporary,
    pulses: Pulses,
    history: History,
    maintenance: Mutex<Option<Maintenance>>,
    /// Where the log is, if it is sent to other daemons.
    shipped_log: Option<Url>,
    closing: AtomicBool,
}

impl Engine {
    /// An engine of these parts.
    pub(crate) fn of(
        options: EngineOptions,
        handles: Handles,
        state: SessionState,
        maintenance: Option<Maintenance>,
        shipped_log: Option<Url>,
        drop_temporary: DropTemporary,
    ) -> Self {
        // Without a log there is no other server either.
        let log = handles
            .data
            .ingest()
            .map_or_else(|| "embedded".to_owned(), |log| log.log_id().to_owned());
        Self {
            shared: SharedByAll::starting(),
            temporary_prefix: prefix_of(&log),
            drop_temporary,
            history: History::new(options.history.as_deref()),
            handles,
            options,
            state,
            pulses: Pulses::default(),
            maintenance: Mutex::new(maintenance),
            shipped_log,
            closing: AtomicBool::new(false),
        }
    }

    /// What its sessions have together.
    pub(crate) fn shared(&self) -> &SharedByAll {
        &self.shared
    }

    /// What the schemas of its sessions' temporary tables begin with.
    pub(crate) fn temporary_prefix(&self) -> &str {
        &self.temporary_prefix
    }

    /// Drops the schema of a session's temporary tables.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn drop_temporary(self: &Arc<Self>, schema: String) -> Result<()> {
        (self.drop_temporary)(Arc::clone(self), schema).await
    }

    /// What its sessions share.
    pub(crate) fn handles(&self) -> &Handles {
        &self.handles
    }

    /// The tables.
    pub fn warehouse(&self) -> &Warehouse {
        self.handles.data.warehouse()
    }

    /// The schemas that everybody is told of: not those of sessions' temporary tables.
    ///
    /// # Errors
    /// The catalog's.
    pub fn namespaces(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async move {
            let mut all = self.warehouse().namespaces().await?;
            all.retain(|schema| !is_temporary(schema));
            Ok(all)
        })
    }

    /// The tables of [`Self::namespaces`], as they are at one moment.
    ///
    /// # Errors
    /// The catalog's.
    pub fn tables(&self) -> BoxFuture<'_, Result<Vec<TableIdent>>> {
        Box::pin(async move {
            let mut all = self.warehouse().all_tables().await?;
            all.retain(|table| !is_temporary(&table.namespace));
            Ok(all)
        })
    }

    /// What the background work on tables is doing; `None` where it is off.
    pub fn maintenance_status(&self) -> Option<MaintenanceStatus> {
        self.maintenance.lock().as_ref().map(Maintenance::status)
    }

    /// What runs and ran.
    pub fn queries(&self) -> &QueryRegistry {
        self.handles.runner.queries()
    }

    /// What is known of the open sessions, oldest first.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.shared.backends().open()
    }

    /// What it was opened with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Bytes of the memory pool in use now.
    pub fn memory_used_bytes(&self) -> usize {
        self.memory_pool().reserved()
    }

    /// Bytes of what clients keep from call to call: prepared statements, values bound to them.
    pub fn kept_bytes(&self) -> usize {
        self.handles.runner.kept().bytes()
    }

    /// The memory that all sessions share.
    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        self.handles.runner.memory()
    }

    /// Whether [`Engine::shutdown`] has begun; new statements are refused then.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Refuses what begins while the engine ends.
    ///
    /// # Errors
    /// 57P01.
    pub(crate) fn must_be_open(&self) -> Result<()> {
        match self.is_closing() {
            true => Err(Error::unavailable("the server is shutting down").with_sqlstate("57P01")),
            false => Ok(()),
        }
    }

    /// What was granted.
    pub(crate) fn rights(&self) -> &Rights {
        self.handles.gate.rights()
    }

    /// The tables of cells, which HQL writes.
    pub fn cells(&self) -> &CellTables {
        self.handles.data.cells()
    }

    /// Reports that were answered without the planner, since the start.
    pub fn reports_answered(&self) -> u64 {
        self.handles.reuse.reports_answered()
    }

    /// Statements answered with the answer of an equal one, since the start.
    pub fn results_reused(&self) -> u64 {
        self.handles.reuse.results().reused()
    }

    /// Statements whose form is known.
    pub fn templates_known(&self) -> usize {
        self.handles.reuse.forms().reports_known()
    }

    /// Statements for which a plan with places for values is kept.
    pub fn plan_templates_known(&self) -> usize {
        self.handles.reuse.forms().plans_known()
    }

    /// Statements whose plan was one used before, since the start.
    pub fn plan_templates_used(&self) -> u64 {
        self.handles.reuse.plans_used()
    }

    /// Who computes and who waits.
    pub fn admission_status(&self) -> AdmissionStatus {
        let sum = |sum: AdmissionStatus, pool: PoolStatus| sum.plus(pool.admission);
        self.pools_status().into_iter().fold(AdmissionStatus::default(), sum)
    }

    /// How busy each pool is.
    pub fn pools_status(&self) -> Vec<PoolStatus> {
        self.handles.runner.pools().status()
    }

    /// How quickly the threads that serve connections take up tasks.
    pub fn io_stalls(&self) -> StallStatus {
        self.pulses.io.status()
    }

    /// How quickly executors take up tasks.
    pub fn executor_stalls(&self) -> StallStatus {
        self.pulses.executors.status()
    }

    /// How quickly threads that plan take up tasks.
    pub fn planner_stalls(&self) -> StallStatus {
        self.pulses.planners.status()
    }

    /// Statements that nobody waits for any more, because they were cancelled or their client went
    /// away, of which a part still computes a second later.
    pub fn statements_overdue(&self) -> usize {
        self.handles.runner.overdue()
    }

    /// What was refused since the start.
    pub fn refusals(&self) -> RefusalStatus {
        let (logins_failed, logins_paused) = self.handles.gate.refused();
        RefusalStatus { logins_failed, logins_paused, ..self.queries().refusals() }
    }

    /// Registers a statement of no session.
    pub(crate) fn start_query(&self, text: &str, user: &str, protocol: &'static str) -> QueryGuard {
        self.handles.runner.start_query(text, user, protocol)
    }

    /// The threads that compute.
    pub fn executors(&self) -> &Executors {
        self.handles.runner.executors()
    }

    /// What reports keep in memory.
    pub fn cache_status(&self) -> CacheStatus {
        self.handles.data.reports().cache_status()
    }

    /// The fresh rows and their log; `None` without a log.
    pub fn ingest(&self) -> Option<&Ingest> {
        self.handles.data.ingest()
    }

    /// Refuses new statements, waits up to `grace` for running ones, then cancels the rest; brings
    /// fresh rows into files and closes the log. Returns how many statements were cancelled, at most 47
    /// seconds after `grace`: rows that are not in files by then stay in the log.
    ///
    /// A member of a cluster says first that it takes no more requests, and leaves at the end.
    pub fn shutdown(&self, grace: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            self.closing.store(true, Ordering::Release);
            if let Some(member) = self.member().filter(|member| !member.is_ended()) {
                member.drain().await;
            }
            let mut cancelled = 0;
            let runner = &self.handles.runner;
            // What statements of a dead member find is not told to anybody.
            let is_dead = self.member().is_some_and(Member::is_ended);
            let grace = if is_dead { Duration::ZERO } else { grace };
            if !runner.wait_until_idle(grace).await {
                cancelled = runner.queries().cancel_all();
                runner.wait_until_idle(Duration::from_secs(2)).await;
            }
            self.end_background_work().await;
            let flushed = self.bring_rows_into_files().await;
            if let Some(member) = self.member().filter(|member| !member.is_ended()) {
                member.leave(flushed).await;
            }
            cancelled
        })
    }

    async fn end_background_work(&self) {
        let ending = async {
            if let Some(file) = &self.options.hot_list {
                hot_list::save(self.handles.data.reports(), file).await;
            }
            let maintenance = self.maintenance.lock().take();
            match maintenance {
                Some(maintenance) => maintenance.stop().await,
                None => Ok(()),
            }
        };
        match stoa_env::timer::timeout(MAINTENANCE_GRACE, ending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the background work on tables did not end well");
            }
            Err(_) => tracing::warn!("the background work on tables did not end in time"),
        }
    }

    /// Whether all rows are in files.
    async fn bring_rows_into_files(&self) -> bool {
        let Some(ingest) = self.ingest() else { return true };
        const STAY: &str = "fresh rows stay in the log; the next start brings them back";
        if self.member().is_some_and(Member::is_ended) {
            // Another daemon has the log, and brings its rows into files.
            let _ = stoa_env::timer::timeout(LOG_GRACE, ingest.close(false)).await;
            return false;
        }
        match stoa_env::timer::timeout(FLUSH_GRACE, ingest.close(true)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => tracing::warn!(%error, "{STAY}"),
            Err(_) => {
                tracing::warn!(limit_s = FLUSH_GRACE.as_secs(), "{STAY}");
                let _ = stoa_env::timer::timeout(LOG_GRACE, ingest.close(false)).await;
            }
        }
        false
    }

    /// A state of its own for one session; functions, catalog, memory and files are shared.
    pub(crate) fn new_state(&self) -> SessionState {
        self.state.clone()
    }

    /// The options that sessions begin with.
    pub(crate) fn base_options(&self) -> &ConfigOptions {
        self.state.config_options()
    }
}
