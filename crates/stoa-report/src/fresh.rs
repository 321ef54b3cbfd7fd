//! Fresh rows: which of them a report looks at, and their columns.
//!
//! Batches of fresh rows never change, so what was made of one holds for as long as it is there:
//! bounds per block of [`BLOCK_ROWS`], and the chunks of blocks that reports looked at. Both are in
//! the cache, under its bound, and go when the batch has gone. Small batches, which soon become
//! larger ones, are looked at as they are.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::{Error, Result};
use stoa_ingest::{FreshBatchId, FreshRows};

use crate::cache::Key;
use crate::chunk::Chunk;
use crate::fresh_index::BLOCK_ROWS;
use crate::report::{Column, Report};
use crate::reports::Reports;
use crate::work::ReportWork;
use crate::zones::{Zone, Zones};

/// Of batches with fewer rows nothing is kept.
const KEPT_ROWS_MIN: usize = 1024;

/// Neighbouring fresh rows that may hold rows of a report.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Index of the batch.
    batch: usize,
    /// Within the batch.
    pub(crate) rows: Range<usize>,
    /// Under what its chunks are kept; `None` if they are not.
    kept: Option<(FreshBatchId, u32)>,
}

impl Reports {
    /// The fresh rows that a report must look at, in their order; `None` where they are too many.
    pub(crate) async fn plan_fresh(
        &self,
        fresh: &FreshRows,
        report: &Report,
        work: &mut ReportWork,
    ) -> Result<Option<Vec<Piece>>> {
        let mut pieces = Vec::new();
        let mut judged_rows = 0;
        for batch in 0..fresh.batch_count() {
            let rows = fresh.batch_rows(batch);
            let id = fresh.batch_id(batch).filter(|_| rows >= KEPT_ROWS_MIN);
            let Some(id) = id else {
                work.rows_read += rows as u64;
                pieces.push(Piece { batch, rows: 0..rows, kept: None });
                continue;
            };
            let zones = match self.known_fresh_zones(&id, report) {
                Some(zones) => zones,
                // What was judged now is known to the next report.
                None if judged_rows > self.options.rows_max => return Ok(None),
                None => {
                    judged_rows += rows as u64;
                    tokio::task::yield_now().await;
                    self.make_fresh_zones(fresh, batch, &id, report)?
                }
            };
            for block in 0..rows.div_ceil(BLOCK_ROWS) {
                let may_match = report
                    .conditions
                    .iter()
                    .zip(&zones)
                    .all(|(condition, zones)| zones.may_match(block, &condition.test));
                if may_match {
                    let rows = block * BLOCK_ROWS..rows.min((block + 1) * BLOCK_ROWS);
                    work.rows_read += rows.len() as u64;
                    pieces.push(Piece { batch, rows, kept: Some((id.clone(), block as u32)) });
                }
            }
            if work.rows_read > self.options.rows_max {
                return Ok(None);
            }
        }
        Ok((work.rows_read <= self.options.rows_max).then_some(pieces))
    }

    /// The report's columns of some fresh rows.
    ///
    /// # Errors
    /// `Internal` where rows of an older schema do not fit.
    pub(crate) fn fresh_chunks(
        &self,
        fresh: &FreshRows,
        piece: &Piece,
        report: &Report,
    ) -> Result<Vec<Arc<Chunk>>> {
        let key = |column: &Column| {
            let (id, block) = piece.kept.as_ref()?;
            Some(Key::FreshChunk { batch: id.number(), block: *block, field: column.field_id })
        };
        let known: Option<Vec<_>> =
            report.columns.iter().map(|column| self.cache.chunk(key(column)?)).collect();
        if let Some(known) = known {
            return Ok(known);
        }
        let batch = fresh.batch(piece.batch).transpose()?.ok_or_else(lost)?;
        let made = report.columns.iter().map(|column| {
            let chunk = chunk_of(&batch, column, &piece.rows).ok_or_else(lost)?;
            let (Some((id, _)), Some(key)) = (&piece.kept, key(column)) else {
                return Ok(Arc::new(chunk));
            };
            let chunk = Arc::new(chunk.compact());
            self.note_fresh(id, batch.num_rows(), column);
            self.cache.put_chunk(key, chunk.clone());
            Ok(chunk)
        });
        made.collect()
    }

    fn known_fresh_zones(&self, id: &FreshBatchId, report: &Report) -> Option<Vec<Arc<Zones>>> {
        let zones = judged(report).map(|column| self.cache.zones(zones_key(id, column)));
        zones.collect()
    }

    fn make_fresh_zones(
        &self,
        fresh: &FreshRows,
        batch: usize,
        id: &FreshBatchId,
        report: &Report,
    ) -> Result<Vec<Arc<Zones>>> {
        let batch = fresh.batch(batch).transpose()?.ok_or_else(lost)?;
        let zones = judged(report).map(|column| {
            let key = zones_key(id, column);
            if let Some(known) = self.cache.zones(key) {
                return known;
            }
            let zones = Arc::new(zones_of(&batch, column));
            self.note_fresh(id, batch.num_rows(), column);
            self.cache.put_zones(key, zones.clone());
            zones
        });
        Ok(zones.collect())
    }

    fn note_fresh(&self, id: &FreshBatchId, rows: usize, column: &Column) {
        for gone in self.fresh.note(id, rows, column.field_id) {
            self.cache.remove(gone);
        }
    }
}

/// The column of each condition; [`Report::check`] has seen that it is there.
fn judged(report: &Report) -> impl Iterator<Item = &Column> {
    report.conditions.iter().map(|condition| &report.columns[condition.column])
}

/// Fresh rows that a report needs are not there. Without them, the answer would be another one.
fn lost() -> Error {
    Error::internal("fresh rows that a report needs went missing")
        .with_hint("run the statement again, or with SET short_path = off; please report it")
}

// A column's type may be widened, which changes neither its numbers nor their bounds: the field id
// is enough.
fn zones_key(id: &FreshBatchId, column: &Column) -> Key {
    Key::FreshZones { batch: id.number(), field: column.field_id }
}

fn zones_of(batch: &RecordBatch, column: &Column) -> Zones {
    let starts = (0..batch.num_rows()).step_by(BLOCK_ROWS);
    let zone = |start: usize| {
        let rows = start..batch.num_rows().min(start + BLOCK_ROWS);
        chunk_of(batch, column, &rows).map_or(Zone::UNKNOWN, |chunk| Zone::of_chunk(&chunk))
    };
    Zones::new(starts.map(zone).collect())
}

fn chunk_of(batch: &RecordBatch, column: &Column, rows: &Range<usize>) -> Option<Chunk> {
    let array = batch.columns().get(column.position).filter(|array| rows.end <= array.len())?;
    if rows.len() == array.len() {
        return Chunk::of(array);
    }
    Chunk::of(&array.slice(rows.start, rows.len()))
}
