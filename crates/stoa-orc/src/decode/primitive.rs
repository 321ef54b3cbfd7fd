//! Columns of fixed width: booleans, integers, dates, floating point.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Date32Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

use super::byte_rle::{BoolRle, ByteRle};
use super::column::{Column, Opening};
use super::context::Context;
use super::int_rle::{IntRle, IntTarget};
use super::source::Source;
use super::validity::{Present, spread, valid_count};
use crate::calendar::{FIRST_GREGORIAN_DAY, hybrid_to_proleptic};
use crate::error::Result;
use crate::proto::StreamKind;
use crate::stripe::Encoding;

/// An array of `values`, of which the first ones (as many as `nulls` has set) are decoded.
fn primitive<T: ArrowPrimitiveType>(
    mut values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> ArrayRef
where
    T::Native: Default,
{
    if let Some(nulls) = &nulls {
        spread(&mut values, nulls);
    }
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
}

/// SMALLINT, INT, BIGINT, DATE.
pub(crate) struct IntColumn<T> {
    present: Present,
    data: IntRle,
    target: PhantomData<fn() -> T>,
}

impl<T> IntColumn<T> {
    pub(crate) fn open(
        opening: &Opening,
        column: u32,
        encoding: Encoding,
        cx: &mut Context,
    ) -> Result<Self> {
        let data = opening.stream(column, StreamKind::Data);
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            data: IntRle::open(&data, encoding.is_v2(), true, cx)?,
            target: PhantomData,
        })
    }
}

impl<T: ArrowPrimitiveType> Column for IntColumn<T>
where
    T::Native: IntTarget,
{
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        cx.take::<T::Native>(rows)?;
        let mut values = vec![<T::Native as Default>::default(); rows];
        let valid = valid_count(rows, nulls.as_ref());
        self.data.decode(cx, &mut values[..valid])?;
        Ok(primitive::<T>(values, nulls))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        self.data.skip(cx, valid as u64)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.data.recycle(cx);
    }
}

/// DATE of a file in the hybrid calendar.
pub(crate) struct DateColumn(IntColumn<Date32Type>);

impl DateColumn {
    pub(crate) fn open(
        opening: &Opening,
        column: u32,
        encoding: Encoding,
        cx: &mut Context,
    ) -> Result<Self> {
        IntColumn::open(opening, column, encoding, cx).map(Self)
    }
}

impl Column for DateColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let inner = &mut self.0;
        let nulls = inner.present.decode(cx, rows, parent)?;
        cx.take::<i32>(rows)?;
        let mut values = vec![0i32; rows];
        let valid = valid_count(rows, nulls.as_ref());
        inner.data.decode(cx, &mut values[..valid])?;
        for day in values[..valid].iter_mut().filter(|day| **day < FIRST_GREGORIAN_DAY) {
            *day = hybrid_to_proleptic(i64::from(*day)) as i32;
        }
        Ok(primitive::<Date32Type>(values, nulls))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        self.0.skip(cx, count)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.0.recycle(cx);
    }
}

/// TINYINT.
pub(crate) struct ByteColumn<T> {
    present: Present,
    data: ByteRle,
    target: PhantomData<fn() -> T>,
}

impl<T> ByteColumn<T> {
    pub(crate) fn open(opening: &Opening, column: u32, cx: &mut Context) -> Result<Self> {
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            data: ByteRle::open(&opening.stream(column, StreamKind::Data), cx)?,
            target: PhantomData,
        })
    }
}

impl<T: ArrowPrimitiveType> Column for ByteColumn<T>
where
    T::Native: IntTarget,
{
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        cx.take::<T::Native>(rows)?;
        let mut bytes = vec![0u8; valid_count(rows, nulls.as_ref())];
        self.data.decode(cx, &mut bytes)?;
        let mut values = vec![<T::Native as Default>::default(); rows];
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value = T::Native::from_i64(i64::from(byte as i8));
        }
        Ok(primitive::<T>(values, nulls))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        self.data.skip(cx, valid as u64)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.data.recycle(cx);
    }
}

/// BOOLEAN.
pub(crate) struct BooleanColumn {
    present: Present,
    data: BoolRle,
}

impl BooleanColumn {
    pub(crate) fn open(opening: &Opening, column: u32, cx: &mut Context) -> Result<Self> {
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            data: BoolRle::open(&opening.stream(column, StreamKind::Data), cx)?,
        })
    }
}

impl Column for BooleanColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        cx.take::<u8>(rows / 8 + 1)?;
        let valid = valid_count(rows, nulls.as_ref());
        let (bits, _) = self.data.decode(cx, valid)?;
        let values = match &nulls {
            None => BooleanBuffer::new(Buffer::from_vec(bits), 0, rows),
            Some(nulls) => {
                let mut spread = vec![0u8; rows.div_ceil(8)];
                for (from, to) in nulls.inner().set_indices().enumerate() {
                    spread[to / 8] |= (bits[from / 8] >> (from % 8) & 1) << (to % 8);
                }
                BooleanBuffer::new(Buffer::from_vec(spread), 0, rows)
            }
        };
        Ok(Arc::new(BooleanArray::new(values, nulls)))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        self.data.skip(cx, valid as u64)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.data.recycle(cx);
    }
}

/// FLOAT (`N` = 4) and DOUBLE (`N` = 8).
pub(crate) struct FloatColumn<const N: usize, T, F> {
    present: Present,
    data: Source,
    convert: F,
    target: PhantomData<fn() -> T>,
}

impl<const N: usize, T: ArrowPrimitiveType, F> FloatColumn<N, T, F>
where
    F: Fn([u8; N]) -> T::Native,
{
    pub(crate) fn open(
        opening: &Opening,
        column: u32,
        cx: &mut Context,
        convert: F,
    ) -> Result<Self> {
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            data: Source::open(&opening.stream(column, StreamKind::Data), cx)?,
            convert,
            target: PhantomData,
        })
    }
}

impl<const N: usize, T: ArrowPrimitiveType, F> Column for FloatColumn<N, T, F>
where
    T::Native: Default,
    F: Fn([u8; N]) -> T::Native + Send,
{
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        cx.take::<T::Native>(rows)?;
        let mut values = vec![T::Native::default(); rows];
        let valid = valid_count(rows, nulls.as_ref());
        let mut done = 0;
        while done < valid {
            let (chunks, _) = self.data.window(cx, N)?.as_chunks::<N>();
            let n = chunks.len().min(valid - done);
            if n == 0 {
                return Err(self.data.ended());
            }
            for (value, chunk) in values[done..done + n].iter_mut().zip(chunks) {
                *value = (self.convert)(*chunk);
            }
            self.data.advance(n * N);
            done += n;
        }
        Ok(primitive::<T>(values, nulls))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        self.data.skip(cx, (valid * N) as u64)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.data.recycle(cx);
    }
}
