//! Rows of an Avro file with their numbers.
//!
//! The file is read whole: its blocks say nothing about what is in them.

use std::io::Cursor;
use std::sync::Arc;

use apache_avro::Schema as AvroSchema;
use apache_avro::schema::{Name, NamesRef, RecordSchema, ResolvedSchema};
use apache_avro::types::Value;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int32Builder, Int64Builder, StringBuilder, Time64MicrosecondBuilder,
};
use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, ListArray, MapArray, RecordBatch, RecordBatchOptions,
    StructArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, SchemaRef, TimeUnit};
use bytes::Bytes;
use stoa_error::{Error, Place, Result};

use super::RowOptions;
use super::fill::Fill;
use super::names::NameMap;
use crate::scan::ScanFile;
use crate::schema::FIELD_ID_KEY;

pub(crate) struct AvroRows {
    file: Arc<ScanFile>,
    bytes: Bytes,
    /// Rows handed out.
    done: u64,
    batches: std::vec::IntoIter<RecordBatch>,
}

impl AvroRows {
    pub(super) async fn open(
        file: &Arc<ScanFile>,
        options: RowOptions,
        names: &NameMap,
        fill: Fill,
    ) -> Result<Self> {
        let reader = options.reader.clone().unwrap_or_else(|| file.reader.clone());
        let mut rows = Self {
            file: file.clone(),
            bytes: Bytes::new(),
            done: 0,
            batches: Vec::new().into_iter(),
        };
        // One part has all of it.
        if options.part == 0 {
            let bytes = reader.read_one(&file.path, 0..file.file_bytes).await;
            rows.bytes = bytes.map_err(|error| file.failed(error))?;
            let decoded = decode(&rows.bytes, &options, names, &fill);
            let batches = decoded.map_err(|e| e.at(Place::file(&file.location)))?;
            let count: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
            if count != file.rows {
                return Err(Error::corrupt(format!(
                    "{}: the data file has {count} rows, its manifest says {}",
                    file.location, file.rows
                )));
            }
            rows.batches = batches.into_iter();
            rows.bytes = Bytes::new();
        }
        Ok(rows)
    }

    pub(super) fn next(&mut self) -> Result<Option<(u64, RecordBatch)>> {
        let Some(batch) = self.batches.next() else { return Ok(None) };
        let first = self.done;
        self.done += batch.num_rows() as u64;
        debug_assert!(self.done <= self.file.rows);
        Ok(Some((first, batch)))
    }
}

fn decode(
    bytes: &Bytes,
    options: &RowOptions,
    names: &NameMap,
    fill: &Fill,
) -> Result<Vec<RecordBatch>> {
    let reader = apache_avro::Reader::new(Cursor::new(bytes)).map_err(damaged)?;
    let schema = reader.writer_schema().clone();
    let resolved = ResolvedSchema::try_from(&schema).map_err(damaged)?;
    let decoder = Columns { types: resolved.get_names(), fill };
    let AvroSchema::Record(record) = &schema else {
        return Err(Error::corrupt("the Avro file does not hold records"));
    };
    let ids = has_ids(&schema);
    let names = (!ids).then_some(names);
    let mut batches = Vec::new();
    let mut held: Vec<Value> = Vec::new();
    let rows_max = options.batch_rows.max(1);
    for value in reader {
        held.push(value.map_err(damaged)?);
        if held.len() >= rows_max {
            batches.push(decoder.batch(record, names, &held, &options.schema)?);
            held.clear();
        }
    }
    if !held.is_empty() {
        batches.push(decoder.batch(record, names, &held, &options.schema)?);
    }
    Ok(batches)
}

struct Columns<'a> {
    types: &'a NamesRef<'a>,
    fill: &'a Fill,
}

