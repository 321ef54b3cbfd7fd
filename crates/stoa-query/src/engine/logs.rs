//! Which commit log a process writes to.
//!
//! A directory of logs holds `0`, `1`, …; a process owns the first that nobody else has open. Those
//! behind it that nobody has open are of processes that are gone: what they hold is brought into the
//! tables, so that no acknowledged row waits for a process that may never come back.
//!
//! A member of a cluster begins a log of its own each time it starts, beside those; the others know of it, and
//! take it over when the process is gone (`stoa-member`).

use std::sync::Arc;

use stoa_cells::CellFlushOrder;
use stoa_env::random;
use stoa_error::Condition;
use stoa_error::{Error, ErrorKind, Result};
use stoa_ingest::{Ingest, IngestOptions};
use stoa_table::Warehouse;
use url::Url;

use crate::engine::EngineOptions;

/// Processes that may have logs in one directory.
const LOGS_MAX: usize = 64;

/// The log of this process.
pub(crate) struct OwnLog {
    pub(crate) ingest: Ingest,
    /// Where it is, if other daemons are sent it.
    pub(crate) shipped: Option<Url>,
}

/// Opens a log for this process, if the options want one.
///
/// # Errors
/// As [`Ingest::open`]; `Exhausted` where too many processes have logs.
pub(crate) async fn open(options: &EngineOptions, warehouse: &Warehouse) -> Result<Option<OwnLog>> {
    let Some(directory) = &options.logs else { return Ok(None) };
    if options.cluster && warehouse.catalog().cluster().is_some() {
        return open_shipped(options, warehouse, directory).await.map(Some);
    }
    for number in 0..LOGS_MAX {
        let Some(ingest) = open_one(options, warehouse, directory, number).await? else { continue };
        if number > 0 {
            tracing::warn!(
                processes = number,
                "other processes have logs of this warehouse open: what they took in shows here \
                 once they have brought it into files"
            );
        }
        adopt_behind(options, warehouse, directory, number + 1).await?;
        return Ok(Some(OwnLog { ingest, shipped: None }));
    }
    Err(Error::new(ErrorKind::Exhausted, format!("{LOGS_MAX} processes have logs in {directory}"))
        .with_hint("end some of them, or set commit_log to another place"))
}

/// Opens a log that other daemons are sent, and which they take over: each life of a daemon has one of its own,
/// under a name that no other has.
async fn open_shipped(
    options: &EngineOptions,
    warehouse: &Warehouse,
    directory: &Url,
) -> Result<OwnLog> {
    // Of a time before there was a cluster.
    adopt_behind(options, warehouse, directory, 0).await?;
    let name = format!("{:016x}", random::u64());
    let location = joined(directory, &name)?;
    let ingest = IngestOptions { ships: true, ..ingest_options(options) };
    let (ingest, _) = Ingest::open(warehouse.clone(), &location, ingest).await?;
    tracing::info!(log = %location, "began a commit log");
    Ok(OwnLog { ingest, shipped: Some(location) })
}

/// Brings what the logs from number `first` on hold into the tables, unless somebody has them open.
async fn adopt_behind(
    options: &EngineOptions,
    warehouse: &Warehouse,
    directory: &Url,
    first: usize,
) -> Result<()> {
    for number in first..LOGS_MAX {
        if !location(directory, number)?.to_file_path().is_ok_and(|path| path.exists()) {
            return Ok(());
        }
        if let Some(left) = open_one(options, warehouse, directory, number).await? {
            left.close(true).await?;
        }
    }
    Ok(())
}

/// `None` where another process has it open.
async fn open_one(
    options: &EngineOptions,
    warehouse: &Warehouse,
    directory: &Url,
    number: usize,
) -> Result<Option<Ingest>> {
    let location = location(directory, number)?;
    let ingest = ingest_options(options);
    match Ingest::open(warehouse.clone(), &location, ingest).await {
        Ok((ingest, report)) => {
            tracing::info!(log = %location, ?report, "opened the commit log");
            Ok(Some(ingest))
        }
        Err(error) if error.is(Condition::ObjectInUse) => Ok(None),
        Err(error) => Err(error),
    }
}

fn ingest_options(options: &EngineOptions) -> IngestOptions {
    IngestOptions {
        log_store_wait: options.log_store_wait,
        fresh_bytes_max: options.fresh_bytes_max,
        order: Some(Arc::new(CellFlushOrder)),
        ..IngestOptions::default()
    }
}

fn location(directory: &Url, number: usize) -> Result<Url> {
    joined(directory, &number.to_string())
}

fn joined(directory: &Url, name: &str) -> Result<Url> {
    let directory = directory.as_str().trim_end_matches('/');
    Url::parse(&format!("{directory}/{name}"))
        .map_err(|e| Error::internal("the place of a log is no URL").with_source(e))
}
