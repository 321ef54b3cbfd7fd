//! Reports and answers as bytes, for another daemon.
//!
//! A report is sent without what both sides know: types of columns are those of the table's schema, which must be the
//! same version of it there. All integers are little-endian. An answer is its counts and one Arrow IPC batch.

use std::sync::Arc;

use arrow_ipc::reader::read_record_batch;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_ipc::{MessageHeader, MetadataVersion, root_as_message};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use stoa_error::{Error, Result};
use stoa_orc::FIELD_ID_KEY;
use stoa_table::Table;

use crate::outcome::Answer;
use crate::report::{Aggregate, Column, Condition, Function, Item, Order, Report, Test};
use crate::work::ReportWork;

/// Longest list that is read: more than a report may have.
const LIST_MAX: usize = 1 << 20;

impl Report {
    /// The report as bytes; `None` where it has a type that [`Report::decode`] does not know.
    pub fn encode(&self) -> Option<Bytes> {
        let mut out = BytesMut::with_capacity(256);
        put_list(&mut out, &self.columns, |out, column| out.put_i32_le(column.field_id));
        put_list(&mut out, &self.conditions, |out, condition| {
            put_index(out, condition.column);
            put_test(out, &condition.test);
        });
        out.put_u8(u8::from(self.grouped));
        put_list(&mut out, &self.group_by, |out, column| put_index(out, *column));
        put_list(&mut out, &self.aggregates, |out, aggregate| {
            out.put_u8(aggregate.function as u8);
            put_index(out, aggregate.column.map_or(0, |column| column + 1));
        });
        put_list(&mut out, &self.items, put_item);
        put_list(&mut out, &self.order, |out, order| {
            put_item(out, &order.by);
            out.put_u8(u8::from(order.descending) | u8::from(order.nulls_first) << 1);
        });
        out.put_u64_le(self.offset as u64);
        out.put_u64_le(self.limit.map_or(u64::MAX, |limit| limit as u64));
        put_index(&mut out, self.schema.fields().len());
        for field in self.schema.fields() {
            put_type(&mut out, field.data_type())?;
            out.put_u8(u8::from(field.is_nullable()));
        }
        Some(out.freeze())
    }

    /// Reads what [`Report::encode`] wrote, for the same schema of a table. The columns of the answer have no names.
    ///
    /// # Errors
    /// 08P01: the bytes are no report, or one of another table.
    pub fn decode(bytes: Bytes, table: &Table) -> Result<Self> {
        read_report(bytes, &table.schema()).ok_or_else(|| unreadable("report"))
    }
}

impl Answer {
    /// Writes the answer as bytes.
    ///
    /// # Errors
    /// `Internal`: Arrow cannot write it.
    pub fn encode(&self, out: &mut BytesMut) -> Result<()> {
        let generator = IpcDataGenerator::default();
        let mut dictionaries = DictionaryTracker::new(false);
        let mut compression = IpcWriteContext::default();
        let options = IpcWriteOptions::default();
        let (_, encoded) = generator
            .encode(&self.batch, &mut dictionaries, &options, &mut compression)
            .map_err(|e| Error::internal("an answer cannot be sent").with_source(e))?;
        out.reserve(128 + encoded.ipc_message.len() + encoded.arrow_data.len());
        for count in counts(&self.work) {
            out.put_u64_le(count);
        }
        put_index(out, encoded.ipc_message.len());
        out.put_slice(&encoded.ipc_message);
        out.put_slice(&encoded.arrow_data);
        Ok(())
    }

    /// Reads what [`Answer::encode`] wrote; `schema` is that of the answer.
    ///
    /// # Errors
    /// 08P01: the bytes are no answer of that schema.
    pub fn decode(bytes: Bytes, schema: &SchemaRef) -> Result<Self> {
        let answer = read_answer(bytes, schema).ok_or_else(|| unreadable("answer"))?;
        let columns = answer.batch.columns().iter().zip(schema.fields());
        if answer.batch.num_columns() != schema.fields().len()
            || !columns.into_iter().all(|(column, field)| column.data_type() == field.data_type())
        {
            return Err(unreadable("answer"));
        }
        Ok(answer)
    }
}

