//! Batches of a file that has a schema of its own (Parquet, ORC, Arrow) to the target schema.
//!
//! Columns match by name, exactly or else whatever the case; by place in files of Hive's whose columns have no names
//! (`_col0`, `_col1`, …). Values are cast only where nothing
//! can be lost in silence: a cast that would cut, round to whole numbers or overflow is refused,
//! for the type or for the value.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, PrimitiveArray, RecordBatch, RecordBatchOptions, make_array, new_null_array,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef, TimeUnit};
use stoa_error::{Error, Place, RecordNumber, Result};

use crate::bad_value::{BadValue, quoted};
use crate::column::Column;
use crate::convert::Conversions;
use crate::flat_size::flat_bytes;
use crate::ipc_message::{BODY_BYTES_MAX, too_large};
use crate::type_name::sql_name;
use crate::{ColumnPolicy, Format, LoadOptions};

/// Turns batches of one source's schema into the target's.
pub struct Adapter {
    name: String,
    target: SchemaRef,
    /// For each target column its position in the batches, or `None` for NULL.
    sources: Vec<Option<usize>>,
    /// The file's columns that batches are made of, ascending.
    projection: Vec<usize>,
    conversions: Conversions,
    rows_before: u64,
}

impl Adapter {
    /// From batches of `file` to batches of `target`; `name` stands for the source in errors. Of
    /// `options` those on missing and extra columns count, and on how text is read.
    ///
    /// # Errors
    /// Columns are missing or too many (42703), or a type cannot become the target's (42804).
    pub fn new(
        name: &str,
        file: &Schema,
        target: SchemaRef,
        options: &LoadOptions,
    ) -> Result<Self> {
        let source = |(at, field): (usize, &Arc<arrow_schema::Field>)| match has_no_names(file) {
            true => Some(at).filter(|at| *at < file.fields().len()),
            false => position(file, field.name()),
        };
        let sources: Vec<Option<usize>> = target.fields().iter().enumerate().map(source).collect();
        check_columns(name, file, &target, &sources, options)?;
        for (field, source) in target.fields().iter().zip(&sources) {
            let Some(source) = source.and_then(|at| file.fields().get(at)) else {
                continue;
            };
            if !may_cast(source.data_type(), field.data_type()) {
                return Err(Error::invalid(format!(
                    "{name}, column \"{}\": {} does not become {} without loss",
                    field.name(),
                    sql_name(source.data_type()),
                    sql_name(field.data_type())
                ))
                .with_sqlstate("42804")
                .with_hint("change the table's column, or load into a table of its own and INSERT … SELECT with a CAST"));
            }
        }
        // Text in these files means what it says: no empty text is NULL.
        let conversions = Conversions::new(options, Format::Ndjson)?;
        let mut projection: Vec<usize> = sources.iter().flatten().copied().collect();
        projection.sort_unstable();
        let sources =
            sources.into_iter().map(|source| projection.binary_search(&source?).ok()).collect();
        let name = name.to_owned();
        Ok(Self { name, target, sources, projection, conversions, rows_before: 0 })
    }

