//! Turns a chunk of the table into Arrow batches.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, Date32Array, Int64Array, RecordBatch};
use futures::stream::{self, BoxStream, StreamExt};
use stoa_error::{Error, Result};

use crate::accounts::Accounts;
use crate::ad_report::{AdReport, Chunk};

/// The batches of one chunk, sorted by `(account_id, day)`; each but the last has `batch_rows` rows.
pub struct ChunkBatches<'a> {
    table: &'a AdReport,
    runs: Box<dyn Iterator<Item = Run> + 'a>,
    pending: Option<Run>,
    rows_left: u64,
    batch_rows: usize,
}

/// Rows of one account on one day, by number.
#[derive(Clone, Copy, Debug)]
struct Run {
    account: u32,
    day: u32,
    start: u64,
    end: u64,
}

/// Chunks that are made at once, ahead of who takes them.
const CHUNKS_AHEAD: usize = 2;

impl AdReport {
    /// The rows of `chunks`, one after the other; two chunks are made ahead on the runtime's threads
    /// for blocking work, at some 25 MB each.
    pub fn stream(
        self: &Arc<Self>,
        chunks: Vec<Chunk>,
        batch_rows: usize,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let table = Arc::clone(self);
        let make = move |chunk: Chunk| {
            let table = Arc::clone(&table);
            stoa_env::task::spawn_blocking(move || {
                table.batches(&chunk, batch_rows).collect::<Vec<_>>()
            })
        };
        let batches = stream::iter(chunks).map(make).buffered(CHUNKS_AHEAD).map(|made| {
            let failed = |e| vec![Err(Error::internal("the generator broke off").with_source(e))];
            stream::iter(made.unwrap_or_else(failed))
        });
        batches.flatten().boxed()
    }

    /// The batches of `chunk`, at most `batch_rows` (> 0) rows each.
    pub fn batches(&self, chunk: &Chunk, batch_rows: usize) -> ChunkBatches<'_> {
        let days = self.calendar().months()[chunk.month].clone();
        let runs = chunk.accounts.clone().flat_map(move |account| {
            let spread = self.spread(account);
            let mut end = spread.before(days.start);
            // Most accounts have no row in most months: ask for the month before the days.
            let empty = end == spread.before(days.end);
            let days = if empty { 0..0 } else { days.clone() };
            days.filter_map(move |day| {
                let start = std::mem::replace(&mut end, spread.before(day + 1));
                (start < end).then_some(Run { account, day, start, end })
            })
        });
        ChunkBatches {
            table: self,
            runs: Box::new(runs),
            pending: None,
            rows_left: chunk.rows,
            batch_rows: batch_rows.max(1),
        }
    }
}

impl Iterator for ChunkBatches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let capacity = self.rows_left.min(self.batch_rows as u64) as usize;
        let mut columns = Columns::with_capacity(capacity);
        while columns.account_id.len() < self.batch_rows {
            let Some(run) = self.pending.take().or_else(|| self.runs.next()) else { break };
            let room = (self.batch_rows - columns.account_id.len()) as u64;
            let end = run.end.min(run.start + room);
            columns.append(self.table, Run { end, ..run });
            if end < run.end {
                self.pending = Some(Run { start: end, ..run });
            }
        }
        let rows = columns.account_id.len() as u64;
        self.rows_left = self.rows_left.saturating_sub(rows);
        (rows > 0).then(|| columns.finish())
    }
}

struct Columns {
    account_id: Vec<i64>,
    day: Vec<i32>,
    campaign_id: Vec<i64>,
    device: StringBuilder,
    region: StringBuilder,
    impressions: Vec<i64>,
    clicks: Vec<i64>,
    conversions: Vec<i64>,
    cost: Vec<i64>,
    revenue: Vec<i64>,
    video_views: Int64Builder,
}

impl Columns {
    fn with_capacity(rows: usize) -> Self {
        Self {
            account_id: Vec::with_capacity(rows),
            day: Vec::with_capacity(rows),
            campaign_id: Vec::with_capacity(rows),
            device: StringBuilder::with_capacity(rows, rows * 10),
            region: StringBuilder::with_capacity(rows, rows * 8),
            impressions: Vec::with_capacity(rows),
            clicks: Vec::with_capacity(rows),
            conversions: Vec::with_capacity(rows),
            cost: Vec::with_capacity(rows),
            revenue: Vec::with_capacity(rows),
            video_views: Int64Builder::with_capacity(rows),
        }
    }

