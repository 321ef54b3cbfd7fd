//! Bit packing as RLEv2 wants it: big-endian, value after value, the last byte filled with zeros.
//!
//! Not here: which widths have a code (`rle_width`).

use crate::rle_width::packed_bytes;

/// The nearest width that decoders unpack quickly: 1, 2, 4 or whole bytes.
#[inline]
pub(crate) fn aligned_width(bits: u32) -> u32 {
    match bits {
        0..=1 => 1,
        2 => 2,
        3..=4 => 4,
        _ => bits.next_multiple_of(8),
    }
}

/// Bits needed to hold `value`; 0 for 0.
#[inline]
pub(crate) fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Appends `values`, `width` (1..=64) bits each; bits above `width` must be zero.
pub(crate) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    match width {
        1 => pack_part_bytes::<1>(values, out),
        2 => pack_part_bytes::<2>(values, out),
        4 => pack_part_bytes::<4>(values, out),
        8 => out.extend(values.iter().map(|value| *value as u8)),
        16 => pack_bytes::<2>(values, out),
        24 => pack_bytes::<3>(values, out),
        32 => pack_bytes::<4>(values, out),
        40 => pack_bytes::<5>(values, out),
        48 => pack_bytes::<6>(values, out),
        56 => pack_bytes::<7>(values, out),
        64 => pack_bytes::<8>(values, out),
        _ => pack_any(values, width, out),
    }
}

/// `WIDTH` divides 8.
fn pack_part_bytes<const WIDTH: usize>(values: &[u64], out: &mut Vec<u8>) {
    let per_byte = 8 / WIDTH;
    let whole = values.chunks_exact(per_byte);
    let rest = whole.remainder();
    out.extend(whole.map(|part| part.iter().fold(0u8, |byte, value| byte << WIDTH | *value as u8)));
    if !rest.is_empty() {
        let byte = rest.iter().fold(0u8, |byte, value| byte << WIDTH | *value as u8);
        out.push(byte << (WIDTH * (per_byte - rest.len())));
    }
}

/// Whole bytes, most significant first.
fn pack_bytes<const BYTES: usize>(values: &[u64], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + values.len() * BYTES, 0);
    for (target, value) in out[from..].chunks_exact_mut(BYTES).zip(values) {
        target.copy_from_slice(&value.to_be_bytes()[8 - BYTES..]);
    }
}

fn pack_any(values: &[u64], width: u32, out: &mut Vec<u8>) {
    out.reserve(packed_bytes(values.len(), width));
    let mut pending: u128 = 0;
    let mut pending_bits = 0;
    for value in values {
        pending = pending << width | u128::from(*value);
        pending_bits += width;
        while pending_bits >= 8 {
            pending_bits -= 8;
            out.push((pending >> pending_bits) as u8);
        }
    }
    if pending_bits > 0 {
        out.push((pending << (8 - pending_bits)) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rle_width::closest_width;

    #[test]
    fn aligned_widths_hold_their_bits_and_have_codes() {
        for bits in 0..=64 {
            let width = aligned_width(bits);
            assert!(width >= bits);
            assert_eq!(closest_width(width), width);
        }
    }

    #[test]
    fn every_width_packs_like_the_general_kernel() {
        for width in 1..=64u32 {
            let mask = u64::MAX >> (64 - width);
            let values: Vec<u64> =
                (0..37u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            for count in 0..values.len() {
                let (mut fast, mut slow) = (vec![7], vec![7]);
                pack(&values[..count], width, &mut fast);
                pack_any(&values[..count], width, &mut slow);
                assert_eq!(fast, slow, "{count} values of {width} bits");
                assert_eq!(fast.len(), 1 + packed_bytes(count, width));
            }
        }
    }
}