    /// Positions of the file's columns to read, ascending; batches hold these and no others.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// One batch of the projected columns ([`Self::projection`]), cast.
    ///
    /// # Errors
    /// A value that does not fit its column, with the row counted from 1 over all batches.
    pub fn adapt(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.sources.len());
        for (column, source) in self.sources.iter().enumerate() {
            let field = self.target.field(column);
            let array = match source {
                None => new_null_array(field.data_type(), batch.num_rows()),
                Some(at) => self.cast(column, batch.column(*at))?,
            };
            if !field.is_nullable() && array.logical_null_count() > 0 {
                let row = (0..array.len()).find(|&row| array.is_null(row)).unwrap_or(0);
                return Err(BadValue::null().into_error(self.place(column, row)));
            }
            arrays.push(array);
        }
        self.rows_before += batch.num_rows() as u64;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.target.clone(), arrays, &options).map_err(|e| {
            Error::internal(format!("{}: cannot build a batch", self.name)).with_source(e)
        })
    }

    fn cast(&self, column: usize, array: &ArrayRef) -> Result<ArrayRef> {
        let to = self.target.field(column).data_type();
        if array.data_type() == to {
            return Ok(array.clone());
        }
        let bytes = flat_bytes(array);
        if bytes > BODY_BYTES_MAX {
            return Err(too_large(format!(
                "{}, column \"{}\": the values of a batch have {bytes} bytes, more than {BODY_BYTES_MAX}",
                self.name,
                self.target.field(column).name()
            )));
        }
        let cast = |array: &ArrayRef, to: &DataType, safe| {
            let options = CastOptions { safe, ..CastOptions::default() };
            cast_with_options(array, to, &options).map_err(|e| {
                Error::invalid(format!(
                    "{}, column \"{}\": cannot be cast to {}",
                    self.name,
                    self.target.field(column).name(),
                    sql_name(to)
                ))
                .with_sqlstate("42804")
                .with_source(e)
            })
        };
        let array = match array.data_type() {
            DataType::Dictionary(_, values) => cast(array, values, true)?,
            _ => array.clone(),
        };
        if is_text(array.data_type()) && !is_text(to) {
            return self.parse(column, &cast(&array, &DataType::LargeUtf8, true)?);
        }
        let array = floor_timestamps(&array, to)?;
        // Inside lists and structs a value that does not fit would only become NULL.
        let done = cast(&array, to, !to.is_nested())?;
        let changed = if array.data_type().is_integer() && to.is_floating() {
            let back = cast(&done, array.data_type(), true)?;
            (0..array.len()).find(|&row| array.is_valid(row) && !same_value(&array, &back, row))
        } else if done.logical_null_count() > array.logical_null_count() {
            (0..array.len()).find(|&row| done.is_null(row) && array.is_valid(row))
        } else {
            None
        };
        let Some(row) = changed else {
            return Ok(done);
        };
        let text = shown(&array, row);
        let bad = if is_text(to) {
            BadValue::not_utf8(text.as_bytes())
        } else {
            BadValue::out_of_range(text.as_bytes(), &sql_name(to))
        };
        Err(bad.into_error(self.place(column, row)))
    }

    /// Text through the same parsers as text files.
    fn parse(&self, column: usize, array: &ArrayRef) -> Result<ArrayRef> {
        let texts = array
            .as_any()
            .downcast_ref::<arrow_array::LargeStringArray>()
            .ok_or_else(|| Error::internal("text did not become text"))?;
        let mut parsed = Column::new(&self.target.fields()[column], texts.len())?;
        for (row, text) in texts.iter().enumerate() {
            let outcome = match text {
                Some(text) => parsed.append_text(text.trim().as_bytes(), &self.conversions),
                None => parsed.append_null(),
            };
            outcome.map_err(|bad| bad.into_error(self.place(column, row)))?;
        }
        parsed.finish()
    }

    fn place(&self, column: usize, row: usize) -> Place {
        let row = self.rows_before + row as u64 + 1;
        Place::Record {
            file: self.name.clone(),
            number: RecordNumber::Row(row),
            column: Some(self.target.field(column).name().clone()),
        }
    }
}

/// Timestamps of a finer unit than the target's, also inside lists and structs, cut to the target's
/// towards the past, as text and ORC files are cut: a cast alone would cut those before 1970
/// towards the future.
fn floor_timestamps(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if let (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) = (array.data_type(), to) {
        let step = per_second(*from) / per_second(*to).min(per_second(*from));
        if step == 1 {
            return Ok(array.clone());
        }
        // The first microsecond that nanoseconds reach has no start among them.
        let floor = |value: i64| value.checked_sub(value.rem_euclid(step)).unwrap_or(value);
        let data = array.to_data();
        let whole = PrimitiveArray::<Int64Type>::from(
            data.into_builder().data_type(DataType::Int64).build().map_err(not_built)?,
        );
        let floored = whole.unary::<_, Int64Type>(floor).into_data().into_builder();
        let floored = floored.data_type(array.data_type().clone()).build().map_err(not_built)?;
        return Ok(make_array(floored));
    }
    let (from, to) = (children(array.data_type()), children(to));
    if from.is_empty() || from.len() != to.len() {
        return Ok(array.clone());
    }
    let data = array.to_data();
    let floored = data.child_data().iter().zip(to);
    let floored = floored
        .map(|(child, to)| Ok(floor_timestamps(&make_array(child.clone()), to)?.into_data()))
        .collect::<Result<Vec<_>>>()?;
    Ok(make_array(data.into_builder().child_data(floored).build().map_err(not_built)?))
}

#[cold]
fn not_built(source: ArrowError) -> Error {
    Error::internal("timestamps were not cut").with_source(source)
}

