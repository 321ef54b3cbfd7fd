//! One column of a run of row groups: the decoders of all types behind one trait.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use stoa_error::Place;

use super::binary::{BinaryColumn, DictionaryColumn};
use super::context::Context;
use super::decimal::DecimalColumn;
use super::dictionary::Dictionary;
use super::nested::{ListColumn, MapColumn, StructColumn};
use super::plan::PlanNode;
use super::primitive::{BooleanColumn, ByteColumn, DateColumn, FloatColumn, IntColumn};
use super::source::StreamStart;
use super::timestamp::TimestampColumn;
use super::timezone::Zone;
use super::union::UnionColumn;
use crate::calendar::DateRule;
use crate::error::{Error, Result, corrupt, unsupported};
use crate::metadata::FileMetadata;
use crate::nan::{one_nan_32, one_nan_64};
use crate::proto::StreamKind;
use crate::schema::{OrcType, TypeKind};
use crate::stripe::{Encoding, StripeMetadata};

/// Decodes a column.
pub(crate) trait Column: Send {
    /// Decodes the next `rows` rows, of which the parent has those in `parent` (all if `None`).
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef>;

    /// As [`Column::decode`], for rows of which few may be kept: texts may be codes of a dictionary, which are cheaper to
    /// test and to leave out. What is kept of them goes through [`Column::finished`].
    fn decode_to_filter(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        self.decode(cx, rows, parent)
    }

    /// Rows of [`Column::decode_to_filter`] as [`Column::decode`] gives them.
    fn finished(&self, cx: &mut Context, kept: ArrayRef) -> Result<ArrayRef> {
        let _ = cx;
        Ok(kept)
    }

    /// Skips rows, of which the parent has `count`.
    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()>;

    /// Gives memory back; the column is not used after that.
    fn recycle(&mut self, cx: &mut Context);
}

/// What the decoders of one run are opened from.
pub(crate) struct Opening<'a> {
    pub(crate) file: &'a FileMetadata,
    pub(crate) stripe: &'a StripeMetadata,
    pub(crate) streams: &'a HashMap<(u32, StreamKind), StreamStart>,
    pub(crate) zone: &'a Zone,
    pub(crate) dates: DateRule,
    /// Dictionaries of the stripe that were read before.
    pub(crate) dictionaries: &'a mut HashMap<u32, Arc<Dictionary>>,
}

