//! Reports and answers as bytes, for another daemon.
//!
//! A report is sent without what both sides know: types of columns are those of the table's schema, which must be the
//! same version of it there. All integers are little-endian. An answer has few rows and is on the way of each report, so
//! it is not Arrow IPC, whose headers cost more than its values:
//!
//! ```text
//! counts of the work · number of rows · for each column: 1 and a bit for each valid row, or 0 · values
//! values: as they are in memory; bits; or, of texts, the end of each and the bytes of all
//! ```

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_data::ArrayData;
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
        put_list(&mut out, &self.columns, |out, column| {
            put_index(out, column.position);
            out.put_i32_le(column.field_id);
        });
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
    /// `Internal`: it has a type that no report has.
    pub fn encode(&self, out: &mut BytesMut) -> Result<()> {
        let rows = self.batch.num_rows();
        out.reserve(128 + self.batch.num_columns() * (8 + rows * 9));
        for count in counts(&self.work) {
            out.put_u64_le(count);
        }
        put_index(out, rows);
        for column in self.batch.columns() {
            put_column(out, &column.to_data())
                .ok_or_else(|| Error::internal(format!("{} cannot be sent", column.data_type())))?;
        }
        Ok(())
    }

    /// Reads what [`Answer::encode`] wrote; `schema` is that of the answer.
    ///
    /// # Errors
    /// 08P01: the bytes are no answer of that schema.
    pub fn decode(bytes: Bytes, schema: &SchemaRef) -> Result<Self> {
        read_answer(bytes, schema).ok_or_else(|| unreadable("answer"))
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
    let rows = index(&mut bytes)?;
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        columns.push(make_array(read_column(&mut bytes, field.data_type(), rows)?));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).ok()?;
    bytes.is_empty().then_some(Answer { batch, work })
}

/// How values of a type lie in memory.
enum Values {
    Bits,
    Bytes(usize),
    Texts,
}

impl Values {
    fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Bits,
            DataType::Utf8 => Self::Texts,
            DataType::Decimal128(..) => Self::Bytes(16),
            DataType::Decimal256(..) => Self::Bytes(32),
            other => Self::Bytes(other.primitive_width()?),
        })
    }
}

fn put_column(out: &mut BytesMut, column: &ArrayData) -> Option<()> {
    let (first, rows) = (column.offset(), column.len());
    out.put_u8(u8::from(column.nulls().is_some()));
    if let Some(valid) = column.nulls() {
        put_bits(out, valid.inner());
    }
    let values = column.buffers().first()?;
    match Values::of(column.data_type())? {
        Values::Bits => put_bits(out, &BooleanBuffer::new(values.clone(), first, rows)),
        Values::Bytes(width) => out.put_slice(values.get(first * width..(first + rows) * width)?),
        Values::Texts => {
            let ends = match rows {
                // It may have no offsets at all.
                0 => &[0],
                _ => values.typed_data::<i32>().get(first..=first + rows)?,
            };
            let begin = *ends.first()?;
            ends.iter().skip(1).for_each(|end| out.put_i32_le(end - begin));
            let text = column.buffers().get(1)?;
            out.put_slice(text.get(begin as usize..*ends.last()? as usize)?);
        }
    }
    Some(())
}

fn put_bits(out: &mut BytesMut, bits: &BooleanBuffer) {
    out.put_slice(&bits.sliced().as_slice()[..bits.len().div_ceil(8)]);
}

