//! Which commit log a process writes to.
//!
//! A directory of logs holds `0`, `1`, …; a process owns the first that nobody else has open. Those
//! behind it that nobody has open are of processes that are gone: what they hold is brought into the
//! tables, so that no acknowledged row waits for a process that may never come back.

use std::sync::Arc;

use stoa_cells::CellFlushOrder;
use stoa_error::Condition;
use stoa_error::{Error, ErrorKind, Result};
use stoa_ingest::{Ingest, IngestOptions};
use stoa_table::Warehouse;
use url::Url;

use crate::engine::EngineOptions;

/// Processes that may have logs in one directory.
const LOGS_MAX: usize = 64;

/// Opens a log for this process, if the options want one.
///
/// # Errors
/// As [`Ingest::open`]; `Exhausted` where too many processes have logs.
pub(crate) async fn open(options: &EngineOptions, warehouse: &Warehouse) -> Result<Option<Ingest>> {
    let Some(directory) = &options.logs else { return Ok(None) };
    for number in 0..LOGS_MAX {
        let Some(ingest) = open_one(options, warehouse, directory, number).await? else { continue };
        if number > 0 {
            tracing::warn!(
                processes = number,
                "other processes have logs of this warehouse open: what they took in shows here \
                 once they have brought it into files"
            );
        }
        adopt_behind(options, warehouse, directory, number).await?;
        return Ok(Some(ingest));
    }
    Err(Error::new(ErrorKind::Exhausted, format!("{LOGS_MAX} processes have logs in {directory}"))
        .with_hint("end some of them, or set commit_log to another place"))
}

/// Brings what the logs behind `own` hold into the tables, unless somebody has them open.
async fn adopt_behind(
    options: &EngineOptions,
    warehouse: &Warehouse,
    directory: &Url,
    own: usize,
) -> Result<()> {
    for number in own + 1..LOGS_MAX {
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
    let ingest = IngestOptions {
        fresh_bytes_max: options.fresh_bytes_max,
        order: Some(Arc::new(CellFlushOrder)),
        ..IngestOptions::default()
    };
    match Ingest::open(warehouse.clone(), &location, ingest).await {
        Ok((ingest, report)) => {
            tracing::info!(log = %location, ?report, "opened the commit log");
            Ok(Some(ingest))
        }
        Err(error) if error.is(Condition::ObjectInUse) => Ok(None),
        Err(error) => Err(error),
    }
}

fn location(directory: &Url, number: usize) -> Result<Url> {
    let directory = directory.as_str().trim_end_matches('/');
    Url::parse(&format!("{directory}/{number}"))
        .map_err(|e| Error::internal("the place of a log is no URL").with_source(e))
}
