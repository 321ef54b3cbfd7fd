//! Reading a finished file again, to see that it holds what was written.
//!
//! ORC has no checksums of its own: a bit that turns over in memory, on the way to a store or in
//! it becomes a wrong number, and a mistake of a writer becomes one for good.
//! In: what a [`crate::Writer`] remembers if [`crate::WriterOptions::validate`] is set, and the
//! bytes of the file, read again. Out: an error that names stripe, column and row group, or a
//! [`ValidationReport`]. Looked at are
//!
//! - types, stripes, codec, user metadata as they were meant to be;
//! - the values of every column, read from the start to the end of a stripe, and once more row
//!   group by row group from the positions of the row index;
//! - statistics of row groups, stripes and file, against the values that were read;
//! - bloom filters: every value is in its own;
//! - the copy of the indexes in the footer, against the indexes;
//! - at last the bytes themselves.
//!
//! Not here: where the bytes come from. The idea is that of Trino's `OrcWriteValidation`.

mod stripe;
mod tally;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use stoa_error::Place;

use crate::bloom::hash_bytes;
use crate::error::{Error, Result, corrupt};
use crate::metadata::FileMetadata;
use crate::record::Record;
use crate::schema::{OrcType, TypeKind, TypeTree, attribute};
use crate::segments::Segments;
use crate::statistics::{ColumnStatistics, ValueStatistics};
use crate::tail::{TailDecoder, TailStep};
use crate::writer::Writer;
use crate::writer::collector::Collector;

/// First bytes of a file.
const MAGIC: &[u8] = b"ORC";

/// What [`Validator::next`] came to.
#[derive(Debug)]
pub enum Validation {
    /// Push these byte ranges of the file, read again, then call again.
    NeedsData(Vec<Range<u64>>),
    /// The file holds what was written.
    Finished(ValidationReport),
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidationReport {
    /// Stripes read.
    pub stripes: u64,
    /// Row groups read.
    pub row_groups: u64,
    /// Values compared, NULLs included, of all columns.
    pub values: u64,
    /// Statistics compared, of row groups, stripes and file.
    pub statistics: u64,
}

/// Compares a finished file, read again, with what was written.
///
/// Asks for one stripe at a time and holds as much memory. From [`crate::Writer::validator`].
///
/// ```
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use stoa_orc::{Validation, Writer, WriterOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let column: ArrayRef = std::sync::Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let batch = RecordBatch::try_from_iter([("number", column)])?;
/// let mut writer = Writer::new(&batch.schema(), WriterOptions::default().with_validation(true))?;
/// writer.write(&batch)?;
/// writer.finish()?;
/// let file = writer.take_output();
///
/// let mut validator = writer.validator()?;
/// let report = loop {
///     match validator.next()? {
///         Validation::NeedsData(ranges) => {
///             for range in ranges {
///                 let bytes = file.slice(range.start as usize..range.end as usize);
///                 validator.push(range.start, bytes);
///             }
///         }
///         Validation::Finished(report) => break report,
///     }
/// };
/// assert_eq!(report.stripes, 1);
/// # Ok(()) }
/// ```
pub struct Validator {
    record: Record,
    segments: Segments,
    stage: Stage,
    report: ValidationReport,
}

enum Stage {
    Tail,
    /// The stripe with this index is next; `totals` are of those before it, by column.
    Stripe {
        file: Arc<FileMetadata>,
        index: usize,
        totals: Vec<Total>,
    },
    Finished,
}

/// What was read of a column so far.
struct Total {
    collector: Collector,
    bytes: u64,
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").field("report", &self.report).finish_non_exhaustive()
    }
}

impl Writer {
    /// What is to be seen when the finished file is read again.
    ///
    /// # Errors
    /// `Invalid` without [`crate::WriterOptions::validate`], or if the file is not finished.
    pub fn validator(&self) -> Result<Validator> {
        let record = self.record.clone().ok_or_else(|| {
            Error::invalid("the ORC file is not finished, or was not to be validated")
                .with_hint("set WriterOptions::validate")
        })?;
        Ok(Validator::new(record))
    }
}

impl Validator {
    fn new(record: Record) -> Self {
        let report = ValidationReport::default();
        Self { record, segments: Segments::default(), stage: Stage::Tail, report }
    }

