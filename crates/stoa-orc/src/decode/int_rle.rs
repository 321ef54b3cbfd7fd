//! Integer run-length encoding, version 1 or 2.

use super::context::Context;
use super::rle_v1::RleV1;
use super::rle_v2::RleV2;
use super::source::{Source, StreamStart};
use crate::error::{Result, corrupt};

/// A type that decoded integers are stored as; larger values wrap, as in other readers.
pub(crate) trait IntTarget: Copy + Default + Send + 'static {
    /// Keeps the low bits.
    fn from_i64(value: i64) -> Self;

    /// `out` itself where it is of `i64`, so that runs decode into it directly.
    fn as_i64(out: &mut [Self]) -> Option<&mut [i64]> {
        let _ = out;
        None
    }
}

macro_rules! int_target {
    ($($t:ty),*) => {
        $(impl IntTarget for $t {
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                value as $t
            }
        })*
    };
}
int_target!(i8, i16, i32, u32, i128);

impl IntTarget for i64 {
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        value
    }

    #[inline(always)]
    fn as_i64(out: &mut [Self]) -> Option<&mut [i64]> {
        Some(out)
    }
}

/// Decodes a stream of integers.
pub(crate) enum IntRle {
    V1(RleV1),
    V2(RleV2),
}

impl IntRle {
    /// Opens a stream at its start position.
    pub(crate) fn open(
        start: &StreamStart,
        is_v2: bool,
        signed: bool,
        cx: &mut Context,
    ) -> Result<Self> {
        let source = Source::open(start, cx)?;
        let mut rle = match is_v2 {
            true => Self::V2(RleV2::new(source, signed)),
            false => Self::V1(RleV1::new(source, signed)),
        };
        rle.skip(cx, start.skip_values)?;
        Ok(rle)
    }

    /// Decodes exactly `out.len()` values.
    pub(crate) fn decode<T: IntTarget>(&mut self, cx: &mut Context, out: &mut [T]) -> Result<()> {
        match self {
            Self::V1(rle) => rle.decode(cx, out),
            Self::V2(rle) => rle.decode(cx, out),
        }
    }

    /// Skips values.
    pub(crate) fn skip(&mut self, cx: &mut Context, count: u64) -> Result<()> {
        match self {
            Self::V1(rle) => rle.skip(cx, count),
            Self::V2(rle) => rle.skip(cx, count),
        }
    }

    /// Gives memory back.
    pub(crate) fn recycle(&mut self, cx: &mut Context) {
        match self {
            Self::V1(rle) => rle.source.recycle(cx),
            Self::V2(rle) => rle.source.recycle(cx),
        }
    }
}

/// Undoes zigzag: 0, 1, 2, 3 are 0, −1, 1, −2.
#[inline(always)]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads a base-128 varint of at most ten bytes.
#[inline]
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let Some(byte) = bytes.get(*at) else { return Err(corrupt("varint is cut off")) };
        *at += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(corrupt("varint of more than ten bytes"))
}
