//! JSON strings.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// First byte of U+2028 and U+2029 (and of others).
const SEPARATORS_FIRST: u8 = 0xe2;

/// Which characters are escaped beyond those that JSON demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// None.
    Json,
    /// U+2028 and U+2029, which old JavaScript takes for ends of lines (as Gson does).
    Gson,
}

/// Appends a string with its quotes.
#[inline]
pub(crate) fn put_string(text: &str, escapes: Escapes, out: &mut Vec<u8>) {
    out.push(b'"');
    put_escaped(text.as_bytes(), escapes, out);
    out.push(b'"');
}

#[inline]
fn put_escaped(mut rest: &[u8], escapes: Escapes, out: &mut Vec<u8>) {
    loop {
        let plain = plain_length(rest, escapes);
        let (before, after) = rest.split_at(plain);
        out.extend_from_slice(before);
        let Some((special, after)) = after.split_first() else { return };
        rest = put_special(*special, after, out);
    }
}

/// Appends a byte that may need an escape; returns what follows it.
#[cold]
fn put_special<'a>(byte: u8, after: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        SEPARATORS_FIRST => return put_separator(after, out),
        control => {
            out.extend_from_slice(b"\\u00");
            out.extend(
                [control >> 4, control & 15].map(|digit| b"0123456789abcdef"[digit as usize]),
            );
            return after;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
    after
}

fn put_separator<'a>(after: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    match after {
        [0x80, 0xa8, after @ ..] => {
            out.extend_from_slice(b"\\u2028");
            after
        }
        [0x80, 0xa9, after @ ..] => {
            out.extend_from_slice(b"\\u2029");
            after
        }
        _ => {
            out.push(SEPARATORS_FIRST);
            after
        }
    }
}

/// How many bytes need no second look, eight at a time.
#[inline]
fn plain_length(bytes: &[u8], escapes: Escapes) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let found = special_bytes(u64::from_le_bytes(*word), escapes);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let tail = bytes.get(at..).unwrap_or_default();
    at + tail.iter().position(|byte| is_special(*byte, escapes)).unwrap_or(tail.len())
}

#[inline]
fn is_special(byte: u8, escapes: Escapes) -> bool {
    byte < 0x20
        || byte == b'"'
        || byte == b'\\'
        || (byte == SEPARATORS_FIRST && escapes == Escapes::Gson)
}

/// The high bit of each special byte; bits above the lowest one that is set may be wrong.
#[inline]
fn special_bytes(word: u64, escapes: Escapes) -> u64 {
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let separators = if escapes == Escapes::Gson { equal(SEPARATORS_FIRST) } else { 0 };
    below(word, 0x20) | equal(b'"') | equal(b'\\') | separators
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str, escapes: Escapes) -> String {
        let mut out = Vec::new();
        put_string(value, escapes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_read_back() {
        let parts =
            ["", "a", "\"", "\\", "\n\r\t\u{8}\u{c}", "\0\u{1f}\u{7f}", "äあ\u{1f600}", "\u{2028}"];
        for a in parts {
            for b in parts {
                for filler in 0..18 {
                    let value = format!("{a}{}{b}{a}", "x".repeat(filler));
                    for escapes in [Escapes::Json, Escapes::Gson] {
                        let read: String = serde_json::from_str(&text(&value, escapes)).unwrap();
                        assert_eq!(read, value);
                    }
                }
            }
        }
    }

    #[test]
    fn escapes_are_the_short_ones() {
        assert_eq!(text("a\"b\\c\n\u{1}", Escapes::Json), r#""a\"b\\c\n\u0001""#);
        assert_eq!(text("\u{2028}…", Escapes::Gson), "\"\\u2028…\"");
        assert_eq!(text("\u{2028}", Escapes::Json), "\"\u{2028}\"");
    }
}