fn read_answer(mut bytes: Bytes, schema: &SchemaRef) -> Option<Answer> {
    let mut read = || bytes.try_get_u64_le().ok();
    let work = ReportWork {
        files_total: read()?,
        files_read: read()?,
        row_groups_total: read()?,
        row_groups_read: read()?,
        rows_read: read()?,
        rows_selected: read()?,
        chunk_hits: read()?,
        chunk_misses: read()?,
        disk_hits: read()?,
        requests: read()?,
        bytes_read: read()?,
        hedges: read()?,
    };
    let length = index(&mut bytes)?;
    let header = take(&mut bytes, length)?;
    let message = root_as_message(&header).ok()?;
    if message.header_type() != MessageHeader::RecordBatch {
        return None;
    }
    let batch = message.header_as_record_batch()?;
    // Arrow slices without asking.
    let ends = batch.buffers()?.iter().map(|part| {
        let (offset, length) = (usize::try_from(part.offset()), usize::try_from(part.length()));
        offset.ok()?.checked_add(length.ok()?)
    });
    if !ends.into_iter().all(|end| end.is_some_and(|end| end <= bytes.len())) {
        return None;
    }
    let data = arrow_buffer::Buffer::from(bytes);
    let nothing = std::collections::HashMap::new();
    let batch =
        read_record_batch(&data, batch, Arc::clone(schema), &nothing, None, &MetadataVersion::V5);
    Some(Answer { batch: batch.ok()?, work })
}

/// In the order in which they are read.
fn counts(work: &ReportWork) -> [u64; 12] {
    [
        work.files_total,
        work.files_read,
        work.row_groups_total,
        work.row_groups_read,
        work.rows_read,
        work.rows_selected,
        work.chunk_hits,
        work.chunk_misses,
        work.disk_hits,
        work.requests,
        work.bytes_read,
        work.hedges,
    ]
}

fn put_index(out: &mut BytesMut, index: usize) {
    // Larger ones are in no report: reading refuses them.
    out.put_u32_le(u32::try_from(index).unwrap_or(u32::MAX));
}

fn put_list<T>(out: &mut BytesMut, list: &[T], put: impl Fn(&mut BytesMut, &T)) {
    put_index(out, list.len());
    list.iter().for_each(|item| put(out, item));
}

fn put_text(out: &mut BytesMut, text: &str) {
    put_index(out, text.len());
    out.put_slice(text.as_bytes());
}

fn put_end(out: &mut BytesMut, end: Option<&(Box<str>, bool)>) {
    out.put_u8(end.map_or(0, |(_, within)| 1 + u8::from(*within)));
    if let Some((text, _)) = end {
        put_text(out, text);
    }
}

fn put_test(out: &mut BytesMut, test: &Test) {
    match test {
        Test::Between(low, high) => {
            out.put_u8(0);
            out.put_i128_le(*low);
            out.put_i128_le(*high);
        }
        Test::OneOf(values) => {
            out.put_u8(1);
            put_list(out, values, |out, value| out.put_i128_le(*value));
        }
        Test::NotEqual(value) => {
            out.put_u8(2);
            out.put_i128_le(*value);
        }
        Test::TextBetween { low, high } => {
            out.put_u8(3);
            put_end(out, low.as_ref());
            put_end(out, high.as_ref());
        }
        Test::TextOneOf(texts) => {
            out.put_u8(4);
            put_list(out, texts, |out, text| put_text(out, text));
        }
        Test::TextNotEqual(text) => {
            out.put_u8(5);
            put_text(out, text);
        }
        Test::IsNull => out.put_u8(6),
        Test::IsNotNull => out.put_u8(7),
    }
}

fn put_item(out: &mut BytesMut, item: &Item) {
    let (kind, index) = match item {
        Item::Column(index) => (0, index),
        Item::Aggregate(index) => (1, index),
    };
    out.put_u8(kind);
    put_index(out, *index);
}

/// Types of answers, by number.
const TYPES: [DataType; 9] = [
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::Date32,
    DataType::Utf8,
    DataType::Float32,
    DataType::Float64,
];

const TIMESTAMP: u8 = 100;
const DECIMAL128: u8 = 101;
const DECIMAL256: u8 = 102;

fn put_type(out: &mut BytesMut, data_type: &DataType) -> Option<()> {
    match data_type {
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            out.put_u8(TIMESTAMP);
            put_text(out, zone.as_deref().unwrap_or_default());
        }
        DataType::Decimal128(precision, scale) => {
            out.put_u8(DECIMAL128);
            out.put_u8(*precision);
            out.put_i8(*scale);
        }
        DataType::Decimal256(precision, scale) => {
            out.put_u8(DECIMAL256);
            out.put_u8(*precision);
            out.put_i8(*scale);
        }
        other => out.put_u8(u8::try_from(TYPES.iter().position(|one| one == other)?).ok()?),
    }
    Some(())
}

