//! The four escapes of cells in text: `\\`, `\n`, `\t`, `\0` (reference §1.3).
//!
//! Written for backslash, line feed, TAB and NUL in rows, qualifiers and values; a TAB stays as it
//! is where it does not separate fields. Read back exactly these four; any other backslash stands
//! for itself.

/// Appends `bytes` to `out`, escaped. `tab` says whether a TAB is escaped.
#[inline]
pub fn escape(bytes: &[u8], tab: bool, out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| needs_escape(*b, tab)) {
        out.extend_from_slice(&rest[..at]);
        let letter = match rest[at] {
            b'\n' => b'n',
            b'\t' => b't',
            0 => b'0',
            _ => b'\\',
        };
        out.extend_from_slice(&[b'\\', letter]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[inline]
fn needs_escape(byte: u8, tab: bool) -> bool {
    match byte {
        b'\t' => tab,
        0 | b'\n' | b'\\' => true,
        _ => false,
    }
}

/// Appends `bytes` to `out` with escapes taken out.
pub fn unescape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let byte = match rest.get(at + 1) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'0') => 0,
            Some(b'\\') => b'\\',
            _ => {
                out.extend_from_slice(&rest[..=at]);
                rest = &rest[at + 1..];
                continue;
            }
        };
        out.extend_from_slice(&rest[..at]);
        out.push(byte);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(bytes: &[u8], tab: bool) -> Vec<u8> {
        let mut out = Vec::new();
        escape(bytes, tab, &mut out);
        out
    }

    fn unescaped(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        unescape(bytes, &mut out);
        out
    }

    #[test]
    fn four_characters_are_escaped_and_no_others_read_back() {
        assert_eq!(
            escaped(b"a\\b\tc\nd\0e\r", true),
            br"a\\b\tc\nd\0e".iter().chain(b"\r").copied().collect::<Vec<_>>()
        );
        assert_eq!(escaped(b"a\tb", false), b"a\tb");
        assert_eq!(unescaped(br"\\\this\contains\lots\"), b"\\\this\\contains\\lots\\");
    }

    proptest! {
        #[test]
        fn escapes_are_read_back(bytes in any::<Vec<u8>>(), tab in any::<bool>()) {
            let text = escaped(&bytes, tab);
            prop_assert!(!text.contains(&b'\n'));
            prop_assert!(!tab || !text.contains(&b'\t'));
            prop_assert_eq!(unescaped(&text), bytes);
        }
    }
}
