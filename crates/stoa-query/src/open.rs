//! An engine is put together: warehouse, catalogs, threads, memory, and the planner's rules.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::future::BoxFuture;
use stoa_cells::{CellMergeHooks, CellOptions, CellTables};
use stoa_env::executors::background;
use stoa_env::private_files;
use stoa_error::{Error, Result};
use stoa_ingest::{Maintenance, MaintenanceOptions};
use stoa_report::{ReportOptions, Reports};
use stoa_table::{Warehouse, WarehouseOptions};

use crate::access::Gate;
use crate::catalogs;
use crate::engine::hot_list;
use crate::engine::logs;
use crate::engine::no_stores::NoStores;
use crate::engine::resource_plans;
use crate::engine::spill::SpillFolder;
use crate::engine::watch;
use crate::engine::{DATABASE, DEFAULT_NAMESPACE, Engine, EngineOptions, Handles};
use crate::reuse::Reuse;
use crate::run::kept::KeptMemory;
use crate::run::pools::Pools;
use crate::run::runner::Runner;
use crate::scripts::{self, Scripts};
use crate::session::{Session, SessionOptions};
use crate::statements::temporary;
use crate::tables::catalog::StoaCatalog;
use crate::tables::data::Data;
use crate::tables::scan::PartitionBytesMin;
use crate::tables::sequences::NextValue;
use stoa_semantics::TextStyle;
use stoa_semantics::errors::from_datafusion;

/// Answers are kept in addition, in up to one part of so many of the memory for reports.
const RESULT_SHARE: u64 = 16;

impl Engine {
    /// Opens the warehouse, making it if it is not there.
    ///
    /// # Errors
    /// A location that cannot be opened or is no warehouse; a spill folder that cannot be made; a folder
    /// of [`EngineOptions::file_access`] that is not there.
    pub fn open(mut options: EngineOptions) -> BoxFuture<'static, Result<Arc<Self>>> {
        Box::pin(async move {
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
            let mut reports = Reports::new(report_options);
            if let Some(disk) = &options.disk_cache {
                reports = reports.with_disk(disk.clone());
            }
            let log = logs::open(&options, &warehouse).await?;
            let (ingest, shipped) = match log {
                Some(log) => (Some(log.ingest), log.shipped),
                None => (None, None),
            };
            let cell_options = CellOptions::default();
            // Other daemons have logs of their own.
            let hooks = CellMergeHooks::new(Arc::clone(&cell_options.timestamps))
                .beside_others(warehouse.catalog().cluster().is_some())
                .in_background();
            let cells = CellTables::open(warehouse.clone(), ingest.clone(), cell_options).await?;
            let data = Arc::new(
                Data::open(warehouse.clone(), ingest, cells, reports, options.file_access.clone())
                    .await?,
            );
            let gate = Gate::open(warehouse.catalog(), options.access_control).await?;
            let system = Arc::new(OnceLock::new());
            let state = build_state(&options, &data, &system)?;
            let (slots, queue_max) = (options.query_slots, options.queue_max);
            let pools = Pools::new(
                &options.pools,
                &options.workload_rules,
                slots,
                queue_max,
                options.memory_limit_bytes,
            )?;
            let memory = Arc::clone(&state.runtime_env().memory_pool);
            let kept = KeptMemory::new(options.memory_limit_bytes);
            let runner = Runner::start(options.threads, pools, memory, kept)?;
            let reuse = Reuse::new(options.cache_bytes_max as u64 / RESULT_SHARE);
            let work = MaintenanceOptions {
                hooks: Some(Arc::new(hooks)),
                share: Some(Arc::clone(&data) as _),
                executors: Some(background().map_err(no_thread)?.clone()),
                ..MaintenanceOptions::default()
            };
            let maintenance = options.maintenance.then(|| Maintenance::start(warehouse, work));
            let handles = Handles {
                data,
                gate: Arc::new(gate),
                runner: Arc::new(runner),
                reuse: Arc::new(reuse),
            };
            let engine = Arc::new(Self::of(
                options,
                handles,
                state,
                maintenance,
                shipped,
                temporary::drop_schema,
            ));
            let _ = system.set(Arc::downgrade(&engine));
            watch::start(&engine).map_err(no_thread)?;
            temporary::drop_left_behind(&engine).await?;
            resource_plans::start(&engine).await?;
            if let Some(file) = &engine.options().hot_list {
                hot_list::start(&engine, file.clone());
            }
            Ok(engine)
        })
    }

    /// Starts a session.
    pub fn session(self: &Arc<Self>, options: SessionOptions) -> Arc<Session> {
        Session::new(Arc::clone(self), options)
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
    data: &Arc<Data>,
    system: &Arc<OnceLock<Weak<Engine>>>,
) -> Result<SessionState> {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(DATABASE, DEFAULT_NAMESPACE)
        .with_create_default_catalog_and_schema(false)
        // It has one of its own, which knows who asks.
        .with_information_schema(false)
        .with_target_partitions(options.threads.max(1))
        .with_batch_size(options.batch_rows.max(1))
        .with_extension(Arc::new(PartitionBytesMin(options.spread_bytes_min)));
    let engine = config.options_mut();
    engine.sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
    engine.sql_parser.map_string_types_to_utf8view = false;
    // Money is written with a point: 0.1 is a decimal, as in PostgreSQL.
    engine.sql_parser.parse_float_as_decimal = true;
    // Whoever orders a subquery counts on it: with a LIMIT around it, or for `array_agg`.
    engine.sql_parser.enable_subquery_sort_elimination = false;
    engine.sql_parser.default_null_ordering = "nulls_max".to_owned();
    engine.execution.time_zone = Some("UTC".to_owned());
    engine.extensions.insert(TextStyle::default());
    // Plan partitions that come from small files cost more to shuffle than to read.
    engine.optimizer.prefer_existing_union = true;
    engine.optimizer.enable_round_robin_repartition = false;
    // Placed by `scan::placed`, not by the engine's rule.
    engine.optimizer.enable_dynamic_filter_pushdown = true;
    engine.optimizer.enable_topk_dynamic_filter_pushdown = true;
    engine.optimizer.enable_join_dynamic_filter_pushdown = true;
    engine.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // Scans look up a key among many in a nanosecond or two, the engine's own tables in ten times that. But the
    // engine takes a microsecond for each key that it hands over.
    engine.optimizer.hash_join_inlist_pushdown_max_distinct_values = 4096;
    // Of the arrays that they come in, which have room for a batch however few they are.
    engine.optimizer.hash_join_inlist_pushdown_max_size = 4 << 20;
    // Whether values may be NULL is told differently by expressions and what computes them.
    engine.execution.skip_physical_aggregate_schema_check = true;
    let (runtime, spilled) = build_runtime(options)?;
    let config = config.with_extension(Arc::new(spilled));
    let config = config.with_extension(Arc::new(Scripts::open(
        options.scripts.clone(),
        options.spill_dir.as_deref(),
    )?));
    let memory = Arc::clone(&runtime.memory_pool);
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features();
    let state = scripts::install(stoa_semantics::install(builder, &memory)).build();
    let context = SessionContext::new_with_state(state);
    let catalog = Arc::new(StoaCatalog::new(Arc::clone(data)));
    context.register_udf((*NextValue::function(data.warehouse().catalog())).clone());
    context.register_catalog(DATABASE, Arc::clone(&catalog) as _);
    catalogs::install(&context, &catalog, data.warehouse(), system)?;
    Ok(stoa_semantics::with_types(context.state()))
}