impl Columns<'_> {
    fn batch(
        &self,
        record: &RecordSchema,
        names: Option<&NameMap>,
        rows: &[Value],
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let rows: Vec<Option<&Value>> = rows.iter().map(Some).collect();
        let columns = self.fields(record, names, &rows, schema.fields())?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(not_as_said)
    }

    /// The fields `to` of records.
    fn fields(
        &self,
        record: &RecordSchema,
        names: Option<&NameMap>,
        rows: &[Option<&Value>],
        to: &Fields,
    ) -> Result<Vec<ArrayRef>> {
        let column = |field: &Arc<Field>| {
            let id = id_of(field);
            let own = record.fields.iter().position(|own| {
                let own_id = match names {
                    None => int(own.custom_attributes.get("field-id")),
                    Some(names) => names.get(&own.name).and_then(|(id, _)| id),
                };
                id.is_some() && own_id == id
            });
            let Some(at) = own else { return self.fill.array(field, rows.len()) };
            let own = &record.fields[at];
            let inside = names.and_then(|names| names.get(&own.name)).map(|(_, inside)| inside);
            let values = rows.iter().map(|row| field_of(*row, at)).collect::<Result<Vec<_>>>()?;
            self.array(&own.schema, inside, &values, field)
                .map_err(|e| e.at(Place::field(field.name())))
        };
        to.iter().map(column).collect()
    }

    fn array(
        &self,
        own: &AvroSchema,
        names: Option<&NameMap>,
        values: &[Option<&Value>],
        to: &Field,
    ) -> Result<ArrayRef> {
        let own = self.without_null(own)?;
        match (own, to.data_type()) {
            (AvroSchema::Record(record), DataType::Struct(fields)) => {
                let children = self.fields(record, names, values, fields)?;
                let nulls = nulls_of(values);
                let array = match children.is_empty() {
                    true => Ok(StructArray::new_empty_fields(values.len(), nulls)),
                    false => StructArray::try_new(fields.clone(), children, nulls),
                };
                array.map(|array| Arc::new(array) as ArrayRef).map_err(not_as_said)
            }
            (AvroSchema::Array(array), DataType::List(item)) => {
                let (lengths, items) = items_of(values)?;
                let inside = names.and_then(|names| names.get("element")).map(|(_, inside)| inside);
                let items = self.array(&array.items, inside, &items, item)?;
                let offsets = OffsetBuffer::from_lengths(lengths);
                ListArray::try_new(item.clone(), offsets, items, nulls_of(values))
                    .map(|list| Arc::new(list) as ArrayRef)
                    .map_err(not_as_said)
            }
            (own, DataType::Map(entries, sorted)) => self.map(own, names, values, entries, *sorted),
            (_, data_type) => primitive(values, data_type),
        }
    }

    fn map(
        &self,
        own: &AvroSchema,
        names: Option<&NameMap>,
        values: &[Option<&Value>],
        entries: &Arc<Field>,
        sorted: bool,
    ) -> Result<ArrayRef> {
        let DataType::Struct(pair) = entries.data_type() else {
            return Err(Error::internal("a map without entries"));
        };
        let [key, value] = pair.as_ref() else {
            return Err(Error::internal("a map without entries"));
        };
        let inside = |name: &str| names.and_then(|names| names.get(name)).map(|(_, inside)| inside);
        let (lengths, children) = match own {
            // Maps whose keys are not text are lists of pairs.
            AvroSchema::Array(array) => {
                let (lengths, items) = items_of(values)?;
                let AvroSchema::Record(record) = self.without_null(&array.items)? else {
                    return Err(not_this(own, &DataType::Map(entries.clone(), sorted)));
                };
                (lengths, self.fields(record, names, &items, pair)?)
            }
            AvroSchema::Map(map) => {
                let mut lengths = Vec::with_capacity(values.len());
                let mut all: Vec<(&String, Option<&Value>)> = Vec::new();
                for value in values {
                    let before = all.len();
                    match value {
                        None => {}
                        Some(Value::Map(map)) => {
                            all.extend(map.iter().map(|(key, value)| (key, present(value))));
                            all[before..].sort_unstable_by_key(|(key, _)| *key);
                        }
                        Some(_) => return Err(Error::corrupt("an Avro value is no map")),
                    }
                    lengths.push(all.len() - before);
                }
                let texts: Vec<Value> =
                    all.iter().map(|(key, _)| Value::String((*key).clone())).collect();
                let texts: Vec<Option<&Value>> = texts.iter().map(Some).collect();
                let items: Vec<Option<&Value>> = all.iter().map(|(_, value)| *value).collect();
                let items = self.array(&map.types, inside("value"), &items, value)?;
                (lengths, vec![primitive(&texts, key.data_type())?, items])
            }
            other => return Err(not_this(other, &DataType::Map(entries.clone(), sorted))),
        };
        let entries_array =
            StructArray::try_new(pair.clone(), children, None).map_err(not_as_said)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        MapArray::try_new(entries.clone(), offsets, entries_array, nulls_of(values), sorted)
            .map(|map| Arc::new(map) as ArrayRef)
            .map_err(not_as_said)
    }

    /// What an optional type is when it is there.
    fn without_null<'s>(&'s self, schema: &'s AvroSchema) -> Result<&'s AvroSchema> {
        match schema {
            AvroSchema::Union(union) => {
                let mut some = union.variants().iter().filter(|s| !matches!(s, AvroSchema::Null));
                match (some.next(), some.next()) {
                    (Some(one), None) => self.without_null(one),
                    _ => Err(Error::unsupported("an Avro union of several types cannot be read")),
                }
            }
            AvroSchema::Ref { name } => self.named(name),
            other => Ok(other),
        }
    }

    fn named(&self, name: &Name) -> Result<&AvroSchema> {
        let known = self.types.get(name).copied();
        known.ok_or_else(|| Error::corrupt("the Avro schema names a type that it does not have"))
    }
}

