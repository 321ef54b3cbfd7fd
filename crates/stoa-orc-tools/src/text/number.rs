//! Numbers: integers, decimals, and floats in the fewest digits that read back as the same value.

/// Appends an integer.
#[inline]
pub(crate) fn put_int(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a decimal: its unscaled value and how many digits are behind the point. With `trim` it
/// has no zeros at its end (HiveDecimal), else all digits of its scale.
#[inline]
pub(crate) fn put_decimal(value: i128, scale: usize, trim: bool, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let digits = match u64::try_from(value.unsigned_abs()) {
        Ok(small) => buffer.format(small),
        Err(_) => buffer.format(value.unsigned_abs()),
    };
    let start = out.len();
    match digits.len().checked_sub(scale) {
        Some(whole) if whole > 0 => {
            let (whole, fraction) = digits.as_bytes().split_at(whole);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        _ => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', scale - digits.len()));
            out.extend_from_slice(digits.as_bytes());
        }
    }
    let fraction = &out[start..];
    let zeros = if trim { fraction.iter().rev().take_while(|b| **b == b'0').count() } else { 0 };
    out.truncate(out.len() - zeros);
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

/// Appends a float as `orc-contents` lays it out, but with all digits it needs: `1`, `-0.5`,
/// `1e20`. What is no number is a JSON string: `"NaN"`, `"Infinity"`, `"-Infinity"`.
#[inline]
pub(crate) fn put_float<F: ryu::Float + Into<f64>>(value: F, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    if !wide.is_finite() {
        out.push(b'"');
        out.extend_from_slice(not_finite(wide).as_bytes());
        out.push(b'"');
        return;
    }
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(value);
    out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
}

/// Appends a float as Java's `Double.toString` lays it out: `1.0`, `-0.5`, `1.0E20`, `NaN`.
pub(crate) fn put_java_float<F: ryu::Float + Into<f64>>(value: F, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    if !wide.is_finite() {
        out.extend_from_slice(not_finite(wide).as_bytes());
        return;
    }
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(value);
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    out.extend_from_slice(sign.as_bytes());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let zeros = digits.bytes().take_while(|b| *b == b'0').count();
    let digits = digits.trim_matches('0');
    // The value is 0.DIGITS times ten to the power of `point`.
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = whole.len() as i32 - zeros as i32 + exponent;
    out.extend_from_slice(java_layout(digits, point).as_bytes());
}

/// Plain from 0.001 up to 10,000,000, else with an exponent.
fn java_layout(digits: &str, point: i32) -> String {
    if digits.is_empty() {
        return "0.0".to_owned();
    }
    if !(-2..=7).contains(&point) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        return format!("{first}.{rest}E{}", point - 1);
    }
    if point <= 0 {
        return format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize));
    }
    let width = point as usize;
    match digits.split_at_checked(width) {
        Some((whole, fraction)) if !fraction.is_empty() => format!("{whole}.{fraction}"),
        _ => format!("{digits:0<width$}.0"),
    }
}

fn not_finite(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "NaN",
        v if v > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_keep_their_scale_or_lose_zeros() {
        for (value, scale, full, trimmed) in [
            (0, 0, "0", "0"),
            (0, 2, "0.00", "0"),
            (5, 2, "0.05", "0.05"),
            (-5, 1, "-0.5", "-0.5"),
            (-100_050_000, 5, "-1000.50000", "-1000.5"),
            (1200, 2, "12.00", "12"),
            (1200, 0, "1200", "1200"),
            (i128::MAX, 38, "1.70141183460469231731687303715884105727", ""),
        ] {
            assert_eq!(text(|out| put_decimal(value, scale, false, out)), full);
            let trimmed = if trimmed.is_empty() { full } else { trimmed };
            assert_eq!(text(|out| put_decimal(value, scale, true, out)), trimmed);
        }
    }

    #[test]
    fn floats_have_the_fewest_digits() {
        for (value, plain, java) in [
            (0.0, "0", "0.0"),
            (-0.0, "-0", "-0.0"),
            (-15.0, "-15", "-15.0"),
            (42.47, "42.47", "42.47"),
            (0.001, "0.001", "0.001"),
            (0.000_999, "0.000999", "9.99E-4"),
            (9_999_999.0, "9999999", "9999999.0"),
            (1e7, "10000000", "1.0E7"),
            (123_456_789.5, "123456789.5", "1.234567895E8"),
            (1e300, "1e300", "1.0E300"),
            (5e-324, "5e-324", "5.0E-324"),
            (0.1 + 0.2, "0.30000000000000004", "0.30000000000000004"),
            (120.0, "120", "120.0"),
            (f64::NAN, "\"NaN\"", "NaN"),
            (f64::INFINITY, "\"Infinity\"", "Infinity"),
            (f64::NEG_INFINITY, "\"-Infinity\"", "-Infinity"),
        ] {
            assert_eq!(text(|out| put_float(value, out)), plain);
            assert_eq!(text(|out| put_java_float(value, out)), java);
        }
        assert_eq!(text(|out| put_float(74.72f32, out)), "74.72");
        assert_eq!(text(|out| put_java_float(f64::from(74.72f32), out)), "74.72000122070312");
    }
}
