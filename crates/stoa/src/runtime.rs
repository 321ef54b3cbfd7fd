//! Threads, log and engine, as the settings say.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stoa_error::{Error, ErrorKind, Result};
use stoa_query::{DiskOptions, Engine, EngineOptions, FileAccess, ScriptOptions};
use stoa_table::{CatalogPlace, Warehouse, WarehouseOptions};
use tracing_subscriber::EnvFilter;
use url::Url;

use crate::aws::s3_options;
use crate::config::{Config, LogFormat, Resolved};

/// Where data is that nobody has named a place for.
const DATA_DIRECTORY: &str = "./stoa-data";

/// Directory of commit logs in a warehouse, or beside its catalog; no namespace begins with `_`.
const LOG_DIRECTORY: &str = "_log";

/// Directory of what a daemon knows of itself, beside commit logs.
const DAEMON_DIRECTORY: &str = "_daemon";

/// Runs `work` to its end on a runtime with as many threads as the settings say.
///
/// # Errors
/// Those of `work`; unavailable if the threads cannot be started.
pub fn block_on<F, T, E>(config: &Config, work: F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    block_on_threads(config.io_threads.0.max(config.num_executors.0), work)
}

/// As [`block_on`], for commands that Ctrl-C ends with a word; what they write appears as a whole or not at all.
///
/// # Errors
/// As [`block_on`]; cancelled after Ctrl-C.
pub fn block_on_until_ctrl_c<F, T, E>(config: &Config, work: F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    block_on(config, async {
        tokio::select! {
            biased;
            result = work => result,
            _ = tokio::signal::ctrl_c() => {
                Err(Error::new(ErrorKind::Cancelled, "cancelled with Ctrl-C").into())
            }
        }
    })
}

/// As [`block_on`], for commands without settings.
///
/// # Errors
/// As [`block_on`].
pub fn block_on_threads<F, T, E>(threads: usize, work: F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("stoa-worker")
        .thread_stack_size(stoa_env::task::DEEP_STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|e| Error::unavailable("cannot start threads").with_source(e))?;
    let result = runtime.block_on(work);
    // Threads that are still busy, such as one that reads a pipe, must not keep the process.
    runtime.shutdown_background();
    result
}

/// Starts logging to stderr. Commands that are not servers pass `quiet`: unless the user asked for
/// more, they log warnings only.
pub fn start_log(resolved: &Resolved, quiet: bool) {
    for warning in &resolved.warnings {
        eprintln!("warning: {warning}");
    }
    let config = &resolved.config;
    let filter = match quiet && resolved.is_default("log_level") {
        true => "warn",
        false => config.log_level.0.as_str(),
    };
    // The text was checked when the settings were read.
    let filter = EnvFilter::try_new(filter).unwrap_or_default();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // A second start (in tests) changes nothing.
    let _ = match config.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().try_init(),
    };
}

/// Where the warehouse and its catalog are.
///
/// # Errors
/// Invalid: not a directory or URL that Stoa opens; a catalog that is neither on a local disk nor in PostgreSQL.
pub fn warehouse_options(config: &Config) -> Result<WarehouseOptions> {
    let url = stoa_store::parse_location(&config.warehouse)?;
    let catalog = catalog_place(config, &url)?;
    Ok(WarehouseOptions { catalog, s3: s3_options(config), ..WarehouseOptions::new(url) })
}

/// Opens the warehouse without an engine.
///
/// # Errors
/// As [`Warehouse::open_with`].
pub async fn open_warehouse(options: &WarehouseOptions) -> Result<Warehouse> {
    let is_new = new_file(options.catalog.as_ref());
    let warehouse = Warehouse::open_with(options).await?;
    tell_of_new_catalog(&options.url, is_new.as_ref());
    Ok(warehouse)
}

/// Where the catalog is; `None` where it is in the warehouse.
fn catalog_place(config: &Config, warehouse: &Url) -> Result<Option<CatalogPlace>> {
    match config.catalog.as_str() {
        "auto" if warehouse.scheme() == "file" => Ok(None),
        "auto" => Ok(Some(CatalogPlace::File(own_directory(warehouse)?.join("catalog.db")))),
        text => named_catalog(text).map(Some),
    }
}

/// The catalog that a text names: a file, or a database.
///
/// # Errors
/// Invalid: neither on a local disk nor in PostgreSQL.
pub fn named_catalog(text: &str) -> Result<CatalogPlace> {
    match CatalogPlace::postgres(text) {
        Some(database) => Ok(database),
        None => local_path(text).map(CatalogPlace::File),
    }
}

fn local_path(text: &str) -> Result<PathBuf> {
    stoa_store::parse_location(text)?.to_file_path().map_err(|()| {
        Error::invalid(format!("catalog {text:?} is not on a local disk"))
            .with_hint("name a file, such as /var/lib/stoa/catalog.db, or postgres://HOST/DATABASE")
    })
}

/// Where a warehouse that is not on a local disk keeps what has to be there. Each has its own, or one would show the
/// tables of the other.
fn own_directory(warehouse: &Url) -> Result<PathBuf> {
    let location = stoa_store::literal_of(warehouse)?;
    let inside = location.split_once("://").map_or("", |(_, inside)| inside);
    local_path(&format!("{DATA_DIRECTORY}/_s3/{inside}"))
}

/// The file of a catalog that is not there yet.
fn new_file(catalog: Option<&CatalogPlace>) -> Option<PathBuf> {
    catalog.and_then(CatalogPlace::file).filter(|file| !file.exists()).map(Path::to_owned)
}

