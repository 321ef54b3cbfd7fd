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

use super::bit_unpack::{unpack, unpack_zigzag};
use super::context::Context;
use super::int_rle::{IntTarget, unzigzag, varint};
use super::source::Source;
use crate::error::{Error, Result, corrupt};
use crate::rle_width::{closest_width, packed_bytes, width_of_code};

/// Most values in a run.
const RUN_MAX: usize = 512;

/// Most values of SHORT_REPEAT.
const SHORT_REPEAT_MAX: usize = 10;

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
        let mut done = self.take(out);
        while done < out.len() {
            let window = self.source.window(cx, BYTES_MAX)?;
            // Runs that start before this point are whole in the window, or the last ones.
            let whole = window.len().saturating_sub(BYTES_MAX) + 1;
            let mut at = 0;
            let mut failed = None;
            while done < out.len() && at < whole && at < window.len() {
                let rest = &window[at..];
                match read_run(rest, self.signed, &mut out[done..], &mut self.values) {
                    Ok((bytes, count, used)) => {
                        at += bytes;
                        (self.at, self.len) = (used, count);
                        done += used;
                    }
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            if let Some(error) = failed {
                self.source.advance(at);
                return Err(self.source.bad(error));
            }
            if at == 0 {
                return Err(self.source.ended());
            }
            self.source.advance(at);
        }
        Ok(())
    }

    /// Takes values of the last run that were not asked for.
    fn take<T: IntTarget>(&mut self, out: &mut [T]) -> usize {
        let n = (self.len - self.at).min(out.len());
        convert(&self.values[self.at..self.at + n], &mut out[..n]);
        self.at += n;
        n
    }

    pub(super) fn skip(&mut self, cx: &mut Context, count: u64) -> Result<()> {
        let mut left = count;
        loop {
            let n = ((self.len - self.at) as u64).min(left);
            self.at += n as usize;
            left -= n;
            if left == 0 {
                return Ok(());
            }
            // Decodes one run into the buffer, none of it into an output.
            let window = self.source.window(cx, BYTES_MAX)?;
            if window.is_empty() {
                return Err(self.source.ended());
            }
            match read_run::<i64>(window, self.signed, &mut [], &mut self.values) {
                Ok((bytes, count, _)) => {
                    self.source.advance(bytes);
                    (self.at, self.len) = (0, count);
                }
                Err(error) => return Err(self.source.bad(error)),
            }
        }
    }
}

#[inline]
fn convert<T: IntTarget>(from: &[i64], to: &mut [T]) {
    for (target, value) in to.iter_mut().zip(from) {
        *target = T::from_i64(*value);
    }
}

/// Decodes the run that `window` starts with into `out`, or, where it does not fit, into `values`
/// and from there as far as it does. Returns its bytes, its values and how many `out` got.
#[inline]
fn read_run<T: IntTarget>(
    window: &[u8],
    signed: bool,
    out: &mut [T],
    values: &mut [i64; RUN_MAX],
) -> Result<(usize, usize, usize)> {
    if let Some(repeat) = repeat(window, signed)? {
        // Nearly all runs of sorted or constant columns are repeats: fill without a detour.
        let used = repeat.count.min(out.len());
        if repeat.delta == 0 {
            let value = T::from_i64(repeat.base);
            match out.first_chunk_mut::<SHORT_REPEAT_MAX>() {
                // Without a loop; what is too much is overwritten by the next run.
                Some(room) if used <= SHORT_REPEAT_MAX => room.fill(value),
                _ => out[..used].fill(value),
            }
        } else {
            for (i, target) in out[..used].iter_mut().enumerate() {
                *target = T::from_i64(repeat.at(i));
            }
        }
        if used < repeat.count {
            for (i, value) in values[used..repeat.count].iter_mut().enumerate() {
                *value = repeat.at(used + i);
            }
        }
        return Ok((repeat.bytes, repeat.count, used));
    }
    let direct = T::as_i64(out).and_then(|out| out.first_chunk_mut::<RUN_MAX>());
    let is_direct = direct.is_some();
    let target = direct.unwrap_or(&mut *values);
    let (bytes, count) = match window.first().map(|first| first >> 6) {
        Some(1) => direct_run(window, signed, target)?,
        Some(2) => patched_base(window, target)?,
        _ => delta(window, signed, target)?,
    };
    if is_direct {
        return Ok((bytes, count, count));
    }
    let used = count.min(out.len());
    convert(&values[..used], &mut out[..used]);
    Ok((bytes, count, used))
}

/// A run whose values follow from the first one.
struct Repeat {
    base: i64,
    delta: i64,
    count: usize,
    bytes: usize,
}

impl Repeat {
    #[inline(always)]
    fn at(&self, index: usize) -> i64 {
        self.base.wrapping_add(self.delta.wrapping_mul(index as i64))
    }
}

/// SHORT_REPEAT, and DELTA without widths.
#[inline]
fn repeat(window: &[u8], signed: bool) -> Result<Option<Repeat>> {
    let Some(first) = window.first() else { return Err(cut_off()) };
    if first >> 6 == 0 {
        let bytes = usize::from(first >> 3 & 7) + 1;
        let count = usize::from(first & 7) + 3;
        let value = big_endian(window.get(1..1 + bytes).ok_or_else(cut_off)?);
        let base = if signed { unzigzag(value) } else { value as i64 };
        return Ok(Some(Repeat { base, delta: 0, count, bytes: 1 + bytes }));
    }
    if first >> 1 != DELTA_WITHOUT_WIDTH {
        return Ok(None);
    }
    let (_, count) = header(window)?;
    let mut bytes = 2;
    let base = varint(window, &mut bytes)?;
    let base = if signed { unzigzag(base) } else { base as i64 };
    let delta = unzigzag(varint(window, &mut bytes)?);
    Ok(Some(Repeat { base, delta, count, bytes }))
}

/// The first seven bits of a DELTA run of width code 0: all deltas are the first one.
const DELTA_WITHOUT_WIDTH: u8 = 0b11_00000;

/// Bytes read, values written.
type Run = Result<(usize, usize), Error>;

fn direct_run(window: &[u8], signed: bool, out: &mut [i64; RUN_MAX]) -> Run {
    let (width, count) = header(window)?;
    let body = &window[2..];
    let bytes = packed_bytes(count, width);
    if body.len() < bytes {
        return Err(cut_off());
    }
    let out = &mut out[..count];
    match signed {
        true => unpack_zigzag(body, width, out),
        false => unpack(body, width, out),
    }
    Ok((2 + bytes, count))
}

fn patched_base(window: &[u8], out: &mut [i64; RUN_MAX]) -> Run {
    let (width, count) = header(window)?;
    let [_, _, third, fourth, rest @ ..] = window else { return Err(cut_off()) };
    let base_bytes = usize::from(third >> 5) + 1;
    let patch_width = width_of_code(third & 31);
    let gap_width = u32::from(fourth >> 5) + 1;
    let patches = usize::from(fourth & 31);
    if gap_width + patch_width > 64 {
        return Err(corrupt("patch of more than 64 bits"));
    }
    let entry_width = closest_width(gap_width + patch_width);
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

/// DELTA with a width; code 0 is a [`Repeat`].
fn delta(window: &[u8], signed: bool, out: &mut [i64; RUN_MAX]) -> Run {
    let (width, count) = header(window)?;
    let mut at = 2;
    let base = varint(window, &mut at)?;
    let base = if signed { unzigzag(base) } else { base as i64 };
    let first_delta = unzigzag(varint(window, &mut at)?);
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
fn header(window: &[u8]) -> Result<(u32, usize)> {
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
