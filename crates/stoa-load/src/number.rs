//! Text to numbers: digits with a sign, decimals, floating point, whatever the options say.

/// Why a number was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NumberError {
    NotANumber,
    OutOfRange,
}

/// A whole number: an optional sign and digits, nothing else.
pub(crate) fn integer(text: &[u8]) -> std::result::Result<i64, NumberError> {
    let (negative, digits) = sign(text);
    if digits.is_empty() {
        return Err(NumberError::NotANumber);
    }
    // Eighteen digits always fit.
    if digits.len() <= 18 {
        let mut value: i64 = 0;
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(NumberError::NotANumber);
            }
            value = value * 10 + i64::from(digit);
        }
        return Ok(if negative { -value } else { value });
    }
    let wide = unsigned(digits)?.min(i128::MAX as u128) as i128;
    let value = if negative { -wide } else { wide };
    i64::try_from(value).map_err(|_| NumberError::OutOfRange)
}

/// Splits off the sign: (negative, rest).
pub(crate) fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

/// Digits as a number.
pub(crate) fn unsigned(digits: &[u8]) -> std::result::Result<u128, NumberError> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberError::NotANumber);
    }
    let mut value: u128 = 0;
    for &byte in digits {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u128::from(byte - b'0')))
            .ok_or(NumberError::OutOfRange)?;
    }
    Ok(value)
}

/// A decimal as an integer of `scale` digits after the point, rounded half away from zero as
/// PostgreSQL does; exponents (`1.5e3`) are understood.
pub(crate) fn decimal(
    text: &[u8],
    precision: u8,
    scale: i8,
) -> std::result::Result<i128, NumberError> {
    let (negative, rest) = sign(text);
    let (mantissa, exponent) = match rest.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&rest[..at], integer(&rest[at + 1..])?),
        None => (rest, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|&b| b == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return Err(NumberError::NotANumber);
    }
    // Digits kept: those before the point, moved by exponent and scale.
    let keep = (whole.len() as i64).saturating_add(exponent).saturating_add(i64::from(scale));
    let mut digits = whole.iter().chain(fraction).map(|byte| i128::from(byte - b'0'));
    let mut value: i128 = 0;
    let mut kept = 0;
    while kept < keep {
        let Some(digit) = digits.next() else {
            break;
        };
        value = push_digit(value, digit)?;
        kept += 1;
    }
    if kept < keep {
        // Zeros behind a number; a zero stays one however many there are.
        for _ in 0..(keep - kept) {
            if value == 0 {
                break;
            }
            value = push_digit(value, 0)?;
        }
    } else if keep >= 0 && digits.next().is_some_and(|digit| digit >= 5) {
        value += 1;
    }
    let limit = 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    if value >= limit {
        return Err(NumberError::OutOfRange);
    }
    Ok(if negative { -value } else { value })
}

fn push_digit(value: i128, digit: i128) -> std::result::Result<i128, NumberError> {
    value.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(NumberError::OutOfRange)
}

/// A floating-point number: what Rust and PostgreSQL both read, with `nan`, `inf`, `infinity`.
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_checked() {
        assert_eq!(integer(b"-17"), Ok(-17));
        assert_eq!(integer(b"+0"), Ok(0));
        assert_eq!(integer(b"9223372036854775807"), Ok(i64::MAX));
        assert_eq!(integer(b"-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(integer(b"9223372036854775808"), Err(NumberError::OutOfRange));
        assert_eq!(integer(&[b'9'; 60]), Err(NumberError::OutOfRange));
        assert_eq!(integer(b"00000000000000000000000000000000000000000000012"), Ok(12));
        for bad in ["", "-", "1.0", "1 2", "0x10", "٣", "--1"] {
            assert_eq!(integer(bad.as_bytes()), Err(NumberError::NotANumber), "{bad}");
        }
    }

    #[test]
    fn decimals_round_and_are_checked() {
        let check =
            |text: &str, expected| assert_eq!(decimal(text.as_bytes(), 6, 2), expected, "{text}");
        check("1", Ok(100));
        check("1.5", Ok(150));
        check("-1.005", Ok(-101));
        check("1.004", Ok(100));
        check(".5", Ok(50));
        check("5.", Ok(500));
        check("9999.99", Ok(999_999));
        check("9999.995", Err(NumberError::OutOfRange));
        check("10000", Err(NumberError::OutOfRange));
        check("1.5e2", Ok(15_000));
        check("15e-1", Ok(150));
        check("15e-9", Ok(0));
        check("0e99999999999", Ok(0));
        check("1e99999999999", Err(NumberError::OutOfRange));
        check("0.0049999999999999999999999999999999999999999999999999", Ok(0));
        check("000000000000000000000000000000000000000000000000001", Ok(100));
        for bad in ["", ".", "-", "1.2.3", "e5", "1e", "nan"] {
            check(bad, Err(NumberError::NotANumber));
        }
        assert_eq!(decimal(b"12345", 5, -2), Ok(123));
        assert_eq!(decimal(b"99", 38, 38), Err(NumberError::OutOfRange));
    }
}
