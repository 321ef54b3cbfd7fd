//! `uuid` as text, and back.

use std::fmt::Write;

/// Bytes of a value.
pub(super) const BYTES: i32 = 16;

/// Lower case, with four hyphens.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// As PostgreSQL reads it: in braces or not, with a hyphen behind each fourth digit or not.
pub(super) fn read(text: &str) -> Option<[u8; 16]> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut bytes = [0; 16];
    let mut rest = inner.as_bytes();
    for (place, byte) in bytes.iter_mut().enumerate() {
        let (high, low, behind) = match rest {
            [high, low, behind @ ..] => (digit(*high)?, digit(*low)?, behind),
            _ => return None,
        };
        *byte = high << 4 | low;
        rest = match behind {
            [b'-', behind @ ..] if place % 2 == 1 && place < 15 => behind,
            _ => behind,
        };
    }
    rest.is_empty().then_some(bytes)
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_postgresql_are_read() {
        let expected = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(read(text).map(|bytes| shown(&bytes)).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "xyz",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a1",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11-",
            "a-0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
