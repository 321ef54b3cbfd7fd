//! The rows of an operation, as they are fetched page by page.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use futures::StreamExt;
use stoa_error::{Error, Result};
use stoa_query::{Kept, RowStream};

/// Bytes of a page, about: fewer rows than a client asks for are given where they are long.
const PAGE_BYTES: usize = 4 << 20;
/// Rows of a page.
const PAGE_ROWS_MAX: usize = 1 << 20;

/// Rows that were not fetched yet: what [`Rows::read_ahead`] has read, or a page and a batch. All rows of a small result
/// stay, so that it can be fetched again from its begin.
#[derive(Default)]
pub(crate) struct Rows {
    stream: Option<RowStream>,
    batches: VecDeque<RecordBatch>,
    /// The next row: a batch, and a row in it.
    batch: usize,
    row: usize,
    /// Rows given so far.
    given: i64,
    /// Whether nothing was let go.
    is_whole: bool,
    _kept: Option<Kept>,
}

/// Rows to be sent.
pub(crate) struct Page {
    pub(crate) batches: Vec<RecordBatch>,
    /// The number of the first one, from 0.
    pub(crate) first_row: i64,
    pub(crate) has_more: bool,
}

impl Rows {
    /// Those of a query.
    pub(crate) fn of_stream(stream: RowStream) -> Self {
        Self { stream: Some(stream), is_whole: true, ..Self::default() }
    }

    /// Those that are there.
    pub(crate) fn of_batch(batch: RecordBatch) -> Self {
        Self { batches: VecDeque::from([batch]), is_whole: true, ..Self::default() }
    }

    /// Reads until there are about `bytes` bytes, or no more rows. A query that has ended gives back what it holds; its
    /// rows are kept until the end if they are small, and then it is told how many bytes they are.
    ///
    /// # Errors
    /// Those of the query.
    pub(crate) async fn read_ahead(&mut self, bytes: usize) -> Result<Option<usize>> {
        let mut read = 0;
        while read < bytes {
            let Some(batch) = self.next_batch().await? else { break };
            read += batch.get_array_memory_size();
            self.batches.push_back(batch);
        }
        self.is_whole = self.stream.is_none() && read <= bytes;
        Ok(self.is_whole.then_some(read))
    }

    /// Notes what the rows that are kept count for.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self._kept = Some(kept);
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let next = stream.next().await;
        if !matches!(next, Some(Ok(_))) {
            self.stream = None;
        }
        next.transpose()
    }

    /// Goes back to the first row.
    ///
    /// # Errors
    /// Unsupported (HY106): it is gone.
    pub(crate) fn rewind(&mut self) -> Result<()> {
        if !self.is_whole {
            return Err(Error::unsupported("the first rows of the result were given away already")
                .with_sqlstate("HY106")
                .with_hint("run the statement again, or read its rows once, in their order"));
        }
        (self.batch, self.row, self.given) = (0, 0, 0);
        Ok(())
    }

    /// The next rows, `rows_max` at most; none at the end. Rows are lost to nobody who stops waiting.
    ///
    /// # Errors
    /// Those of the query.
    pub(crate) async fn page(&mut self, rows_max: usize) -> Result<Page> {
        let rows_max = rows_max.clamp(1, PAGE_ROWS_MAX);
        while self.waiting_rows() < rows_max && self.waiting_bytes() < PAGE_BYTES {
            match self.next_batch().await? {
                Some(batch) => self.batches.push_back(batch),
                None => break,
            }
        }
        let first_row = self.given;
        let batches = self.take(rows_max);
        Ok(Page { batches, first_row, has_more: self.stream.is_some() || self.waiting_rows() > 0 })
    }

    fn waiting(&self) -> impl Iterator<Item = &RecordBatch> {
        self.batches.iter().skip(self.batch)
    }

    fn waiting_rows(&self) -> usize {
        self.waiting().map(RecordBatch::num_rows).sum::<usize>().saturating_sub(self.row)
    }

    fn waiting_bytes(&self) -> usize {
        self.waiting().map(RecordBatch::get_array_memory_size).sum()
    }

    fn take(&mut self, rows_max: usize) -> Vec<RecordBatch> {
        let (mut taken, mut rows_left, mut bytes_left) = (Vec::new(), rows_max, PAGE_BYTES);
        while rows_left > 0 && (bytes_left > 0 || taken.is_empty()) {
            let Some(batch) = self.batches.get(self.batch) else { break };
            let of_batch = batch.num_rows() - self.row;
            let row_bytes = (batch.get_array_memory_size() / batch.num_rows().max(1)).max(1);
            let count = of_batch.min(rows_left).min((bytes_left / row_bytes).max(1));
            if of_batch > 0 {
                taken.push(batch.slice(self.row, count));
                (rows_left, self.row) = (rows_left - count, self.row + count);
                bytes_left = bytes_left.saturating_sub(count.saturating_mul(row_bytes));
            }
            if self.row >= batch.num_rows() {
                (self.batch, self.row) = (self.batch + 1, 0);
            }
        }
        self.given += i64::try_from(rows_max - rows_left).unwrap_or(i64::MAX);
        self.let_go();
        taken
    }

    /// Forgets batches that were given, unless the whole result is small.
    fn let_go(&mut self) {
        let goes_on = self.stream.is_some() || !self.is_whole;
        if goes_on {
            self.batches.drain(..self.batch);
            (self.batch, self.is_whole) = (0, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn rows(batches: &[std::ops::Range<i64>]) -> Rows {
        let batch = |range: &std::ops::Range<i64>| {
            let array: ArrayRef = Arc::new(Int64Array::from_iter_values(range.clone()));
            RecordBatch::try_from_iter([("n", array)]).unwrap()
        };
        Rows { batches: batches.iter().map(batch).collect(), is_whole: true, ..Rows::default() }
    }

    fn page(rows: &mut Rows, rows_max: usize) -> (i64, usize, bool) {
        let page = futures::executor::block_on(rows.page(rows_max)).unwrap();
        let count = page.batches.iter().map(RecordBatch::num_rows).sum();
        (page.first_row, count, page.has_more)
    }

    #[test]
    fn pages_cross_batches_and_end_with_an_empty_one() {
        let mut rows = rows(&[0..3, 3..3, 3..5]);
        assert_eq!(page(&mut rows, 2), (0, 2, true));
        assert_eq!(page(&mut rows, 2), (2, 2, true));
        assert_eq!(page(&mut rows, 2), (4, 1, false));
        assert_eq!(page(&mut rows, 2), (5, 0, false));
        rows.rewind().unwrap();
        assert_eq!(page(&mut rows, 100), (0, 5, false));
    }

    #[test]
    fn long_rows_make_short_pages() {
        let long = "x".repeat(1 << 20);
        let array: ArrayRef = Arc::new(arrow_array::StringArray::from(vec![long.as_str(); 10]));
        let mut rows = Rows::of_batch(RecordBatch::try_from_iter([("t", array)]).unwrap());
        let (first, count, has_more) = page(&mut rows, 1000);
        assert!(first == 0 && (1..=4).contains(&count) && has_more, "{count}");
    }
}