fn read_column(read: &mut Bytes, data_type: &DataType, rows: usize) -> Option<ArrayData> {
    let valid = match flag(read)? {
        true => Some(Buffer::from(take(read, rows.div_ceil(8))?)),
        false => None,
    };
    let array = ArrayData::builder(data_type.clone()).len(rows).null_bit_buffer(valid);
    let array = match Values::of(data_type)? {
        Values::Bits => array.add_buffer(Buffer::from(take(read, rows.div_ceil(8))?)),
        Values::Bytes(width) => {
            array.add_buffer(Buffer::from(take(read, rows.checked_mul(width)?)?))
        }
        Values::Texts => {
            let mut ends = take(read, rows.checked_mul(4)?)?;
            let mut offsets = Vec::with_capacity(rows + 1);
            offsets.push(0);
            while ends.has_remaining() {
                offsets.push(ends.get_i32_le());
            }
            let length = usize::try_from(*offsets.last()?).ok()?;
            array
                .add_buffer(Buffer::from_vec(offsets))
                .add_buffer(Buffer::from(take(read, length)?))
        }
    };
    // Checks ends and texts.
    array.align_buffers(true).build().ok()
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
        Test::NoneOf(values) => {
            out.put_u8(8);
            put_list(out, values, |out, value| out.put_i128_le(*value));
        }
        Test::TextNoneOf(texts) => {
            out.put_u8(9);
            put_list(out, texts, |out, text| put_text(out, text));
        }
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
    let columns = list(read, |read| column(index(read)?, read.try_get_i32_le().ok()?, table))?;
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

/// A column, which is where the same schema has it.
fn column(position: usize, field_id: i32, table: &Schema) -> Option<Column> {
    let field = table.fields().get(position)?;
    let id = field.metadata().get(FIELD_ID_KEY)?.parse::<i32>().ok()?;
    let data_type = field.data_type().clone();
    (id == field_id).then_some(Column { position, field_id, data_type })
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
        8 => Test::NoneOf(list(read, number)?),
        9 => Test::TextNoneOf(list(read, text)?),
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
    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
        Float32Array, Int8Array, Int64Array, StringArray, TimestampMicrosecondArray,
    };
    use arrow_buffer::i256;

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
        let column = |position, field_id| column(position, field_id, &schema).unwrap();
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
            (0, Test::NoneOf(vec![-7, 7])),
            (1, Test::TextNoneOf(vec!["n".into(), "o".into()])),
            (0, Test::IsNull),
            (0, Test::IsNotNull),
        ];
        let functions =
            [Function::Count, Function::Sum, Function::Min, Function::Max, Function::Mean];
        Report {
            columns: vec![column(2, 3), column(1, 7), column(0, 1)].into_iter().rev().collect(),
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
        let sums = Decimal128Array::from(vec![Some(1), None, Some(-7), Some(8)]);
        let wide = Decimal256Array::from(vec![Some(i256::MAX), None, Some(i256::MINUS_ONE), None]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(1), Some(i64::MIN), None, Some(5)])),
            Arc::new(StringArray::from(vec![Some("ä"), None, Some(""), Some("yz")])),
            Arc::new(sums.with_precision_and_scale(10, 2).unwrap()),
            Arc::new(wide.with_precision_and_scale(76, 2).unwrap()),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
            Arc::new(Date32Array::from(vec![1, 2, 3, 4])),
            Arc::new(Int8Array::from(vec![-1, 2, 3, 4])),
            Arc::new(Float32Array::from(vec![0.5, f32::NAN, -0.0, 1.0])),
            Arc::new(TimestampMicrosecondArray::from(vec![1, 2, 3, 4]).with_timezone("+00:00")),
        ];
        let field = |column: &ArrayRef| Field::new("", column.data_type().clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        for (first, rows) in [(0, 0), (0, 2), (1, 3), (0, 4), (3, 1)] {
            let columns = columns.iter().map(|column| column.slice(first, rows)).collect();
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
            let work = ReportWork { hedges: 9, files_total: 4, ..ReportWork::default() };
            let answer = Answer { batch, work };
            let mut bytes = BytesMut::new();
            answer.encode(&mut bytes).unwrap();
            let bytes = bytes.freeze();
            let read = Answer::decode(bytes.clone(), &schema).unwrap();
            // Columns with NaN are not equal to themselves.
            let shown = |batch: &RecordBatch| format!("{:?}", batch.columns());
            assert_eq!((shown(&read.batch), read.work), (shown(&answer.batch), work));
            for length in 0..bytes.len() {
                let error = Answer::decode(bytes.slice(..length), &schema).unwrap_err();
                assert_eq!(error.sqlstate(), "08P01");
            }
            for at in 96..bytes.len() {
                for flip in [0x01, 0x80, 0xff] {
                    let mut damaged = bytes.to_vec();
                    damaged[at] ^= flip;
                    // Refused, or another answer that is in order.
                    if let Ok(read) = Answer::decode(damaged.into(), &schema) {
                        read.batch.columns().iter().for_each(|column| {
                            column.to_data().validate_full().unwrap();
                        });
                    }
                }
            }
        }
        let odd = Arc::new(BinaryArray::from(vec![&b"x"[..]])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("", odd)]).unwrap();
        let answer = Answer { batch, work: ReportWork::default() };
        assert!(answer.encode(&mut BytesMut::new()).is_err());
    }
}