    fn append(&mut self, table: &AdReport, run: Run) {
        let id = Accounts::id(run.account);
        let day = table.calendar().first_epoch_day() + run.day as i32;
        let campaigns = table.accounts().campaigns(run.account);
        for row in run.start..run.end {
            let dimensions = table.rows().dimensions(row, campaigns);
            let metrics = table.rows().metrics(row, campaigns);
            self.account_id.push(id);
            self.day.push(day);
            self.campaign_id.push(id * 1000 + dimensions.campaign as i64);
            self.device.append_value(dimensions.device);
            self.region.append_value(dimensions.region);
            self.impressions.push(metrics.impressions);
            self.clicks.push(metrics.clicks);
            self.conversions.push(metrics.conversions);
            self.cost.push(metrics.cost);
            self.revenue.push(metrics.revenue);
            self.video_views.append_option(metrics.video_views);
        }
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let int = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let columns: Vec<ArrayRef> = vec![
            int(self.account_id),
            Arc::new(Date32Array::from(self.day)),
            int(self.campaign_id),
            Arc::new(self.device.finish()),
            Arc::new(self.region.finish()),
            int(self.impressions),
            int(self.clicks),
            int(self.conversions),
            int(self.cost),
            int(self.revenue),
            Arc::new(self.video_views.finish()),
        ];
        RecordBatch::try_new(AdReport::schema(), columns)
            .map_err(|e| Error::internal("generated columns do not fit the schema").with_source(e))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, Int64Type};
    use chrono::{Datelike, NaiveDate};

    use super::*;
    use crate::AdReportSpec;

    fn small() -> AdReport {
        AdReport::new(AdReportSpec { rows: 200_000, accounts: 5_000, seed: 3 })
    }

    fn all(table: &AdReport, batch_rows: usize) -> Vec<RecordBatch> {
        let chunks = table.chunks();
        chunks.iter().flat_map(|c| table.batches(c, batch_rows)).map(Result::unwrap).collect()
    }

    #[test]
    fn the_table_has_exactly_the_rows_asked_for_in_order() {
        let table = small();
        let chunks = table.chunks();
        assert_eq!(chunks.iter().map(|c| c.rows).sum::<u64>(), 200_000);
        for chunk in &chunks {
            let mut last = (0, 0);
            let mut rows = 0;
            for batch in table.batches(chunk, 1000) {
                let batch = batch.unwrap();
                let ids = batch.column(0).as_primitive::<Int64Type>();
                let days = batch.column(1).as_primitive::<Date32Type>();
                for i in 0..batch.num_rows() {
                    let key = (ids.value(i), days.value(i));
                    assert!(last <= key, "{last:?} before {key:?}");
                    last = key;
                }
                rows += batch.num_rows() as u64;
            }
            assert_eq!(rows, chunk.rows);
        }
    }

    #[test]
    fn parts_are_whole_months_of_bounded_size() {
        let table = small();
        let parts = table.parts(40_000);
        assert_eq!(parts.concat(), table.chunks());
        assert!(parts.len() > 4 && parts.len() < 13, "{}", parts.len());
        for (before, part) in parts.iter().zip(&parts[1..]) {
            assert!(before.last().unwrap().month < part[0].month);
        }
        for part in &parts {
            assert!(part.iter().map(|chunk| chunk.rows).sum::<u64>() <= 40_000);
        }
        assert_eq!(table.parts(1).len(), 13);
        assert_eq!(table.parts(u64::MAX).len(), 1);
    }

    #[test]
    fn the_size_of_batches_does_not_change_the_rows() {
        let table = small();
        let count = |batches: &[RecordBatch]| batches.iter().map(|b| b.num_rows()).sum::<usize>();
        let (large, small) = (all(&table, 65_536), all(&table, 777));
        assert_eq!((count(&large), count(&small)), (200_000, 200_000));
        assert_eq!(large[0].slice(0, 500), small[0].slice(0, 500));
    }

    #[test]
    fn expected_sums_are_those_of_the_rows() {
        let table = small();
        let mut sums: BTreeMap<(i64, i32), [i64; 3]> = BTreeMap::new();
        for batch in all(&table, 8192) {
            let int = |i: usize| batch.column(i).as_primitive::<Int64Type>();
            let days = batch.column(1).as_primitive::<Date32Type>();
            for row in 0..batch.num_rows() {
                let entry = sums.entry((int(0).value(row), days.value(row))).or_default();
                for (slot, column) in [5, 6, 8].into_iter().enumerate() {
                    entry[slot] += int(column).value(row);
                }
            }
        }
        let epoch = NaiveDate::default().num_days_from_ce();
        let mut expected = BTreeMap::new();
        for account in 0..table.accounts().len() {
            for line in table.expected(account, 0..table.calendar().days()) {
                let key = (Accounts::id(account), line.day.num_days_from_ce() - epoch);
                expected.insert(key, [line.impressions, line.clicks, line.cost]);
            }
        }
        assert_eq!(sums, expected);
    }
}
