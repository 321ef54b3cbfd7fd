//! Integer run-length encoding version 2: short repeat, direct, patched base, delta.
//!
//! In: all values of a row group at once, so that the encoder can look ahead. Out: complete runs.
//! The values are cut into segments of at most 512; each gets the sub-encoding that takes the
//! fewest bytes, with widths that decoders unpack quickly (patched base excepted, where the
//! format forbids rounding).
//!
//! ```text
//! short repeat  00 bytes-1:3 count-3:3 | value
//! direct        01 width:5 count-1:9   | packed values
//! patched base  10 width:5 count-1:9 base bytes-1:3 patch width:5 gap width-1:3 patches:5 | …
//! delta         11 width:5 count-1:9   | base varint, first delta varint, packed deltas
//! ```
//! Signed streams hold zigzag values in short repeat and direct, and as base of delta.

mod patched;

use super::bit_pack::{aligned_width, bits_of, pack};
use super::varint::{write_signed, write_unsigned, zigzag};
use crate::rle_width::{packed_bytes, width_code};

/// Longest segment.
pub(crate) const SEGMENT_MAX: usize = 512;
const RUN_MIN: usize = 3;
const SHORT_REPEAT_MAX: usize = 10;
/// Runs of equal values that take fewer bytes than this stay among the literals: a codec makes as
/// little of them, and few long segments are written and read faster than many short ones.
const RUN_BYTES_MIN: usize = 24;
/// Shorter monotonic stretches are not worth their own segment.
const DELTA_MIN: usize = 16;

const OPCODE_DIRECT: u8 = 0b01 << 6;
const OPCODE_DELTA: u8 = 0b11 << 6;

/// Encodes integers; keeps only scratch space between calls.
pub(crate) struct IntEncoder {
    /// Zigzag values, deltas or base-reduced values of the segment at hand.
    scratch: Box<[u64; SEGMENT_MAX]>,
}

impl IntEncoder {
    pub(crate) fn new() -> Self {
        Self { scratch: Box::new([0; SEGMENT_MAX]) }
    }

    /// Appends `values` as complete runs. In an unsigned stream a negative value is the large one of the
    /// same 64 bits, which readers turn back.
    pub(crate) fn encode(&mut self, values: &[i64], signed: bool, out: &mut Vec<u8>) {
        let (mut at, mut width, mut width_until) = (0, 0, 0);
        while at < values.len() {
            let rest = &values[at..];
            let window = &rest[..rest.len().min(SEGMENT_MAX)];
            // It weighs choices only, so short segments need not look at the whole window each.
            if at >= width_until {
                width = direct_width(window, signed);
                width_until = at + SEGMENT_MAX / 2;
            }
            at += self.encode_segment(window, width, signed, out);
        }
    }

    /// Appends `count` times `value` as complete runs.
    pub(crate) fn encode_repeated(
        &mut self,
        value: i64,
        mut count: usize,
        signed: bool,
        out: &mut Vec<u8>,
    ) {
        while count > 0 {
            let run = count.min(SEGMENT_MAX);
            match run {
                0..RUN_MIN => self.write_direct(&[value; RUN_MIN][..run], signed, out),
                RUN_MIN..=SHORT_REPEAT_MAX => write_short_repeat(value, run, signed, out),
                _ => write_fixed_delta(value, 0, run, signed, out),
            }
            count -= run;
        }
    }

    /// Writes one or two segments from the start of `window`, whose values have about `width` bits;
    /// returns how many values they hold.
    fn encode_segment(
        &mut self,
        window: &[i64],
        width: u32,
        signed: bool,
        out: &mut Vec<u8>,
    ) -> usize {
        let run_min = worthwhile_run(width);
        let lead = equal_run(window);
        if lead >= run_min.max(SHORT_REPEAT_MAX + 1) || lead == window.len() {
            self.encode_repeated(window[0], lead, signed, out);
            return lead;
        }
        if let Some(taken) = self.try_delta(window, lead, width, signed, out) {
            return taken;
        }
        if lead >= run_min {
            self.encode_repeated(window[0], lead, signed, out);
            return lead;
        }
        let literals = &window[..next_run(window, run_min)];
        if !self.try_patched(literals, signed, out) {
            self.write_direct(literals, signed, out);
        }
        literals.len()
    }

