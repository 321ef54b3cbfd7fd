//! One data file as cells, a few row groups at a time.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use stoa_error::{Error, ErrorKind, Place, Result};
use stoa_hql::CellBatch;
use stoa_hql::batch::{ROW, SortedRun};
use stoa_orc::{
    Decoder, FileMetadata, Predicate, Projection, ReadOptions, Step, StripeInfo, StripeMetadata,
};
use stoa_rangeio::RangeReader;
use stoa_table::ScanFile;

use super::optional_columns;
use crate::footers::Footers;
use crate::layout::{Layout, to_cells};
use crate::state::Inner;

/// Which rows of a file, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of them; they are text, and in order.
    All,
    /// Those whose row key is text, which come first.
    Text,
    /// Those whose row key is no text.
    Bytes,
    /// All of them, in no order: another engine wrote the file.
    Unsorted,
}

/// How the files of a scan are read.
pub(super) struct ReadPlan {
    pub(super) layout: Layout,
    pub(super) predicate: Predicate,
    /// Single rows are asked for, so that little is read of each file.
    pub(super) picks_rows: bool,
    /// There are several chains.
    pub(super) is_merged: bool,
    /// Columns that nobody wants.
    pub(super) without: Vec<&'static str>,
    /// Encoded bytes to hold of each file at a time, about.
    pub(super) window_bytes: u64,
    /// Bytes of a file without order that are sorted in memory.
    pub(super) sort_bytes_max: usize,
}

/// A file being read.
pub(super) struct FileReader {
    inner: Arc<Inner>,
    plan: Arc<ReadPlan>,
    file: Arc<ScanFile>,
    part: Part,
    reader: RangeReader,
    metadata: Arc<FileMetadata>,
    columns: SchemaRef,
    /// What is still to be read: all stripes, or row groups of one.
    windows: std::vec::IntoIter<Window>,
    decoder: Option<(Decoder, Window)>,
    /// What is known of stripes: of those that were read before if single rows are asked for, else of
    /// the last one.
    known: Vec<(usize, Arc<StripeMetadata>)>,
    sorted: Option<SortedRun>,
}

#[derive(Clone, Debug)]
enum Window {
    File,
    Groups(usize, Range<usize>),
}

impl FileReader {
    pub(super) async fn open(
        inner: &Arc<Inner>,
        plan: Arc<ReadPlan>,
        file: Arc<ScanFile>,
        part: Part,
    ) -> Result<Self> {
        let footers = &inner.footers;
        let reader = file.reader.clone();
        let metadata = match footers.get(&file.location) {
            Some(metadata) => metadata,
            None => {
                let metadata = Arc::new(file.read_metadata(&reader).await?);
                footers.put(&file.location, &metadata);
                metadata
            }
        };
        let columns = columns(&plan, &file)?;
        let (windows, known) = match plan.picks_rows {
            true => (vec![Window::File], footers.stripes(&file.location)),
            false => (windows(&metadata, plan.window_bytes), Vec::new()),
        };
        let windows = windows.into_iter();
        Ok(Self {
            inner: Arc::clone(inner),
            plan,
            file,
            part,
            reader,
            metadata,
            columns,
            windows,
            decoder: None,
            known,
            sorted: None,
        })
    }

    /// The next cells; none after the last.
    pub(super) async fn next(&mut self) -> Result<Option<CellBatch>> {
        if self.part == Part::Unsorted {
            return self.next_sorted().await;
        }
        let Some(batch) = self.next_rows().await? else { return Ok(None) };
        let batch = match self.part {
            Part::All | Part::Unsorted => batch,
            Part::Text => batch.slice(0, texts(&batch)),
            Part::Bytes => batch.slice(texts(&batch), batch.num_rows() - texts(&batch)),
        };
        to_cells(&batch).map(Some).map_err(|e| e.at(Place::file(&self.file.location)))
    }

    async fn next_sorted(&mut self) -> Result<Option<CellBatch>> {
        if self.sorted.is_none() {
            let mut batches = Vec::new();
            let mut bytes = 0;
            while let Some(batch) = self.next_rows().await? {
                let cells = to_cells(&batch).map_err(|e| e.at(Place::file(&self.file.location)))?;
                bytes += cells.memory_bytes();
                batches.push(cells);
                if bytes > self.plan.sort_bytes_max {
                    return Err(self.too_large_to_sort());
                }
            }
            self.sorted = Some(SortedRun::new(batches));
        }
        match &mut self.sorted {
            Some(sorted) => sorted.next().transpose(),
            None => Ok(None),
        }
    }

