//! The reader: a state machine that asks for byte ranges and yields record batches.
//!
//! ```text
//! stripes that statistics do not rule out
//!   → stripe footers (and small index sections)       asked for together, up to a bound
//!   → row indexes, bloom filters of predicate columns
//!   → row groups that may match
//!   → row indexes of the other columns                only if some row groups are left out
//!   → data of those row groups                        of several stripes, up to a bound
//!   → batches
//! ```
//! In: [`FileMetadata`], [`ReadOptions`] and bytes. Out: [`Step`]s. **Invariant:** rows come in
//! the order of the file; every row that the predicate keeps is there.
//! Not here: fetching, filtering rows, caching.

mod data;
mod reader;
mod task;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use stoa_error::Place;

use crate::checked_segments::CheckedSegments;
use crate::decode::context::Context;
use crate::decode::plan::Plan;
use crate::decode::row_filter::RowFilter;
use crate::error::Result;
use crate::metadata::{FileMetadata, parse_statistics};
use crate::options::ReadOptions;
use crate::prune::{Condition, Evidence, Level, Trust};
use crate::statistics::ColumnStatistics;
use crate::stripe::StripeMetadata;
use reader::StripeReader;
use task::{Progress, Task};

/// How many stripes are prepared (footers, indexes) at a time.
const PREPARED_MAX: usize = 256;

/// How many bytes of footers and indexes are asked for at a time, about.
const PREPARED_BYTES_MAX: u64 = 16 << 20;

/// What [`Decoder::next`] came to.
#[derive(Debug)]
pub enum Step {
    /// Push these byte ranges of the file, then call again.
    NeedsData(Vec<Range<u64>>),
    /// The next rows.
    Batch(RecordBatch),
    /// There are no more rows.
    Finished,
}

/// What a decoder has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodeMetrics {
    /// Stripes asked for.
    pub stripes_total: u64,
    /// Stripes left out by statistics.
    pub stripes_pruned: u64,
    /// Row groups in the stripes that were looked into.
    pub row_groups_total: u64,
    /// Row groups left out by statistics or bloom filters.
    pub row_groups_pruned: u64,
    /// Rows decoded and handed out.
    pub rows_decoded: u64,
    /// Rows of row groups that were read, of which only predicate columns were decoded.
    pub rows_skipped: u64,
    /// Bytes asked for.
    pub bytes_needed: u64,
    /// Ranges asked for.
    pub ranges_needed: u64,
    /// Times that data was asked for.
    pub rounds: u64,
}

