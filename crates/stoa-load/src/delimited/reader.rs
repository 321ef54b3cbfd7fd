//! Records to batches of the target schema.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::{Place, Result};

use super::{Records, Row};
use crate::bad_value::BadValue;
use crate::batches::{BATCH_BYTES, FileBatches, finish_batch};
use crate::column::Column;
use crate::convert::Conversions;
use crate::header::{self, Mapping};
use crate::rejects::Rejects;
use crate::{Format, LoadOptions};

/// One delimited file being read.
pub(crate) struct DelimitedReader {
    records: Records,
    target: SchemaRef,
    columns: Vec<Column>,
    mapping: Mapping,
    conversions: Conversions,
    options: Arc<LoadOptions>,
    /// Whether the next record is the file's first.
    first: bool,
}

impl DelimitedReader {
    /// Reads the header, if there is one, and matches it with `target`.
    pub fn new(
        mut records: Records,
        format: Format,
        target: SchemaRef,
        options: Arc<LoadOptions>,
    ) -> Result<Self> {
        let conversions = Conversions::new(&options, format)?;
        let columns = target
            .fields()
            .iter()
            .map(|field| Column::new(field, options.batch_rows))
            .collect::<Result<Vec<_>>>()?;
        let mapping = mapping(&mut records, format, &target, &options, &conversions)?;
        Ok(Self { records, target, columns, mapping, conversions, options, first: true })
    }
}

impl FileBatches for DelimitedReader {
    fn next_batch(&mut self, rejects: &mut Rejects) -> Result<Option<RecordBatch>> {
        let mut rows = 0;
        let mut bytes = 0;
        let expected = self.mapping.targets.len();
        while rows < self.options.batch_rows && bytes < BATCH_BYTES {
            let Some(mut row) = self.records.next()? else {
                break;
            };
            if expected > 1 && row.is_blank() {
                continue;
            }
            bytes += row.raw.len();
            let bad = match row.defect.take() {
                Some(defect) => Some((None, defect)),
                None if row.len() != expected => Some((None, row.wrong_count(expected))),
                None => append(&mut row, &mut self.columns, &self.mapping, &self.conversions)
                    .err()
                    .map(|(at, bad)| (Some(at), bad)),
            };
            if let Some((at, mut bad)) = bad {
                self.columns.iter_mut().for_each(|column| column.truncate(rows));
                if self.first {
                    hint_at_header(&mut row, &self.target, &mut bad);
                }
                let place = place(&row, at, &self.mapping, &self.target);
                rejects.reject(place, *bad, row.raw)?;
            } else {
                rows += 1;
            }
            self.first = false;
        }
        finish_batch(&self.target, &mut self.columns, rows)
    }
}

/// Appends all fields of `row`; on error says which field.
fn append(
    row: &mut Row<'_>,
    columns: &mut [Column],
    mapping: &Mapping,
    conversions: &Conversions,
) -> std::result::Result<(), (usize, Box<BadValue>)> {
    for (at, target) in mapping.targets.iter().enumerate() {
        let Some(column) = target.and_then(|target| columns.get_mut(target)) else {
            continue;
        };
        let outcome = if conversions.empty_is_null {
            let (text, quoted) = row.field(at);
            column.append_field(text, quoted, conversions)
        } else if conversions.is_null_text(row.raw_field(at)) {
            column.append_null()
        } else {
            let (text, _) = row.field(at);
            column.append_pg_text(text, conversions)
        };
        outcome.map_err(|bad| (at, bad))?;
    }
    for &target in &mapping.missing {
        if let Some(column) = columns.get_mut(target) {
            column.append_null().map_err(|bad| (usize::MAX, bad))?;
        }
    }
    Ok(())
}

/// The row, and the column that field `at` is for.
fn place(row: &Row<'_>, at: Option<usize>, mapping: &Mapping, target: &SchemaRef) -> Place {
    let column = at
        .and_then(|at| mapping.targets.get(at).copied().flatten())
        .and_then(|column| target.fields().get(column));
    match (column, at) {
        (Some(field), Some(at)) => row.place_of(at, field.name()),
        _ => row.place(),
    }
}

fn mapping(
    records: &mut Records,
    format: Format,
    target: &SchemaRef,
    options: &LoadOptions,
    conversions: &Conversions,
) -> Result<Mapping> {
    if !options.header_of(format) {
        return header::without_names(&records.name, target, options);
    }
    let name = records.name.clone();
    let Some(mut row) = records.next()? else {
        // Nothing in it, not even a header: no rows.
        return header::without_names(&name, target, options);
    };
    let place = row.place();
    if let Some(defect) = row.defect.take() {
        return Err(defect.into_error(place));
    }
    if !options.columns.is_empty() {
        return header::without_names(&name, target, options);
    }
    let names = row.texts();
    header::match_names(place, &names, target, options, conversions)
}

/// The first record of a file without header may be one after all.
fn hint_at_header(row: &mut Row<'_>, target: &SchemaRef, bad: &mut Box<BadValue>) {
    let names = row.texts();
    let is_name =
        |text: &String| target.fields().iter().any(|f| f.name().eq_ignore_ascii_case(text));
    if names.iter().any(is_name) {
        bad.hint = Some("the line looks like a header; set the option header to true".to_owned());
    }
}
