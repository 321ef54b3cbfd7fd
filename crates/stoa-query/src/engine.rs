//! The engine of one process: warehouse, memory, threads, and what runs.
//!
//! In: [`EngineOptions`]. Out: [`Session`]s. **Invariant:** all sessions share one memory pool,
//! one registry of queries and one cache of file footers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use datafusion::catalog::CatalogProvider;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use parking_lot::Mutex;
use stoa_cells::{CellMergeHooks, CellOptions, CellTables};
use stoa_env::executors::Executors;
use stoa_env::private_files;
use stoa_error::{Error, Result};
use stoa_ingest::{Ingest, Maintenance, MaintenanceOptions, MaintenanceStatus};
use stoa_report::{CacheStatus, DiskOptions, ReportOptions, Reports};
use stoa_store::S3Options;
use stoa_table::{Warehouse, WarehouseOptions};
use url::Url;

use crate::access::{Logins, Rights};
use crate::admission::AdmissionStatus;
use crate::catalog::StoaCatalog;
use crate::changes::Changes;
use crate::file_access::FileAccess;
use crate::file_cache::FileCache;
use crate::information_schema::{INFORMATION_SCHEMA, InformationSchema};
use crate::no_stores::NoStores;
use crate::planners::Planners;
use crate::pools::{PoolOptions, PoolStatus, Pools, WorkloadRule};
use crate::registry::{QueryGuard, QueryRegistry};
use crate::report::Templates;
use crate::results::Results;
use crate::session::{Session, SessionOptions};
use crate::stop::Stops;
use crate::system::{SYSTEM, SystemSchema};
use crate::template::PlanTemplates;
use crate::watch::{self, Pulses, StallStatus};
use crate::{error, hot_list, logs, pg_catalog, semantics};

/// Name of the only database, and of the catalog in the warehouse's catalog file.
pub const DATABASE: &str = "stoa";
/// Namespace of tables named without one; made at start.
pub const DEFAULT_NAMESPACE: &str = "public";

/// Answers are kept in addition, in up to one part of so many of the memory for reports.
const RESULT_SHARE: u64 = 16;

/// Work that was asked to stop and is there so much later does not answer.
const OVERDUE_AFTER: Duration = Duration::from_secs(1);

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
    /// The catalog's file; in a local warehouse if `None`.
    pub catalog: Option<PathBuf>,
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
    /// Pools of queries, beside [`DEFAULT_POOL`](crate::DEFAULT_POOL).
    pub pools: Vec<PoolOptions>,
    /// Who goes into which pool; the first rule that is met counts.
    pub workload_rules: Vec<WorkloadRule>,
    /// Rows of a batch.
    pub batch_rows: usize,
    /// Where the commit logs are through which small writes go, one per process; each write is a
    /// commit of files if `None`.
    pub logs: Option<Url>,
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
            pools: Vec::new(),
            workload_rules: Vec::new(),
            batch_rows: 8192,
            logs: None,
            fresh_bytes_max: 256 << 20,
            cache_bytes_max: 512 << 20,
            maintenance: false,
            access_control: false,
            file_access: FileAccess::Off,
        }
    }
}

/// The engine of one process. Open it once; make a [`Session`] per client.
pub struct Engine {
    pub(crate) warehouse: Warehouse,
    pub(crate) catalog: Arc<StoaCatalog>,
    pub(crate) files: Arc<FileCache>,
    pub(crate) ingest: Option<Ingest>,
    pub(crate) reports: Arc<Reports>,
    pub(crate) reports_answered: AtomicU64,
    pub(crate) results: Arc<Results>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) rights: Arc<Rights>,
    pub(crate) logins: Logins,
    executors: Executors,
    pub(crate) planners: Planners,
    pub(crate) stops: Arc<Stops>,
    pub(crate) pools: Pools,
    pub(crate) pulses: Pulses,
    pub(crate) templates: Templates,
    pub(crate) plan_templates: PlanTemplates,
    pub(crate) plan_templates_used: AtomicU64,
    cells: CellTables,
    pub(crate) options: EngineOptions,
    state: SessionState,
    registry: QueryRegistry,
    maintenance: Mutex<Option<Maintenance>>,
    closing: AtomicBool,
}