fn read_report(mut bytes: Bytes, table: &Schema) -> Option<Report> {
    let read = &mut bytes;
    let columns = list(read, |read| column(read.try_get_i32_le().ok()?, table))?;
    let conditions =
        list(read, |read| Some(Condition { column: index(read)?, test: self::test(read)? }))?;
    let grouped = flag(read)?;
    let group_by = list(read, index)?;
    let aggregates = list(read, |read| {
        let function = match read.try_get_u8().ok()? {
            0 => Function::Count,
            1 => Function::Sum,
            2 => Function::Min,
            3 => Function::Max,
            4 => Function::Mean,
            _ => return None,
        };
        Some(Aggregate { function, column: index(read)?.checked_sub(1) })
    })?;
    let items = list(read, item)?;
    let order = list(read, |read| {
        let by = item(read)?;
        let flags = read.try_get_u8().ok().filter(|flags| *flags < 4)?;
        Some(Order { by, descending: flags & 1 == 1, nulls_first: flags & 2 == 2 })
    })?;
    let offset = usize::try_from(read.try_get_u64_le().ok()?).ok()?;
    let limit = read.try_get_u64_le().ok().map(|limit| (limit != u64::MAX).then_some(limit))?;
    let limit = limit.map(|limit| usize::try_from(limit).ok());
    let limit = match limit {
        Some(None) => return None,
        Some(limit) => limit,
        None => None,
    };
    let fields = list(read, |read| Some(Field::new("", data_type(read)?, flag(read)?)))?;
    let schema = Arc::new(Schema::new(fields));
    if !bytes.is_empty() {
        return None;
    }
    let report = Report {
        columns,
        conditions,
        grouped,
        group_by,
        aggregates,
        items,
        schema,
        order,
        offset,
        limit,
    };
    report.check().ok()?;
    Some(report)
}

fn column(field_id: i32, table: &Schema) -> Option<Column> {
    let id = |field: &Field| field.metadata().get(FIELD_ID_KEY)?.parse::<i32>().ok();
    let position = table.fields().iter().position(|field| id(field) == Some(field_id))?;
    Some(Column { position, field_id, data_type: table.field(position).data_type().clone() })
}

fn index(read: &mut Bytes) -> Option<usize> {
    read.try_get_u32_le().ok().map(|index| index as usize)
}

fn flag(read: &mut Bytes) -> Option<bool> {
    match read.try_get_u8().ok()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn list<T>(read: &mut Bytes, item: impl Fn(&mut Bytes) -> Option<T>) -> Option<Vec<T>> {
    let length = index(read).filter(|length| *length <= LIST_MAX)?;
    // Not reserved for all that is promised.
    let mut items = Vec::with_capacity(length.min(64));
    for _ in 0..length {
        items.push(item(read)?);
    }
    Some(items)
}

fn take(read: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= read.len()).then(|| read.split_to(length))
}

fn text(read: &mut Bytes) -> Option<Box<str>> {
    let length = index(read)?;
    let bytes = take(read, length)?;
    std::str::from_utf8(&bytes).ok().map(Into::into)
}

fn number(read: &mut Bytes) -> Option<i128> {
    read.try_get_i128_le().ok()
}

/// Outer `None`: unreadable.
fn end(read: &mut Bytes) -> Option<Option<(Box<str>, bool)>> {
    match read.try_get_u8().ok()? {
        0 => Some(None),
        within @ (1 | 2) => Some(Some((text(read)?, within == 2))),
        _ => None,
    }
}

fn test(read: &mut Bytes) -> Option<Test> {
    Some(match read.try_get_u8().ok()? {
        0 => Test::Between(number(read)?, number(read)?),
        1 => Test::OneOf(list(read, number)?),
        2 => Test::NotEqual(number(read)?),
        3 => Test::TextBetween { low: end(read)?, high: end(read)? },
        4 => Test::TextOneOf(list(read, text)?),
        5 => Test::TextNotEqual(text(read)?),
        6 => Test::IsNull,
        7 => Test::IsNotNull,
        _ => return None,
    })
}

fn item(read: &mut Bytes) -> Option<Item> {
    match read.try_get_u8().ok()? {
        0 => index(read).map(Item::Column),
        1 => index(read).map(Item::Aggregate),
        _ => None,
    }
}

fn data_type(read: &mut Bytes) -> Option<DataType> {
    let digits = |read: &mut Bytes| Some((read.try_get_u8().ok()?, read.try_get_i8().ok()?));
    match read.try_get_u8().ok()? {
        TIMESTAMP => {
            let zone = text(read)?;
            let zone = (!zone.is_empty()).then(|| Arc::from(&*zone));
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone))
        }
        DECIMAL128 => digits(read).map(|(precision, scale)| DataType::Decimal128(precision, scale)),
        DECIMAL256 => digits(read).map(|(precision, scale)| DataType::Decimal256(precision, scale)),
        number => TYPES.get(usize::from(number)).cloned(),
    }
}