    /// Adds bytes of the file that start at `offset`.
    pub fn push(&mut self, offset: u64, bytes: Bytes) {
        self.segments.push(offset, bytes);
    }

    /// Goes on: asks for bytes, or says that all is well.
    ///
    /// # Errors
    /// `Corrupt` if the file is not what was written, naming stripe, column and row group; or what
    /// a [`crate::Decoder`] says of damaged bytes.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Validation> {
        loop {
            let needs = self.needs();
            if !needs.is_empty() {
                return Ok(Validation::NeedsData(needs));
            }
            let next = match std::mem::replace(&mut self.stage, Stage::Finished) {
                Stage::Tail => self.tail().map_err(|e| e.at("validation"))?,
                Stage::Stripe { file, index, totals } if index < self.record.stripes.len() => {
                    self.stripe(file, index, totals).map_err(|e| e.at("validation"))?
                }
                Stage::Stripe { file, totals, .. } => {
                    self.end(&file, &totals).map_err(|e| e.at("validation"))?
                }
                Stage::Finished => return Ok(Validation::Finished(self.report)),
            };
            self.stage = next;
        }
    }

    /// The ranges of the file that the stage needs and that are not here.
    fn needs(&self) -> Vec<Range<u64>> {
        let ranges = match &self.stage {
            Stage::Tail => vec![0..MAGIC.len() as u64, self.tail_range()],
            Stage::Stripe { index, .. } => {
                let stripe = self.record.stripes.get(*index);
                stripe.map(|stripe| stripe.info.range()).into_iter().collect()
            }
            Stage::Finished => Vec::new(),
        };
        ranges.into_iter().filter(|range| !self.segments.covers(range)).collect()
    }

    fn tail_range(&self) -> Range<u64> {
        self.record.tail_from..self.record.file_bytes
    }

    fn bytes(&self, range: &Range<u64>) -> Result<Bytes> {
        let bytes = self.segments.get(range);
        bytes.ok_or_else(|| Error::internal(format!("bytes {range:?} are not here")))
    }

    /// Compares the tail.
    fn tail(&mut self) -> Result<Stage> {
        if self.bytes(&(0..MAGIC.len() as u64))? != MAGIC {
            return Err(corrupt("the file does not start with `ORC`"));
        }
        let bytes = self.bytes(&self.tail_range())?;
        let mut decoder = TailDecoder::new(self.record.file_bytes);
        let TailStep::Done(mut file) = decoder.decode(bytes)? else {
            return Err(corrupt("file tail: is longer than what was written"));
        };
        self.compare_tail(&file).map_err(|e| e.at("file tail"))?;
        // Bytes come by stripes, not by blocks, and are compared with what was remembered.
        file.checksums = None;
        file.types = plain_types(&file.types, &self.record.nano_columns)?;
        let total = |ty: &OrcType| Total { collector: Collector::new(ty.kind, ty.scale), bytes: 0 };
        let totals = file.types.types().iter().map(total).collect();
        Ok(Stage::Stripe { file: Arc::new(file), index: 0, totals })
    }

    fn compare_tail(&self, file: &FileMetadata) -> Result<()> {
        let record = &self.record;
        let same = |what: &str, is_same: bool| match is_same {
            true => Ok(()),
            false => Err(corrupt(format!("{what} differ from what was written"))),
        };
        same("types", file.types == record.types)?;
        same("codec and block size", file.compression == record.compression)?;
        same("codec and block size", file.block_bytes == record.block_bytes)?;
        same("rows of row groups", file.row_index_stride == record.row_index_stride)?;
        same("keys of the user", file.user_metadata == record.user_metadata)?;
        same("stripes", file.stripes.len() == record.stripes.len())?;
        let pairs = file.stripes.iter().zip(&record.stripes);
        for (index, (found, stripe)) in pairs.enumerate() {
            same("its place and rows", *found == stripe.info)
                .map_err(|e| e.at(Place::Stripe(index)))?;
        }
        Ok(())
    }

