//! Unpacking of big-endian bit-packed integers.
//!
//! In: bytes in which values of `width` bits follow each other, highest bit first. Out: one `i64`
//! (the unsigned bits) per value. Widths up to 56 load eight bytes per value and shift; the loop
//! over eight values (which take `width` bytes) has constant shifts. What is left of that goes one
//! by one: with a load as long as eight bytes are there, which is nearly always.

use super::int_rle::unzigzag;

/// Unpacks `out.len()` unsigned values; `input` holds at least their
/// [`packed_bytes`](crate::rle_width::packed_bytes). Bytes behind
/// those are not used, but let the fast loop run to the end.
pub(crate) fn unpack(input: &[u8], width: u32, out: &mut [i64]) {
    unpack_as::<false>(input, width, out);
}

/// [`unpack`] of zigzag values: undoes that on the way.
pub(crate) fn unpack_zigzag(input: &[u8], width: u32, out: &mut [i64]) {
    unpack_as::<true>(input, width, out);
}

fn unpack_as<const ZIGZAG: bool>(input: &[u8], width: u32, out: &mut [i64]) {
    macro_rules! by_width {
        ($($w:literal)*) => {
            match width {
                $($w => unpack_const::<$w, ZIGZAG>(input, out),)*
                _ => unpack_slow::<ZIGZAG>(input, width as usize, 0, out),
            }
        };
    }
    match width {
        8 => unpack_chunks::<1, ZIGZAG>(input, out, |c| u64::from(u8::from_be_bytes(c))),
        16 => unpack_chunks::<2, ZIGZAG>(input, out, |c| u64::from(u16::from_be_bytes(c))),
        32 => unpack_chunks::<4, ZIGZAG>(input, out, |c| u64::from(u32::from_be_bytes(c))),
        64 => unpack_chunks::<8, ZIGZAG>(input, out, u64::from_be_bytes),
        _ => by_width!(1 2 3 4 5 6 7 9 10 11 12 13 14 15 17 18 19 20 21 22 23 24 26 28 30 40 48 56),
    }
}

/// What is stored for unpacked bits.
#[inline(always)]
fn stored<const ZIGZAG: bool>(bits: u64) -> i64 {
    if ZIGZAG { unzigzag(bits) } else { bits as i64 }
}

#[inline(always)]
fn unpack_chunks<const N: usize, const ZIGZAG: bool>(
    input: &[u8],
    out: &mut [i64],
    from: impl Fn([u8; N]) -> u64,
) {
    let (chunks, _) = input.as_chunks::<N>();
    for (value, chunk) in out.iter_mut().zip(chunks) {
        *value = stored::<ZIGZAG>(from(*chunk));
    }
}

/// Eight values of `W` ≤ 56 bits take `W` bytes; each lies in the eight bytes from its first one.
fn unpack_const<const W: usize, const ZIGZAG: bool>(input: &[u8], out: &mut [i64]) {
    // The last load of a group starts at most W - 1 bytes in and takes eight bytes.
    let reach = W + 7;
    let whole = out.len() / 8;
    let groups = if input.len() < reach { 0 } else { (input.len() - reach) / W + 1 }.min(whole);
    let (values, _) = out.as_chunks_mut::<8>();
    for (group, values) in values.iter_mut().take(groups).enumerate() {
        let bytes = &input[group * W..group * W + reach];
        match W {
            // How many values the 57 bits hold that a load has for certain.
            0..=7 => unpack_loads::<W, 8, ZIGZAG>(bytes, values),
            8..=14 => unpack_loads::<W, 4, ZIGZAG>(bytes, values),
            15..=28 => unpack_loads::<W, 2, ZIGZAG>(bytes, values),
            _ => unpack_loads::<W, 1, ZIGZAG>(bytes, values),
        }
    }
    let done = unpack_tail::<W, ZIGZAG>(input, groups * 8, out);
    unpack_slow::<ZIGZAG>(input, W, done, out);
}

