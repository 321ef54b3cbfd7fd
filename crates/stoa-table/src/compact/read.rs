//! One data file from its first row to its last, a few row groups at a time.
//!
//! Memory: the encoded bytes of one window of row groups (about `window_bytes`, at least one row
//! group), the dictionaries of the stripe, and one decoded batch.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::{Error, Place, Result};
use stoa_orc::{
    Decoder, FileMetadata, Projection, ReadOptions, Step, StripeInfo, StripeMetadata, TailDecoder,
    TailStep,
};
use stoa_rangeio::RangeReader;

use crate::compact::work::Meter;
use crate::{RowOptions, RowReader, ScanFile};

/// How files are read.
#[derive(Clone, Debug)]
pub(super) struct ReadLimits {
    /// The columns wanted, with field ids.
    pub(super) schema: SchemaRef,
    /// Encoded bytes of row groups to hold at a time, about.
    pub(super) window_bytes: u64,
}

/// A file being read.
pub(super) enum FileReader {
    /// ORC with all its rows.
    Plain(PlainReader),
    /// Any other.
    Rows(RowReader),
}

impl FileReader {
    pub(super) async fn open(
        file: Arc<ScanFile>,
        limits: ReadLimits,
        meter: &Meter<'_>,
    ) -> Result<Self> {
        if file.is_plain() {
            return PlainReader::open(file, limits, meter).await.map(Self::Plain);
        }
        meter.read(file.file_bytes).await?;
        let ahead_bytes = limits.window_bytes;
        let options = RowOptions { ahead_bytes, ..RowOptions::of(limits.schema) };
        meter.table.read_rows(&file, options).await.map(Self::Rows)
    }

    /// The next rows; `None` after the last.
    pub(super) async fn next(&mut self, meter: &Meter<'_>) -> Result<Option<RecordBatch>> {
        match self {
            Self::Plain(reader) => reader.next(meter).await,
            Self::Rows(reader) => {
                meter.go_on()?;
                reader.next().await
            }
        }
    }

    /// Rows left out so far because they are deleted.
    pub(super) fn deleted_rows(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Rows(reader) => reader.deleted_rows(),
        }
    }
}

/// An ORC file being read.
pub(super) struct PlainReader {
    file: Arc<ScanFile>,
    reader: RangeReader,
    metadata: Arc<FileMetadata>,
    limits: ReadLimits,
    /// What is still to be read: stripes and row groups of them.
    windows: std::vec::IntoIter<(usize, Range<usize>)>,
    window: Option<Window>,
}

/// Row groups that are being decoded.
struct Window {
    decoder: Decoder,
    stripe: usize,
}

impl PlainReader {
    async fn open(file: Arc<ScanFile>, limits: ReadLimits, meter: &Meter<'_>) -> Result<Self> {
        let reader = file.reader.clone();
        let metadata = Arc::new(read_metadata(&file, &reader, meter).await?);
        if metadata.rows != file.rows {
            return Err(Error::corrupt(format!(
                "{}: the data file has {} rows, its manifest says {}",
                file.location, metadata.rows, file.rows
            )));
        }
        let windows = windows(&metadata, limits.window_bytes).into_iter();
        Ok(Self { file, reader, metadata, limits, windows, window: None })
    }

    async fn next(&mut self, meter: &Meter<'_>) -> Result<Option<RecordBatch>> {
        let mut known = None;
        loop {
            let Some(window) = &mut self.window else {
                let Some((stripe, groups)) = self.windows.next() else { return Ok(None) };
                self.window = Some(self.decode(stripe, groups, known.take())?);
                continue;
            };
            match window.decoder.next().map_err(|e| e.at(Place::file(&self.file.location)))? {
                Step::Batch(batch) => return Ok(Some(batch)),
                Step::NeedsData(ranges) => {
                    let bytes = ranges.iter().map(|range| range.end - range.start).sum();
                    meter.read(bytes).await?;
                    let read = self.reader.read(&self.file.path, &ranges).await;
                    let chunks = read.map_err(|error| self.file.failed(error))?;
                    chunks.into_iter().for_each(|(at, bytes)| window.decoder.push(at, bytes));
                }
                Step::Finished => {
                    // The next window of the same stripe need not read footer and indexes again.
                    let metadata = window.decoder.stripe_metadata(window.stripe);
                    known = metadata.map(|metadata| (window.stripe, metadata));
                    self.window = None;
                }
            }
        }
    }

    fn decode(
        &self,
        stripe: usize,
        groups: Range<usize>,
        known: Option<(usize, Arc<StripeMetadata>)>,
    ) -> Result<Window> {
        let projection = Projection::Fields(self.limits.schema.clone());
        let mut options = ReadOptions::default()
            .with_projection(projection)
            .with_stripes(stripe..stripe + 1)
            .with_ahead_bytes(self.limits.window_bytes);
        if self.metadata.row_index_stride > 0 {
            options = options.with_row_groups(stripe, groups.collect());
        }
        if let Some((_, metadata)) = known.filter(|(of, _)| *of == stripe) {
            options = options.with_stripe_metadata(stripe, metadata);
        }
        let decoder = Decoder::new(self.metadata.clone(), options);
        Ok(Window { decoder: decoder.map_err(|e| e.at(Place::file(&self.file.location)))?, stripe })
    }
}

/// Cuts the stripes of a file into windows of about `bytes` each.
fn windows(file: &FileMetadata, bytes: u64) -> Vec<(usize, Range<usize>)> {
    let of_stripe = |(index, stripe): (usize, &StripeInfo)| {
        let stride = u64::from(file.row_index_stride);
        let groups = if stride == 0 { 1 } else { stripe.rows.div_ceil(stride) };
        let group_bytes = (stripe.data_bytes / groups.max(1)).max(1);
        let step = usize::try_from((bytes / group_bytes).max(1)).unwrap_or(usize::MAX);
        let groups = usize::try_from(groups).unwrap_or(usize::MAX);
        let starts = (0..groups).step_by(step);
        starts.map(move |start| (index, start..groups.min(start.saturating_add(step))))
    };
    file.stripes.iter().enumerate().flat_map(of_stripe).collect()
}

async fn read_metadata(
    file: &ScanFile,
    reader: &RangeReader,
    meter: &Meter<'_>,
) -> Result<FileMetadata> {
    let mut tail = TailDecoder::new(file.file_bytes).with_proleptic_dates();
    let mut wanted = tail.first_read();
    loop {
        let range = file.file_bytes.saturating_sub(wanted)..file.file_bytes;
        meter.read(range.end - range.start).await?;
        let bytes = reader.read_one(&file.path, range).await;
        let bytes = bytes.map_err(|error| file.failed(error))?;
        match tail.decode(bytes).map_err(|e| e.at(Place::file(&file.location)))? {
            TailStep::NeedsTail(more) => wanted = more,
            TailStep::Done(metadata) => return Ok(metadata),
        }
    }
}
