//! Threads, log and engine, as the settings say.

use std::future::Future;
use std::sync::Arc;

use stoa_error::{Error, Result};
use stoa_query::{Engine, EngineOptions};
use tracing_subscriber::EnvFilter;
use url::Url;

use crate::config::{Config, LogFormat, Resolved};

/// Directory of commit logs in a warehouse; no namespace begins with `_`.
const LOG_DIRECTORY: &str = "_log";

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

/// The warehouse's location as a URL.
///
/// # Errors
/// Invalid: not a directory or URL that Stoa opens.
pub fn warehouse_url(config: &Config) -> Result<Url> {
    stoa_store::parse_location(&config.warehouse)
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
    if log == LogUse::Leave {
        options.logs = None;
    }
    Engine::open(options).await
}

/// Opens the warehouse for a server, which looks after its tables.
///
/// # Errors
/// As [`Engine::open`].
pub async fn open_server_engine(config: &Config) -> Result<Arc<Engine>> {
    let maintenance = !config.no_maintenance;
    Engine::open(EngineOptions { maintenance, ..engine_options(config)? }).await
}

fn engine_options(config: &Config) -> Result<EngineOptions> {
    let mut options = EngineOptions::new(warehouse_url(config)?);
    options.logs = logs_url(config, &options.warehouse)?;
    options.fresh_bytes_max = usize::try_from(config.fresh_memory.0).unwrap_or(usize::MAX);
    options.memory_limit_bytes = usize::try_from(config.memory_limit.0).unwrap_or(usize::MAX);
    options.spill_dir.clone_from(&config.spill_dir);
    options.threads = config.num_executors.0;
    options.cache_bytes_max = usize::try_from(config.cache_memory.0).unwrap_or(usize::MAX);
    options.query_slots = config.query_slots.0.unwrap_or(2 * options.threads);
    options.queue_max = config.wait_queue_size as usize;
    Ok(options)
}

/// Where commit logs are; `None` if there are to be none.
fn logs_url(config: &Config, warehouse: &Url) -> Result<Option<Url>> {
    match config.commit_log.as_str() {
        "off" => Ok(None),
        "auto" => {
            let warehouse = warehouse.as_str().trim_end_matches('/');
            let url = Url::parse(&format!("{warehouse}/{LOG_DIRECTORY}"));
            url.map(Some).map_err(|e| Error::internal("the warehouse has no URL").with_source(e))
        }
        place => stoa_store::parse_location(place).map(Some),
    }
}
