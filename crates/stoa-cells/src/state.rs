//! What all calls of a store share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stoa_error::Result;
use stoa_hql::TimestampSource;
use stoa_hql::store::errors;
use stoa_ingest::{Ingest, WriteClock};
use stoa_table::Warehouse;

use crate::footers::Footers;
use crate::options::CellOptions;
use crate::revisions::Revisions;
use crate::{catalog, newest};

/// State of a store: the warehouse and what was learnt of it.
pub(crate) struct Inner {
    pub(crate) warehouse: Warehouse,
    pub(crate) ingest: Option<Ingest>,
    pub(crate) options: CellOptions,
    pub(crate) revisions: Arc<Revisions>,
    pub(crate) footers: Footers,
    readonly: AtomicBool,
}

impl Inner {
    /// Timestamps and revisions continue after the newest that are found.
    ///
    /// # Errors
    /// Those of the catalog and of reading tables' metadata.
    pub(crate) async fn open(
        warehouse: Warehouse,
        ingest: Option<Ingest>,
        options: CellOptions,
    ) -> Result<Self> {
        let newest = newest::find(&warehouse, ingest.as_ref()).await?;
        options.timestamps.continue_after(newest.timestamp);
        let revisions = Arc::new(Revisions::default());
        revisions.continue_after(newest.revision);
        if let Some(ingest) = &ingest {
            let timestamps = Arc::clone(&options.timestamps);
            let clock = Clock(Arc::clone(&timestamps), Arc::clone(&revisions));
            ingest.set_clock(Arc::new(clock));
            ingest
                .watch_copies(Arc::new(newest::Following::new(timestamps, Arc::clone(&revisions))));
        }
        let footers = Footers::default();
        let readonly = AtomicBool::new(catalog::is_readonly(&warehouse).await?);
        Ok(Self { warehouse, ingest, options, revisions, footers, readonly })
    }

    /// # Errors
    /// The store is read-only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.readonly.load(Ordering::Relaxed) { Err(errors::readonly()) } else { Ok(()) }
    }

    /// Whether writes are refused from now on, by this process.
    pub(crate) fn set_readonly(&self, readonly: bool) {
        self.readonly.store(readonly, Ordering::Relaxed);
    }
}

/// The clock of cells, for flushes.
struct Clock(Arc<TimestampSource>, Arc<Revisions>);

impl WriteClock for Clock {
    fn settled(&self) -> i64 {
        self.0.settled_with(|| self.1.last())
    }
}
