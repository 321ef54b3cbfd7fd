//! Rows of an ORC file.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use stoa_error::{Error, Result};
use stoa_orc::{
    ArrowOptions, ColumnRef, Decoder, FileMetadata, Predicate, Projection, Step, TailDecoder,
    TailStep, TimestampOutput, TypeKind, TypeTree,
};

use super::source::Source;
use super::{FilePart, PrunedGroups, ReadOptions};
use crate::adapt::{self, Limit, Matching, fits};

/// Tables keep microseconds, and years beyond those of 64-bit nanoseconds.
const TIMESTAMPS: TimestampOutput = TimestampOutput::Micros;

pub(super) struct OrcRows {
    source: Source,
    kind: Kind,
    schema: SchemaRef,
    /// Which of the columns that are read each column is.
    from: Vec<Option<usize>>,
}

enum Kind {
    Decoded(Box<Decoder>),
    /// None of the file's columns is wanted.
    Counted {
        rows: u64,
        batch_rows: usize,
    },
}

impl OrcRows {
    pub(super) async fn open(
        source: Source,
        part: &FilePart,
        options: &ReadOptions,
    ) -> Result<Self> {
        let metadata = tail(&source).await?;
        let schema = options.schema()?;
        let stripes = part.range_of(metadata.stripes.len());
        let arrow = ArrowOptions { timestamps: TIMESTAMPS, ..ArrowOptions::default() };
        let file = metadata.types.to_arrow(&arrow)?;
        let root = metadata.types.get(0).filter(|root| root.kind == TypeKind::Struct);
        let ids = root
            .map(|root| root.children.clone())
            .ok_or_else(|| Error::unsupported("the ORC file's rows are no structs"))?;
        let matching = Matching::of(&file);
        let found = matching.find(&file, &schema, &options.wanted);
        let mut read: Vec<usize> = found.iter().copied().flatten().collect();
        read.sort_unstable();
        read.dedup();
        let from = found.iter().map(|at| read.iter().position(|own| Some(*own) == *at)).collect();
        if read.is_empty() {
            let rows = metadata.stripes.get(stripes).unwrap_or_default();
            let rows = rows.iter().map(|stripe| stripe.rows).sum();
            let kind = Kind::Counted { rows, batch_rows: options.batch_rows.max(1) };
            return Ok(Self { source, kind, schema, from });
        }
        let columns: Vec<u32> = read.iter().filter_map(|at| ids.get(*at)).copied().collect();
        let types = &metadata.types;
        let known = Columns { options, file: &file, ids: &ids, types, matching };
        let predicate = known.translated(&options.predicate).unwrap_or_else(Predicate::always);
        let read = stoa_orc::ReadOptions::default()
            .with_projection(Projection::Columns(columns))
            .with_timestamps(TIMESTAMPS)
            .with_predicate(predicate)
            .with_batch_rows(options.batch_rows)
            .with_stripes(stripes);
        let kind = Kind::Decoded(Box::new(Decoder::new(Arc::new(metadata), read)?));
        Ok(Self { source, kind, schema, from })
    }

    /// What was left out so far.
    pub(super) fn pruned(&self) -> PrunedGroups {
        let Kind::Decoded(decoder) = &self.kind else { return PrunedGroups::default() };
        let metrics = decoder.metrics();
        PrunedGroups {
            stripes_total: metrics.stripes_total,
            stripes_pruned: metrics.stripes_pruned,
            row_groups_total: metrics.row_groups_total,
            row_groups_pruned: metrics.row_groups_pruned,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let decoder = match &mut self.kind {
            Kind::Decoded(decoder) => decoder,
            Kind::Counted { rows: 0, .. } => return Ok(None),
            Kind::Counted { rows, batch_rows } => {
                let count = usize::try_from(*rows).unwrap_or(usize::MAX).min(*batch_rows);
                *rows -= count as u64;
                return adapt::batch(&self.schema, &self.from, &[], count).map(Some);
            }
        };
        loop {
            match decoder.next()? {
                Step::NeedsData(ranges) => {
                    let read = self.source.read(&ranges).await?;
                    read.into_iter().for_each(|(at, bytes)| decoder.push(at, bytes));
                }
                Step::Batch(batch) => {
                    let rows = batch.num_rows();
                    return adapt::batch(&self.schema, &self.from, batch.columns(), rows).map(Some);
                }
                Step::Finished => return Ok(None),
            }
        }
    }
}

async fn tail(source: &Source) -> Result<FileMetadata> {
    let mut decoder = TailDecoder::new(source.bytes);
    let mut wanted = decoder.first_read();
    loop {
        let from = source.bytes.saturating_sub(wanted);
        match decoder.decode(source.one(from..source.bytes).await?)? {
            TailStep::Done(metadata) => return Ok(metadata),
            TailStep::NeedsTail(more) if more > wanted => wanted = more,
            TailStep::NeedsTail(_) => {
                return Err(Error::internal("the file's tail asks for no more"));
            }
        }
    }
}

/// What is known of the columns of a file.
struct Columns<'a> {
    options: &'a ReadOptions,
    file: &'a Schema,
    ids: &'a [u32],
    types: &'a TypeTree,
    matching: Matching,
}

impl Columns<'_> {
    /// The same condition on columns of the file; `None` where it rules nothing out.
    fn translated(&self, predicate: &Predicate) -> Option<Predicate> {
        match predicate {
            Predicate::And(parts) => Some(Predicate::And(
                parts.iter().filter_map(|part| self.translated(part)).collect(),
            )),
            Predicate::Or(parts) => {
                let parts = parts.iter().map(|part| self.translated(part));
                parts.collect::<Option<Vec<_>>>().map(Predicate::Or)
            }
            Predicate::Compare { column, op, value } => {
                let column = self.column(*column)?;
                Some(Predicate::Compare { column, op: *op, value: value.clone() })
            }
            Predicate::In { column, values } => {
                Some(Predicate::In { column: self.column(*column)?, values: values.clone() })
            }
            Predicate::IsNull(column) => self.column(*column).map(Predicate::IsNull),
            Predicate::IsNotNull(column) => self.column(*column).map(Predicate::IsNotNull),
        }
    }

    /// The column of the file, if its values are those of the table's column.
    fn column(&self, column: ColumnRef) -> Option<ColumnRef> {
        let (place, wanted, limit) = self.options.column(column)?;
        let one = self.options.columns.project(&[place]).ok()?;
        let at = self.matching.find(self.file, &one, &[place]).first().copied().flatten()?;
        let id = self.ids.get(at).copied()?;
        let own = self.types.get(id)?;
        // Nothing is cut off, and nothing becomes NULL.
        let is_within = match limit {
            None => true,
            Some(Limit::Short) => matches!(own.kind, TypeKind::Byte | TypeKind::Short),
            Some(Limit::Characters(most)) => {
                own.kind == TypeKind::Varchar && (1..=most).contains(&(own.max_length as usize))
            }
        };
        let fits = fits(self.file.fields().get(at)?.data_type(), wanted.data_type());
        (is_within && fits).then_some(ColumnRef::Id(id))
    }
}