impl Engine {
    /// Opens the warehouse, making it if it is not there.
    ///
    /// # Errors
    /// A location that cannot be opened or is no warehouse; a spill folder that cannot be made; a folder
    /// of [`EngineOptions::file_access`] that is not there.
    pub async fn open(mut options: EngineOptions) -> Result<Arc<Self>> {
        options.file_access = options.file_access.resolved()?;
        let place = WarehouseOptions {
            catalog: options.catalog.clone(),
            s3: options.s3.clone(),
            ..WarehouseOptions::new(options.warehouse.clone())
        };
        let warehouse = Warehouse::open_with(&place).await?;
        ensure_default_namespace(&warehouse).await?;
        let report_options = ReportOptions {
            cache_bytes_max: options.cache_bytes_max as u64,
            ..ReportOptions::default()
        };
        let result_bytes_max = options.cache_bytes_max as u64 / RESULT_SHARE;
        let files = Arc::new(FileCache::default());
        let mut reports = Reports::new(report_options);
        if let Some(disk) = &options.disk_cache {
            reports = reports.with_disk(disk.clone());
        }
        let reports = Arc::new(reports);
        let ingest = logs::open(&options, &warehouse).await?;
        let cell_options = CellOptions::default();
        let hooks = CellMergeHooks::new(Arc::clone(&cell_options.timestamps));
        let cells = CellTables::open(warehouse.clone(), ingest.clone(), cell_options).await?;
        let catalog = StoaCatalog::new(
            warehouse.clone(),
            Arc::clone(&files),
            Arc::clone(&reports),
            ingest.clone(),
            cells.clone(),
        );
        let catalog = Arc::new(catalog.await?);
        let rights = Rights::open(warehouse.catalog(), options.access_control).await?;
        let logins = Logins::open(warehouse.catalog(), options.access_control).await?;
        let executors = Executors::start(options.threads)
            .map_err(|e| Error::unavailable("cannot start executors").with_source(e))?;
        let stops = Arc::<Stops>::default();
        let planners = Planners::start(options.threads, Arc::clone(&stops))
            .map_err(|e| Error::unavailable("cannot start planners").with_source(e))?;
        let (slots, queue_max) = (options.query_slots, options.queue_max);
        let pools = Pools::new(&options.pools, &options.workload_rules, slots, queue_max)?;
        let system = Arc::new(OnceLock::new());
        let state = build_state(&options, &catalog, &system)?;
        let work =
            MaintenanceOptions { hooks: Some(Arc::new(hooks)), ..MaintenanceOptions::default() };
        let maintenance = options.maintenance.then(|| Maintenance::start(warehouse.clone(), work));
        let engine = Arc::new(Self {
            warehouse,
            catalog,
            files,
            ingest,
            reports,
            reports_answered: AtomicU64::new(0),
            results: Arc::new(Results::new(result_bytes_max)),
            changes: Arc::default(),
            rights: Arc::new(rights),
            logins,
            executors,
            planners,
            stops,
            pools,
            pulses: Pulses::default(),
            templates: Templates::default(),
            plan_templates: PlanTemplates::default(),
            plan_templates_used: AtomicU64::new(0),
            cells,
            options,
            state,
            registry: QueryRegistry::default(),
            maintenance: Mutex::new(maintenance),
            closing: AtomicBool::new(false),
        });
        let _ = system.set(Arc::downgrade(&engine));
        watch::start(&engine)
            .map_err(|e| Error::unavailable("cannot start a thread").with_source(e))?;
        if let Some(file) = &engine.options.hot_list {
            hot_list::start(&engine, file.clone());
        }
        Ok(engine)
    }

    /// Starts a session.
    pub fn session(self: &Arc<Self>, options: SessionOptions) -> Arc<Session> {
        Session::new(Arc::clone(self), options)
    }