    async fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some((decoder, window)) = &mut self.decoder else {
                let Some(window) = self.windows.next() else { return Ok(None) };
                self.decoder = Some((self.decode(&window)?, window));
                continue;
            };
            match decoder.next().map_err(|e| e.at(Place::file(&self.file.location)))? {
                Step::Batch(batch) => return Ok(Some(batch)),
                Step::NeedsData(ranges) => {
                    let read = self.reader.read(&self.file.path, &ranges).await;
                    let chunks = read.map_err(|error| self.file.failed(error))?;
                    chunks.into_iter().for_each(|(at, bytes)| decoder.push(at, bytes));
                }
                Step::Finished => {
                    match window {
                        Window::File => {
                            keep_stripes(&self.inner.footers, &self.file, decoder, &self.metadata);
                        }
                        // The next window of the stripe need not read footer and indexes again.
                        Window::Groups(stripe, _) => {
                            let metadata = decoder.stripe_metadata(*stripe);
                            let known = metadata.map(|metadata| (*stripe, metadata));
                            self.known = known.into_iter().collect();
                        }
                    }
                    self.decoder = None;
                }
            }
        }
    }

    fn decode(&self, window: &Window) -> Result<Decoder> {
        let mut options = ReadOptions::default()
            .with_projection(Projection::Fields(Arc::clone(&self.columns)))
            .with_predicate(self.plan.predicate.clone())
            .with_ahead_bytes(self.plan.window_bytes);
        if let Window::Groups(stripe, groups) = window {
            options = options.with_stripes(*stripe..*stripe + 1);
            if self.metadata.row_index_stride > 0 {
                options = options.with_row_groups(*stripe, groups.clone().collect::<BTreeSet<_>>());
            }
        }
        for (stripe, metadata) in &self.known {
            options = options.with_stripe_metadata(*stripe, Arc::clone(metadata));
        }
        Decoder::new(Arc::clone(&self.metadata), options)
            .map_err(|e| e.at(Place::file(&self.file.location)))
    }

    fn too_large_to_sort(&self) -> Error {
        let what = "the file is in no order, and too large to be sorted for one question";
        Error::new(ErrorKind::Exhausted, format!("{}: {what}", self.file.location))
            .with_hint("COMPACT TABLE puts it in order")
    }
}

/// Keeps what a decoder has found out about stripes: they will be asked for other rows.
fn keep_stripes(footers: &Footers, file: &ScanFile, decoder: &Decoder, metadata: &FileMetadata) {
    for stripe in 0..metadata.stripes.len() {
        if let Some(known) = decoder.stripe_metadata(stripe) {
            let bytes = metadata.memory_bytes_beside(stripe, &known);
            footers.put_stripe(&file.location, stripe, known, bytes);
        }
    }
}

/// Rows at the beginning of a sorted batch whose row key is text.
fn texts(batch: &RecordBatch) -> usize {
    batch.column_by_name(ROW).map_or(0, |rows| rows.len() - rows.null_count())
}

/// The columns to be read: without those that nobody wants or that hold only NULL.
fn columns(plan: &ReadPlan, file: &ScanFile) -> Result<SchemaRef> {
    let mut without = plan.without.clone();
    for column in optional_columns() {
        if file.null_counts.get(&plan.layout.id(column)?) == Some(&file.rows) {
            without.push(column);
        }
    }
    let all = plan.layout.schema();
    let wanted = all.fields().iter().filter(|field| !without.contains(&field.name().as_str()));
    Ok(Arc::new(Schema::new(wanted.cloned().collect::<Vec<_>>())))
}

/// Cuts the stripes of a file into windows of about `bytes` each.
fn windows(file: &FileMetadata, bytes: u64) -> Vec<Window> {
    let of_stripe = |(index, stripe): (usize, &StripeInfo)| {
        let stride = u64::from(file.row_index_stride);
        let groups = if stride == 0 { 1 } else { stripe.rows.div_ceil(stride) };
        let group_bytes = (stripe.data_bytes / groups.max(1)).max(1);
        let step = usize::try_from((bytes / group_bytes).max(1)).unwrap_or(usize::MAX);
        let groups = usize::try_from(groups).unwrap_or(usize::MAX);
        let starts = (0..groups).step_by(step);
        starts
            .map(move |start| Window::Groups(index, start..groups.min(start.saturating_add(step))))
    };
    file.stripes.iter().enumerate().flat_map(of_stripe).collect()
}