fn unreadable(what: &str) -> Error {
    Error::invalid(format!("a {what} of another daemon cannot be read")).with_sqlstate("08P01")
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};

    use super::*;

    fn schema() -> Schema {
        let field = |name: &str, data_type, id: i32| {
            let id = [(FIELD_ID_KEY.to_owned(), id.to_string())];
            Field::new(name, data_type, true).with_metadata(id.into())
        };
        Schema::new(vec![
            field("a", DataType::Int64, 1),
            field("t", DataType::Utf8, 7),
            field("d", DataType::Decimal128(10, 2), 3),
        ])
    }

    fn report() -> Report {
        let schema = schema();
        let column = |field_id| column(field_id, &schema).unwrap();
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        let answer = [DataType::Int64, DataType::Decimal256(40, 2), DataType::Utf8, zoned];
        let fields = answer.into_iter().map(|of| Field::new("", of, true));
        let low = Some(("ä".into(), true));
        let tests = [
            (0, Test::Between(i128::MIN, i128::MAX)),
            (0, Test::OneOf(vec![-1, 5])),
            (2, Test::NotEqual(7)),
            (1, Test::TextBetween { low, high: None }),
            (1, Test::TextBetween { low: None, high: Some(("".into(), false)) }),
            (1, Test::TextOneOf(vec!["x".into(), "yy".into()])),
            (1, Test::TextNotEqual("n".into())),
            (0, Test::IsNull),
            (0, Test::IsNotNull),
        ];
        let functions =
            [Function::Count, Function::Sum, Function::Min, Function::Max, Function::Mean];
        Report {
            columns: vec![column(3), column(7), column(1)].into_iter().rev().collect(),
            conditions: tests.map(|(column, test)| Condition { column, test }).into(),
            grouped: true,
            group_by: vec![0, 1],
            aggregates: functions
                .map(|function| Aggregate { function, column: Some(2) })
                .into_iter()
                .chain([Aggregate { function: Function::Count, column: None }])
                .collect(),
            items: vec![Item::Column(0), Item::Aggregate(1), Item::Column(1), Item::Aggregate(5)],
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            order: vec![
                Order { by: Item::Aggregate(0), descending: true, nulls_first: false },
                Order { by: Item::Column(1), descending: false, nulls_first: true },
            ],
            offset: 3,
            limit: Some(10),
        }
    }

    #[test]
    fn reports_come_back() {
        for limit in [Some(10), None] {
            let report = Report { limit, ..report() };
            let read = read_report(report.encode().unwrap(), &schema()).unwrap();
            assert_eq!(read, report);
        }
        let odd = Schema::new(vec![Field::new("", DataType::Binary, true)]);
        assert!(Report { schema: Arc::new(odd), ..report() }.encode().is_none());
        let other = Schema::new(vec![schema().field(0).clone()]);
        assert!(read_report(report().encode().unwrap(), &other).is_none(), "another table");
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused_or_another_report() {
        let whole = report().encode().unwrap();
        for length in 0..whole.len() {
            assert!(read_report(whole.slice(..length), &schema()).is_none(), "{length}");
        }
        for at in 0..whole.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = whole.to_vec();
                damaged[at] ^= flip;
                let _ = read_report(damaged.into(), &schema());
            }
        }
    }

    #[test]
    fn answers_come_back_and_damaged_ones_are_refused() {
        let sums = Decimal128Array::from(vec![Some(1), None, Some(-7)]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(1), Some(i64::MIN), None])),
            Arc::new(StringArray::from(vec![Some("ä"), None, Some("")])),
            Arc::new(sums.with_precision_and_scale(10, 2).unwrap()),
        ];
        for rows in [0, 2, 3] {
            let columns = columns.iter().map(|column| column.slice(0, rows)).collect();
            let batch = RecordBatch::try_new(Arc::new(schema()), columns).unwrap();
            let work = ReportWork { hedges: 9, files_total: 4, ..ReportWork::default() };
            let answer = Answer { batch, work };
            let mut bytes = BytesMut::new();
            answer.encode(&mut bytes).unwrap();
            let bytes = bytes.freeze();
            let read = Answer::decode(bytes.clone(), &answer.batch.schema()).unwrap();
            assert_eq!((read.batch, read.work), (answer.batch.clone(), work));
            for length in 0..bytes.len() {
                match Answer::decode(bytes.slice(..length), &answer.batch.schema()) {
                    Ok(read) => assert_eq!(read.batch, answer.batch, "only padding was cut"),
                    Err(error) => assert_eq!(error.sqlstate(), "08P01"),
                }
            }
        }
    }
}
