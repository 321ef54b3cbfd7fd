//! What daemons ask each other about tickets, prepared statements and logins, as bytes.
//!
//! Messages are Protocol Buffers; values and columns are Arrow's IPC format, whose reader trusts its writer: they come
//! from daemons only. A daemon believes another one about who asks: that one has checked the password.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use bytes::Bytes;
use prost::Message;
use stoa_error::{Error, Result};
use stoa_query::{ScalarValue, from_datafusion};

/// What a daemon wants to know, or to have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum What {
    /// Not a question.
    Nothing = 0,
    /// The query of a ticket, which is used up then. Answer: [`Definition`].
    Redeem = 1,
    /// A prepared statement with the values bound to it. Answer: [`Definition`].
    Statement = 2,
    /// Bind values to a prepared statement. No answer.
    Bind = 3,
    /// Forget a prepared statement. No answer.
    Close = 4,
    /// Cancel the query of a ticket. Answer: [`CancelAnswer`].
    Cancel = 5,
    /// Whose the token of a login is, which the handle is. Answer: [`Login`](crate::logins::Login).
    Login = 6,
    /// End the session of a token. No answer.
    Logout = 7,
}

/// A question about a handle.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Question {
    #[prost(enumeration = "What", tag = "1")]
    pub(crate) what: i32,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) handle: Bytes,
    /// The role whose client has it; empty where that is the question.
    #[prost(string, tag = "3")]
    pub(crate) user: String,
    /// The number of the daemon that asks.
    #[prost(uint32, tag = "4")]
    pub(crate) asker: u32,
    /// Values to bind, as a stream of batches.
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) values: Bytes,
}

/// All that another daemon needs to run a statement as this one would.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Definition {
    #[prost(string, tag = "1")]
    pub(crate) sql: String,
    /// The settings of its session that are not the default.
    #[prost(message, repeated, tag = "2")]
    pub(crate) settings: Vec<Setting>,
    /// The columns that the client was told; none for a statement without rows.
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) columns: Bytes,
    /// The values for its next run, a row for each run.
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) values: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Setting {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// What came of cancelling.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CancelAnswer {
    #[prost(bool, tag = "1")]
    pub(crate) was_there: bool,
    /// Whether it runs and will end soon.
    #[prost(bool, tag = "2")]
    pub(crate) had_begun: bool,
}

/// A message of another daemon.
///
/// # Errors
/// 08P01: bytes that are no such message.
pub(crate) fn read<T: Message + Default>(bytes: Bytes) -> Result<T> {
    T::decode(bytes).map_err(unreadable)
}

/// Batches of one schema as bytes; columns alone are no batches.
///
/// # Errors
/// None that a client could do something about.
pub(crate) fn write_batches(schema: &Schema, batches: &[RecordBatch]) -> Result<Bytes> {
    let failed =
        |e: ArrowError| Error::internal("values for another daemon are not written").with_source(e);
    let mut writer = StreamWriter::try_new(Vec::new(), schema).map_err(failed)?;
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(failed)?;
    Ok(writer.into_inner().map_err(failed)?.into())
}

/// What [`write_batches`] wrote; an empty schema where there is nothing.
///
/// # Errors
/// 08P01: bytes that are no batches.
pub(crate) fn read_batches(bytes: &Bytes) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    if bytes.is_empty() {
        return Ok((SchemaRef::new(Schema::empty()), Vec::new()));
    }
    let reader = StreamReader::try_new(Cursor::new(bytes.clone()), None).map_err(unreadable)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<_, _>>().map_err(unreadable)?;
    Ok((schema, batches))
}

/// Rows of values as bytes.
///
/// # Errors
/// Values of one column that differ in type, which no client can bind.
pub(crate) fn write_values(rows: &[Vec<ScalarValue>]) -> Result<Bytes> {
    let width = rows.first().map_or(0, Vec::len);
    if width == 0 {
        return Ok(Bytes::new());
    }
    let columns = (0..width).map(|column| {
        let values = rows.iter().filter_map(|row| row.get(column).cloned());
        ScalarValue::iter_to_array(values).map_err(from_datafusion)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let fields = columns.iter().enumerate();
    let fields = fields
        .map(|(n, column)| Field::new(format!("${}", n + 1), column.data_type().clone(), true));
    let schema = SchemaRef::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(SchemaRef::clone(&schema), columns)
        .map_err(|e| Error::internal("values for another daemon are no rows").with_source(e))?;
    write_batches(&schema, &[batch])
}

fn unreadable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::invalid("a message of another daemon cannot be read")
        .with_sqlstate("08P01")
        .with_source(source)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int64Array;
    use arrow_schema::DataType;

    use super::*;

    fn rows() -> Vec<Vec<ScalarValue>> {
        let row = |number: Option<i64>, text: &str, cents| {
            vec![
                ScalarValue::Int64(number),
                ScalarValue::Utf8(Some(text.to_owned())),
                ScalarValue::Decimal128(Some(cents), 9, 2),
            ]
        };
        vec![row(Some(1), "ä", 125), row(None, "", -1), row(Some(i64::MIN), "x", 0)]
    }

    #[test]
    fn values_come_back_with_their_types() {
        let (schema, batches) = read_batches(&write_values(&rows()).unwrap()).unwrap();
        assert_eq!(schema.fields().len(), 3);
        let back: Vec<Vec<ScalarValue>> = (0..3)
            .map(|row| {
                let columns = batches[0].columns().iter();
                columns.map(|c| ScalarValue::try_from_array(c, row).unwrap()).collect()
            })
            .collect();
        assert_eq!(back, rows());
        assert_eq!(write_values(&[]).unwrap(), Bytes::new());
        assert_eq!(read_batches(&Bytes::new()).unwrap().0.fields().len(), 0);
    }

    #[test]
    fn cut_and_damaged_messages_are_errors_or_other_messages() {
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let column = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap();
        let values = write_batches(&schema, &[batch]).unwrap();
        let question = Question {
            what: What::Bind as i32,
            handle: Bytes::from_static(&[7; 20]),
            user: "ä".to_owned(),
            asker: 3,
            values: values.clone(),
        };
        let bytes = Bytes::from(question.encode_to_vec());
        assert_eq!(read::<Question>(bytes.clone()).unwrap(), question);
        for at in 0..bytes.len() {
            let _ = read::<Question>(bytes.slice(..at));
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0xff;
            let _ = read::<Question>(damaged.into());
        }
        let error = read_batches(&Bytes::from_static(b"no batches")).unwrap_err();
        assert_eq!(error.sqlstate(), "08P01");
    }
}
