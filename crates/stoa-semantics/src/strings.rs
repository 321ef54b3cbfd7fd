//! Functions on texts and bytes that the engine has not, or computes otherwise.

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array};
use arrow::datatypes::i256;
use datafusion::error::Result;

use super::call::failure;
use super::declared::{Declared, Row, Type, declared};
use super::numeric::{Decimal, out_of_range};
use Type::{Bigint, Bytes, Int4, Integer, Numeric, Shown, Text};

/// Any number of values.
const VALUES: &[Type] = &[Shown; 100];

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("to_hex", &[Int4], Text, |row| {
        row.each_text(|at| Ok(row.integer(0, at).map(|of| format!("{:x}", of as i32))))
    }),
    declared("to_hex", &[Bigint], Text, |row| {
        row.each_text(|at| Ok(row.integer(0, at).map(|of| format!("{of:x}"))))
    }),
    declared("chr", &[Integer], Text, character),
    Declared { needed: 1, ..declared("num_nulls", VALUES, Type::Integer, |row| nulls(row, true)) },
    Declared {
        needed: 1,
        ..declared("num_nonnulls", VALUES, Type::Integer, |row| nulls(row, false))
    },
    Declared { called: "encode", ..declared("base64_lines", &[Text], Text, base64_lines) },
    Declared { called: "decode", ..declared("without_blanks", &[Text], Text, without_blanks) },
    declared("pg_size_pretty", &[Bigint], Text, size_pretty),
    declared("pg_size_pretty", &[Numeric], Text, numeric_size_pretty),
    declared("pg_size_bytes", &[Text], Bigint, size_bytes),
    declared("get_byte", &[Bytes, Integer], Type::Integer, get_byte),
    declared("set_byte", &[Bytes, Integer, Integer], Bytes, set_byte),
    declared("get_bit", &[Bytes, Bigint], Type::Integer, get_bit),
    declared("set_bit", &[Bytes, Bigint, Integer], Bytes, set_bit),
    declared("bit_count", &[Bytes], Bigint, |row| {
        row.each::<i64, Int64Array>(|at| {
            let ones = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(byte.count_ones())).sum();
            Ok(row.bytes(0, at).map(ones))
        })
    }),
];

fn character(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(code) = row.integer(0, at) else { return Ok(None) };
        if code == 0 {
            return Err(failure("54000", "null character not permitted"));
        }
        if code < 0 {
            return Err(failure("22023", "character number must be positive"));
        }
        let character = u32::try_from(code).ok().and_then(char::from_u32);
        let message = || format!("requested character too large for encoding: {code}");
        character.map(|of| Some(of.to_string())).ok_or_else(|| failure("54000", message()))
    })
}

/// How many of the operands are NULL, or not.
fn nulls(row: &Row<'_>, are_null: bool) -> Result<ArrayRef> {
    let count = |at: usize| {
        let of = row.columns.iter().filter(|column| column.is_null(at) == are_null).count();
        i32::try_from(of).ok()
    };
    Ok(std::sync::Arc::new((0..row.rows).map(count).collect::<Int32Array>()))
}

/// Lines of 76 letters, as PostgreSQL has base64.
fn base64_lines(row: &Row<'_>) -> Result<ArrayRef> {
    const LINE: usize = 76;
    row.each_text(|at| {
        let Some(text) = row.text(0, at) else { return Ok(None) };
        if !text.is_ascii() || text.contains('\n') {
            return Ok(Some(text.to_owned()));
        }
        let mut out = String::with_capacity(text.len() + text.len() / LINE);
        for (place, letter) in text.chars().enumerate() {
            if place > 0 && place % LINE == 0 {
                out.push('\n');
            }
            out.push(letter);
        }
        Ok(Some(out))
    })
}

fn without_blanks(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| Ok(row.text(0, at).map(|text| text.replace([' ', '\n', '\r', '\t'], ""))))
}

const UNITS: [(&str, u32); 6] =
    [("bytes", 0), ("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40), ("PB", 50)];

fn size_pretty(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| Ok(row.integer(0, at).map(|bytes| pretty(bytes.into()))))
}

/// The same of a number that need not be whole: it is shown as it is below the first limit.
fn numeric_size_pretty(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(digits) = row.numeric(0, at) else { return Ok(None) };
        let size = Decimal { digits, scale: 38 };
        let one = i256::from_i128(10_i128.pow(38));
        let whole = digits.wrapping_div(one).to_i128().ok_or_else(out_of_range)?;
        Ok(Some(match whole.abs() < BYTES_LIMIT {
            true => format!("{} bytes", shown(size.trimmed())),
            false => pretty(whole),
        }))
    })
}

fn shown(number: Decimal) -> String {
    let digits = number.digits.wrapping_abs().to_string();
    let scale = number.scale.unsigned_abs() as usize;
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    let sign = if number.digits < i256::ZERO { "-" } else { "" };
    format!("{sign}{whole}{}{fraction}", if scale > 0 { "." } else { "" })
}

