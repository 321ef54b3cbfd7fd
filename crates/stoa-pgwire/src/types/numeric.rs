//! Numbers as text, and decimals in the protocol's base-10000 form.
//!
//! **Invariant:** floats are written with the fewest digits that read back as the same value, in
//! the notation PostgreSQL chooses.

use std::io::Write;

const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_SPECIAL: u16 = 0xC000;

/// Digits a decimal may have at most: those of Arrow's widest.
pub(crate) const DIGITS_MAX: usize = 76;

/// Appends a signed integer.
pub(crate) fn put_i64(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_u64(out, value.unsigned_abs());
}

/// Appends an unsigned integer.
pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a double.
pub(crate) fn put_f64(out: &mut Vec<u8>, value: f64) {
    if put_special(out, value) {
        return;
    }
    let mut shortest = ShortText::default();
    let _ = write!(shortest, "{value:e}");
    put_shortest(out, shortest.bytes(), 15);
}

/// Appends a single-precision float.
pub(crate) fn put_f32(out: &mut Vec<u8>, value: f32) {
    if put_special(out, f64::from(value)) {
        return;
    }
    let mut shortest = ShortText::default();
    let _ = write!(shortest, "{value:e}");
    put_shortest(out, shortest.bytes(), 6);
}

fn put_special(out: &mut Vec<u8>, value: f64) -> bool {
    let text: &[u8] = match value {
        v if v.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => return false,
    };
    out.extend_from_slice(text);
    true
}