    /// The tables.
    pub fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    /// What the background work on tables is doing; `None` where it is off.
    pub fn maintenance_status(&self) -> Option<MaintenanceStatus> {
        self.maintenance.lock().as_ref().map(Maintenance::status)
    }

    /// What runs and ran.
    pub fn queries(&self) -> &QueryRegistry {
        &self.registry
    }

    /// What it was opened with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Bytes of the memory pool in use now.
    pub fn memory_used_bytes(&self) -> usize {
        self.state.runtime_env().memory_pool.reserved()
    }

    /// The memory that all sessions share.
    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        &self.state.runtime_env().memory_pool
    }

    /// Whether [`Engine::shutdown`] has begun; new statements are refused then.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The tables of cells, which HQL writes.
    pub fn cells(&self) -> &CellTables {
        &self.cells
    }

    /// Reports that were answered without the planner, since the start.
    pub fn reports_answered(&self) -> u64 {
        self.reports_answered.load(Ordering::Relaxed)
    }

    /// Statements answered with the answer of an equal one, since the start.
    pub fn results_reused(&self) -> u64 {
        self.results.reused()
    }

    /// Statements whose form is known.
    pub fn templates_known(&self) -> usize {
        self.templates.known()
    }

    /// Statements for which a plan with places for values is kept.
    pub fn plan_templates_known(&self) -> usize {
        self.plan_templates.known()
    }

    /// Statements whose plan was one used before, since the start.
    pub fn plan_templates_used(&self) -> u64 {
        self.plan_templates_used.load(Ordering::Relaxed)
    }

    /// Who computes and who waits.
    pub fn admission_status(&self) -> AdmissionStatus {
        let sum = |sum: AdmissionStatus, pool: PoolStatus| sum.plus(pool.admission);
        self.pools.status().into_iter().fold(AdmissionStatus::default(), sum)
    }

    /// How busy each pool is.
    pub fn pools_status(&self) -> Vec<PoolStatus> {
        self.pools.status()
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
        self.stops.overdue(OVERDUE_AFTER)
    }

    /// Registers a statement of no session.
    pub(crate) fn start_query(&self, text: &str, user: &str, protocol: &'static str) -> QueryGuard {
        self.registry.start(text, user, protocol, self.pools.find(user, "", protocol))
    }

    /// The threads that compute.
    pub fn executors(&self) -> &Executors {
        &self.executors
    }

    /// What reports keep in memory.
    pub fn cache_status(&self) -> CacheStatus {
        self.reports.cache_status()
    }

    /// The fresh rows and their log; `None` without a log.
    pub fn ingest(&self) -> Option<&Ingest> {
        self.ingest.as_ref()
    }

    /// Refuses new statements, waits up to `grace` for running ones, then cancels the rest; brings
    /// fresh rows into files and closes the log. Returns how many statements were cancelled, at most 47
    /// seconds after `grace`: rows that are not in files by then stay in the log.
    pub async fn shutdown(&self, grace: Duration) -> usize {
        self.closing.store(true, Ordering::Release);
        let mut cancelled = 0;
        if !self.wait_until_idle(grace).await {
            cancelled = self.registry.cancel_all();
            self.wait_until_idle(Duration::from_secs(2)).await;
        }
        self.end_background_work().await;
        self.bring_rows_into_files().await;
        cancelled
    }

    async fn end_background_work(&self) {
        let ending = async {
            if let Some(file) = &self.options.hot_list {
                hot_list::save(&self.reports, file).await;
            }
            let maintenance = self.maintenance.lock().take();
            match maintenance {
                Some(maintenance) => maintenance.stop().await,
                None => Ok(()),
            }
        };
        match tokio::time::timeout(MAINTENANCE_GRACE, ending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the background work on tables did not end well");
            }
            Err(_) => tracing::warn!("the background work on tables did not end in time"),
        }
    }

    async fn bring_rows_into_files(&self) {
        let Some(ingest) = &self.ingest else { return };
        const STAY: &str = "fresh rows stay in the log; the next start brings them back";
        match tokio::time::timeout(FLUSH_GRACE, ingest.close(true)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "{STAY}"),
            Err(_) => {
                tracing::warn!(limit_s = FLUSH_GRACE.as_secs(), "{STAY}");
                let _ = tokio::time::timeout(LOG_GRACE, ingest.close(false)).await;
            }
        }
    }

    async fn wait_until_idle(&self, limit: Duration) -> bool {
        let idle = async {
            while self.registry.running_count() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(limit, idle).await.is_ok()
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

async fn ensure_default_namespace(warehouse: &Warehouse) -> Result<()> {
    match warehouse.create_namespace(DEFAULT_NAMESPACE, &BTreeMap::new()).await {
        Err(error) if error.kind() != stoa_error::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn build_state(
    options: &EngineOptions,
    catalog: &Arc<StoaCatalog>,
    system: &Arc<OnceLock<Weak<Engine>>>,
) -> Result<SessionState> {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(DATABASE, DEFAULT_NAMESPACE)
        .with_create_default_catalog_and_schema(false)
        // It has one of its own, which knows who asks.
        .with_information_schema(false)
        .with_target_partitions(options.threads.max(1))
        .with_batch_size(options.batch_rows.max(1));
    let engine = config.options_mut();
    engine.sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
    engine.sql_parser.map_string_types_to_utf8view = false;
    // Money is written with a point: 0.1 is a decimal, as in PostgreSQL.
    engine.sql_parser.parse_float_as_decimal = true;
    engine.sql_parser.default_null_ordering = "nulls_max".to_owned();
    engine.execution.time_zone = Some("UTC".to_owned());
    // Plan partitions that come from small files cost more to shuffle than to read.
    engine.optimizer.prefer_existing_union = true;
    engine.optimizer.enable_round_robin_repartition = false;
    // Scans judge row groups before they read them; filters made on the way come too late for them.
    engine.optimizer.enable_dynamic_filter_pushdown = false;
    engine.optimizer.enable_topk_dynamic_filter_pushdown = false;
    engine.optimizer.enable_join_dynamic_filter_pushdown = false;
    engine.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // Whether values may be NULL is told differently by expressions and what computes them.
    engine.execution.skip_physical_aggregate_schema_check = true;
    let runtime = build_runtime(options)?;
    let memory = Arc::clone(&runtime.memory_pool);
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features();
    let state = semantics::install(builder, &memory).build();
    let context = SessionContext::new_with_state(state);
    context.register_catalog(DATABASE, Arc::clone(catalog) as _);
    pg_catalog::install(&context, DATABASE, catalog.warehouse())?;
    let schema = InformationSchema::new(catalog);
    catalog
        .register_schema(INFORMATION_SCHEMA, Arc::new(schema))
        .map_err(error::from_datafusion)?;
    let schema = SystemSchema::new(Arc::clone(system));
    catalog.register_schema(SYSTEM, Arc::new(schema)).map_err(error::from_datafusion)?;
    Ok(semantics::with_types(context.state()))
}

fn build_runtime(options: &EngineOptions) -> Result<Arc<RuntimeEnv>> {
    let pool = FairSpillPool::new(options.memory_limit_bytes);
    let top = std::num::NonZeroUsize::MIN.saturating_add(4);
    let mode = match &options.spill_dir {
        Some(dir) => {
            private_files::create_directories(dir).map_err(|e| {
                Error::unavailable(format!("cannot make the spill folder {}", dir.display()))
                    .with_source(e)
                    .with_hint("set spill_dir to a folder that can be written")
            })?;
            DiskManagerMode::Directories(vec![dir.clone()])
        }
        None => DiskManagerMode::OsTmpDirectory,
    };
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(TrackConsumersPool::new(pool, top)))
        .with_object_store_registry(Arc::new(NoStores))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        .build_arc()
        .map_err(error::from_datafusion)?;
    // Spilled rows are in files for this account only, and their names are nobody else's business.
    for directory in runtime.disk_manager.temp_dir_paths() {
        private_files::close_directory(&directory).map_err(|e| {
            Error::unavailable(format!("cannot use the spill folder {}", directory.display()))
                .with_source(e)
        })?;
    }
    Ok(runtime)
}