/// A warehouse as it is written after `--warehouse`: a URL, but what is in S3 as it stands.
pub fn shown(warehouse: &Url) -> String {
    match warehouse.scheme() {
        "file" => warehouse.to_string(),
        _ => stoa_store::literal_of(warehouse).unwrap_or_else(|_| warehouse.to_string()),
    }
}

/// Whoever has a warehouse elsewhere must know that its catalog is here.
fn tell_of_new_catalog(warehouse: &Url, file: Option<&PathBuf>) {
    if let Some(file) = file {
        let warehouse = shown(warehouse);
        eprintln!("created a new catalog for {warehouse}: {}", file.display());
    }
}

/// Whether a command's small writes go through the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogUse {
    /// They do.
    Open,
    /// It writes files only.
    Leave,
}

/// Opens the warehouse.
///
/// # Errors
/// As [`Engine::open`].
pub async fn open_engine(config: &Config, log: LogUse) -> Result<Arc<Engine>> {
    let mut options = engine_options(config)?;
    // Whoever runs the process may read these files anyway.
    options.file_access = config.file_access.0.clone().unwrap_or(FileAccess::Everything);
    if log == LogUse::Leave {
        options.logs = None;
    }
    open(options).await
}

/// Opens the warehouse for a server, which looks after its tables.
///
/// # Errors
/// As [`Engine::open`].
pub async fn open_server_engine(config: &Config) -> Result<Arc<Engine>> {
    let mut options = engine_options(config)?;
    options.maintenance = !config.no_maintenance;
    options.watch_threads = true;
    options.cluster = true;
    options.home_bytes_min = config.shared_table_size.0;
    options.spread_bytes_min = config.distributed_scan_size.0;
    options.access_control = config.access_control;
    options.file_access = config.file_access.0.clone().unwrap_or(FileAccess::Off);
    options.scripts = ScriptOptions {
        listed: config.scripts.0.clone(),
        roles: config.script_roles.0.clone(),
        guard: std::env::current_exe().ok(),
    };
    let beside = beside_catalog(&options.warehouse, options.catalog.as_ref())?;
    options.hot_list = (!config.no_warm_restart).then(|| beside.join("hot.json"));
    options.history = Some(beside.join("history"));
    let is_local = options.warehouse.scheme() == "file";
    let folder = match config.disk_cache.as_str() {
        "off" => None,
        "auto" if is_local => None,
        "auto" => Some(beside.join("_cache")),
        folder => Some(PathBuf::from(folder)),
    };
    let bytes_max = config.disk_cache_size.0;
    options.disk_cache = folder.map(|folder| DiskOptions { folder, bytes_max });
    open(options).await
}

async fn open(options: EngineOptions) -> Result<Arc<Engine>> {
    let warehouse = options.warehouse.clone();
    let is_new = new_file(options.catalog.as_ref());
    let engine = Engine::open(options).await?;
    tell_of_new_catalog(&warehouse, is_new.as_ref());
    Ok(engine)
}

/// The local directory of the catalog's file; of a catalog in PostgreSQL, that of the warehouse.
fn beside_catalog(warehouse: &Url, catalog: Option<&CatalogPlace>) -> Result<PathBuf> {
    if let Some(file) = catalog.and_then(CatalogPlace::file) {
        let directory = file.parent().map(Path::to_owned);
        return directory.ok_or_else(|| Error::internal("the catalog is in no directory"));
    }
    warehouse.to_file_path().or_else(|()| own_directory(warehouse))
}

/// Where the id of the daemon is kept.
///
/// # Errors
/// As [`warehouse_options`].
pub fn daemon_folder(config: &Config) -> Result<PathBuf> {
    let place = warehouse_options(config)?;
    Ok(beside_catalog(&place.url, place.catalog.as_ref())?.join(DAEMON_DIRECTORY))
}

fn engine_options(config: &Config) -> Result<EngineOptions> {
    let place = warehouse_options(config)?;
    let mut options = EngineOptions::new(place.url);
    options.logs = logs_url(config, &options.warehouse, place.catalog.as_ref())?;
    options.catalog = place.catalog;
    options.s3 = place.s3;
    options.log_store_wait = Duration::from_secs(config.log_store_wait_s);
    options.fresh_bytes_max = usize::try_from(config.fresh_memory.0).unwrap_or(usize::MAX);
    options.memory_limit_bytes = usize::try_from(config.memory_limit.0).unwrap_or(usize::MAX);
    options.spill_dir.clone_from(&config.spill_dir);
    options.threads = config.num_executors.0;
    options.cache_bytes_max = usize::try_from(config.cache_memory.0).unwrap_or(usize::MAX);
    options.query_slots = config.query_slots.0.unwrap_or(2 * options.threads);
    options.queue_max = config.wait_queue_size as usize;
    options.pools.clone_from(&config.pools.0);
    options.workload_rules.clone_from(&config.workload_rules.0);
    Ok(options)
}

/// Where commit logs are; `None` if there are to be none.
fn logs_url(
    config: &Config,
    warehouse: &Url,
    catalog: Option<&CatalogPlace>,
) -> Result<Option<Url>> {
    let no_url = || Error::internal("the commit log's place is no URL");
    match config.commit_log.as_str() {
        "off" => Ok(None),
        "auto" if warehouse.scheme() == "file" => {
            let warehouse = warehouse.as_str().trim_end_matches('/');
            let url = Url::parse(&format!("{warehouse}/{LOG_DIRECTORY}"));
            url.map(Some).map_err(|e| no_url().with_source(e))
        }
        "auto" => {
            // A sync of an object store takes tens of milliseconds and costs money.
            let directory = beside_catalog(warehouse, catalog)?;
            Url::from_file_path(directory.join(LOG_DIRECTORY)).map(Some).map_err(|()| no_url())
        }
        place => stoa_store::parse_location(place).map(Some),
    }
}