    /// Writes the monotonic start of `window` as delta if that is the smallest form.
    ///
    /// The first delta tells the direction, so it must not be 0: all but one of the `lead` equal
    /// values at the start go into a run of their own.
    fn try_delta(
        &mut self,
        window: &[i64],
        lead: usize,
        width: u32,
        signed: bool,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let before = lead - 1;
        let part = &window[before..];
        if part.len() < RUN_MIN {
            return None;
        }
        let fixed = fixed_delta_run(part);
        if fixed >= DELTA_MIN || (fixed == part.len() && width > 8) {
            self.encode_repeated(window[0], before, signed, out);
            write_fixed_delta(part[0], part[1].wrapping_sub(part[0]), fixed, signed, out);
            return Some(before + fixed);
        }
        let (length, changes, delta_max) = self.monotonic_run(part);
        if length < DELTA_MIN && length < part.len() {
            return None;
        }
        let delta_width = aligned_width(bits_of(delta_max)).max(2);
        let first_bytes = (width as usize).div_ceil(8);
        let as_delta = 4 + first_bytes + packed_bytes(length - 2, delta_width);
        let as_direct = packed_bytes(length, width);
        let as_runs = (changes + 1) * (1 + first_bytes);
        if as_delta >= as_direct.min(as_runs) {
            return None;
        }
        self.encode_repeated(window[0], before, signed, out);
        write_header(OPCODE_DELTA, width_code(delta_width), length, out);
        write_base(part[0], signed, out);
        write_signed(part[1].wrapping_sub(part[0]), out);
        pack(&self.scratch[2..length], delta_width, out);
        Some(before + length)
    }

    /// Length of the monotonic start of `values` (first two differ), how often the value changes
    /// in it, and the largest later step; leaves the absolute steps in the scratch space.
    fn monotonic_run(&mut self, values: &[i64]) -> (usize, usize, u64) {
        let rising = values[1] > values[0];
        let (mut changes, mut delta_max) = (0, 0);
        for at in 1..values.len() {
            let (from, to) = (values[at - 1], values[at]);
            let step = if rising { to.checked_sub(from) } else { from.checked_sub(to) };
            let Some(step) = step.and_then(|step| u64::try_from(step).ok()) else {
                return (at, changes, delta_max);
            };
            self.scratch[at] = step;
            changes += usize::from(step != 0);
            if at > 1 {
                delta_max = delta_max.max(step);
            }
        }
        (values.len(), changes, delta_max)
    }

    fn write_direct(&mut self, values: &[i64], signed: bool, out: &mut Vec<u8>) {
        let packed = &mut self.scratch[..values.len()];
        let mut all = 0;
        for (target, value) in packed.iter_mut().zip(values) {
            *target = if signed { zigzag(*value) } else { *value as u64 };
            all |= *target;
        }
        let width = aligned_width(bits_of(all));
        write_header(OPCODE_DIRECT, width_code(width), values.len(), out);
        pack(packed, width, out);
    }
}

/// Bits per value that direct encoding of `values` takes.
fn direct_width(values: &[i64], signed: bool) -> u32 {
    let all = if signed {
        values.iter().fold(0, |all, value| all | zigzag(*value))
    } else {
        values.iter().fold(0, |all, value| all | *value as u64)
    };
    aligned_width(bits_of(all))
}

/// From which length on a run of equal values is worth a segment of its own among literals of `width`
/// bits. That costs a header and the value, and the header of the literals after it.
fn worthwhile_run(width: u32) -> usize {
    let bytes = (3 + width.div_ceil(8) as usize).max(RUN_BYTES_MIN);
    RUN_MIN.max(bytes * 8 / width as usize + 1)
}

/// How many of the first values are equal.
fn equal_run(values: &[i64]) -> usize {
    let first = values[0];
    values.iter().take_while(|value| **value == first).count()
}

/// Where the first run of at least `run_min` (2 or more) equal values begins, or the end.
///
/// Such a run holds at least one of any `run_min - 1` neighbours, so every so many values one is
/// compared with those beside it, and only where it equals one of them the run is measured.
fn next_run(values: &[i64], run_min: usize) -> usize {
    for probe in (0..values.len()).step_by(run_min - 1) {
        let value = values[probe];
        let before = values[..probe].iter().rev().take_while(|other| **other == value).count();
        let from = probe - before;
        if before + equal_run(&values[probe..]) >= run_min {
            return from;
        }
    }
    values.len()
}

/// How many of the first values (at least two) have equal steps that fit an `i64`.
fn fixed_delta_run(values: &[i64]) -> usize {
    let Some(step) = values[1].checked_sub(values[0]) else { return 0 };
    let more = values[1..].windows(2).take_while(|pair| pair[0].checked_add(step) == Some(pair[1]));
    2 + more.count()
}

fn write_header(opcode: u8, code: u8, count: usize, out: &mut Vec<u8>) {
    let count = count - 1;
    out.extend_from_slice(&[opcode | code << 1 | (count >> 8) as u8, count as u8]);
}

fn write_base(value: i64, signed: bool, out: &mut Vec<u8>) {
    if signed {
        write_signed(value, out);
    } else {
        write_unsigned(value as u64, out);
    }
}

fn write_short_repeat(value: i64, count: usize, signed: bool, out: &mut Vec<u8>) {
    let value = if signed { zigzag(value) } else { value as u64 };
    let bytes = bits_of(value).div_ceil(8).max(1) as usize;
    out.push(((bytes - 1) << 3 | (count - RUN_MIN)) as u8);
    out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

fn write_fixed_delta(first: i64, step: i64, count: usize, signed: bool, out: &mut Vec<u8>) {
    write_header(OPCODE_DELTA, 0, count, out);
    write_base(first, signed, out);
    write_signed(step, out);
}

#[cfg(test)]
mod tests;