/// The types of the values inside a nested type.
fn children(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn same_value(left: &ArrayRef, right: &ArrayRef, row: usize) -> bool {
    left.slice(row, 1).as_ref() == right.slice(row, 1).as_ref()
}

fn shown(array: &ArrayRef, row: usize) -> String {
    ArrayFormatter::try_new(array.as_ref(), &FormatOptions::default())
        .map(|formatter| formatter.value(row).to_string())
        .unwrap_or_default()
}

/// Whether the columns are called by their places, as Hive calls those of queries.
fn has_no_names(file: &Schema) -> bool {
    let mut columns = file.fields().iter().enumerate();
    columns.all(|(at, field)| *field.name() == format!("_col{at}"))
}

fn position(schema: &Schema, name: &str) -> Option<usize> {
    let fields = schema.fields();
    fields
        .iter()
        .position(|field| field.name() == name)
        .or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
}

fn check_columns(
    name: &str,
    file: &Schema,
    target: &SchemaRef,
    sources: &[Option<usize>],
    options: &LoadOptions,
) -> Result<()> {
    let list = |names: &[&str]| {
        names.iter().map(|name| quoted(name.as_bytes())).collect::<Vec<_>>().join(", ")
    };
    let missing: Vec<&str> = target
        .fields()
        .iter()
        .zip(sources)
        .filter(|(field, source)| {
            source.is_none()
                && (options.missing_columns == ColumnPolicy::Error || !field.is_nullable())
        })
        .map(|(field, _)| field.name().as_str())
        .collect();
    if !missing.is_empty() {
        return Err(Error::invalid(format!("{name}: the file has no column {}", list(&missing)))
            .with_sqlstate("42703")
            .with_hint(
                "set the option missing_columns to null to fill nullable columns with NULL",
            ));
    }
    let extra: Vec<&str> = file
        .fields()
        .iter()
        .enumerate()
        .filter(|(at, _)| !sources.contains(&Some(*at)))
        .map(|(_, field)| field.name().as_str())
        .collect();
    if !extra.is_empty() && options.extra_columns == ColumnPolicy::Error {
        return Err(Error::invalid(format!("{name}: the table has no column {}", list(&extra)))
            .with_sqlstate("42703")
            .with_hint("set the option extra_columns to ignore"));
    }
    Ok(())
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

/// Whether values of `from` become `to` without silent loss, if they are in range.
fn may_cast(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    if from == to {
        return true;
    }
    match (from, to) {
        (T::Null, _) => true,
        (T::Dictionary(_, values), to) => may_cast(values, to),
        (from, to) if is_text(from) => !to.is_nested() || is_text(to),
        (from, to) if is_binary(from) => is_binary(to) || is_text(to),
        (from, to) if from.is_integer() && (to.is_integer() || to.is_floating()) => true,
        (from, T::Decimal128(..)) if from.is_integer() => true,
        (T::Float16 | T::Float32, T::Float32 | T::Float64) => true,
        (T::Decimal128(_, from) | T::Decimal256(_, from), T::Decimal128(_, to)) => from <= to,
        (T::Decimal32(_, from) | T::Decimal64(_, from), T::Decimal128(_, to)) => from <= to,
        (T::Date32 | T::Date64, T::Date32) => true,
        (T::Date32, T::Timestamp(..)) => true,
        // Finer units are cut to the column's, as in text files.
        (T::Timestamp(..), T::Timestamp(..)) => true,
        (T::Time32(_) | T::Time64(_), T::Time32(_) | T::Time64(_)) => true,
        (from, to) if is_text(to) => !from.is_nested() && can_cast_types(from, to),
        (
            T::List(from) | T::LargeList(from) | T::ListView(from) | T::FixedSizeList(from, _),
            T::List(to) | T::LargeList(to),
        ) => may_cast(from.data_type(), to.data_type()),
        (T::Map(from, _), T::Map(to, _)) => may_cast(from.data_type(), to.data_type()),
        (T::Struct(from), T::Struct(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| {
                    from.name() == to.name() && may_cast(from.data_type(), to.data_type())
                })
        }
        _ => false,
    }
}

/// The schema a table for files of `schema` gets: all columns nullable, no dictionaries or views,
/// units and widths that Iceberg knows.
pub(crate) fn table_schema(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| arrow_schema::Field::new(field.name(), table_type(field.data_type()), true))
        .collect();
    Arc::new(Schema::new(fields))
}

fn table_type(data_type: &DataType) -> DataType {
    use DataType as T;
    let inner = |field: &arrow_schema::FieldRef| {
        Arc::new(arrow_schema::Field::new(field.name(), table_type(field.data_type()), true))
    };
    match data_type {
        T::Dictionary(_, values) => table_type(values),
        T::Int8 | T::Int16 | T::UInt8 | T::UInt16 => T::Int32,
        T::UInt32 => T::Int64,
        T::UInt64 => T::Decimal128(20, 0),
        T::Float16 => T::Float32,
        T::LargeUtf8 | T::Utf8View | T::Null => T::Utf8,
        T::LargeBinary | T::BinaryView => T::Binary,
        T::Date64 => T::Date32,
        T::Timestamp(_, zone) => {
            T::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "+00:00".into()))
        }
        T::Time32(_) | T::Time64(_) => T::Time64(TimeUnit::Microsecond),
        T::Decimal32(precision, scale) | T::Decimal64(precision, scale) => {
            T::Decimal128(*precision, *scale)
        }
        T::List(item) | T::LargeList(item) | T::ListView(item) | T::FixedSizeList(item, _) => {
            T::List(inner(item))
        }
        T::Struct(fields) => T::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    }
}
