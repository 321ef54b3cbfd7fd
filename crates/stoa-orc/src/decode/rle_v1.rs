//! Integer run-length encoding, version 1.
//!
//! ```text
//! run     = u8 (count − 3, 0 ..= 127) · i8 delta · varint base
//! literal = i8 (−count) · count varints
//! ```

use super::context::Context;
use super::int_rle::{IntTarget, unzigzag, varint};
use super::source::Source;
use crate::error::Result;

/// Most values in a run or a list of literals.
const RUN_MAX: usize = 130;

/// Most bytes of one of them.
const BYTES_MAX: usize = 1 + 128 * 10;

/// Decodes version 1.
pub(crate) struct RleV1 {
    pub(super) source: Source,
    signed: bool,
    values: Box<[i64; RUN_MAX]>,
    at: usize,
    len: usize,
}

impl RleV1 {
    pub(super) fn new(source: Source, signed: bool) -> Self {
        Self { source, signed, values: Box::new([0; RUN_MAX]), at: 0, len: 0 }
    }

    pub(super) fn decode<T: IntTarget>(&mut self, cx: &mut Context, out: &mut [T]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            if self.at == self.len {
                self.read_run(cx)?;
            }
            let n = (self.len - self.at).min(out.len() - done);
            for (target, value) in
                out[done..done + n].iter_mut().zip(&self.values[self.at..self.at + n])
            {
                *target = T::from_i64(*value);
            }
            self.at += n;
            done += n;
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, cx: &mut Context, count: u64) -> Result<()> {
        let mut left = count;
        while left > 0 {
            if self.at == self.len {
                self.read_run(cx)?;
            }
            let n = ((self.len - self.at) as u64).min(left);
            self.at += n as usize;
            left -= n;
        }
        Ok(())
    }

    fn read_run(&mut self, cx: &mut Context) -> Result<()> {
        let signed = self.signed;
        let convert = |value: u64| if signed { unzigzag(value) } else { value as i64 };
        let values = &mut self.values;
        let window = self.source.window(cx, BYTES_MAX)?;
        let Some(control) = window.first() else { return Err(self.source.ended()) };
        let control = *control as i8;
        let mut at = 1;
        let count = usize::from(control.unsigned_abs()) + if control >= 0 { 3 } else { 0 };
        let run = if control >= 0 {
            let delta = window.get(1).map_or(0, |byte| i64::from(*byte as i8));
            at = 2;
            varint(window, &mut at).map(|base| {
                for (i, target) in values[..count].iter_mut().enumerate() {
                    *target = convert(base).wrapping_add(delta.wrapping_mul(i as i64));
                }
            })
        } else {
            values[..count].iter_mut().try_for_each(|target| {
                *target = convert(varint(window, &mut at)?);
                Ok(())
            })
        };
        match run {
            Ok(()) => {
                self.source.advance(at);
                (self.at, self.len) = (0, count);
                Ok(())
            }
            Err(error) => Err(self.source.bad(error)),
        }
    }
}
