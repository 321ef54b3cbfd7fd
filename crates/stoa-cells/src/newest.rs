//! The newest timestamp and revision that a warehouse holds, so that none is handed out again.
//!
//! Timestamps that users gave by hand may lie far in the future and do not count: new cells must not
//! follow them there. A file in which all timestamps were handed out (it has no revisions) tells by
//! its bounds, one in which all were given (it has nothing but revisions) does not count, and any
//! other holds none that was handed out after its own commit.

use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::Result;
use stoa_hql::{CellBatch, TimestampSource};
use stoa_ingest::{CopyWatch, Ingest};
use stoa_orc::{Literal, Predicate};
use stoa_table::{ScanFile, Table, Warehouse};

use crate::catalog::cell_tables;
use crate::layout::{REVISION, is_cells, to_cells};
use crate::revisions::Revisions;
use crate::table::{CellSnapshot, CellTable};
use stoa_hql::batch::TIMESTAMP;

/// What later ones must exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) timestamp: i64,
    pub(crate) revision: i64,
}

/// Timestamps and revisions follow those of other daemons, whose clocks may be ahead: what is written or deleted
/// here after a cell of another daemon was acknowledged is later than that cell.
#[derive(Debug)]
pub(crate) struct Following {
    timestamps: Arc<TimestampSource>,
    revisions: Arc<Revisions>,
}

impl Following {
    pub(crate) fn new(timestamps: Arc<TimestampSource>, revisions: Arc<Revisions>) -> Self {
        Self { timestamps, revisions }
    }
}

impl CopyWatch for Following {
    fn copied(&self, rows: &RecordBatch) {
        // Rows of other tables are no cells.
        let Some(cells) = is_cells(rows).then(|| to_cells(rows).ok()).flatten() else { return };
        let mut newest = Newest::default();
        newest.look_at_cells(&cells);
        self.timestamps.continue_after(newest.timestamp);
        self.revisions.continue_after(newest.revision);
    }
}

/// Looks at all tables of cells.
pub(crate) async fn find(warehouse: &Warehouse, ingest: Option<&Ingest>) -> Result<Newest> {
    let mut newest = Newest::default();
    for namespace in warehouse.namespaces().await? {
        let tables = match cell_tables(warehouse, &namespace).await {
            Ok(tables) => tables,
            Err(error) => {
                tracing::warn!(namespace, %error, "tables cannot be read; their timestamps do not count");
                continue;
            }
        };
        for table in tables {
            if let Err(error) = newest.look_at(warehouse, ingest, &table).await {
                let table = table.ident();
                tracing::warn!(%table, %error, "table cannot be read; its timestamps do not count");
            }
        }
    }
    Ok(newest)
}

impl Newest {
    async fn look_at(
        &mut self,
        warehouse: &Warehouse,
        ingest: Option<&Ingest>,
        table: &Table,
    ) -> Result<()> {
        let snapshot = CellSnapshot::of(warehouse, ingest, table.ident()).await?;
        let plan = snapshot.cells.table.plan_scan(&Predicate::always()).await?;
        for file in &plan.files {
            self.look_at_file(&snapshot.cells, file)?;
        }
        for batch in snapshot.fresh.iter().flat_map(|fresh| fresh.batches()) {
            self.look_at_cells(&to_cells(&batch?)?);
        }
        Ok(())
    }

    fn look_at_file(&mut self, cells: &CellTable, file: &ScanFile) -> Result<()> {
        let upper = |column: &str| -> Result<Option<i64>> {
            let bound = file.upper_bounds.get(&cells.layout.id(column)?);
            Ok(match bound {
                Some(Literal::Int(value)) => Some(*value),
                _ => None,
            })
        };
        let revision = upper(REVISION)?;
        self.revision = self.revision.max(revision.unwrap_or(0));
        let by_hand = file.null_counts.get(&cells.layout.id(REVISION)?) == Some(&0);
        let Some(timestamp) = upper(TIMESTAMP)?.filter(|_| !by_hand) else { return Ok(()) };
        let committed = || {
            let snapshots = cells.table.snapshots();
            let added = snapshots.iter().find(|snapshot| Some(snapshot.id) == file.snapshot_id);
            added.map(|snapshot| snapshot.timestamp_ms.saturating_add(1).saturating_mul(1_000_000))
        };
        let newest = match revision {
            None => timestamp,
            Some(_) => committed().map_or(timestamp, |committed| committed.min(timestamp)),
        };
        self.timestamp = self.timestamp.max(newest);
        Ok(())
    }

    fn look_at_cells(&mut self, cells: &CellBatch) {
        for (index, timestamp) in cells.timestamps().iter().enumerate() {
            let revision = cells.revision(index);
            let newest =
                if revision == *timestamp { &mut self.timestamp } else { &mut self.revision };
            *newest = (*newest).max(revision);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, BinaryArray, Int32Array, Int64Array, StringArray};

    use super::*;
    use crate::layout::ROW_BYTES;
    use stoa_hql::batch::{FAMILY, KIND, QUALIFIER, ROW, VALUE};

    fn cells(timestamps: [i64; 2], revisions: [Option<i64>; 2]) -> RecordBatch {
        let bytes = || Arc::new(BinaryArray::from(vec![&b"x"[..], b"y"])) as ArrayRef;
        let none = BinaryArray::from(vec![None::<&[u8]>; 2]);
        RecordBatch::try_from_iter([
            (ROW, Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
            (ROW_BYTES, Arc::new(none) as ArrayRef),
            (FAMILY, Arc::new(Int32Array::from(vec![1, 1])) as ArrayRef),
            (QUALIFIER, bytes()),
            (TIMESTAMP, Arc::new(Int64Array::from(timestamps.to_vec())) as ArrayRef),
            (VALUE, bytes()),
            (KIND, Arc::new(Int32Array::from(vec![0, 0])) as ArrayRef),
            (REVISION, Arc::new(Int64Array::from(revisions.to_vec())) as ArrayRef),
        ])
        .unwrap()
    }

    #[test]
    fn timestamps_follow_those_of_other_daemons_but_not_those_given_by_hand() {
        let timestamps = Arc::new(TimestampSource::manual(100));
        let following = Following::new(Arc::clone(&timestamps), Arc::default());
        // Another daemon's clock is ahead.
        following.copied(&cells([5_000, 7_000], [None, None]));
        assert_eq!(timestamps.reserve(1), 7_001);
        // A user gave a timestamp far in the future: only the revision counts.
        following.copied(&cells([1 << 60, 7_500], [Some(8_000), None]));
        assert_eq!(timestamps.reserve(1), 7_501);
        assert_eq!(following.revisions.next(&timestamps), 8_001);
        // Rows of another table.
        let column = Arc::new(Int64Array::from(vec![1 << 61])) as ArrayRef;
        following.copied(&RecordBatch::try_from_iter([(TIMESTAMP, column)]).unwrap());
        assert_eq!(timestamps.reserve(1), 7_502);
    }
}
