//! Decodes the runs of a stripe to record batches.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};

use super::data::OpenRun;
use super::task::Task;
use crate::calendar::DateRule;
use crate::decode::column::{Column, Opening};
use crate::decode::context::Context;
use crate::decode::dictionary::Dictionary;
use crate::decode::nested::StructColumn;
use crate::decode::plan::Plan;
use crate::decode::row_filter::RowFilter;
use crate::decode::timezone::Zone;
use crate::error::{Error, Result, corrupt};
use crate::metadata::FileMetadata;
use crate::options::ReadOptions;
use crate::statistics::ValueStatistics;
use crate::stripe::StripeMetadata;

/// A batch is meant to take about this many bytes at most, where statistics tell.
const TARGET_BATCH_BYTES: u64 = 64 << 20;

/// Reads one stripe.
pub(super) struct StripeReader {
    index: usize,
    file: Arc<FileMetadata>,
    plan: Arc<Plan>,
    metadata: Arc<StripeMetadata>,
    zone: Zone,
    runs: VecDeque<OpenRun>,
    current: Option<Run>,
    dictionaries: HashMap<u32, Arc<Dictionary>>,
    batch_rows: u64,
    filter: Option<Arc<RowFilter>>,
    skipped: u64,
    /// Where in the stripe the last batch began.
    first: u64,
    /// Rows after which a batch ends, counted from the start of the stripe; 0 = anywhere.
    align_rows: u64,
}

/// A run being decoded.
struct Run {
    root: Root,
    at: u64,
    end: u64,
}

enum Root {
    Struct(Box<StructColumn>),
    Column(Box<dyn Column>),
}

impl StripeReader {
    pub(super) fn new(
        file: &Arc<FileMetadata>,
        options: &ReadOptions,
        plan: Arc<Plan>,
        filter: Option<Arc<RowFilter>>,
        task: Task,
    ) -> Result<Self> {
        let index = task.index;
        let Some((metadata, data)) = task.into_data() else {
            return Err(Error::internal("stripe is opened before its bytes are here"));
        };
        let batch_rows = batch_rows(file, index, &plan, options.batch_rows as u64);
        let align_rows =
            if options.align_to_row_groups { u64::from(file.row_index_stride) } else { 0 };
        Ok(Self {
            index,
            zone: Zone::of(metadata.timezone()),
            file: file.clone(),
            plan,
            metadata,
            runs: data.runs.into(),
            current: None,
            dictionaries: HashMap::new(),
            batch_rows,
            filter,
            skipped: 0,
            first: 0,
            align_rows,
        })
    }

    /// The stripe's index.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The next batch; `None` after the last one.
    pub(super) fn next(&mut self, cx: &mut Context) -> Result<Option<RecordBatch>> {
        loop {
            if self.current.is_none() {
                let Some(run) = self.runs.pop_front() else { return Ok(None) };
                self.current = Some(self.open(run, cx)?);
            }
            let Some(run) = &mut self.current else { return Ok(None) };
            if run.at == run.end {
                run.recycle(cx);
                self.current = None;
                continue;
            }
            let mut rows = self.batch_rows.min(run.end - run.at);
            if self.align_rows > 0 {
                rows = rows.min(self.align_rows - run.at % self.align_rows);
            }
            let first = run.at;
            run.at += rows;
            cx.start_budget();
            let filter = self.filter.as_deref();
            let batch = run.decode(cx, rows as usize, &self.plan, filter).map_err(|e| {
                e.with_detail(format!("rows {first} to {} of the stripe", first + rows))
            })?;
            let kept = batch.as_ref().map_or(0, RecordBatch::num_rows);
            self.skipped += rows - kept as u64;
            self.first = first;
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }

    /// Where in the stripe the last batch began; `None` where rows were left out inside of batches.
    pub(super) fn first_row(&self) -> Option<u64> {
        self.filter.is_none().then_some(self.first)
    }

    /// Rows left out since the last call.
    pub(super) fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    fn open(&mut self, run: OpenRun, cx: &mut Context) -> Result<Run> {
        cx.start_budget();
        let mut opening = Opening {
            file: &self.file,
            stripe: &self.metadata,
            streams: &run.streams,
            zone: &self.zone,
            dates: DateRule::of(&self.file),
            dictionaries: &mut self.dictionaries,
        };
        let root = if self.plan.is_wrapped {
            Root::Column(opening.open(&self.plan.root, cx)?)
        } else {
            Root::Struct(StructColumn::open(&mut opening, &self.plan.root, cx)?)
        };
        Ok(Run { root, at: run.rows.start, end: run.rows.end })
    }

    /// Gives memory back.
    pub(super) fn recycle(&mut self, cx: &mut Context) {
        if let Some(mut run) = self.current.take() {
            run.recycle(cx);
        }
    }
}

impl Run {
    /// The next rows; `None` if the filter keeps none of them.
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        plan: &Plan,
        filter: Option<&RowFilter>,
    ) -> Result<Option<RecordBatch>> {
        let (arrays, rows) = match (&mut self.root, filter) {
            (Root::Struct(root), Some(filter)) => match root.decode_kept(cx, rows, filter)? {
                Some(decoded) => decoded,
                None => return Ok(None),
            },
            (Root::Struct(root), None) => (root.decode_children(cx, rows, None)?.0, rows),
            (Root::Column(column), _) => (vec![column.decode(cx, rows, None)?], rows),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(plan.schema.clone(), arrays, &options);
        batch.map(Some).map_err(|e| corrupt(e.to_string()))
    }

    fn recycle(&mut self, cx: &mut Context) {
        match &mut self.root {
            Root::Struct(root) => root.recycle(cx),
            Root::Column(column) => column.recycle(cx),
        }
    }
}

/// Rows per batch: fewer where statistics say that values are long.
fn batch_rows(file: &FileMetadata, stripe: usize, plan: &Plan, wanted: u64) -> u64 {
    let rows = file.stripes[stripe].rows.max(1);
    let Some(statistics) = file.stripe_statistics(stripe) else { return wanted };
    let of = |column: &u32| match statistics.get(*column as usize)?.bounds {
        ValueStatistics::String { total_bytes, .. } | ValueStatistics::Binary { total_bytes } => {
            total_bytes.and_then(|bytes| u64::try_from(bytes).ok())
        }
        _ => None,
    };
    let bytes = plan.columns.iter().filter_map(of).fold(0u64, u64::saturating_add);
    let per_row = bytes / rows + 1;
    wanted.min((TARGET_BATCH_BYTES / per_row).max(1))
}
