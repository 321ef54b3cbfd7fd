//! Integer run-length encoding, version 2.
//!
//! ```text
//! first two bits: 0 SHORT_REPEAT · 1 DIRECT · 2 PATCHED_BASE · 3 DELTA
//! SHORT_REPEAT  bytes − 1 : 3 · count − 3 : 3 · value, big-endian
//! DIRECT        width : 5 · count − 1 : 9 · count × width bits
//! PATCHED_BASE  width : 5 · count − 1 : 9 · base bytes − 1 : 3 · patch width : 5
//!               · gap width − 1 : 3 · patches : 5 · base · count × width bits · patches
//! DELTA         width : 5 · count − 1 : 9 · base varint · delta varint · (count − 2) × width bits
//! ```

use super::bit_unpack::{packed_bytes, unpack};
use super::context::Context;
use super::int_rle::{IntTarget, unzigzag, varint};
use super::source::Source;
use crate::error::{Error, Result, corrupt};

/// Most values in a run.
const RUN_MAX: usize = 512;

/// Most bytes of a run: patched base with 64-bit values and 31 patches of 64 bits.
pub(super) const BYTES_MAX: usize = 4 + 8 + RUN_MAX * 8 + 31 * 8;

/// Decodes version 2.
pub(crate) struct RleV2 {
    pub(super) source: Source,
    signed: bool,
    values: Box<[i64; RUN_MAX]>,
    at: usize,
    len: usize,
}

impl RleV2 {
    pub(super) fn new(source: Source, signed: bool) -> Self {
        Self { source, signed, values: Box::new([0; RUN_MAX]), at: 0, len: 0 }
    }

    pub(super) fn decode<T: IntTarget>(&mut self, cx: &mut Context, out: &mut [T]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            if self.at == self.len {
                if let Some(direct) = T::as_i64(&mut out[done..])
                    && let Some(target) = direct.first_chunk_mut::<RUN_MAX>()
                {
                    done += read_run(&mut self.source, self.signed, target, cx)?;
                    continue;
                }
                self.len = read_run(&mut self.source, self.signed, &mut self.values, cx)?;
                self.at = 0;
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
                self.len = read_run(&mut self.source, self.signed, &mut self.values, cx)?;
                self.at = 0;
            }
            let n = ((self.len - self.at) as u64).min(left);
            self.at += n as usize;
            left -= n;
        }
        Ok(())
    }
}

/// Decodes the next run and returns its number of values, at least one.
fn read_run(
    source: &mut Source,
    signed: bool,
    out: &mut [i64; RUN_MAX],
    cx: &mut Context,
) -> Result<usize> {
    let window = source.window(cx, BYTES_MAX)?;
    let Some(first) = window.first() else { return Err(source.ended()) };
    let run = match first >> 6 {
        0 => short_repeat(window, signed, out),
        1 => direct(window, signed, out),
        2 => patched_base(window, out),
        _ => delta(window, signed, out),
    };
    match run {
        Ok((bytes, count)) => {
            source.advance(bytes);
            Ok(count)
        }
        Err(error) => Err(source.bad(error.message().to_owned())),
    }
}

/// Bytes read, values written.
type Run = Result<(usize, usize), Error>;

fn short_repeat(window: &[u8], signed: bool, out: &mut [i64; RUN_MAX]) -> Run {
    let header = window[0];
    let bytes = usize::from(header >> 3 & 7) + 1;
    let count = usize::from(header & 7) + 3;
    let value = big_endian(window.get(1..1 + bytes).ok_or_else(cut_off)?);
    out[..count].fill(if signed { unzigzag(value) } else { value as i64 });
    Ok((1 + bytes, count))
}

fn direct(window: &[u8], signed: bool, out: &mut [i64; RUN_MAX]) -> Run {
    let (width, count) = header(window)?;
    let body = &window[2..];
    let bytes = packed_bytes(count, width);
    if body.len() < bytes {
        return Err(cut_off());
    }
    let out = &mut out[..count];
    unpack(body, width, out);
    if signed {
        for value in out {
            *value = unzigzag(*value as u64);
        }
    }
    Ok((2 + bytes, count))
}