/// Fewer bytes than these are not rounded to kB.
const BYTES_LIMIT: i128 = 10 * 1024;

/// Bytes in the largest unit in which they are not less than 10, halves rounded away from zero.
fn pretty(bytes: i128) -> String {
    // Source: PostgreSQL's `pg_size_pretty`: below 20 halves of the next unit, a unit is kept.
    let mut size = bytes;
    for (place, (unit, _)) in UNITS.iter().enumerate() {
        let limit = if place == 0 { BYTES_LIMIT } else { 20 * 1024 - 1 };
        if size.abs() < limit || place + 1 == UNITS.len() {
            if place > 0 {
                size = (size + size.signum()) / 2;
            }
            return format!("{size} {unit}");
        }
        // One bit is kept to round by.
        size /= 1 << if place == 0 { 9 } else { 10 };
    }
    String::new()
}

fn size_bytes(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i64, Int64Array>(|at| row.text(0, at).map(bytes_of).transpose())
}

fn bytes_of(text: &str) -> Result<i64> {
    let invalid = || failure("22023", format!("invalid size: \"{text}\""));
    let trimmed = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
    let mut end = trimmed.find(|c: char| !is_number(c)).unwrap_or(trimmed.len());
    // An exponent is part of the number.
    if let Some(exponent) = trimmed[end..].strip_prefix(['e', 'E']) {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let sign = exponent.len() - digits.len();
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        end += if length > 0 { 1 + sign + length } else { 0 };
    }
    let number: f64 = trimmed[..end].parse().map_err(|_| invalid())?;
    let unit = trimmed[end..].trim();
    let shift = match unit {
        "" => 0,
        unit => {
            let known = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
            known.map(|(_, shift)| *shift).ok_or_else(invalid)?
        }
    };
    let bytes = (number * 2_f64.powi(i32::try_from(shift).unwrap_or(0))).round();
    if !(-9.2e18..9.2e18).contains(&bytes) {
        return Err(failure("22003", "bigint out of range"));
    }
    Ok(bytes as i64)
}

fn place_of(bytes: &[u8], place: i64, per_byte: i64) -> Result<usize> {
    let end = i64::try_from(bytes.len()).unwrap_or(i64::MAX).saturating_mul(per_byte);
    if !(0..end).contains(&place) {
        let message = format!("index {place} out of valid range, 0..{}", end - 1);
        return Err(failure("2202E", message));
    }
    Ok((place / per_byte) as usize)
}

fn get_byte(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i32, Int32Array>(|at| {
        let (Some(bytes), Some(place)) = (row.bytes(0, at), row.integer(1, at)) else {
            return Ok(None);
        };
        Ok(Some(i32::from(bytes[place_of(bytes, place, 1)?])))
    })
}

fn get_bit(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i32, Int32Array>(|at| {
        let (Some(bytes), Some(place)) = (row.bytes(0, at), row.integer(1, at)) else {
            return Ok(None);
        };
        Ok(Some(i32::from(bytes[place_of(bytes, place, 8)?] >> (place % 8) & 1)))
    })
}

fn set_byte(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_bytes(|at| {
        let (Some(bytes), Some(place), Some(to)) =
            (row.bytes(0, at), row.integer(1, at), row.integer(2, at))
        else {
            return Ok(None);
        };
        let place = place_of(bytes, place, 1)?;
        let mut bytes = bytes.to_vec();
        bytes[place] = to as u8;
        Ok(Some(bytes))
    })
}

fn set_bit(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_bytes(|at| {
        let (Some(bytes), Some(bit), Some(to)) =
            (row.bytes(0, at), row.integer(1, at), row.integer(2, at))
        else {
            return Ok(None);
        };
        let place = place_of(bytes, bit, 8)?;
        if !(0..=1).contains(&to) {
            return Err(failure("22023", "new bit must be 0 or 1"));
        }
        let mask = 1_u8 << (bit % 8);
        let mut bytes = bytes.to_vec();
        bytes[place] = if to == 1 { bytes[place] | mask } else { bytes[place] & !mask };
        Ok(Some(bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_postgresql_does() {
        for (bytes, expected) in [
            (10, "10 bytes"),
            (10239, "10239 bytes"),
            (10240, "10 kB"),
            (-10240, "-10 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (123_456_789, "118 MB"),
            (i64::MAX, "8192 PB"),
            (i64::MIN, "-8192 PB"),
            (-20480, "-20 kB"),
            (0, "0 bytes"),
        ] {
            assert_eq!(pretty(i128::from(bytes)), expected);
        }
        for (text, bytes) in [
            ("5 MB", 5 << 20),
            ("1.5kB", 1536),
            ("-1 tb", -(1 << 40)),
            (" 10 bytes ", 10),
            ("1e3", 1000),
            ("1PB", 1 << 50),
        ] {
            assert_eq!(bytes_of(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "kB", "1 XB", "1e", "--1", "1e30 PB"] {
            assert!(bytes_of(text).is_err(), "{text}");
        }
    }
}