/// Reads a file to record batches.
///
/// ```
/// use std::sync::Arc;
/// use stoa_orc::{Decoder, FileMetadata, ReadOptions, Step};
/// # fn read(file: &bytes::Bytes, metadata: Arc<FileMetadata>) -> stoa_error::Result<()> {
/// let mut decoder = Decoder::new(metadata, ReadOptions::default())?;
/// loop {
///     match decoder.next()? {
///         Step::NeedsData(ranges) => {
///             for range in ranges {
///                 let bytes = file.slice(range.start as usize..range.end as usize);
///                 decoder.push(range.start, bytes);
///             }
///         }
///         Step::Batch(batch) => println!("{} rows", batch.num_rows()),
///         Step::Finished => break,
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Decoder {
    file: Arc<FileMetadata>,
    options: ReadOptions,
    plan: Arc<Plan>,
    condition: Option<Condition>,
    filter: Option<Arc<RowFilter>>,
    cx: Context,
    segments: CheckedSegments,
    tasks: VecDeque<Task>,
    current: Option<StripeReader>,
    /// Metadata of stripes that are done, for [`Decoder::stripe_metadata`].
    known: std::collections::BTreeMap<usize, Arc<StripeMetadata>>,
    metrics: DecodeMetrics,
    /// The number in the file of the first row of the last batch.
    first_row: Option<u64>,
    /// What was asked for last; asking again for the same means that it was not pushed.
    asked: Vec<Range<u64>>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("stripes_left", &self.tasks.len())
            .field("metrics", &self.metrics)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder for a file.
    ///
    /// # Errors
    /// `Invalid` or `Unsupported` if the projection does not fit the file.
    pub fn new(file: Arc<FileMetadata>, options: ReadOptions) -> Result<Self> {
        let plan = Arc::new(Plan::new(&file.types, &options)?);
        let condition = options.predicate.as_ref().filter(|predicate| !predicate.is_always());
        let condition = condition.map(|predicate| Condition::new(predicate, &file, &plan));
        let all = 0..file.stripes.len();
        let stripes = options.stripes.clone().unwrap_or(all);
        // A cache wants whole row groups.
        let filter = condition.as_ref().filter(|_| !options.align_to_row_groups);
        let filter = filter.and_then(|condition| RowFilter::new(condition, &plan)).map(Arc::new);
        let mut metrics = DecodeMetrics::default();
        let mut tasks = VecDeque::new();
        for index in stripes.start..stripes.end.min(file.stripes.len()) {
            metrics.stripes_total += 1;
            if file.stripes[index].rows == 0 {
                continue;
            }
            if condition.as_ref().is_none_or(|c| c.may_match(&file, &OfStripe::new(&file, index))) {
                let known = options.stripe_metadata.get(&index);
                let known = known.or_else(|| file.copied_stripes.get(index));
                tasks.push_back(Task::new(index, known.cloned()));
            } else {
                metrics.stripes_pruned += 1;
            }
        }
        let cx = Context::new(file.compression, file.block_bytes, options.limits.batch_bytes);
        Ok(Self {
            plan,
            condition,
            filter,
            cx,
            segments: CheckedSegments::new(file.checksums.clone()),
            tasks,
            current: None,
            known: std::collections::BTreeMap::new(),
            metrics,
            first_row: None,
            asked: Vec::new(),
            file,
            options,
        })
    }

    /// Schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema.clone()
    }

    /// What was done so far.
    pub fn metrics(&self) -> &DecodeMetrics {
        &self.metrics
    }

    /// The number in the file, from 0, of the first row of the batch handed out last; the others
    /// follow it without a gap. `None` where a predicate may leave rows out inside of batches, which
    /// [`ReadOptions::align_to_row_groups`] prevents.
    pub fn first_row(&self) -> Option<u64> {
        self.first_row
    }

    /// What is known about a stripe by now, to hand in when the file is read again.
    pub fn stripe_metadata(&self, stripe: usize) -> Option<Arc<StripeMetadata>> {
        let of_task = || self.tasks.iter().find(|task| task.index == stripe)?.metadata.clone();
        self.known.get(&stripe).cloned().or_else(of_task)
    }

    /// Adds bytes of the file that start at `offset`. They may hold more than was asked for, or
    /// a part of it.
    pub fn push(&mut self, offset: u64, bytes: Bytes) {
        self.segments.push(offset, bytes);
    }

    /// Goes on: the next batch, or the ranges that it needs. After [`Step::Finished`] it stays so.
    ///
    /// # Errors
    /// `Corrupt` for a damaged file, naming stripe, column, stream and offset; `Unsupported` for
    /// what is not read; `Exhausted` beyond the limits. After an error the decoder is of no use.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Step> {
        loop {
            if let Some(reader) = &mut self.current {
                let index = reader.index();
                let batch = reader.next(&mut self.cx).map_err(|e| at_stripe(e, index))?;
                self.metrics.rows_skipped += reader.take_skipped();
                if let Some(batch) = batch {
                    let before = || self.file.stripes[..index].iter().map(|stripe| stripe.rows);
                    self.first_row = reader.first_row().map(|row| before().sum::<u64>() + row);
                    self.metrics.rows_decoded += batch.num_rows() as u64;
                    return Ok(Step::Batch(batch));
                }
                self.finish_current();
            }
            let needs = self.prepare()?;
            match self.tasks.front() {
                None => return Ok(Step::Finished),
                Some(task) if task.is_ready() => self.open_front()?,
                Some(_) => return self.ask(needs),
            }
        }
    }

    /// Brings the first tasks as far as the bytes that are here allow; returns what they need.
    fn prepare(&mut self) -> Result<Vec<Range<u64>>> {
        let mut needs = Vec::new();
        let (mut metadata_bytes, mut data_bytes) = (0u64, 0u64);
        let mut index = 0;
        while index < self.tasks.len().min(PREPARED_MAX) {
            if metadata_bytes > PREPARED_BYTES_MAX {
                break;
            }
            let env = task::Env {
                file: &self.file,
                options: &self.options,
                plan: &self.plan,
                condition: self.condition.as_ref(),
            };
            let task = &mut self.tasks[index];
            let stripe = task.index;
            let may_ask_data = index == 0 || data_bytes < self.options.ahead_bytes;
            let progress = task
                .advance(&env, &mut self.segments, &mut self.cx, may_ask_data, &mut self.metrics)
                .map_err(|e| at_stripe(e, stripe))?;
            match progress {
                Progress::Ready { bytes } => data_bytes = data_bytes.saturating_add(bytes),
                Progress::Empty => {
                    if let Some(task) = self.tasks.remove(index) {
                        self.remember(task.index, task.metadata);
                    }
                    continue;
                }
                Progress::NeedsMetadata(ranges) => {
                    metadata_bytes += ranges.iter().map(|r| r.end - r.start).sum::<u64>();
                    needs.extend(ranges);
                }
                Progress::NeedsData(ranges) => {
                    let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
                    // A stripe goes with those before it only if there is room for it.
                    if index == 0 || data_bytes.saturating_add(bytes) <= self.options.ahead_bytes {
                        needs.extend(ranges);
                    }
                    data_bytes = data_bytes.saturating_add(bytes);
                }
                Progress::Waits => {}
            }
            index += 1;
        }
        Ok(needs)
    }

    /// Turns the needs into a step.
    fn ask(&mut self, needs: Vec<Range<u64>>) -> Result<Step> {
        let whole = needs.into_iter().map(|range| self.segments.widen(range));
        let mut needs: Vec<_> = whole.collect();
        needs.sort_unstable_by_key(|range| (range.start, range.end));
        // Ranges that touch are one: runs share chunks, streams are neighbours.
        needs.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        if needs != self.asked {
            self.metrics.bytes_needed += needs.iter().map(|r| r.end - r.start).sum::<u64>();
            self.metrics.ranges_needed += needs.len() as u64;
            self.metrics.rounds += 1;
            self.asked = needs.clone();
        }
        if needs.is_empty() {
            return Err(stoa_error::Error::internal("a stripe waits for nothing"));
        }
        Ok(Step::NeedsData(needs))
    }

    fn open_front(&mut self) -> Result<()> {
        let Some(task) = self.tasks.pop_front() else { return Ok(()) };
        let index = task.index;
        self.remember(index, task.metadata.clone());
        let filter = self.filter.clone();
        let reader = StripeReader::new(&self.file, &self.options, self.plan.clone(), filter, task)
            .map_err(|e| at_stripe(e, index))?;
        self.current = Some(reader);
        Ok(())
    }

    fn finish_current(&mut self) {
        if let Some(mut reader) = self.current.take() {
            reader.recycle(&mut self.cx);
        }
        let starts = self.tasks.iter().map(|task| self.file.stripes[task.index].offset);
        self.segments.release_before(starts.min().unwrap_or(u64::MAX));
    }

    fn remember(&mut self, stripe: usize, metadata: Option<Arc<StripeMetadata>>) {
        if let Some(metadata) = metadata {
            self.known.insert(stripe, metadata);
        }
    }
}

#[cold]
fn at_stripe(error: crate::error::Error, stripe: usize) -> crate::error::Error {
    error.at(Place::Stripe(stripe))
}

/// Statistics of a stripe, of which few columns are looked at.
struct OfStripe<'a> {
    trust: Trust<'a>,
    encoded: Option<Vec<Bytes>>,
}

impl<'a> OfStripe<'a> {
    fn new(file: &'a FileMetadata, stripe: usize) -> Self {
        Self { trust: Trust::of(file), encoded: file.encoded_stripe_statistics(stripe) }
    }
}

impl Evidence for OfStripe<'_> {
    fn statistics(&self, column: u32) -> Option<ColumnStatistics> {
        let encoded = self.encoded.as_ref()?.get(column as usize)?;
        let statistics = parse_statistics(encoded.clone())?;
        self.trust.statistics(column, Level::Stripe, statistics)
    }

    fn bloom(&self, _: u32) -> Option<(&crate::bloom::BloomIndex, usize)> {
        None
    }
}
