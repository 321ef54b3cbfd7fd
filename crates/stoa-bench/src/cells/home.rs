//! A warehouse with a log of its own, for one run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stoa_cells::{CellFlushOrder, CellMergeHooks, CellOptions, CellTables};
use stoa_env::executors::background;
use stoa_env::task;
use stoa_error::{Condition, Error, Result};
use stoa_hql::CellStore;
use stoa_ingest::{Ingest, IngestOptions, Maintenance, MaintenanceOptions};
use stoa_store::parse_location;
use stoa_table::Warehouse;

/// Times that a log which is still held is asked for again.
const OPEN_TRIES: usize = 1000;

/// An open warehouse.
pub(super) struct Home {
    directory: PathBuf,
    pub(super) store: Arc<dyn CellStore>,
    ingest: Ingest,
    maintenance: Maintenance,
}

impl Home {
    /// Opens what is in `directory`, or makes it.
    pub(super) async fn open(directory: &Path) -> Result<Self> {
        let location = |part: &str| parse_location(&directory.join(part).display().to_string());
        let warehouse = Warehouse::open(&location("warehouse")?).await?;
        let ingest = open_log(&warehouse, &location("log")?).await?;
        let options = CellOptions::default();
        let hooks = CellMergeHooks::new(Arc::clone(&options.timestamps));
        let executors =
            background().map_err(|e| Error::unavailable("cannot start a thread").with_source(e))?;
        let maintenance = MaintenanceOptions {
            hooks: Some(Arc::new(hooks)),
            executors: Some(executors.clone()),
            ..MaintenanceOptions::default()
        };
        let maintenance = Maintenance::start(warehouse.clone(), maintenance);
        let cells = CellTables::open(warehouse, Some(ingest.clone()), options).await?;
        Ok(Self { directory: directory.to_owned(), store: Arc::new(cells), ingest, maintenance })
    }

    /// Syncs of the log so far, and bytes written to it.
    pub(super) fn log_usage(&self) -> (u64, u64) {
        let log = self.ingest.status().log;
        (log.syncs, log.payload_bytes)
    }

    /// Ends everything, without bringing what is in the log into files.
    pub(super) async fn close(self) -> Result<PathBuf> {
        self.maintenance.stop().await?;
        self.ingest.close(false).await?;
        Ok(self.directory)
    }
}

/// Opens a log. The thread of one that was closed lets go of it a little later.
async fn open_log(warehouse: &Warehouse, location: &url::Url) -> Result<Ingest> {
    let order = Some(Arc::new(CellFlushOrder) as _);
    let options = IngestOptions { order, ..IngestOptions::default() };
    for _ in 0..OPEN_TRIES {
        match Ingest::open(warehouse.clone(), location, options.clone()).await {
            Err(error) if error.is(Condition::ObjectInUse) => tokio::task::yield_now().await,
            opened => return opened.map(|(ingest, _)| ingest),
        }
    }
    Err(Error::unavailable(format!("the log {location} stays in use")))
}

/// Removes a run's directory.
pub(super) async fn remove(directory: PathBuf) -> Result<()> {
    let removed = task::spawn_blocking(move || std::fs::remove_dir_all(directory)).await;
    let failed = |e: std::io::Error| Error::unavailable("cannot clean up").with_source(e);
    removed.map_err(|e| Error::internal("cleaning up broke off").with_source(e))?.map_err(failed)
}