impl Opening<'_> {
    /// Opens the decoder of `node`.
    pub(crate) fn open(&mut self, node: &PlanNode, cx: &mut Context) -> Result<Box<dyn Column>> {
        let column = node.column;
        let place = self.file.types.place(column);
        let inner = self.open_inner(node, cx).map_err(|e| located(e, &place))?;
        Ok(Box::new(Located { inner, place }))
    }

    fn open_inner(&mut self, node: &PlanNode, cx: &mut Context) -> Result<Box<dyn Column>> {
        let column = node.column;
        let ty = self.file.types.get(column).ok_or_else(|| corrupt("no such column"))?;
        let encoding = self.stripe.encoding(column)?;
        Ok(match ty.kind {
            TypeKind::List => ListColumn::open(self, node, encoding, cx)?,
            TypeKind::Map => MapColumn::open(self, node, encoding, cx)?,
            TypeKind::Struct => StructColumn::open(self, node, cx)?,
            TypeKind::Union => UnionColumn::open(self, node, cx)?,
            _ => return self.open_leaf(node, ty, encoding, cx),
        })
    }

    /// Opens the decoder of a column without children.
    fn open_leaf(
        &mut self,
        node: &PlanNode,
        ty: &OrcType,
        encoding: Encoding,
        cx: &mut Context,
    ) -> Result<Box<dyn Column>> {
        let column = node.column;
        Ok(match (ty.kind, &node.data_type) {
            (TypeKind::Boolean, _) => Box::new(BooleanColumn::open(self, column, cx)?),
            (TypeKind::Byte, DataType::Int8) => byte::<Int8Type>(self, column, cx)?,
            (TypeKind::Byte, DataType::Int16) => byte::<Int16Type>(self, column, cx)?,
            (TypeKind::Byte, DataType::Int32) => byte::<Int32Type>(self, column, cx)?,
            (TypeKind::Byte, DataType::Int64) => byte::<Int64Type>(self, column, cx)?,
            (TypeKind::Short | TypeKind::Int | TypeKind::Long, to) => match to {
                DataType::Int16 => int::<Int16Type>(self, column, encoding, cx)?,
                DataType::Int32 => int::<Int32Type>(self, column, encoding, cx)?,
                DataType::Int64 => int::<Int64Type>(self, column, encoding, cx)?,
                DataType::Time64(TimeUnit::Microsecond) => {
                    int::<Time64MicrosecondType>(self, column, encoding, cx)?
                }
                other => return Err(unsupported(format!("{:?} as {other}", ty.kind))),
            },
            (TypeKind::Date, _) => match self.dates {
                DateRule::Proleptic => int::<Date32Type>(self, column, encoding, cx)?,
                DateRule::Hybrid => Box::new(DateColumn::open(self, column, encoding, cx)?),
            },
            (TypeKind::Float, DataType::Float64) => {
                Box::new(FloatColumn::<4, Float64Type, _>::open(self, column, cx, |b| {
                    one_nan_64(f64::from(f32::from_le_bytes(b)))
                })?)
            }
            (TypeKind::Float, _) => {
                Box::new(FloatColumn::<4, Float32Type, _>::open(self, column, cx, |b| {
                    one_nan_32(f32::from_le_bytes(b))
                })?)
            }
            (TypeKind::Double, _) => {
                Box::new(FloatColumn::<8, Float64Type, _>::open(self, column, cx, |b| {
                    one_nan_64(f64::from_le_bytes(b))
                })?)
            }
            (TypeKind::String | TypeKind::Varchar | TypeKind::Char, to)
                if encoding.is_dictionary() =>
            {
                Box::new(DictionaryColumn::open(self, column, encoding, to, cx)?)
            }
            (
                TypeKind::String
                | TypeKind::Varchar
                | TypeKind::Char
                | TypeKind::Binary
                | TypeKind::Geometry
                | TypeKind::Geography,
                to,
            ) => Box::new(BinaryColumn::open(self, column, encoding, to, cx)?),
            (TypeKind::Timestamp | TypeKind::TimestampInstant, to) => {
                let is_instant = ty.kind == TypeKind::TimestampInstant;
                Box::new(TimestampColumn::open(self, column, encoding, is_instant, to, cx)?)
            }
            (TypeKind::Decimal, to) => {
                let is_64 = self.file.is_decimal64(ty);
                Box::new(DecimalColumn::open(self, column, encoding, is_64, ty.scale, to, cx)?)
            }
            (kind, other) => return Err(unsupported(format!("{kind:?} as {other}"))),
        })
    }

    /// The PRESENT stream of a column, if there is one.
    pub(crate) fn present(&self, column: u32) -> Option<&StreamStart> {
        self.streams.get(&(column, StreamKind::Present))
    }

    /// A stream that the column's values need; one that the stripe does not have is empty.
    pub(crate) fn stream(&self, column: u32, kind: StreamKind) -> StreamStart {
        let found = self.streams.get(&(column, kind)).cloned();
        found.unwrap_or_else(|| StreamStart::whole(kind, bytes::Bytes::new()))
    }
}

fn byte<T>(opening: &Opening, column: u32, cx: &mut Context) -> Result<Box<dyn Column>>
where
    T: arrow_array::ArrowPrimitiveType,
    T::Native: super::int_rle::IntTarget,
{
    Ok(Box::new(ByteColumn::<T>::open(opening, column, cx)?))
}

fn int<T>(
    opening: &Opening,
    column: u32,
    encoding: Encoding,
    cx: &mut Context,
) -> Result<Box<dyn Column>>
where
    T: arrow_array::ArrowPrimitiveType,
    T::Native: super::int_rle::IntTarget,
{
    Ok(Box::new(IntColumn::<T>::open(opening, column, encoding, cx)?))
}

/// Puts the column in front, unless a nested column has put itself there.
#[cold]
fn located(error: Error, column: &Place) -> Error {
    match error.places().first() {
        Some(Place::Column { .. }) => error,
        _ => error.at(column.clone()),
    }
}

/// A column whose errors name it.
struct Located {
    inner: Box<dyn Column>,
    place: Place,
}

impl Column for Located {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        self.inner.decode(cx, rows, parent).map_err(|e| located(e, &self.place))
    }

    fn decode_to_filter(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        self.inner.decode_to_filter(cx, rows, parent).map_err(|e| located(e, &self.place))
    }

    fn finished(&self, cx: &mut Context, kept: ArrayRef) -> Result<ArrayRef> {
        self.inner.finished(cx, kept).map_err(|e| located(e, &self.place))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        self.inner.skip(cx, count).map_err(|e| located(e, &self.place))
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.inner.recycle(cx);
    }
}
