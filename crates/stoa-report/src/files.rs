//! What is read of data files: tails, bounds of row groups, chunks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use stoa_error::{Error, Place, Result};
use stoa_orc::{
    ColumnRef, Decoder, FileMetadata, Predicate, Projection, ReadOptions, Step, StripeMetadata,
};
use stoa_rangeio::RangeReader;
use stoa_table::ScanFile;

use crate::chunk::Chunk;
use crate::report::Column;
use crate::zones::Zones;

/// Rows decoded at a time; larger row groups are put together from several batches.
const BATCH_ROWS: usize = 64 << 10;

/// The tail of a file, and where its row groups are.
#[derive(Debug)]
pub(crate) struct FileTail {
    pub(crate) metadata: Arc<FileMetadata>,
    /// Stripe directories that the tail does not bring along.
    stripes: BTreeMap<usize, Arc<StripeMetadata>>,
    pub(crate) groups: Vec<GroupPlace>,
}

/// Where a row group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupPlace {
    pub(crate) stripe: u32,
    /// Within the stripe.
    pub(crate) group: u32,
    pub(crate) rows: u32,
}

impl FileTail {
    pub(crate) fn new(metadata: Arc<FileMetadata>) -> Self {
        let mut groups = Vec::new();
        for (stripe, info) in metadata.stripes.iter().enumerate() {
            let stride = match metadata.row_index_stride {
                0 => info.rows,
                stride => u64::from(stride),
            };
            let mut left = info.rows;
            let count = metadata.row_groups(stripe);
            for group in 0..count {
                let rows = if group + 1 == count { left } else { left.min(stride.max(1)) };
                left -= rows;
                let place = (stripe as u32, group as u32);
                groups.push(GroupPlace { stripe: place.0, group: place.1, rows: rows as u32 });
            }
        }
        Self { metadata, stripes: BTreeMap::new(), groups }
    }

    /// Memory this takes, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let stripes: usize = self.stripes.values().map(|stripe| stripe.memory_bytes()).sum();
        let groups = self.groups.len() * size_of::<GroupPlace>();
        size_of::<Self>() + self.metadata.memory_bytes() + stripes + groups
    }

    fn options(&self, schema: SchemaRef) -> ReadOptions {
        let mut options = ReadOptions::default().with_projection(Projection::Fields(schema));
        for (stripe, metadata) in &self.stripes {
            options = options.with_stripe_metadata(*stripe, metadata.clone());
        }
        options
    }
}

/// Bounds of `columns` in the row groups of a file, one per column; and the tail with what was
/// learnt of its stripes on the way, if anything.
pub(crate) async fn read_zones(
    reader: &RangeReader,
    file: &ScanFile,
    tail: &FileTail,
    columns: &[&Column],
    schema: SchemaRef,
) -> Result<(Vec<Zones>, Option<FileTail>)> {
    let metadata = &tail.metadata;
    // A condition that always holds makes the decoder read the indexes of its columns, and of no
    // row group the data.
    let asked = columns.iter().map(|column| {
        let column = ColumnRef::Field(column.field_id);
        Predicate::Or(vec![Predicate::IsNull(column), Predicate::IsNotNull(column)])
    });
    let mut options = tail.options(schema).with_predicate(Predicate::And(asked.collect()));
    for stripe in 0..metadata.stripes.len() {
        options = options.with_row_groups(stripe, BTreeSet::new());
    }
    let mut decoder = decoder(file, metadata, options)?;
    while next_batch(&mut decoder, reader, file).await?.is_some() {}
    let stripes: Vec<Option<Arc<StripeMetadata>>> =
        (0..metadata.stripes.len()).map(|stripe| decoder.stripe_metadata(stripe)).collect();
    let zones = columns.iter().map(|column| {
        let of_stripe = |(stripe, known): (usize, &'_ Option<Arc<StripeMetadata>>)| {
            (known.clone(), metadata.row_groups(stripe))
        };
        let stripes: Vec<_> = stripes.iter().enumerate().map(of_stripe).collect();
        let stripes = stripes.iter().map(|(known, groups)| (known.as_deref(), *groups));
        Zones::of_row_groups(metadata, column, stripes)
    });
    let zones = zones.collect();
    if metadata.has_copied_stripes() {
        return Ok((zones, None));
    }
    let known = stripes.into_iter().enumerate().filter_map(|(n, known)| Some((n, known?)));
    let (metadata, groups) = (metadata.clone(), tail.groups.clone());
    Ok((zones, Some(FileTail { metadata, stripes: known.collect(), groups })))
}

/// Chunks by row group (counted through the file) and field id.
pub(crate) type Chunks = HashMap<(u32, i32), Arc<Chunk>>;