fn patched_base(window: &[u8], out: &mut [i64; RUN_MAX]) -> Run {
    let (width, count) = header(window)?;
    let [_, _, third, fourth, rest @ ..] = window else { return Err(cut_off()) };
    let base_bytes = usize::from(third >> 5) + 1;
    let patch_width = closest_fixed(width_of_code(third & 31));
    let gap_width = usize::from(fourth >> 5) + 1;
    let patches = usize::from(fourth & 31);
    let entry_width = closest_fixed(gap_width + width_of_code(third & 31));
    if gap_width + patch_width > 64 || entry_width > 64 {
        return Err(corrupt("patch of more than 64 bits"));
    }
    let value_bytes = packed_bytes(count, width);
    let patch_bytes = packed_bytes(patches, entry_width);
    let total = base_bytes + value_bytes + patch_bytes;
    if rest.len() < total {
        return Err(cut_off());
    }
    // The base is sign and magnitude.
    let raw = big_endian(&rest[..base_bytes]);
    let sign = 1u64 << (base_bytes * 8 - 1);
    let magnitude = (raw & !sign) as i64;
    let base = if raw & sign != 0 { magnitude.wrapping_neg() } else { magnitude };
    let out = &mut out[..count];
    unpack(&rest[base_bytes..], width, out);
    let mut entries = [0i64; 31];
    unpack(&rest[base_bytes + value_bytes..], entry_width, &mut entries[..patches]);
    let patch_mask = (1u64 << (patch_width.min(63))) - 1;
    let mut at = 0usize;
    for entry in &entries[..patches] {
        let gap = (*entry as u64) >> patch_width.min(63);
        let patch = *entry as u64 & patch_mask;
        at = at.saturating_add(gap as usize);
        let Some(value) = out.get_mut(at) else {
            return Err(corrupt(format!("patch of value {at} in a run of {count}")));
        };
        *value |= if width < 64 { (patch << width) as i64 } else { 0 };
    }
    for value in out {
        *value = value.wrapping_add(base);
    }
    Ok((4 + total, count))
}

fn delta(window: &[u8], signed: bool, out: &mut [i64; RUN_MAX]) -> Run {
    let (_, count) = header(window)?;
    // Width code 0 means that all deltas are the first one.
    let code = window[0] >> 1 & 31;
    let width = if code == 0 { 0 } else { width_of_code(code) };
    let mut at = 2;
    let base = varint(window, &mut at)?;
    let base = if signed { unzigzag(base) } else { base as i64 };
    let first_delta = unzigzag(varint(window, &mut at)?);
    if width == 0 {
        if first_delta == 0 {
            out[..count].fill(base);
        } else {
            for (i, value) in out[..count].iter_mut().enumerate() {
                *value = base.wrapping_add(first_delta.wrapping_mul(i as i64));
            }
        }
        return Ok((at, count));
    }
    out[0] = base;
    if count == 1 {
        return Ok((at, count));
    }
    let second = base.wrapping_add(first_delta);
    out[1] = second;
    let rest = &mut out[2..count];
    let bytes = packed_bytes(rest.len(), width);
    let body = &window[at..];
    if body.len() < bytes {
        return Err(cut_off());
    }
    unpack(body, width, rest);
    let mut value = second;
    if first_delta < 0 {
        for target in rest {
            value = value.wrapping_sub(*target);
            *target = value;
        }
    } else {
        for target in rest {
            value = value.wrapping_add(*target);
            *target = value;
        }
    }
    Ok((at + bytes, count))
}

/// Bit width and number of values of the two-byte header.
#[inline]
fn header(window: &[u8]) -> Result<(usize, usize)> {
    let [first, second, ..] = window else { return Err(cut_off()) };
    let count = (usize::from(first & 1) << 8 | usize::from(*second)) + 1;
    Ok((width_of_code(first >> 1 & 31), count))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cold]
fn cut_off() -> Error {
    corrupt("run is cut off")
}

/// Bits of the five-bit width code.
#[inline]
pub(crate) fn width_of_code(code: u8) -> usize {
    match code {
        0..=23 => usize::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The smallest width that a code exists for and that holds `bits`; patches use it.
pub(crate) fn closest_fixed(bits: usize) -> usize {
    match bits {
        0 => 1,
        1..=24 => bits,
        25..=26 => 26,
        27..=28 => 28,
        29..=30 => 30,
        31..=32 => 32,
        33..=40 => 40,
        41..=48 => 48,
        49..=56 => 56,
        57..=64 => 64,
        more => more,
    }
}
