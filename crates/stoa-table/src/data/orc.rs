//! Rows of an ORC file with their numbers.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, Place, Result};
use stoa_orc::{ColumnRef, Decoder, FileMetadata, Predicate, Projection, ReadOptions, Step};
use stoa_rangeio::RangeReader;

use super::RowOptions;
use super::fill::Fill;
use crate::scan::ScanFile;
use crate::schema::FIELD_ID_KEY;

pub(crate) struct OrcRows {
    file: Arc<ScanFile>,
    reader: RangeReader,
    decoder: Decoder,
    schema: SchemaRef,
    /// Columns that the file lacks and that are not NULL, by place in `schema`.
    filled: Vec<usize>,
    fill: Fill,
}

impl OrcRows {
    pub(super) async fn open(
        file: &Arc<ScanFile>,
        options: RowOptions,
        fill: Fill,
    ) -> Result<Self> {
        let reader = options.reader.clone().unwrap_or_else(|| file.reader.clone());
        let metadata = match &options.orc_tail {
            Some(known) => known.clone(),
            None => Arc::new(file.read_metadata(&reader).await?),
        };
        if metadata.rows != file.rows {
            return Err(Error::corrupt(format!(
                "{}: the data file has {} rows, its manifest says {}",
                file.location, metadata.rows, file.rows
            )));
        }
        let schema = options.schema.clone();
        let known = columns_of(&metadata);
        let lacks = |field: &Field| id_of(field).is_some_and(|id| !known.contains(&id));
        let filled: Vec<usize> = (0..schema.fields().len())
            .filter(|at| {
                let field = schema.field(*at);
                metadata.types.has_field_ids()
                    && lacks(field)
                    && id_of(field).is_some_and(|id| fill.has(id))
            })
            .collect();
        if metadata.types.has_field_ids() {
            for field in schema.fields() {
                refuse_nested(field, &known, &fill)
                    .map_err(|e| e.at(Place::file(&file.location)))?;
            }
        }
        let read: Vec<_> = (0..schema.fields().len())
            .filter(|at| !filled.contains(at))
            .map(|at| schema.fields()[at].clone())
            .collect();
        // A column that is filled matches by its value, which the file does not know.
        let mut prunes = true;
        options.predicate.for_each_column(&mut |column| {
            prunes &=
                matches!(column, ColumnRef::Field(id) if known.contains(&id) || !fill.has(id));
        });
        let stripes = options.range_of(metadata.stripes.len());
        let read = ReadOptions::default()
            .with_projection(Projection::Fields(Arc::new(Schema::new(read))))
            .with_predicate(if prunes { options.predicate } else { Predicate::always() })
            .with_batch_rows(options.batch_rows)
            .with_ahead_bytes(options.ahead_bytes)
            .with_align_to_row_groups(true)
            .with_stripes(stripes);
        let decoder =
            Decoder::new(metadata, read).map_err(|e| e.at(Place::file(&file.location)))?;
        Ok(Self { file: file.clone(), reader, decoder, schema, filled, fill })
    }

    pub(super) async fn next(&mut self) -> Result<Option<(u64, RecordBatch)>> {
        loop {
            match self.decoder.next().map_err(|e| e.at(Place::file(&self.file.location)))? {
                Step::NeedsData(ranges) => {
                    let read = self.reader.read(&self.file.path, &ranges).await;
                    let read = read.map_err(|error| self.file.failed(error))?;
                    read.into_iter().for_each(|(at, bytes)| self.decoder.push(at, bytes));
                }
                Step::Batch(batch) => {
                    let first = self.decoder.first_row().ok_or_else(|| {
                        Error::internal("rows of an ORC file have lost their numbers")
                    })?;
                    return Ok(Some((first, self.whole(batch)?)));
                }
                Step::Finished => return Ok(None),
            }
        }
    }

    /// `batch` with the columns that the file lacks.
    fn whole(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.filled.is_empty() {
            return Ok(batch);
        }
        let rows = batch.num_rows();
        let mut read = batch.columns().iter();
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (at, field) in self.schema.fields().iter().enumerate() {
            columns.push(match self.filled.contains(&at) {
                true => self.fill.array(field, rows)?,
                false => read
                    .next()
                    .cloned()
                    .ok_or_else(|| Error::internal("a column of a file was not read"))?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|source| Error::internal("columns cannot be filled in").with_source(source))
    }
}

/// Field ids in a file, at all levels.
fn columns_of(metadata: &FileMetadata) -> HashSet<i32> {
    metadata.types.types().iter().filter_map(|own| own.field_id()).collect()
}

/// Columns inside of others are not filled in.
fn refuse_nested(field: &Field, known: &HashSet<i32>, fill: &Fill) -> Result<()> {
    let children: Vec<&Field> = match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
        DataType::List(item) | DataType::Map(item, _) => vec![item],
        _ => return Ok(()),
    };
    for child in children {
        if id_of(child).is_some_and(|id| !known.contains(&id) && fill.has(id)) {
            return Err(Error::unsupported(format!(
                "column {:?}: the ORC file lacks {:?} in it, whose default is not NULL",
                field.name(),
                child.name()
            )));
        }
        refuse_nested(child, known, fill)?;
    }
    Ok(())
}

fn id_of(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}