/// The engine's memory and its folder for spilled rows, which is to be kept as long as the engine.
fn build_runtime(options: &EngineOptions) -> Result<(Arc<RuntimeEnv>, Option<SpillFolder>)> {
    let pool = FairSpillPool::new(options.memory_limit_bytes);
    let top = std::num::NonZeroUsize::MIN.saturating_add(4);
    let pool: Arc<dyn MemoryPool> = Arc::new(TrackConsumersPool::new(pool, top));
    let folder = match &options.spill_dir {
        Some(dir) => {
            let made = private_files::create_directories(dir);
            let made = made.and_then(|()| SpillFolder::create(dir)).map_err(|e| {
                Error::unavailable(format!("cannot make a folder in {}", dir.display()))
                    .with_source(e)
                    .with_hint("set spill_dir to a folder that can be written")
            })?;
            Some(made)
        }
        // Made now, not with the first rows that are spilled.
        None => SpillFolder::create(&std::env::temp_dir())
            .inspect_err(|error| {
                tracing::warn!(%error, "queries cannot spill; set spill_dir to a folder of your own");
            })
            .ok(),
    };
    let mode = match &folder {
        Some(folder) => DiskManagerMode::Directories(vec![folder.path().to_owned()]),
        None => DiskManagerMode::Disabled,
    };
    let built = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        .with_object_store_registry(Arc::new(NoStores))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        .build_arc();
    let runtime = built.map_err(from_datafusion)?;
    // Spilled rows are in files for this account only, and their names are nobody else's business.
    for directory in runtime.disk_manager.temp_dir_paths() {
        private_files::close_directory(&directory).map_err(|e| {
            Error::unavailable(format!("cannot use the spill folder {}", directory.display()))
                .with_source(e)
        })?;
    }
    Ok((runtime, folder))
}

fn no_thread(source: std::io::Error) -> Error {
    Error::unavailable("cannot start a thread").with_source(source)
}
