//! The bit widths of integer RLEv2: 32 of them, named by codes of five bits.
//!
//! ```text
//! code   0 …… 23   24   25   26   27   28   29   30   31
//! width  1 …… 24   26   28   30   32   40   48   56   64
//! ```
//! Shared by the encoder and the decoder. Not here: packing (`encode::bit_pack`) and unpacking
//! (`decode::bit_unpack`).

/// Width in bits, by code.
const WIDTHS: [u8; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28,
    30, 32, 40, 48, 56, 64,
];

/// Code of the smallest width that holds a number of bits (0..=64).
const CODES: [u8; 65] = codes();

const fn codes() -> [u8; 65] {
    let mut codes = [0; 65];
    let (mut bits, mut code) = (0, 0);
    while bits < codes.len() {
        if bits > WIDTHS[code] as usize {
            code += 1;
        }
        codes[bits] = code as u8;
        bits += 1;
    }
    codes
}

/// The width that the low five bits of `code` name.
#[inline]
pub(crate) fn width_of_code(code: u8) -> u32 {
    WIDTHS[usize::from(code & 31)].into()
}

/// The code of [`closest_width`].
#[inline]
pub(crate) fn width_code(bits: u32) -> u8 {
    CODES[bits.min(64) as usize]
}

/// The smallest width that has a code and holds `bits` bits: 1 for 0, 64 for more than 64.
#[inline]
pub(crate) fn closest_width(bits: u32) -> u32 {
    width_of_code(width_code(bits))
}

/// Bytes that `count` values of `width` bits take.
#[inline]
pub(crate) fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_has_its_code() {
        for code in 0..32 {
            assert_eq!(width_code(width_of_code(code)), code);
        }
        assert_eq!([1, 2, 24, 26, 32, 40, 64].map(width_code), [0, 1, 23, 24, 27, 28, 31]);
    }

    #[test]
    fn the_closest_width_is_the_smallest_that_holds_the_bits() {
        for bits in 1..=64 {
            let smallest = (0..32).map(width_of_code).filter(|width| *width >= bits).min();
            assert_eq!(Some(closest_width(bits)), smallest, "{bits}");
        }
        assert_eq!([0, 65, 96].map(closest_width), [1, 64, 64]);
    }
}
