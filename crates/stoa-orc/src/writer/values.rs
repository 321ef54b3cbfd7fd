//! Values of one column to the streams of its type.
//!
//! In: an Arrow array and which of its rows are NULL. Out: the streams of a stripe, their
//! encoding, and per row group the positions (see the table in the crate's notes on positions).
//! Not here: PRESENT, children, statistics of NULLs (`column`).

mod binary;
mod boolean;
mod byte;
mod decimal;
mod direct;
mod float;
mod integer;
mod nested;
mod string;
mod timestamp;

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use stoa_error::Error;

use self::direct::DirectWriter;
use super::column::Seen;
use super::options::WriterOptions;
use super::stream::Context;
use crate::error::Result;
use crate::proto::{self, EncodingKind, StreamKind};
use crate::schema::{OrcType, TypeKind};

/// Writes the values of a column that are not NULL.
pub(crate) trait ValueWriter: Send {
    /// Adds the valid rows of `array`.
    fn write(
        &mut self,
        array: &dyn Array,
        nulls: Option<&NullBuffer>,
        seen: &mut Seen,
        cx: &mut Context,
    ) -> Result<()>;

    /// Ends all runs.
    fn end_row_group(&mut self, cx: &mut Context) -> Result<()>;

    /// Notes where the next row group starts.
    fn mark(&mut self, cx: &Context);

    /// Hands out the streams and starts over.
    fn finish_stripe(&mut self, cx: &mut Context) -> Result<FinishedValues>;

    /// About how many bytes the streams take.
    fn len(&self) -> usize;

    /// Bytes held.
    fn memory_bytes(&self) -> usize;
}

/// A column's own part of a stripe.
pub(crate) struct FinishedValues {
    /// In the order in which they are written.
    pub(crate) streams: Vec<(StreamKind, Vec<u8>)>,
    pub(crate) encoding: proto::ColumnEncoding,
    /// Positions of all row groups, the same number for each.
    pub(crate) marks: Vec<u64>,
}

/// The writer of a type's values.
pub(crate) fn writer_of(ty: &OrcType, options: &WriterOptions) -> Result<Box<dyn ValueWriter>> {
    Ok(match ty.kind {
        TypeKind::Boolean => Box::new(DirectWriter::new(boolean::BooleanValues)),
        TypeKind::Byte => Box::new(DirectWriter::new(byte::ByteValues::default())),
        TypeKind::Short | TypeKind::Int | TypeKind::Long | TypeKind::Date => {
            Box::new(DirectWriter::new(integer::IntegerValues))
        }
        TypeKind::Float | TypeKind::Double => Box::new(DirectWriter::new(float::FloatValues)),
        TypeKind::String | TypeKind::Varchar | TypeKind::Char => {
            Box::new(string::StringWriter::new(options.dictionary))
        }
        TypeKind::Binary => Box::new(DirectWriter::new(binary::BinaryValues)),
        TypeKind::Timestamp | TypeKind::TimestampInstant => {
            Box::new(DirectWriter::new(timestamp::TimestampValues::default()))
        }
        TypeKind::Decimal => Box::new(DirectWriter::new(decimal::DecimalValues::new(ty.scale))),
        TypeKind::List | TypeKind::Map => Box::new(DirectWriter::new(nested::LengthValues)),
        TypeKind::Union => Box::new(DirectWriter::new(nested::TagValues)),
        TypeKind::Struct => Box::new(nested::NoValues),
        TypeKind::Geometry | TypeKind::Geography => {
            return Err(Error::unsupported("geometry can't be written"));
        }
    })
}

/// An encoding without a dictionary.
fn encoding(kind: EncodingKind) -> proto::ColumnEncoding {
    proto::ColumnEncoding { kind: Some(kind as i32), dictionary_size: None, bloom_encoding: None }
}

/// Appends `map` of the valid values.
fn push_valid<T: Copy, U>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    out: &mut Vec<U>,
    map: impl Fn(T) -> U,
) {
    match nulls {
        None => out.extend(values.iter().map(|value| map(*value))),
        Some(nulls) => {
            out.reserve(values.len() - nulls.null_count());
            for (from, to) in nulls.valid_slices() {
                out.extend(values[from..to].iter().map(|value| map(*value)));
            }
        }
    }
}

/// The array is not of a type this column holds.
#[cold]
fn mismatch(array: &dyn Array, expected: &str) -> Error {
    Error::invalid(format!("an array of {} can't be written as {expected}", array.data_type()))
}