/// The field at `at` of a record.
fn field_of(row: Option<&Value>, at: usize) -> Result<Option<&Value>> {
    match row {
        None => Ok(None),
        Some(Value::Record(fields)) => match fields.get(at) {
            Some((_, value)) => Ok(present(value)),
            None => Err(Error::corrupt("an Avro record lacks a field")),
        },
        Some(_) => Err(Error::corrupt("an Avro value is no record")),
    }
}

/// The values of all lists, one after the other, and how many each has.
fn items_of<'v>(values: &[Option<&'v Value>]) -> Result<(Vec<usize>, Vec<Option<&'v Value>>)> {
    let mut lengths = Vec::with_capacity(values.len());
    let mut items = Vec::new();
    for value in values {
        match value {
            None => lengths.push(0),
            Some(Value::Array(list)) => {
                lengths.push(list.len());
                items.extend(list.iter().map(present));
            }
            Some(_) => return Err(Error::corrupt("an Avro value is no array")),
        }
    }
    Ok((lengths, items))
}

/// `None` for NULL; without the union around it.
fn present(value: &Value) -> Option<&Value> {
    match value {
        Value::Null => None,
        Value::Union(_, inner) => present(inner),
        other => Some(other),
    }
}

fn nulls_of(values: &[Option<&Value>]) -> Option<NullBuffer> {
    values.iter().any(Option::is_none).then(|| values.iter().map(Option::is_some).collect())
}

macro_rules! build {
    ($values:expr, $to:expr, $builder:expr, $get:expr) => {{
        let mut builder = $builder;
        for value in $values {
            match value {
                None => builder.append_null(),
                Some(value) => builder.append_value($get(value).ok_or_else(|| unfit(value, $to))?),
            }
        }
        Arc::new(builder.finish())
    }};
}

fn primitive(values: &[Option<&Value>], to: &DataType) -> Result<ArrayRef> {
    let rows = values.len();
    Ok(match to {
        DataType::Boolean => {
            build!(values, to, BooleanBuilder::with_capacity(rows), |v: &Value| {
                if let Value::Boolean(v) = v { Some(*v) } else { None }
            })
        }
        DataType::Int32 => build!(values, to, Int32Builder::with_capacity(rows), |v: &Value| {
            integer(v).and_then(|v| i32::try_from(v).ok())
        }),
        DataType::Int64 => build!(values, to, Int64Builder::with_capacity(rows), integer),
        DataType::Float32 => {
            build!(values, to, Float32Builder::with_capacity(rows), |v: &Value| {
                if let Value::Float(v) = v { Some(*v) } else { None }
            })
        }
        DataType::Float64 => {
            build!(values, to, Float64Builder::with_capacity(rows), |v: &Value| {
                match v {
                    Value::Float(v) => Some(f64::from(*v)),
                    Value::Double(v) => Some(*v),
                    _ => None,
                }
            })
        }
        DataType::Date32 => build!(values, to, Date32Builder::with_capacity(rows), |v: &Value| {
            match v {
                Value::Date(v) | Value::Int(v) => Some(*v),
                _ => None,
            }
        }),
        DataType::Time64(TimeUnit::Microsecond) => {
            build!(values, to, Time64MicrosecondBuilder::with_capacity(rows), |v: &Value| {
                match v {
                    Value::TimeMicros(v) | Value::Long(v) => Some(*v),
                    Value::TimeMillis(v) => Some(i64::from(*v) * 1000),
                    _ => None,
                }
            })
        }
        DataType::Decimal128(precision, scale) => {
            let builder = Decimal128Builder::with_capacity(rows)
                .with_precision_and_scale(*precision, *scale)
                .map_err(not_as_said)?;
            build!(values, to, builder, decimal)
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = values.iter().map(|v| v.map(|v| micros(v, to)).transpose());
            let micros = micros.collect::<Result<Vec<_>>>()?;
            Arc::new(TimestampMicrosecondArray::from(micros).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let nanos = values.iter().map(|v| v.map(|v| nanos(v, to)).transpose());
            let nanos = nanos.collect::<Result<Vec<_>>>()?;
            Arc::new(TimestampNanosecondArray::from(nanos).with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => build!(values, to, StringBuilder::new(), |v: &Value| match v {
            Value::String(v) | Value::Enum(_, v) => Some(v.clone()),
            _ => None,
        }),
        DataType::Binary => build!(values, to, BinaryBuilder::new(), |v: &Value| match v {
            Value::Bytes(v) | Value::Fixed(_, v) => Some(v.clone()),
            Value::String(v) => Some(v.clone().into_bytes()),
            Value::Uuid(v) => Some(v.as_bytes().to_vec()),
            _ => None,
        }),
        DataType::FixedSizeBinary(width) => {
            let bytes = values.iter().map(|value| match value {
                None => Ok(None),
                Some(Value::Uuid(v)) => Ok(Some(v.as_bytes().to_vec())),
                Some(Value::Fixed(_, v) | Value::Bytes(v)) => Ok(Some(v.clone())),
                Some(Value::String(v)) => match uuid::Uuid::parse_str(v) {
                    Ok(v) => Ok(Some(v.as_bytes().to_vec())),
                    Err(_) => Err(no_uuid(&format!("{v:?}"))),
                },
                Some(other) => Err(no_uuid(&format!("{other:?}"))),
            });
            let bytes = bytes.collect::<Result<Vec<_>>>()?;
            let array =
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), *width);
            Arc::new(array.map_err(not_as_said)?)
        }
        other => {
            return Err(Error::unsupported(format!(
                "values of type {other} cannot be read of Avro"
            )));
        }
    })
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(v) => Some(i64::from(*v)),
        Value::Long(v) => Some(*v),
        _ => None,
    }
}