/// Unpacks the values from `first` on as long as eight bytes can be loaded for each; returns up to
/// which. Short runs come here whole.
#[inline(always)]
fn unpack_tail<const W: usize, const ZIGZAG: bool>(
    input: &[u8],
    first: usize,
    out: &mut [i64],
) -> usize {
    let Some(last_byte) = input.len().checked_sub(8) else { return first };
    let loadable = (last_byte * 8 + 7) / W + 1;
    let end = out.len().min(loadable).max(first);
    for (index, value) in (first..end).zip(&mut out[first..]) {
        let (byte, bit) = (index * W / 8, index * W % 8);
        let mut word = [0u8; 8];
        word.copy_from_slice(&input[byte..byte + 8]);
        *value = stored::<ZIGZAG>((u64::from_be_bytes(word) << bit) >> (64 - W));
    }
    end
}

/// Unpacks eight values with `8 / N` loads.
#[inline(always)]
fn unpack_loads<const W: usize, const N: usize, const ZIGZAG: bool>(
    bytes: &[u8],
    values: &mut [i64; 8],
) {
    let (parts, _) = values.as_chunks_mut::<N>();
    for (load, part) in parts.iter_mut().enumerate() {
        let (byte, bit) = (load * N * W / 8, load * N * W % 8);
        let mut word = [0u8; 8];
        word.copy_from_slice(&bytes[byte..byte + 8]);
        let word = u64::from_be_bytes(word) << bit;
        for (i, value) in part.iter_mut().enumerate() {
            *value = stored::<ZIGZAG>((word << (i * W)) >> (64 - W));
        }
    }
}

/// Unpacks the values from `first` on, one by one.
fn unpack_slow<const ZIGZAG: bool>(input: &[u8], width: usize, first: usize, out: &mut [i64]) {
    for (index, value) in (first..).zip(&mut out[first..]) {
        let bit = index * width;
        let last = (bit + width).div_ceil(8).min(input.len());
        let bytes = input.get(bit / 8..last).unwrap_or(&[]);
        // At most 9 bytes for 64 bits: gather in 128.
        let gathered = bytes.iter().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
        let unused = bytes.len() * 8 - (bit % 8 + width).min(bytes.len() * 8);
        let mask = if width >= 64 { u64::MAX } else { (1u64 << width) - 1 };
        *value = stored::<ZIGZAG>((gathered >> unused) as u64 & mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rle_width::packed_bytes;

    /// Packs values bit by bit.
    fn pack(values: &[u64], width: u32) -> Vec<u8> {
        let mut bytes = vec![0u8; packed_bytes(values.len(), width)];
        let width = width as usize;
        for (i, value) in values.iter().enumerate() {
            for bit in 0..width {
                let at = i * width + bit;
                bytes[at / 8] |= ((value >> (width - 1 - bit) & 1) as u8) << (7 - at % 8);
            }
        }
        bytes
    }

    #[test]
    fn all_widths_and_counts_unpack() {
        for width in 1..=64u32 {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            for count in [1, 2, 7, 8, 9, 31, 64, 511, 512] {
                let values: Vec<u64> = (0..count as u64)
                    .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) & mask)
                    .collect();
                let mut bytes = pack(&values, width);
                for slack in [0, 3, 16] {
                    bytes.resize(packed_bytes(count, width) + slack, 0xa5);
                    let mut out = vec![0i64; count];
                    unpack(&bytes, width, &mut out);
                    let unsigned: Vec<u64> = out.iter().map(|v| *v as u64).collect();
                    assert_eq!(unsigned, values, "width {width}, count {count}, slack {slack}");
                    let signed: Vec<i64> = values.iter().map(|v| unzigzag(*v)).collect();
                    unpack_zigzag(&bytes, width, &mut out);
                    assert_eq!(out, signed, "width {width}, count {count}, slack {slack}");
                }
            }
        }
    }
}
