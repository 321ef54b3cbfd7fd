//! DECIMAL columns.
//!
//! In: zigzag varints of up to 127 bits and a scale per value, or (format 1.9999) plain integers.
//! Out: `Decimal128` of the target's scale; digits that it does not have are cut off.

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::column::{Column, Opening};
use super::context::Context;
use super::int_rle::IntRle;
use super::source::Source;
use super::validity::{Present, spread, valid_count};
use crate::error::{Result, corrupt, unsupported};
use crate::proto::StreamKind;
use crate::stripe::Encoding;

/// Most bytes of a varint: 128 bits, seven per byte.
const VARINT_MAX: usize = 19;

/// A DECIMAL column.
pub(crate) struct DecimalColumn {
    present: Present,
    values: Values,
    to_precision: u8,
    to_scale: i8,
    scratch: Vec<i64>,
}

enum Values {
    Varints { data: Source, scales: IntRle },
    Integers { data: IntRle, scale: u32 },
}

impl DecimalColumn {
    pub(crate) fn open(
        opening: &Opening,
        column: u32,
        encoding: Encoding,
        is_64: bool,
        scale: u32,
        to: &DataType,
        cx: &mut Context,
    ) -> Result<Self> {
        let DataType::Decimal128(to_precision, to_scale) = *to else {
            return Err(unsupported(format!("decimal as {to}")));
        };
        let data = opening.stream(column, StreamKind::Data);
        let values = if is_64 {
            Values::Integers { data: IntRle::open(&data, true, true, cx)?, scale }
        } else {
            let scales = opening.stream(column, StreamKind::Secondary);
            Values::Varints {
                data: Source::open(&data, cx)?,
                scales: IntRle::open(&scales, encoding.is_v2(), true, cx)?,
            }
        };
        let present = Present::open(opening.present(column), cx)?;
        Ok(Self { present, values, to_precision, to_scale, scratch: Vec::new() })
    }
}

impl Column for DecimalColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        cx.take::<i128>(rows)?;
        let mut values = vec![0i128; rows];
        let valid = valid_count(rows, nulls.as_ref());
        let out = &mut values[..valid];
        match &mut self.values {
            Values::Integers { data, scale } => {
                data.decode(cx, out)?;
                let by = i64::from(self.to_scale) - i64::from(*scale);
                out.iter_mut().try_for_each(|value| rescale(value, by))?;
            }
            Values::Varints { data, scales } => {
                read_varints(data, cx, out)?;
                self.scratch.clear();
                self.scratch.resize(valid, 0);
                scales.decode(cx, &mut self.scratch)?;
                let wanted = i64::from(self.to_scale);
                if self.scratch.iter().any(|scale| *scale != wanted) {
                    for (value, scale) in out.iter_mut().zip(&self.scratch) {
                        rescale(value, wanted.saturating_sub(*scale))?;
                    }
                }
            }
        }
        if let Some(nulls) = &nulls {
            spread(&mut values, nulls);
        }
        let array = Decimal128Array::new(ScalarBuffer::from(values), nulls)
            .with_precision_and_scale(self.to_precision, self.to_scale)
            .map_err(|e| unsupported(e.to_string()))?;
        Ok(Arc::new(array))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        match &mut self.values {
            Values::Integers { data, .. } => data.skip(cx, valid as u64),
            Values::Varints { data, scales } => {
                let mut left = valid;
                let mut sink = [0i128; 256];
                while left > 0 {
                    let n = left.min(sink.len());
                    read_varints(data, cx, &mut sink[..n])?;
                    left -= n;
                }
                scales.skip(cx, valid as u64)
            }
        }
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        match &mut self.values {
            Values::Integers { data, .. } => data.recycle(cx),
            Values::Varints { data, scales } => {
                data.recycle(cx);
                scales.recycle(cx);
            }
        }
    }
}

/// Multiplies by 10^`by`, or cuts −`by` digits off.
#[inline]
fn rescale(value: &mut i128, by: i64) -> Result<()> {
    let factor = u32::try_from(by.unsigned_abs()).ok().and_then(|by| 10i128.checked_pow(by));
    let scaled = match (by, factor) {
        (0, _) => Some(*value),
        (1.., Some(factor)) => value.checked_mul(factor),
        (1.., None) => (*value == 0).then_some(0),
        (_, Some(factor)) => Some(*value / factor),
        (_, None) => Some(0),
    };
    match scaled {
        Some(scaled) => {
            *value = scaled;
            Ok(())
        }
        None => Err(corrupt(format!("decimal {value} × 10^{by} has more than 38 digits"))),
    }
}

/// Reads `out.len()` zigzag varints.
fn read_varints(source: &mut Source, cx: &mut Context, out: &mut [i128]) -> Result<()> {
    let mut done = 0;
    while done < out.len() {
        let window = source.window(cx, VARINT_MAX)?;
        // Behind this point a varint may go on in the next chunk; unless there is none.
        let safe = if window.len() > VARINT_MAX { window.len() - VARINT_MAX } else { 1 };
        let mut at = 0;
        let mut bad = false;
        for value in &mut out[done..] {
            if at >= safe {
                break;
            }
            match wide_varint(window, &mut at) {
                Some(read) => *value = read,
                None => {
                    bad = true;
                    break;
                }
            }
            done += 1;
        }
        if bad || at == 0 {
            return Err(source.bad(corrupt("decimal is cut off or longer than 128 bits")));
        }
        source.advance(at);
    }
    Ok(())
}

/// Reads a zigzag varint of at most 128 bits.
#[inline]
fn wide_varint(bytes: &[u8], at: &mut usize) -> Option<i128> {
    let mut low = 0u64;
    let mut shift = 0;
    // Eight bytes hold 56 bits: most values end here.
    while shift < 56 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        low |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(i128::from((low >> 1) as i64 ^ -((low & 1) as i64)));
        }
        shift += 7;
    }
    let mut value = u128::from(low);
    while shift < 128 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i128 ^ -((value & 1) as i128));
        }
        shift += 7;
    }
    None
}
