//! Lines of JSON objects to batches.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::Result;

use crate::bad_value::BadValue;
use crate::batches::{BATCH_BYTES, FileBatches, finish_batch};
use crate::column::Column;
use crate::convert::Conversions;
use crate::delimited::Records;
use crate::json_object::for_each_member;
use crate::rejects::Rejects;
use crate::{ColumnPolicy, Format, LoadOptions};

/// The options under which [`Records`] yields physical lines as they are.
pub(crate) fn line_options(options: &LoadOptions) -> LoadOptions {
    LoadOptions { quote: None, delimiter: Some(0), skip_empty_rows: true, ..options.clone() }
}

/// One NDJSON file being read.
pub(crate) struct NdjsonReader {
    records: Records,
    target: SchemaRef,
    columns: Vec<Column>,
    keys: Keys,
    conversions: Conversions,
    options: Arc<LoadOptions>,
}

impl NdjsonReader {
    pub fn new(
        name: String,
        reader: Box<dyn Read + Send>,
        target: SchemaRef,
        options: Arc<LoadOptions>,
    ) -> Result<Self> {
        let columns = target
            .fields()
            .iter()
            .map(|field| Column::new(field, options.batch_rows))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            records: Records::new(name, reader, &line_options(&options), Format::Csv)?,
            keys: Keys::new(&target),
            conversions: Conversions::new(&options, Format::Ndjson)?,
            columns,
            target,
            options,
        })
    }
}

impl FileBatches for NdjsonReader {
    fn next_batch(&mut self, rejects: &mut Rejects) -> Result<Option<RecordBatch>> {
        let mut rows = 0;
        let mut bytes = 0;
        while rows < self.options.batch_rows && bytes < BATCH_BYTES {
            let Some(row) = self.records.next()? else {
                break;
            };
            bytes += row.raw.len();
            let ignore_extra = self.options.extra_columns == ColumnPolicy::Ignore;
            let outcome = append(
                row.raw,
                rows,
                &mut self.columns,
                &mut self.keys,
                ignore_extra,
                &self.conversions,
            );
            let Err((column, bad)) = outcome else {
                rows += 1;
                continue;
            };
            self.columns.iter_mut().for_each(|column| column.truncate(rows));
            let place = match column {
                Some(at) => row.place_of(0, self.target.field(at).name()),
                None => row.place(),
            };
            rejects.reject(place, *bad, row.raw)?;
        }
        finish_batch(&self.target, &mut self.columns, rows)
    }
}

/// Which key goes to which column. Remembers the order of the line before, so that lines of the
/// same shape cost one comparison per key.
struct Keys {
    by_name: HashMap<String, usize>,
    by_lower: HashMap<String, usize>,
    last_order: Vec<(String, Option<usize>)>,
}

impl Keys {
    fn new(target: &SchemaRef) -> Self {
        let names = || target.fields().iter().enumerate();
        Self {
            by_name: names().map(|(at, field)| (field.name().clone(), at)).collect(),
            by_lower: names().map(|(at, field)| (field.name().to_lowercase(), at)).collect(),
            last_order: Vec::new(),
        }
    }

    fn column(&mut self, position: usize, name: &str) -> Option<usize> {
        if let Some((last, column)) = self.last_order.get(position)
            && last == name
        {
            return *column;
        }
        let column =
            self.by_name.get(name).or_else(|| self.by_lower.get(&name.to_lowercase())).copied();
        self.last_order.truncate(position);
        if self.last_order.len() == position && position < 4096 {
            self.last_order.push((name.to_owned(), column));
        }
        column
    }
}

type Refusal = (Option<usize>, Box<BadValue>);

/// Appends the object on one line as row number `row`.
fn append(
    line: &[u8],
    row: usize,
    columns: &mut [Column],
    keys: &mut Keys,
    ignore_extra: bool,
    conversions: &Conversions,
) -> std::result::Result<(), Refusal> {
    let text = std::str::from_utf8(line.trim_ascii())
        .map_err(|_| (None, BadValue::not_utf8(line.trim_ascii())))?;
    let mut refusal: Option<Refusal> = None;
    let mut position = 0;
    let parsed = for_each_member(text, |name, raw| {
        if refusal.is_some() {
            return;
        }
        let column = keys.column(position, &name);
        position += 1;
        let outcome = match column.and_then(|at| Some((at, columns.get_mut(at)?))) {
            Some((at, column)) if column.len() > row => {
                Err((Some(at), BadValue::line("the key comes twice")))
            }
            Some((at, column)) => {
                column.append_json(raw.get(), conversions).map_err(|bad| (Some(at), bad))
            }
            None if ignore_extra => Ok(()),
            None => Err((
                None,
                BadValue::line(format!("the table has no column for the key \"{name}\""))
                    .hint("set the option extra_columns to ignore"),
            )),
        };
        refusal = outcome.err();
    });
    // An error of form comes before one of content: what was read may not be what was meant.
    parsed.map_err(|e| (None, not_an_object(text, &e)))?;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    for (at, column) in columns.iter_mut().enumerate() {
        if column.len() == row {
            column.append_null().map_err(|bad| (Some(at), bad))?;
        }
    }
    Ok(())
}

/// What is wrong with a line that is no JSON object.
pub(crate) fn not_an_object(text: &str, error: &serde_json::Error) -> Box<BadValue> {
    if text.starts_with('[') || text == "{" {
        return BadValue::line("not a JSON object on one line").hint(
            "one object per line is expected; convert the file, for instance with jq -c '.[]' \
             (an array) or jq -c . (objects over several lines)",
        );
    }
    let column = error.column();
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or(&what);
    BadValue::line(format!("not a JSON object, byte {column}: {what}"))
}