    /// Compares a stripe.
    fn stripe(
        &mut self,
        file: Arc<FileMetadata>,
        index: usize,
        mut totals: Vec<Total>,
    ) -> Result<Stage> {
        let bytes = self.bytes(&self.record.stripes[index].info.range())?;
        let done =
            stripe::compare(&file, &self.record, index, &bytes).map_err(|e| at_stripe(e, index))?;
        for (total, (collector, bytes)) in totals.iter_mut().zip(&done.columns) {
            total.collector.merge(collector);
            total.bytes += bytes;
        }
        self.report.stripes += 1;
        self.report.row_groups += done.row_groups;
        self.report.values += done.values;
        self.report.statistics += done.statistics;
        self.segments.release_before(self.record.stripes[index].info.range().end);
        Ok(Stage::Stripe { file, index: index + 1, totals })
    }

    /// Compares the statistics of the file, and what of the tail no reader looks at.
    fn end(&mut self, file: &FileMetadata, totals: &[Total]) -> Result<Stage> {
        for (column, total) in (0u32..).zip(totals) {
            let expected = total.collector.statistics(Some(total.bytes));
            compare_statistics(&file.types, column, file.file_statistics(column), &expected)
                .map_err(|e| e.at(file.types.place(column)).at("file"))?;
            self.report.statistics += 1;
        }
        if hash_bytes(&self.bytes(&self.tail_range())?) != self.record.tail_hash {
            return Err(corrupt("file tail: its bytes are not those written"));
        }
        Ok(Stage::Finished)
    }
}

/// Names the stripe, unless the decoder has done so already.
fn at_stripe(error: Error, index: usize) -> Error {
    let place = Place::Stripe(index);
    if error.places().first() == Some(&place) { error } else { error.at(place) }
}

/// The types as they are read for a comparison: whatever they mean to a table, and timestamps in
/// the unit that they were written in.
fn plain_types(types: &TypeTree, nano_columns: &[u32]) -> Result<TypeTree> {
    let plain = |(column, ty): (u32, &OrcType)| {
        let mut ty = OrcType { attributes: Default::default(), ..ty.clone() };
        let is_timestamp = matches!(ty.kind, TypeKind::Timestamp | TypeKind::TimestampInstant);
        if is_timestamp && !nano_columns.contains(&column) {
            let (key, unit) = (attribute::TIMESTAMP_UNIT, attribute::MICROS);
            ty.attributes.insert(key.to_owned(), unit.to_owned());
        }
        ty
    };
    TypeTree::new((0u32..).zip(types.types()).map(plain).collect())
}

/// Whether statistics of a column in the file are those of the values read. A field of a struct has
/// NULLs where the struct has, too, which its own values do not show.
fn compare_statistics(
    types: &TypeTree,
    column: u32,
    found: Option<ColumnStatistics>,
    expected: &ColumnStatistics,
) -> Result<()> {
    let mut expected = ColumnStatistics::from_proto(&expected.to_proto());
    let is_top = column == 0 || types.types()[0].children.contains(&column);
    if !is_top && found.as_ref().is_some_and(|found| found.has_null) {
        expected.has_null = true;
    }
    match found {
        Some(found) if comparable(&found) == comparable(&expected) => Ok(()),
        found => Err(corrupt("statistics are not those of the values")
            .with_detail(format!("file: {found:?}; values: {expected:?}"))),
    }
}

/// Longer bounds are cut: whether one is a value depends on the order of the values.
const EXACT_BOUND_BYTES_MAX: usize = 1000;

/// Statistics that compare as they should: NaN is NaN.
fn comparable(statistics: &ColumnStatistics) -> String {
    let mut statistics = statistics.clone();
    match &mut statistics.bounds {
        ValueStatistics::Double { sum: Some(sum), .. } if sum.is_nan() => *sum = f64::NAN,
        ValueStatistics::String { lower, upper, lower_is_exact, upper_is_exact, .. } => {
            let is_long = |bound: &Option<Vec<u8>>| {
                bound.as_ref().is_some_and(|bound| bound.len() > EXACT_BOUND_BYTES_MAX)
            };
            *lower_is_exact &= !is_long(lower);
            *upper_is_exact &= !is_long(upper);
        }
        _ => {}
    }
    format!("{statistics:?}")
}