fn decimal(value: &Value) -> Option<i128> {
    let bytes: Vec<u8> = match value {
        Value::Decimal(v) => Vec::try_from(v).ok()?,
        Value::Bytes(v) | Value::Fixed(_, v) => v.clone(),
        _ => return None,
    };
    // Two's complement, big endian; longer than 16 bytes only by its sign.
    let filler = if bytes.first().is_some_and(|first| *first >= 0x80) { 0xff } else { 0 };
    let cut = bytes.len().saturating_sub(16);
    let (extra, rest) = bytes.split_at(cut);
    let mut whole = [filler; 16];
    whole[16 - rest.len()..].copy_from_slice(rest);
    let number = i128::from_be_bytes(whole);
    (extra.iter().all(|byte| *byte == filler) && (number < 0) == (filler == 0xff)).then_some(number)
}

fn micros(value: &Value, to: &DataType) -> Result<i64> {
    let micros = match value {
        Value::TimestampMicros(v) | Value::LocalTimestampMicros(v) | Value::Long(v) => Some(*v),
        Value::TimestampMillis(v) | Value::LocalTimestampMillis(v) => v.checked_mul(1000),
        Value::TimestampNanos(v) | Value::LocalTimestampNanos(v) => Some(v.div_euclid(1000)),
        Value::Date(days) => i64::from(*days).checked_mul(86_400_000_000),
        _ => None,
    };
    micros.ok_or_else(|| unfit(value, to))
}

fn nanos(value: &Value, to: &DataType) -> Result<i64> {
    match value {
        Value::TimestampNanos(v) | Value::LocalTimestampNanos(v) | Value::Long(v) => Ok(*v),
        other => micros(other, to)?.checked_mul(1000).ok_or_else(|| unfit(value, to)),
    }
}

fn unfit(value: &Value, to: &DataType) -> Error {
    let kind = apache_avro::schema::SchemaKind::from(value);
    Error::corrupt(format!("the Avro file has a value of type {kind:?}, not {to}"))
}

fn not_this(own: &AvroSchema, to: &DataType) -> Error {
    let kind = apache_avro::schema::SchemaKind::from(own);
    Error::corrupt(format!("the Avro file has values of type {kind:?}, not {to}"))
}

fn has_ids(schema: &AvroSchema) -> bool {
    match schema {
        AvroSchema::Record(record) => record.fields.iter().any(|field| {
            field.custom_attributes.contains_key("field-id") || has_ids(&field.schema)
        }),
        AvroSchema::Union(union) => union.variants().iter().any(has_ids),
        AvroSchema::Array(array) => {
            array.attributes.contains_key("element-id") || has_ids(&array.items)
        }
        AvroSchema::Map(map) => map.attributes.contains_key("key-id") || has_ids(&map.types),
        _ => false,
    }
}

fn int(json: Option<&serde_json::Value>) -> Option<i32> {
    i32::try_from(json?.as_i64()?).ok()
}

fn id_of(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}

fn damaged(source: apache_avro::Error) -> Error {
    Error::corrupt("the Avro file cannot be read").with_detail(source.to_string())
}

fn no_uuid(value: &str) -> Error {
    Error::corrupt(format!("rows are not as the table says: {value} is no UUID"))
}

fn not_as_said(source: arrow_schema::ArrowError) -> Error {
    Error::corrupt("rows are not as the table says").with_detail(source.to_string())
}