/// Turns `-1.25e-7` (shortest digits, any exponent) into PostgreSQL's choice of notation: plain
/// where the exponent is from -4 to `plain_max` - 1, else with at least two exponent digits.
fn put_shortest(out: &mut Vec<u8>, text: &[u8], plain_max: i32) {
    let (text, negative) = match text.strip_prefix(b"-") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let split = text.iter().position(|byte| *byte == b'e').unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(split);
    let exponent = std::str::from_utf8(exponent.get(1..).unwrap_or_default())
        .ok()
        .and_then(|digits| digits.parse::<i32>().ok())
        .unwrap_or(0);
    if negative {
        out.push(b'-');
    }
    if !(-4..plain_max).contains(&exponent) {
        out.extend_from_slice(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    let digits = mantissa.iter().copied().filter(|byte| *byte != b'.');
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
        out.extend(digits);
        return;
    }
    let whole = exponent as usize + 1;
    let mut count = 0;
    for digit in digits {
        if count == whole {
            out.push(b'.');
        }
        out.push(digit);
        count += 1;
    }
    out.extend(std::iter::repeat_n(b'0', whole.saturating_sub(count)));
}

/// A buffer on the stack for the text of one number.
#[derive(Default)]
pub(crate) struct ShortText {
    bytes: [u8; 32],
    used: usize,
}

impl ShortText {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl Write for ShortText {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let count = text.len().min(self.bytes.len() - self.used);
        self.bytes[self.used..self.used + count].copy_from_slice(&text[..count]);
        self.used += count;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A decimal as sign, digits without leading zeros (none for 0) and scale: ± digits × 10^-scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    scale: i32,
}

impl Decimal {
    /// From an unscaled integer.
    pub(crate) fn from_i128(value: i128, scale: i32) -> Self {
        let mut digits = Vec::with_capacity(39);
        let mut rest = value.unsigned_abs();
        while rest > 0 {
            digits.push((rest % 10) as u8);
            rest /= 10;
        }
        digits.reverse();
        Self { negative: value < 0, digits, scale }
    }

    /// From the text of an unscaled integer.
    pub(crate) fn from_integer_text(text: &str, scale: i32) -> Self {
        let negative = text.starts_with('-');
        let digits = text
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|byte| byte - b'0')
            .skip_while(|digit| *digit == 0)
            .collect();
        Self { negative, digits, scale }
    }

    /// Reads `-12.50`, `1e3`, `.5`; `None` where it is no finite number of at most
    /// [`DIGITS_MAX`] digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (text, negative) = match text.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits {
            return None;
        }
        let digits: Vec<u8> = whole
            .bytes()
            .chain(fraction.bytes())
            .map(|byte| byte - b'0')
            .skip_while(|digit| *digit == 0)
            .collect();
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        let mut decimal = Self { negative, digits, scale };
        decimal.bound().then_some(decimal)
    }

    /// Makes the scale non-negative; whether the number still fits.
    fn bound(&mut self) -> bool {
        if self.digits.is_empty() {
            self.scale = self.scale.clamp(0, DIGITS_MAX as i32);
        }
        if self.scale < 0 {
            let zeros = self.scale.unsigned_abs() as usize;
            if self.digits.len() + zeros > DIGITS_MAX {
                return false;
            }
            self.digits.extend(std::iter::repeat_n(0, zeros));
            self.scale = 0;
        }
        self.digits.len() <= DIGITS_MAX && self.scale as usize <= DIGITS_MAX
    }

    /// Without zeros at the end of the digits after the point: of a type without a scale.
    pub(crate) fn trimmed(mut self) -> Self {
        while self.scale > 0 && self.digits.last().is_none_or(|digit| *digit == 0) {
            self.digits.pop();
            self.scale -= 1;
        }
        self
    }

    /// Digits after the point.
    pub(crate) fn scale(&self) -> i32 {
        self.scale
    }

    /// Digits the number needs, with those after the point; at least 1.
    pub(crate) fn precision(&self) -> usize {
        self.digits.len().max(self.scale.max(0) as usize).max(1)
    }

    /// The unscaled integer's text.
    pub(crate) fn integer_text(&self) -> String {
        let mut text = String::with_capacity(self.digits.len() + 1);
        if self.negative {
            text.push('-');
        }
        if self.digits.is_empty() {
            text.push('0');
        }
        text.extend(self.digits.iter().map(|digit| char::from(b'0' + digit)));
        text
    }

    /// Appends the plain notation, with exactly `scale` digits after the point.
    pub(crate) fn put_text(&self, out: &mut Vec<u8>) {
        if self.negative && !self.digits.is_empty() {
            out.push(b'-');
        }
        let ascii = |digit: &u8| b'0' + digit;
        if self.scale <= 0 {
            if self.digits.is_empty() {
                out.push(b'0');
                return;
            }
            out.extend(self.digits.iter().map(ascii));
            out.extend(std::iter::repeat_n(b'0', self.scale.unsigned_abs() as usize));
            return;
        }
        let scale = self.scale as usize;
        if self.digits.len() > scale {
            let (whole, fraction) = self.digits.split_at(self.digits.len() - scale);
            out.extend(whole.iter().map(ascii));
            out.push(b'.');
            out.extend(fraction.iter().map(ascii));
        } else {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', scale - self.digits.len()));
            out.extend(self.digits.iter().map(ascii));
        }
    }

    /// Appends the binary form: count, weight, sign, display scale, base-10000 digits.
    pub(crate) fn put_binary(&self, out: &mut Vec<u8>) {
        let dscale = self.scale.clamp(0, i32::from(i16::MAX)) as i16;
        let whole_digits = self.digits.len() as i32 - self.scale;
        let (weight, first) = if self.digits.is_empty() {
            (0, 0)
        } else {
            ((whole_digits - 1).div_euclid(4), (whole_digits - 1).rem_euclid(4) as usize + 1)
        };
        let groups = self.groups(first);
        out.extend_from_slice(&(groups.len() as i16).to_be_bytes());
        out.extend_from_slice(&(weight as i16).to_be_bytes());
        let sign = if self.negative && !self.digits.is_empty() { SIGN_NEGATIVE } else { 0 };
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&dscale.to_be_bytes());
        for group in groups {
            out.extend_from_slice(&group.to_be_bytes());
        }
    }

    /// Base-10000 digits, of which the first takes `first` decimal digits; trailing zeros left out.
    fn groups(&self, first: usize) -> Vec<i16> {
        let (head, tail) = self.digits.split_at(first.min(self.digits.len()));
        let mut groups = Vec::with_capacity(tail.len() / 4 + 2);
        let value = |digits: &[u8], width: usize| {
            (0..width)
                .fold(0_i16, |sum, at| sum * 10 + i16::from(digits.get(at).copied().unwrap_or(0)))
        };
        if !head.is_empty() {
            groups.push(value(head, first));
        }
        groups.extend(tail.chunks(4).map(|digits| value(digits, 4)));
        while groups.last() == Some(&0) {
            groups.pop();
        }
        groups
    }

    /// Reads the binary form; `None` for NaN, infinities, damaged bytes and numbers with more than
    /// [`DIGITS_MAX`] digits.
    pub(crate) fn parse_binary(bytes: &[u8]) -> Option<Self> {
        let field = |at: usize| bytes.get(at..at + 2).map(|b| i16::from_be_bytes([b[0], b[1]]));
        let count = usize::try_from(field(0)?).ok()?;
        let (weight, sign, dscale) = (i32::from(field(2)?), field(4)? as u16, field(6)?);
        if sign & SIGN_SPECIAL == SIGN_SPECIAL || dscale < 0 || bytes.len() != 8 + 2 * count {
            return None;
        }
        let mut digits = Vec::with_capacity(count * 4);
        for index in 0..count {
            let group =
                u16::try_from(field(8 + 2 * index)?).ok().filter(|group| *group < 10_000)?;
            digits.extend([group / 1000, group / 100 % 10, group / 10 % 10, group % 10]);
        }
        // The digits end at this scale; bring them to the display scale.
        let scale = (count as i32 - weight - 1) * 4;
        let mut digits: Vec<u8> =
            digits.into_iter().map(|digit| digit as u8).skip_while(|digit| *digit == 0).collect();
        let wanted = i32::from(dscale);
        if digits.is_empty() {
            return Some(Self { negative: false, digits, scale: wanted.min(DIGITS_MAX as i32) });
        }
        if scale > wanted {
            let cut = (scale - wanted) as usize;
            digits.truncate(digits.len().saturating_sub(cut));
        } else {
            let zeros = (wanted - scale) as usize;
            if digits.len() + zeros > DIGITS_MAX {
                return None;
            }
            digits.extend(std::iter::repeat_n(0, zeros));
        }
        let mut decimal = Self { negative: sign == SIGN_NEGATIVE, digits, scale: wanted };
        decimal.bound().then_some(decimal)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn float(value: f64) -> String {
        let mut out = Vec::new();
        put_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    fn text(decimal: &Decimal) -> String {
        let mut out = Vec::new();
        decimal.put_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_written_as_postgresql_writes_them() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (1234567890123456.0, "1.234567890123456e+15"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(float(value), expected);
        }
        let mut out = Vec::new();
        put_f32(&mut out, 1e6);
        put_f32(&mut out, 0.1);
        assert_eq!(out, b"1e+060.1");
    }

    #[test]
    fn decimals_are_written_plain() {
        assert_eq!(text(&Decimal::from_i128(-12_345, 2)), "-123.45");
        assert_eq!(text(&Decimal::from_i128(5, 4)), "0.0005");
        assert_eq!(text(&Decimal::from_i128(0, 2)), "0.00");
        assert_eq!(text(&Decimal::from_i128(12, -3)), "12000");
        assert_eq!(text(&Decimal::parse("1.5e3").unwrap()), "1500");
        assert_eq!(Decimal::parse("1.2.3"), None);
        assert_eq!(Decimal::parse("1e999999999"), None);
        assert_eq!(Decimal::parse("NaN"), None);
    }

    #[test]
    fn the_binary_form_is_postgresqls() {
        let mut out = Vec::new();
        Decimal::from_i128(1_234_567, 3).put_binary(&mut out);
        // 1234.567: digits 1234 and 5670, weight 0, scale 3.
        assert_eq!(out, [0, 2, 0, 0, 0, 0, 0, 3, 0x04, 0xd2, 0x16, 0x26]);
        out.clear();
        Decimal::from_i128(5, 4).put_binary(&mut out);
        assert_eq!(out, [0, 1, 0xff, 0xff, 0, 0, 0, 4, 0, 5]);
    }

    #[test]
    fn damaged_binary_decimals_are_refused() {
        assert_eq!(Decimal::parse_binary(&[0, 9, 0, 0]), None);
        assert_eq!(Decimal::parse_binary(&[0, 0, 0, 0, 0xC0, 0, 0, 0]), None);
        assert_eq!(Decimal::parse_binary(&[0, 1, 0x7f, 0xff, 0, 0, 0, 0, 0, 1]), None);
    }

    proptest! {
        #[test]
        fn binary_decimals_read_back(value: i128, scale in 0..38_i32) {
            let decimal = Decimal::from_i128(value, scale);
            let mut out = Vec::new();
            decimal.put_binary(&mut out);
            let back = Decimal::parse_binary(&out).unwrap();
            prop_assert_eq!(text(&back), text(&decimal));
            let parsed = Decimal::parse(&text(&decimal)).unwrap();
            prop_assert_eq!(text(&parsed), text(&decimal));
        }

        #[test]
        fn floats_read_back(value: f64) {
            prop_assume!(value.is_finite());
            prop_assert_eq!(float(value).parse::<f64>().unwrap(), value);
        }

        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>) {
            let _ = Decimal::parse_binary(&bytes);
        }
    }
}
