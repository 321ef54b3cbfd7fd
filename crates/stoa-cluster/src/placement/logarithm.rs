//! Logarithms in whole numbers, equal to the bit on every machine.
//!
//! `f64::ln` calls the platform's mathematical library, whose last bits differ between platforms and
//! releases. A last bit that differs would give a bucket two homes. So there is no floating point
//! here: a table for the first 7 bits of the mantissa, a series for the rest.

/// Bits after the binary point of [`negative_log2`].
pub(super) const FRACTION_BITS: u32 = 56;

/// log2(e), with 63 bits after the point.
const LOG2_E: u128 = 0xb8aa_3b29_5c17_f0bc;

/// log2(1 + i/128), with 64 bits after the point.
const TABLE: [u64; 128] = table();

/// −log2(u) for u = (hash + ½) / 2⁶⁴, with [`FRACTION_BITS`] bits after the point; from 1 to 65·2⁵⁶.
///
/// The error is less than 2⁻⁵⁰. That is a relative error of 2⁻³⁰ for the best of a million daemons.
pub(super) fn negative_log2(hash: u64) -> u64 {
    // u = x / 2⁶⁵, and x = 2^exponent · (1 + fraction / 2⁶⁴).
    let x = (u128::from(hash) << 1) | 1;
    let exponent = 127 - x.leading_zeros();
    let fraction = (x << (64 - exponent)) as u64;
    let log2 = (u128::from(65 - exponent) << 64) - log2_of_mantissa(fraction).min(1 << 64);
    ((log2 >> (64 - FRACTION_BITS)) as u64).max(1)
}

/// log2(1 + fraction / 2⁶⁴), with 64 bits after the point.
fn log2_of_mantissa(fraction: u64) -> u128 {
    let index = fraction >> 57;
    // 1 + fraction = (1 + index/128) · (1 + rest), and rest < 1/128.
    let rest = u128::from(((fraction & ((1 << 57) - 1)) << 7) / (128 + index));
    // ln(1 + rest) = rest − rest²/2 + rest³/3 − …; the ninth term is below 2⁻⁶⁶.
    let mut series = 0;
    for term in (1..=8u128).rev() {
        series = (1 << 64) / term - ((rest * series) >> 64);
    }
    let ln = (rest * series) >> 64;
    u128::from(TABLE[index as usize]) + ((ln * LOG2_E) >> 63)
}

const fn table() -> [u64; 128] {
    let mut table = [0; 128];
    let mut index = 0;
    while index < 128 {
        table[index] = log2_by_squaring((1 << 63) + ((index as u128) << 56));
        index += 1;
    }
    table
}

/// log2 of a number in [1, 2) with 63 bits after the point: each squaring yields one bit.
const fn log2_by_squaring(mut number: u128) -> u64 {
    let mut bits = 0;
    let mut left = 64;
    while left > 0 {
        number = (number * number) >> 63;
        bits <<= 1;
        if number >= 1 << 64 {
            number >>= 1;
            bits |= 1;
        }
        left -= 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_library_but_for_its_last_bits() {
        let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..100_000 {
            hash = hash.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let u = (hash as f64 + 0.5) / 2f64.powi(64);
            let exact = -u.log2();
            let ours = negative_log2(hash) as f64 / 2f64.powi(FRACTION_BITS as i32);
            assert!((ours - exact).abs() < 1e-14 * (1.0 + exact), "{hash:#x}: {ours} {exact}");
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(negative_log2(0), 65 << FRACTION_BITS);
        assert_eq!(negative_log2(u64::MAX), 1);
        // u = 1/2 + 2⁻⁶⁵
        assert_eq!(negative_log2(1 << 63) >> FRACTION_BITS, 0);
        assert!(negative_log2(1 << 63) > (1 << FRACTION_BITS) - 16);
    }

    #[test]
    fn greater_hashes_never_have_greater_logarithms() {
        for shift in 0..57 {
            let edges = (1..=127).map(|index| (128u64 + index) << shift);
            for edge in edges.filter(|edge| *edge > 4) {
                assert!(negative_log2(edge - 1) >= negative_log2(edge), "{edge:#x}");
            }
        }
    }
}