/// Reads `columns` of the row groups `groups` (counted through the file, ascending).
pub(crate) async fn read_chunks(
    reader: &RangeReader,
    file: &ScanFile,
    tail: &FileTail,
    groups: &[u32],
    columns: &[&Column],
    table: &Schema,
    kept: bool,
) -> Result<Chunks> {
    let place = |group: &u32| {
        let place = tail.groups.get(*group as usize).copied();
        place.map(|place| (*group, place)).ok_or_else(|| {
            Error::internal(format!("there is no row group {group}"))
                .at(Place::file(&file.location))
        })
    };
    let places: Vec<(u32, GroupPlace)> = groups.iter().map(place).collect::<Result<_>>()?;
    let mut by_stripe: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (_, place) in &places {
        by_stripe.entry(place.stripe as usize).or_default().insert(place.group as usize);
    }
    let Some(stripes) = span(&by_stripe) else { return Ok(Chunks::new()) };
    let schema = projected(table, columns)?;
    let mut options = tail
        .options(coded(&schema))
        .with_batch_rows(BATCH_ROWS)
        .with_align_to_row_groups(true)
        .with_stripes(stripes.clone());
    // All stripes in one decoder, so that their data is asked for together.
    for stripe in stripes {
        options = options.with_row_groups(stripe, by_stripe.remove(&stripe).unwrap_or_default());
    }
    let mut decoder = decoder(file, &tail.metadata, options)?;
    let mut chunks = Chunks::with_capacity(groups.len() * columns.len());
    for (group, place) in &places {
        let batch = read_group(&mut decoder, reader, file, place.rows as usize).await?;
        if batch.num_columns() != columns.len() {
            let message = format!(
                "{}: {} columns were read, not {}",
                file.location,
                batch.num_columns(),
                columns.len()
            );
            return Err(Error::internal(message));
        }
        for (column, array) in columns.iter().zip(batch.columns()) {
            let chunk = as_chunk(array, file)?;
            let chunk = if kept { chunk.compact() } else { chunk.packed() };
            chunks.insert((*group, column.field_id), Arc::new(chunk));
        }
        // Decoding is work: others on this thread have their turn.
        tokio::task::yield_now().await;
    }
    Ok(chunks)
}

/// From the first stripe to the last; `None` where there are none.
fn span(stripes: &BTreeMap<usize, BTreeSet<usize>>) -> Option<Range<usize>> {
    Some(*stripes.first_key_value()?.0..*stripes.last_key_value()?.0 + 1)
}

fn as_chunk(array: &ArrayRef, file: &ScanFile) -> Result<Chunk> {
    Chunk::of(array).ok_or_else(|| {
        Error::internal(format!("a column of type {}", array.data_type()))
            .at(Place::file(&file.location))
    })
}

/// The next `rows` rows, in one batch.
async fn read_group(
    decoder: &mut Decoder,
    reader: &RangeReader,
    file: &ScanFile,
    rows: usize,
) -> Result<RecordBatch> {
    let mut batches = Vec::with_capacity(1);
    let mut read = 0;
    while read < rows {
        let batch = next_batch(decoder, reader, file).await?.ok_or_else(|| {
            Error::corrupt(format!("a row group has less than {rows} rows"))
                .at(Place::file(&file.location))
        })?;
        read += batch.num_rows();
        batches.push(batch);
    }
    if read > rows {
        return Err(Error::corrupt(format!(
            "{}: a row group has {read} rows, not {rows}",
            file.location
        )));
    }
    match <[RecordBatch; 1]>::try_from(batches) {
        Ok([one]) => Ok(one),
        Err(many) => concat_batches(&decoder.schema(), &many)
            .map_err(|e| Error::internal("batches of one file differ").with_source(e)),
    }
}

/// The table's fields that `columns` are.
///
/// # Errors
/// `Internal` where the table has no such column.
pub(crate) fn projected(table: &Schema, columns: &[&Column]) -> Result<SchemaRef> {
    let field = |column: &&Column| {
        table.fields().get(column.position).cloned().ok_or_else(|| {
            Error::internal(format!("a report reads column {} of a table", column.position))
        })
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

/// The same, texts as codes of a dictionary, where files have them so: chunks keep codes, too.
fn coded(schema: &Schema) -> SchemaRef {
    let field = |field: &FieldRef| match field.data_type() {
        DataType::Utf8 => {
            let codes = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
            Arc::new(field.as_ref().clone().with_data_type(codes))
        }
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn decoder(file: &ScanFile, metadata: &Arc<FileMetadata>, options: ReadOptions) -> Result<Decoder> {
    Decoder::new(metadata.clone(), options).map_err(|error| error.at(Place::file(&file.location)))
}

async fn next_batch(
    decoder: &mut Decoder,
    reader: &RangeReader,
    file: &ScanFile,
) -> Result<Option<RecordBatch>> {
    loop {
        match decoder.next().map_err(|error| error.at(Place::file(&file.location)))? {
            Step::Batch(batch) => return Ok(Some(batch)),
            Step::Finished => return Ok(None),
            Step::NeedsData(ranges) => {
                let chunks: Vec<(u64, Bytes)> =
                    reader.read(&file.path, &ranges).await.map_err(|error| file.failed(error))?;
                chunks.into_iter().for_each(|(offset, bytes)| decoder.push(offset, bytes));
            }
        }
    }
}
