//! The patched-base segment: narrow values above a base, and a list of the few that are wider.

use super::super::bit_pack::{bits_of, pack};
use super::{IntEncoder, direct_width, write_header};
use crate::rle_width::{closest_width, packed_bytes, width_code};

const OPCODE_PATCHED_BASE: u8 = 0b10 << 6;
/// The header has five bits for the length of the patch list.
const PATCHES_MAX: usize = 31;
/// A gap has at most eight bits; wider ones take an extra entry with an empty patch.
const GAP_MAX: usize = 255;
/// Readers take the base as at most eight bytes of sign and magnitude; Java's writer stays below.
const BASE_LIMIT: i64 = 1 << 56;
/// Fewer values can't pay for header and base.
const COUNT_MIN: usize = 32;

impl IntEncoder {
    /// Writes `values` as patched base if that is clearly smaller than direct, which readers
    /// unpack faster and codecs compress better.
    pub(super) fn try_patched(&mut self, values: &[i64], signed: bool, out: &mut Vec<u8>) -> bool {
        if values.len() < COUNT_MIN {
            return false;
        }
        let width = direct_width(values, signed);
        if width < 8 || !has_few_outliers(values, width) {
            return false;
        }
        let (min, max) = values
            .iter()
            .fold((i64::MAX, i64::MIN), |(min, max), value| (min.min(*value), max.max(*value)));
        if max.checked_sub(min).is_none() || min <= -BASE_LIMIT || min >= BASE_LIMIT {
            return false;
        }
        let mut histogram = [0usize; 65];
        for (target, value) in self.scratch.iter_mut().zip(values) {
            *target = value.wrapping_sub(min) as u64;
            histogram[bits_of(*target) as usize] += 1;
        }
        let Some(narrow) = best_width(&histogram) else { return false };
        let reduced = &mut self.scratch[..values.len()];
        let Some(patches) = Patches::take(reduced, narrow) else { return false };

        let magnitude = min.unsigned_abs();
        let base_bytes = (bits_of(magnitude) + 1).div_ceil(8) as usize;
        let size = 4
            + base_bytes
            + packed_bytes(values.len(), narrow)
            + packed_bytes(patches.entries.len(), patches.entry_width());
        let direct_size = 2 + packed_bytes(values.len(), width);
        if size * 4 > direct_size * 3 {
            return false;
        }
        write_header(OPCODE_PATCHED_BASE, width_code(narrow), values.len(), out);
        out.push(((base_bytes - 1) << 5) as u8 | width_code(patches.width));
        out.push(((patches.gap_width - 1) << 5) as u8 | patches.entries.len() as u8);
        let sign = if min < 0 { 1 << (base_bytes * 8 - 1) } else { 0 };
        out.extend_from_slice(&(magnitude | sign).to_be_bytes()[8 - base_bytes..]);
        pack(reduced, narrow, out);
        pack(&patches.entries, patches.entry_width(), out);
        true
    }
}

/// Whether at most as many values as a patch list holds need the upper part of `width`.
fn has_few_outliers(values: &[i64], width: u32) -> bool {
    let limit = 1_i64 << (width / 2).max(width.saturating_sub(8)).min(62);
    let Some(first) = values.first() else { return false };
    let outliers = values.iter().filter(|value| value.wrapping_sub(*first).wrapping_abs() >= limit);
    // Measured against the first value; if that is itself the outlier, direct it is.
    outliers.count() <= PATCHES_MAX
}

/// The width that makes values and patches smallest, if any needs patches.
fn best_width(histogram: &[usize; 65]) -> Option<u32> {
    let count: usize = histogram.iter().sum();
    let widest = histogram.iter().rposition(|count| *count > 0)? as u32;
    let mut above = 0;
    let mut best = (count * closest_width(widest) as usize, None);
    for bits in (1..widest).rev() {
        above += histogram[bits as usize + 1];
        if above > PATCHES_MAX {
            break;
        }
        let patch = closest_width(widest - bits);
        if closest_width(bits) != bits || patch > 56 {
            continue;
        }
        let size = count * bits as usize + above * closest_width(patch + 8) as usize;
        if size < best.0 {
            best = (size, Some(bits));
        }
    }
    best.1
}

/// The patch list of a segment.
struct Patches {
    /// Gap since the last patched value, above the cut-off upper bits.
    entries: Vec<u64>,
    width: u32,
    gap_width: u32,
}

impl Patches {
    /// Cuts `values` down to `narrow` bits; `None` if the list grows too long.
    fn take(values: &mut [u64], narrow: u32) -> Option<Self> {
        let mut found = Vec::with_capacity(PATCHES_MAX);
        let mut last = 0;
        let (mut gap_max, mut patch_max) = (0, 0);
        for (at, value) in values.iter_mut().enumerate() {
            let patch = *value >> narrow;
            if patch == 0 {
                continue;
            }
            let mut gap = at - last;
            while gap > GAP_MAX {
                found.push((GAP_MAX, 0));
                gap_max = GAP_MAX;
                gap -= GAP_MAX;
            }
            found.push((gap, patch));
            gap_max = gap_max.max(gap);
            patch_max = patch_max.max(patch);
            *value &= (1 << narrow) - 1;
            last = at;
        }
        if found.is_empty() || found.len() > PATCHES_MAX {
            return None;
        }
        let width = closest_width(bits_of(patch_max));
        let gap_width = bits_of(gap_max as u64).max(1);
        let entries = found.into_iter().map(|(gap, patch)| (gap as u64) << width | patch).collect();
        Some(Self { entries, width, gap_width })
    }

    fn entry_width(&self) -> u32 {
        closest_width(self.width + self.gap_width)
    }
}
