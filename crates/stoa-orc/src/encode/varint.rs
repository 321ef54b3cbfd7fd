//! Zigzag and base-128 varints, up to 128 bits.

/// Maps signed to unsigned so that small magnitudes stay small: 0, -1, 1, -2 → 0, 1, 2, 3.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// [`zigzag`] for 128 bits.
#[inline]
pub(crate) fn zigzag_128(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)) as u128
}

/// Appends `value`, seven bits per byte, least significant first.
#[inline]
pub(crate) fn write_unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` in zigzag form.
#[inline]
pub(crate) fn write_signed(value: i64, out: &mut Vec<u8>) {
    write_unsigned(zigzag(value), out);
}

/// Appends a 128-bit `value` in zigzag form, as decimals are stored.
#[inline]
pub(crate) fn write_signed_128(value: i128, out: &mut Vec<u8>) {
    let mut rest = zigzag_128(value);
    while rest > u128::from(u64::MAX) {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    write_unsigned(rest as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> u128 {
        bytes.iter().rev().fold(0, |sum, byte| sum << 7 | u128::from(byte & 0x7f))
    }

    #[test]
    fn values_survive() {
        for value in [0, 1, -1, 63, 64, -64, -65, 1 << 40, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            write_signed(value, &mut bytes);
            assert_eq!(read(&bytes), u128::from(zigzag(value)), "{value}");
        }
        for value in [0, 99, i128::from(i64::MAX) * 3, 10_i128.pow(38) - 1, -10_i128.pow(38) + 1] {
            let mut bytes = Vec::new();
            write_signed_128(value, &mut bytes);
            assert_eq!(read(&bytes), zigzag_128(value), "{value}");
        }
    }

    #[test]
    fn small_magnitudes_are_small() {
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
